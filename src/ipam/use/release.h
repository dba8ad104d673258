#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/audit/runtime_comparison.h"
#include "ipam/decide/release.h"
#include "ipam/use/batch.h"
#include "ipam/use/transact.h"
#include "register/owner.h"
#include "register/pool.h"
#include "store/store.h"

namespace croft::engine {

/// Releases all that an owner holds by its handle. Holding nothing is a success, as it is for an owner whose handle the
/// store can have no record of; may be repeated.
[[nodiscard]] Result<core::Released> release_owner(const Context& context, const core::Owner& owner);

/// The same as a call of a batch: what holds nothing goes alone, by release_owner(). `owner` must outlive the call, and
/// so must `answer`, which is set when it is done.
[[nodiscard]] BatchedCall release_in_batch(const core::Owner& owner, Deadline not_after, core::Released& answer);

/// Releases given addresses wherever their blocks are; see core::plan_release_addresses for what must match. An address
/// without a sequence number means the holder at the first look, not a successor. Without `apply` it only says what
/// would come of it.
[[nodiscard]] Result<core::AddressReleases> release_addresses(const Context& context,
                                                              const std::vector<core::AddressToRelease>& addresses,
                                                              bool apply = true);

/// The brake: refused_for_safety when these addresses are more than `share` of those held on some node, as far as the
/// named holders still have them. An address that records no node counts as one of a node without name.
[[nodiscard]] Result<void> check_release_share(const Context& context,
                                               const std::vector<core::AddressToRelease>& addresses, double share);

/// Deletes or corrects the record of a handle that counts addresses which no block holds (core::plan_mend_handle), if
/// the record still has this revision. False: it was right, has changed, or is gone.
[[nodiscard]] Result<bool> mend_handle(const Context& context, const std::string& handle_id, store::Revision revision);

using core::audit::GcAttachments;
using core::audit::kCollectAgeMin;

struct Collected {
  std::vector<net::Address> released;
  std::size_t kept_young = 0;  ///< held by nobody valid, but younger than kCollectAgeMin
};

/// CNI GC: releases, into cooling, what leaked of this network on this node (core::audit::add_garbage).
[[nodiscard]] Result<Collected> collect_attachments(const Context& context, const std::string& network,
                                                    const core::AffinityOwner& node, const GcAttachments& valid);

using core::audit::StatusRequest;

/// The addresses that an owner is recorded to hold, ascending; empty when none.
[[nodiscard]] Result<std::vector<net::Address>> held_addresses(const Context& context, const core::Owner& owner);

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
/// `pools` are made first when they are absent, as by an ADD (engine::assign).
[[nodiscard]] Result<void> check_status(const Context& context, const StatusRequest& request,
                                        const std::vector<core::PoolSpec>& pools = {});

}  // namespace croft::engine
