#pragma once

#include <string>
#include <vector>

#include "base/result.h"
#include "hostlocal/decide/range_set.h"

namespace croft::edge {

/// Where the range sets of a network may be found.
struct SetSources {
  std::string config_file;  ///< --config; when it is given, nothing else is asked
  std::string network;
  std::vector<std::string> cache_directories;  ///< CNI caches; flannel keeps its delegates' configuration beside them
  std::string config_directory = "/etc/cni/net.d";
};

struct FoundSets {
  std::vector<core::host_local::RangeSet> sets;  ///< empty: no configuration was found
  std::string source;                            ///< the file they are from
  std::vector<std::string> unusable;             ///< files that could not be used, and why; the first few
};

/// The range sets of a network, from the file that was given. Else they are those of the newest entry of the runtime's
/// cache (`results`) that has this network's configuration, else of the newest one that flannel made (`flannel`), else
/// of the first file of the configuration directory. Error: the given file can't be used.
[[nodiscard]] Result<FoundSets> find_range_sets(const SetSources& sources);

}  // namespace croft::edge
