#include "cli/stores/open_store.h"
#include "store/etcd/etcd_store.h"

namespace croft::app {

Result<std::unique_ptr<store::etcd::Registry>> kubernetes_registry(const EtcdPlace& place) {
  store::etcd::KubernetesOptions options;
  options.services = !place.kubernetes_prefix.empty();
  if (options.services) options.prefix = place.kubernetes_prefix;
  return store::etcd::make_kubernetes_registry(std::move(options));
}

}  // namespace croft::app
