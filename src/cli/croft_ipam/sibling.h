#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cni/door/call_so_far.h"

namespace croft::app {

/// The file beside croft-ipam that has what an etcd, a Kubernetes API and a cloud need.
inline constexpr const char* kSibling = "croft-ipam-cluster";

/// Becomes it, called as `personality`, with the configuration that this process has read.
[[nodiscard]] edge::HandOver hand_over_to_sibling(const char* personality);

/// In the sibling: the call that it goes on with; nothing where the runtime called it. Error: unavailable, where the
/// file that began it is of another version, which asks otherwise.
[[nodiscard]] Result<std::optional<edge::CallSoFar>> call_so_far(const Clock& clock);

}  // namespace croft::app
