#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "install/decide/node_network.h"

namespace croft::wire {

/// As large as containerd takes a configuration (go-cni).
inline constexpr std::size_t kNodeNetworkBytesMax = std::size_t{2} << 20;

/// A network configuration, a list or the one plugin of a .conf. `ours`: the text that is to be written, for the
/// comparison. A text that is none has `trouble`; names of members count as they are written.
[[nodiscard]] core::NodeNetwork read_node_network(const std::string& file, std::string_view text,
                                                  std::string_view ours = {});

}  // namespace croft::wire
