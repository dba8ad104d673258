#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <vector>

#include "collector/decide/judge.h"
#include "collector/decide/register_view.h"
#include "collector/use/node_facts.h"
#include "ipam/use/transact.h"
#include "register/records.h"

namespace croft::engine {

struct SweepOptions {
  core::collect::Settings settings;
  bool dry_run = false;  ///< decide and prove, write nothing
};

/// The observations and actions of one pass of the collector.
struct SweepReport {
  bool dry_run = false;
  Instant began, ended;
  std::size_t blocks = 0, held = 0, nodes = 0, pods = 0;  ///< looked at
  bool pods_known = false;
  std::size_t candidates = 0, confirmed = 0, waiting_for_handle = 0, kept_by_brake = 0;
  std::size_t changed_meanwhile = 0;              ///< chosen, but not proven any more when it was to be released
  std::size_t cooled_blocks = 0;                  ///< blocks whose ended cooldowns were written down
  std::vector<core::collect::Evidence> released;  ///< with dry_run: what would be
  std::vector<core::collect::Alarm> alarms;
  /// With dry_run: kinds that this account may not read, and why; nothing is concluded about them.
  std::map<core::Kind, Error> not_allowed{};
  /// The store failed in the middle: what is above was done, the rest is left to the next pass.
  std::optional<Error> failure;
};

/// One pass of the collector (docs/promises.md#promise-4). It reads the register, asks for the facts, decides
/// (collector/decide), and releases what is proven dead, addresses under handle and sequence number. Each address is
/// looked at again in its block as it is then; its pod, and a node that is gone, are asked for by themselves where the
/// source can be. `memory` is what earlier passes left; it is replaced, in a dry run too. Several collectors may run at
/// once. A pass that only counts writes nothing. Errors: those of reading the register and of the source; `memory` is
/// then as before.
[[nodiscard]] Result<SweepReport> sweep(const Context& context, FactSource& source, core::collect::Memory& memory,
                                        const SweepOptions& options);

/// So many blocks with ended cooldowns, and handles without addresses, are written in one pass; the next goes on.
inline constexpr std::size_t kSweepBlocksMax = 1000;
inline constexpr std::size_t kSweepHandlesMax = 5000;

struct RegisterLook {
  core::collect::RegisterView view;
  std::vector<core::RemovedNode> spent;      ///< nodes taken away of which nothing is held any more
  std::vector<core::collect::Alarm> alarms;  ///< blocks that contradict themselves: they are not in the view
  std::map<core::Kind, Error> not_allowed{};
};

/// Reads what the collector looks at, page by page, so that never more than a page of whole records is in memory:
/// blocks, affinities, the names of handles. Changes meanwhile may or may not be seen. With `may_lack`, for who writes
/// nothing, affinities and handles that this account may not read are left out, and told (not_allowed).
[[nodiscard]] Result<RegisterLook> read_register_view(const Context& context, bool may_lack);

}  // namespace croft::engine
