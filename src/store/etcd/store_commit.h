#pragma once

#include <optional>
#include <span>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/epoch.h"
#include "store/etcd/kv.h"
#include "store/etcd/place.h"
#include "store/pause.h"
#include "store/store.h"

namespace croft::store::etcd {

/// The pause's key, beside the roots of Croft's own records.
inline constexpr const char* kPausePlace = "/croft/v1/pause";
/// The pause as Pausable has it; its revision is etcd's mod_revision.
[[nodiscard]] Result<std::optional<StoredPause>> read_pause(Kv& kv, Deadline deadline);
/// Put in the place of `there`, or taken away.
[[nodiscard]] Result<void> change_pause(Kv& kv, const std::optional<StoredPause>& there,
                                        const std::optional<core::Pause>& next, Deadline deadline);

/// One transaction that writes all or nothing, as Store::commit. It is done only in the epoch in which its conditions
/// were read, and while there is no pause but where it fills the store (Pausable::fill).
[[nodiscard]] Result<store::Revision> commit_writes(Kv& kv, const Places& places, Epoch& epoch, const Clock& clock,
                                                    std::span<const Write> writes, const WriteToken& token,
                                                    bool is_filling, Deadline deadline);

/// As Store::fate_of: told by the one of the commit's writes that names it best.
[[nodiscard]] Result<Fate> fate_of_commit(Kv& kv, const Places& places, Epoch& epoch, std::span<const Write> writes,
                                          const WriteToken& token, Deadline deadline);

}  // namespace croft::store::etcd
