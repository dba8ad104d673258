#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/per_family.h"
#include "base/result.h"
#include "ipam/audit/attachments.h"
#include "ipam/decide/release.h"
#include "ipam/use/transact.h"
#include "register/owner.h"
#include "register/pool.h"

namespace croft::engine {

/// The addresses that an owner is recorded to hold, ascending; empty when none.
[[nodiscard]] Result<std::vector<net::Address>> held_addresses(const Context& context, const core::Owner& owner);

/// CNI DEL: all that an owner holds by its handle (release_owner). Where that is nothing, or less than the handle
/// counts, also what the blocks of `node` have of it although its handle did not lead there: somebody deleted or edited
/// that. No node: there is no such look. The look reads no more than kHeldOnNodeBlocksMax blocks, for no longer than
/// kHeldOnNodeTime, and asks `memory`: what it finds is given back only where the store has it so. Where the look fails
/// nothing is said. Errors: of release_owner; of what was found and could not be given back.
[[nodiscard]] Result<core::Released> release_on_node(const Context& context, const Context& memory,
                                                     const core::Owner& owner, const std::string& node);
inline constexpr std::size_t kHeldOnNodeBlocksMax = 64;
inline constexpr std::chrono::seconds kHeldOnNodeTime{2};

/// Whether the store takes writes, without making one (store::write_question). It does not wait for another writer that
/// goes on for long: that says nothing against the store, and must not make a node unready. Errors: those of a commit,
/// but conflict.
[[nodiscard]] Result<void> check_writable(const Context& context);

/// CNI CHECK: what is recorded for the owner against what the runtime believes in (`expected`, from prevResult), by
/// core::audit::check_attachment. Errors: its not_found, those of the store.
[[nodiscard]] Result<void> check_attachment(const Context& context, const core::Owner& owner,
                                            const std::vector<net::Address>& expected);

/// CNI STATUS: the store answers and takes writes, and a pool of each wanted family is enabled. With `fail_when_full`,
/// also that such a pool has room for this node, and that no damaged record keeps it from giving. Without it neither
/// fails: all nodes would be not ready at once, and their pods, which have their addresses, would be evicted.
/// Errors: those of the store; no_pool; exhausted; corrupt and newer_version naming the record.
using core::audit::StatusRequest;
/// `pools` are made first when they are absent, as by an ADD (engine::assign).
[[nodiscard]] Result<void> check_status(const Context& context, const StatusRequest& request,
                                        const std::vector<core::PoolSpec>& pools = {});

}  // namespace croft::engine
