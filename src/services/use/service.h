#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ipam/use/transact.h"
#include "services/decide/service_changes.h"

namespace croft::engine {

// Services with their addresses and node ports, on a store of Croft's own. A refusal is an answer; an
// Error is a fault of the store or of what is in it, as everywhere. A dry run decides and writes nothing; the real run
// may choose other free values.

struct StoredService {
  core::Service service;
  store::Revision revision;
};

/// Makes a Service (core::plan_create_service).
[[nodiscard]] Result<core::ServiceAnswer> create_service(const Context& context, const core::Service& wanted,
                                                         const core::ServiceRanges& ranges, bool dry_run = false);

/// Replaces the Service of that name (core::plan_update_service); with `as_of` only if it still has this revision.
[[nodiscard]] Result<core::ServiceAnswer> update_service(const Context& context, const core::Service& wanted,
                                                         const core::ServiceRanges& ranges, bool dry_run = false,
                                                         const std::optional<store::Revision>& as_of = {});

/// Deletes the Service that has the name at the first reading; what it held is free when this returns
/// (core::plan_delete_service). A later Service of that name stays.
[[nodiscard]] Result<core::ServiceAnswer> delete_service(const Context& context, const core::ServiceName& name,
                                                         bool dry_run = false);

[[nodiscard]] Result<std::optional<StoredService>> get_service(const Context& context, const core::ServiceName& name);

/// Those of a namespace, or all; ascending by namespace and name.
[[nodiscard]] Result<std::vector<StoredService>> list_services(const Context& context,
                                                               const std::string& name_space = {});

}  // namespace croft::engine
