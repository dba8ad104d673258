#pragma once

#include <optional>
#include <string_view>

#include "calico/datastore.h"

// Where Calico's plugin, the one that makes interfaces, has its records by a node's network configuration.

namespace croft::wire::cni {

/// Of the first plugin of type `calico`, as far as its configuration says it (datastore_as_said); Go's reading of names
/// and bytes, as of read_network_calls(). nullopt: there is none, or it says a datastore that Calico does not have.
[[nodiscard]] std::optional<DatastoreChoice> datastore_of_calicos_plugin(std::string_view network);

}  // namespace croft::wire::cni
