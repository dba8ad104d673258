#pragma once

#include <string>
#include <string_view>
#include <vector>

// What Kubernetes takes for a name, and its texts about what it does not.

namespace croft::core::service_names {

using Messages = std::vector<std::string>;

/// RFC 1035: letters, digits and `-`, a letter first. Names of Services.
[[nodiscard]] Messages problems_of_service_name(std::string_view text);
/// RFC 1123: the same, or a digit first. Namespaces and names of ports.
[[nodiscard]] Messages problems_of_label(std::string_view text);
/// Labels with dots between them.
[[nodiscard]] Messages problems_of_domain(std::string_view text);
/// `name` or `domain/name`: keys of labels, classes, application protocols.
[[nodiscard]] Messages problems_of_qualified_name(std::string_view text);
[[nodiscard]] Messages problems_of_label_value(std::string_view text);
/// What `targetPort` may be when it is no number.
[[nodiscard]] Messages problems_of_port_name(std::string_view text);

}  // namespace croft::core::service_names
