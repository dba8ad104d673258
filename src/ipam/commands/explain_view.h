#pragma once

#include <string>

#include "ipam/decide/explain.h"

namespace croft::app {

/// The explanation as text: the node, every pool in the order of consideration with its grounds, and the answer; the
/// refusal in the words of the CNI error.
[[nodiscard]] std::string text_of(const core::Explanation& explanation, const core::AssignRequest& request);

}  // namespace croft::app
