#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::wire::cni {

inline constexpr std::size_t kNodenameFileBytesMax = 4096;

/// The name in Calico's file of the node's name (`nodename_file`): what it has without white space around it; empty
/// when it has nothing else. Error: invalid_argument, which repeats nothing of the content: who writes the network
/// configuration names the file, and may not read it (docs/threat-model.md).
[[nodiscard]] Result<std::string> decode_nodename_file(std::string_view content);

}  // namespace croft::wire::cni
