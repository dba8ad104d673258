#include "cli/croft_ipam/sibling.h"

#include <utility>

#include <fmt/format.h>

#include "cni/format/network_list.h"
#include "os/sibling.h"

namespace croft::app {
namespace {

constexpr const char* kVariable = "CROFT_CALL_SO_FAR";

}  // namespace

edge::HandOver hand_over_to_sibling(const char* personality, const std::string& input) {
  return [personality, &input](const edge::CallSoFar& call) {
    Error error =
        os::become_sibling({wire::cni::kSiblingName, personality, input, kVariable, edge::encode_call_so_far(call)});
    if (error.code == ErrorCode::not_found) {
      error.message +=
          "; croft-ipam needs it for an etcd, a Kubernetes API or a cloud: run croftd install, or copy it there";
    } else if (error.code == ErrorCode::already_exists) {
      error.message += ": run croftd install, or copy the right file there";
    }
    // The register is there, whatever keeps this node from asking it: nobody may take that for an empty one.
    error.code = ErrorCode::unavailable;
    return error;
  };
}

Result<std::optional<edge::CallSoFar>> call_so_far(const Clock& clock) {
  const auto text = os::handed_over(kVariable);
  if (!text) return std::optional<edge::CallSoFar>();
  auto call = edge::parse_call_so_far(*text);
  if (!call) {
    return fail(ErrorCode::unavailable, fmt::format("{} is of another version than the plugin that began this call: "
                                                    "install both of one version",
                                                    wire::cni::kSiblingName));
  }
  call->began.boot = clock.now().boot;
  return call;
}

}  // namespace croft::app
