#pragma once

#include <string>
#include <string_view>
#include <variant>

#include "base/clock.h"
#include "base/json/reader.h"
#include "base/result.h"
#include "register/records.h"

// Kubernetes' objects as a kube-apiserver keeps them in etcd (docs/formats/kubernetes.md). Protobuf or JSON: the first
// bytes of a value tell, whatever a cluster is configured to write. And as its API answers with them, where a JsonRef
// is given: those of a list do not say their kind.
//
// Errors of reading, all naming `place`, the key in etcd: corrupt, naming the field; refused_by_configuration when the
// value is encrypted at rest.
namespace croft::wire::kube {

/// Kubernetes takes no request above 3 MiB; a longer value is damage.
inline constexpr std::size_t kObjectBytesMax = std::size_t{4} << 20;

/// Keeps the object's metadata and whatever else is not known here for encode_range_allocation.
[[nodiscard]] Result<core::RangeAllocation> decode_range_allocation(std::string_view place, std::string_view bytes);

/// One that was read, in the form it had; a new one byte for byte as a kube-apiserver that writes protobuf.
[[nodiscard]] std::string encode_range_allocation(const core::RangeAllocation& range);

/// A value of etcd in either form, or an object of the API's answer.
using KubernetesSource = std::variant<std::string_view, JsonRef>;

/// Applies what a kube-apiserver does when it reads a Service of before dual stack: one address stands in the list too,
/// and its family is the Service's. Addresses are texts as found, also where they are none.
[[nodiscard]] Result<core::Service> decode_service(std::string_view place, const core::ServiceName& name,
                                                   const KubernetesSource& source);
/// A Service as a manifest for kubectl has it: its name too, and nothing applied. Members without a use here are passed
/// over. Error: invalid_argument, naming the member.
[[nodiscard]] Result<core::Service> decode_service_manifest(JsonRef object, std::string& resource_version);
[[nodiscard]] Result<core::ServiceCidrObject> decode_service_cidr(std::string_view place, const std::string& name,
                                                                  const KubernetesSource& source);

}  // namespace croft::wire::kube
