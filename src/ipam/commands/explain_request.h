#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "ipam/decide/assign.h"
#include "ipam/use/transact.h"

namespace croft::app {

/// The words of a question about an ADD, as `croft explain` and the page take them.
struct ExplainQuestion {
  std::string node, namespace_name, pod, use = "workload", family;
  std::vector<std::string> namespace_labels, pools, addresses;
};

/// The request that such an ADD would make. Errors: invalid_argument naming the option; those of the store.
[[nodiscard]] Result<core::AssignRequest> explain_request(const engine::Context& context,
                                                          const ExplainQuestion& question);

}  // namespace croft::app
