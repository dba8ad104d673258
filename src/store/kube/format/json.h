#pragma once

// Kubernetes' objects in JSON, read into the messages of the protobuf form. Private to store/kube/format.

#include <kube/kube.pb.h>

#include "base/json/decode.h"

namespace croft::wire::kube {

/// Known members need 5; what is deeper in an unknown one (managedFields) is as deep as the object it describes, and
/// passing it on goes as deep as it is.
inline constexpr std::size_t kJsonDepthMaxOfObjects = 200;

[[nodiscard]] MaybeFault read_type_meta(const JsonAt& at, croft::kube::TypeMeta& out);
[[nodiscard]] MaybeFault read_range_allocation(const JsonAt& at, croft::kube::RangeAllocation& out);
[[nodiscard]] MaybeFault read_service(const JsonAt& at, croft::kube::Service& out);
[[nodiscard]] MaybeFault read_ip_address(const JsonAt& at, croft::kube::IPAddress& out);
[[nodiscard]] MaybeFault read_service_cidr(const JsonAt& at, croft::kube::ServiceCIDR& out);

}  // namespace croft::wire::kube
