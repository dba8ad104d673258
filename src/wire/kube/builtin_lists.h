#pragma once

#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::wire::kube {

/// What a list of nodes, namespaces, Services, IPAddresses or ServiceCIDRs is asked for as: a server that has no
/// protobuf answers in JSON.
inline constexpr std::string_view kAcceptBuiltin = "application/vnd.kubernetes.protobuf, application/json";

/// Such a list in the JSON that decode_list() and the readers of those kinds take, with the members that they look at:
/// of a node its ranges, its addresses and who wrote which fields, of the others the whole spec, of all their labels
/// and annotations. Anything that is no protobuf comes back as it is. Not for what is written back. Errors: corrupt, it
/// is cut off or of another kind; kTooLarge.
[[nodiscard]] Result<std::string> json_of_builtin_list(std::string body);

}  // namespace croft::wire::kube
