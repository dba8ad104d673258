#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "hostlocal/format/config.h"

namespace croft::wire::cni {

/// The configuration with which the plugin `host-local` is called, found in a configuration file. The file is of one
/// plugin (.conf, and what flannel keeps for its delegate) or of a list (.conflist), whose plugins get its name and
/// version. The first plugin with the `ipam.type` `host-local` counts. A `network` that is not empty must be the file's
/// `name`. `capability_args`, a JSON object or empty, is what the runtime gave; the plugin gets as `runtimeConfig` what
/// it declares in `capabilities`. nullopt: no such plugin, or another network. Errors: invalid_argument, saying what is
/// wrong with the JSON, or the reference's text for what is wrong with the configuration.
[[nodiscard]] Result<std::optional<HostLocalConfig>> find_host_local_config(std::string_view bytes,
                                                                            const std::string& network,
                                                                            std::string_view capability_args = {});

}  // namespace croft::wire::cni
