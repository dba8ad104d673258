#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "register/snapshot.h"
#include "store/calico/codec.h"
#include "store/etcd/client.h"
#include "store/etcd/epoch.h"
#include "store/etcd/format/api.h"
#include "store/etcd/place.h"
#include "store/pause.h"
#include "store/store.h"

// The calls of a store in etcd, and what they have in common.
namespace croft::store::etcd {

/// The common ground of the calls of one store.
struct Parts {
  Client& client;
  const Places& places;
  Epoch& epoch;
  const Clock& clock;
};

// ---------------------------------------------------------------- records and their bytes

/// As store/calico/codec.h, or the registry's.
[[nodiscard]] calico::StoredBytes encode(const Places& places, const Value& value, const WriteToken& token,
                                         WallTime now);

/// The record in a key's value and the one beside it, which are of `epoch`. When they cannot be understood, or a block
/// contradicts itself, the record's error names the key.
[[nodiscard]] Result<Record> decode(const Places& places, const Key& key, const wire::etcd::KeyValue& kv,
                                    const std::optional<std::string>& beside, EpochNumber epoch);

/// Whether the stored value was written by a commit with this value and token. The token tells where the format has it,
/// else the value is what that commit would have written.
[[nodiscard]] bool is_written_by(const Places& places, const Key& key, const Value& value, const WriteToken& token,
                                 std::string_view stored);

/// Whether what a put stores names its commit, so that is_written_by needs no luck: somebody else may have written the
/// same bytes.
[[nodiscard]] bool names_its_commit(const Places& places, const Write& write);

// ---------------------------------------------------------------- requests

/// The key-value of the answer to RangeRequest::one; null when there is no such key.
[[nodiscard]] inline const wire::etcd::KeyValue* only_one(const wire::etcd::ResponseOp& response) {
  const auto& kvs = std::get<wire::etcd::RangeResponse>(response).kvs;
  return kvs.empty() ? nullptr : &kvs.front();
}

// ---------------------------------------------------------------- calls

/// One page of a list, as Store::list. The data beside its records is of the same moment as they are.
[[nodiscard]] Result<Page> list_page(const Parts& parts, const ListRequest& request, Deadline deadline);

/// Everything a decision asks for, as Store::read: in one request the first page of all, then what did not fit, as of
/// the same moment.
[[nodiscard]] Result<ReadAnswer> read_wanted(const Parts& parts, const core::Missing& wanted, Deadline deadline);

/// As Store::position.
[[nodiscard]] Result<store::Revision> position_now(const Parts& parts, Deadline deadline);

/// A range as of now, and the epoch's record taken in with it. Errors: of Client::txn and Epoch::take.
[[nodiscard]] Result<RangeResponse> range_with_epoch(const Parts& parts, const RangeRequest& request,
                                                     Deadline deadline);

/// The pause's key, beside the roots of Croft's own records.
inline constexpr const char* kPausePlace = "/croft/v1/pause";
/// The pause as Pausable has it; its revision is etcd's mod_revision.
[[nodiscard]] Result<std::optional<StoredPause>> read_pause(Client& client, Deadline deadline);
/// Put in the place of `there`, or taken away.
[[nodiscard]] Result<void> change_pause(Client& client, const std::optional<StoredPause>& there,
                                        const std::optional<core::Pause>& next, Deadline deadline);

/// One transaction that writes all or nothing, as Store::commit. It is done only in the epoch in which its conditions
/// were read, and while there is no pause but where it fills the store (Pausable::fill).
[[nodiscard]] Result<store::Revision> commit_writes(const Parts& parts, std::span<const Write> writes,
                                                    const WriteToken& token, bool is_filling, Deadline deadline);

/// As Store::fate_of: told by the one of the commit's writes that names it best.
[[nodiscard]] Result<Fate> fate_of_commit(const Parts& parts, std::span<const Write> writes, const WriteToken& token,
                                          Deadline deadline);

/// A watch of records over etcd's watches. It survives the loss of a connection, and ends with the epoch of `after`.
/// `store` reads what a change leaves open; all arguments but the scope must outlive it. Its kinds must be such as the
/// places have.
[[nodiscard]] std::unique_ptr<Watch> make_watch(const Parts& parts, Store& store, Random& random,
                                                const WatchScope& scope, store::Revision after);

}  // namespace croft::store::etcd
