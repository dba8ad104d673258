#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/block/owner.h"
#include "engine/release.h"
#include "engine/transact.h"

namespace croft::engine {

/// Something wrong or left over in the register, and what to do about it.
struct Finding {
  /// Stable identifiers, for scripts.
  enum class Kind : std::uint8_t {
    block_corrupt,        ///< a block contradicts itself; its addresses stay taken
    block_overlap,        ///< two blocks contain the same address
    block_without_pool,   ///< a block lies in no pool, or has another size than the pool's
    affinity_missing,     ///< a block's owner has no claim on it: the owner won't find it by listing its claims
    affinity_stale,       ///< a claim on a block that does not exist or belongs to another
    vacancy_missing,      ///< a block has room and its owner won't see it
    vacancy_stale,        ///< a hint for a block that does not exist or belongs to another
    handle_missing,       ///< an address is held under a handle that has no record: DEL would not find it
    handle_miscount,      ///< a handle counts other addresses than the blocks hold
    pool_overlap,         ///< two pools contain the same address
    reservation_missing,  ///< a pool's network, gateway or broadcast address is not kept out of use
    reserved_held,        ///< an address is held although it is reserved
    sequence_behind,      ///< a block's sequence number is not above its high-water mark
    not_attached,         ///< an address is held by an attachment the runtime does not know
  } kind;
  std::string subject;  ///< the record or address, e.g. "10.88.0.3" or "block 10.88.0.0/28"
  std::string what;     ///< one sentence: the evidence
  std::string remedy;   ///< one sentence: how to collect or mend it
};
[[nodiscard]] std::string_view name_of(Finding::Kind kind);

struct AuditReport {
  std::vector<Finding> findings;
  std::size_t pools = 0, blocks = 0, handles = 0, held = 0, cooling = 0;
};

/// Attachments the runtime knows (edge/cni_cache.h reads them).
using LiveAttachments = std::set<core::Owner>;

/// Reads the whole register once, without any lock, and reports what contradicts itself. Records that change meanwhile
/// may show up as findings; a second look tells. With `live`, also addresses whose attachment is not among them, unless
/// they are held for less than `grace`: the runtime learns of an attachment only after its ADD. Changes nothing.
[[nodiscard]] Result<AuditReport> audit(const Context& context, const std::optional<LiveAttachments>& live,
                                        std::chrono::seconds grace = kCollectAgeMin);

}  // namespace croft::engine
