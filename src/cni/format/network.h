#pragma once

#include <string>
#include <string_view>

#include "base/json/reader.h"
#include "cni/format/environment.h"

// The two members of a network configuration that every personality has, read the way the dispatcher does
// (docs/notes/cni.md#error-order).

namespace croft::wire::cni {

/// Standard input as JSON. Error: code 6, `error unmarshall network config: <why>`.
Checked<JsonDocument> parse_network_config(std::string_view stdin_bytes, const JsonLimits& limits = {});

/// The checked `name`. Errors: code 6 for a configuration that is no object or a name that is no string; code 7
/// `missing network name` or `invalid characters found in network name`.
Checked<std::string> read_network_name(const JsonDocument& config);

/// The `cniVersion` as written; "0.1.0" when absent, null or empty. Whether it is supported is the dispatcher's
/// question. Error: code 6, `decoding version from network config: <why>`.
Checked<std::string> read_cni_version(const JsonDocument& config);

/// A network configuration of which these two members have been read; a personality's decoder takes the rest.
struct Network {
  JsonDocument document;
  std::string name;
  std::string cni_version;
};
/// Both, the name first, where nothing is checked between them.
Checked<Network> read_network(JsonDocument config);

/// The configuration of a plugin as the runtime hands it over: the plugin's own members, and name and version of the
/// list that it is in. Without a list it is both. `runtime_config`: an object's text.
[[nodiscard]] std::string as_called(JsonRef list, JsonRef plugin, std::string_view runtime_config = {});

/// Whether the runtime hands over the result of an ADD that succeeded (`prevResult`), whatever is in it.
[[nodiscard]] bool has_previous_result(const Network& network);

}  // namespace croft::wire::cni
