#include "base/printable.h"
#include "services/format/kubernetes_objects.h"
#include "store/kube/object_mapping.h"

// The selection that finds what tells of addresses and node ports of Services (docs/formats/kubernetes.md#api). The
// bitmaps beside them are in the etcd of the kube-apiservers alone.

namespace croft::store::kube {
namespace {

using wire::kube::ApiMeta;

[[nodiscard]] Result<Value> service_in(wire::JsonRef object, const ApiMeta& meta) {
  const core::ServiceName name{meta.name_space, meta.name};
  return wire::kube::decode_service("Service " + echo(name.to_string()), name, object);
}

[[nodiscard]] Result<Value> service_cidr_in(wire::JsonRef object, const ApiMeta& meta) {
  return wire::kube::decode_service_cidr("ServiceCIDR " + echo(meta.name), meta.name, object);
}

constexpr KubernetesKind kService{Kind::service, {{"", "v1", "services"}, "Service", true}, service_in};
constexpr KubernetesKind kServiceCidr{
    Kind::service_cidr, {{"networking.k8s.io", "v1", "servicecidrs"}, "ServiceCIDR", false, true}, service_cidr_in};

}  // namespace

std::vector<std::unique_ptr<ObjectMapping>> make_service_mappings() {
  std::vector<std::unique_ptr<ObjectMapping>> mappings;
  for (const KubernetesKind& kind : {kService, kServiceCidr}) mappings.push_back(make_kubernetes_mapping(kind));
  return mappings;
}

}  // namespace croft::store::kube
