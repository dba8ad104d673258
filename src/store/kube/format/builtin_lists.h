#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::wire::kube {

/// What a list of nodes, namespaces, Services, IPAddresses or ServiceCIDRs is asked for as: a server that has no
/// protobuf answers in JSON.
inline constexpr std::string_view kAcceptBuiltin = "application/vnd.kubernetes.protobuf, application/json";

/// Such a list in the JSON that decode_list() and the readers of those kinds take, with the members that they look at:
/// of a node its ranges, its addresses and who wrote which fields, of the others the whole spec, of all their labels
/// and annotations. Anything that is no protobuf comes back as it is. Not for what is written back. `limit`: objects
/// that were asked for at most (ApiListOf::limit). Errors: corrupt, it is cut off or of another kind, or has more
/// objects, or one has more of something than can be (store/kube/format/message_fields.h); kTooLarge.
[[nodiscard]] Result<std::string> json_of_builtin_list(std::string body, std::int64_t limit);

}  // namespace croft::wire::kube
