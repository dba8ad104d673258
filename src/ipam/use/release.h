#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/audit/attachments.h"
#include "ipam/decide/release.h"
#include "ipam/use/batch.h"
#include "ipam/use/transact.h"
#include "store/store.h"

namespace croft::engine {

/// Releases all that an owner holds by its handle. Holding nothing is a success, as it is for an owner whose handle the
/// store can have no record of; may be repeated.
[[nodiscard]] Result<core::Released> release_owner(const Context& context, const core::Owner& owner);

/// The same as a call of a batch: what holds nothing or needs several commits goes alone, by release_owner(). `owner`
/// must outlive the call, and so must `answer`, which is set when it is done.
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

}  // namespace croft::engine
