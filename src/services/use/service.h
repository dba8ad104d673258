#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ipam/use/transact.h"
#include "services/decide/changes.h"

namespace croft::engine {

// Services with their addresses and node ports, on a store of Croft's own. What a caller is refused is an answer; an
// Error is a fault of the store or of what is in it, as everywhere.

struct StoredService {
  core::Service service;
  store::Revision revision;
};

/// Which ranges a change goes by: what is given here, and of the rest what the records tell, which are read together
/// with all else. What has no record is as kube-apiserver has it without flags: 10.0.0.0/24, no second family,
/// 30000-32767.
struct RangeChoice {
  std::optional<core::service::ServiceCidrs> cidrs;
  std::optional<core::service::NodePortRange> node_ports;
  bool may_make = false;  ///< as in core::ServiceRanges

  RangeChoice() = default;
  /// All given: no record is looked at for it.
  RangeChoice(const core::ServiceRanges& all) : cidrs(all.cidrs), node_ports(all.node_ports), may_make(all.may_make) {}
};

/// Makes a Service (core::plan_create_service). Error, besides: corrupt, when a range's record tells of none.
[[nodiscard]] Result<core::ServiceAnswer> create_service(const Context& context, const core::Service& wanted,
                                                         const RangeChoice& ranges,
                                                         const core::ServiceOptions& options = {});

/// Replaces the Service that has the name at the first look (core::plan_update_service); with `as_of` only if it still
/// has this revision. Refused as stale when it was deleted and made anew meanwhile.
[[nodiscard]] Result<core::ServiceAnswer> update_service(const Context& context, const core::Service& wanted,
                                                         const RangeChoice& ranges,
                                                         const core::ServiceOptions& options = {},
                                                         const std::optional<store::Revision>& as_of = {});

/// Deletes the Service that has the name at the first look; what it held is free when this returns
/// (core::plan_delete_service).
[[nodiscard]] Result<core::ServiceAnswer> delete_service(const Context& context, const core::ServiceName& name,
                                                         const core::ServiceOptions& options = {});

[[nodiscard]] Result<std::optional<StoredService>> get_service(const Context& context, const core::ServiceName& name);

/// Those of a namespace, or all; ascending by namespace and name.
[[nodiscard]] Result<std::vector<StoredService>> list_services(const Context& context,
                                                               const std::string& name_space = {});

/// The ranges that the records tell of. Error: corrupt, when a record's range is none.
[[nodiscard]] Result<core::ServiceRanges> stored_service_ranges(const Context& context);

}  // namespace croft::engine
