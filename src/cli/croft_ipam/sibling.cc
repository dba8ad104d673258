#include "cli/croft_ipam/sibling.h"

#include <utility>

#include <fmt/format.h>

#include "cli/croft_ipam/plugin_main.h"
#include "cli/stores/environment.h"
#include "os/sibling.h"

namespace croft::app {
namespace {

constexpr const char* kVariable = "CROFT_CALL_SO_FAR";

}  // namespace

edge::HandOver hand_over_to_sibling(const char* personality) {
  return [personality](const edge::CallSoFar& call) {
    Error error = os::become_sibling(
        {kSibling, personality, standard_input(), fmt::format("{}={}", kVariable, edge::encode_call_so_far(call))});
    if (error.code == ErrorCode::not_found) {
      error.message += ": it asks etcds, Kubernetes APIs and clouds for croft-ipam; install it there";
    }
    // The register is there, whatever keeps this node from asking it: nobody may take that for an empty one.
    error.code = ErrorCode::unavailable;
    return error;
  };
}

Result<std::optional<edge::CallSoFar>> call_so_far(const Clock& clock) {
  const std::string text = from_environment(kVariable);
  auto call = edge::parse_call_so_far(text);
  if (!call && !text.empty()) {
    return fail(ErrorCode::unavailable, fmt::format("{} is of another version than the plugin that began this call: "
                                                    "install both of one version",
                                                    kSibling));
  }
  if (call) call->began.boot = clock.now().boot;
  return call;
}

}  // namespace croft::app
