#pragma once

#include <optional>
#include <string>

#include "base/result.h"
#include "cni/door/call_so_far.h"

namespace croft::app {

/// Becomes the sibling, called as `personality`, with `input` as the configuration. It must outlive the function.
[[nodiscard]] edge::HandOver hand_over_to_sibling(const char* personality, const std::string& input);

/// In the sibling: the call that it goes on with; nothing where the runtime called it. Error: unavailable, where the
/// file that began it is of another version, which asks otherwise.
[[nodiscard]] Result<std::optional<edge::CallSoFar>> call_so_far(const Clock& clock);

}  // namespace croft::app
