#include <utility>

#include "base/assert.h"
#include "base/printable.h"
#include "base/text/go_text.h"
#include "base/texts.h"
#include "services/format/kubernetes_objects.h"
#include "store/etcd/etcd_store.h"

namespace croft::store::etcd {
namespace {

namespace kube = wire::kube;

/// `default/web`. Error: corrupt.
[[nodiscard]] Result<core::ServiceName> service_name_in(const Key& key) {
  const std::size_t slash = key.name.find('/');
  if (slash == key.name.npos) {
    return fail(ErrorCode::corrupt, "Service {} is in no namespace", echo(key.name));
  }
  return core::ServiceName{key.name.substr(0, slash), key.name.substr(slash + 1)};
}

class KubernetesRegistry final : public Registry {
 public:
  explicit KubernetesRegistry(KubernetesOptions options) : options_(std::move(options)) {}

  [[nodiscard]] bool has(Kind kind) const override {
    return kind == Kind::range_allocation || kind == Kind::service_cidr ||
           kind == (options_.services ? Kind::service : Kind::foreign_service);
  }

  [[nodiscard]] bool gives_to_own_services() const override {
    return options_.services && options_.prefix == kKubernetesPrefix;
  }

  [[nodiscard]] std::string root_of(Kind kind) const override {
    switch (kind) {
      case Kind::range_allocation:
        return options_.prefix + "/ranges/";
      case Kind::service_cidr:
        return options_.prefix + "/servicecidrs/";
      case Kind::service:
      case Kind::foreign_service:
        return options_.prefix + "/services/specs/";
      default:
        CROFT_ASSERT(false);
    }
  }

  [[nodiscard]] Result<void> check_write(const Write& write) const override {
    if (write.only_check) return {};
    if (write.key.kind == Kind::range_allocation) return {};
    return fail(ErrorCode::read_only, "{} {} is Kubernetes' own and read-only here: change it with kubectl",
                name_of(write.key.kind), echo(write.key.name));
  }

  [[nodiscard]] Result<Value> decode(const Key& key, std::string_view place, std::string_view bytes) const override {
    switch (key.kind) {
      case Kind::range_allocation: {
        TRY(auto range, kube::decode_range_allocation(place, bytes));
        return Value(std::move(range));
      }
      case Kind::service_cidr: {
        TRY(auto object, kube::decode_service_cidr(place, key.name, bytes));
        return Value(std::move(object));
      }
      case Kind::service:
      case Kind::foreign_service: {
        TRY(const auto name, service_name_in(key));
        TRY(auto service, kube::decode_service(place, name, bytes));
        if (key.kind == Kind::foreign_service) return Value(core::ForeignService{std::move(service)});
        return Value(std::move(service));
      }
      default:
        CROFT_ASSERT(false);
    }
  }

  [[nodiscard]] std::string encode(const Value& value) const override {
    return kube::encode_range_allocation(std::get<core::RangeAllocation>(value));
  }

 private:
  const KubernetesOptions options_;
};

}  // namespace

Result<std::unique_ptr<Registry>> make_kubernetes_registry(KubernetesOptions options) {
  const std::string& prefix = options.prefix;
  if (!prefix.starts_with('/') || prefix.ends_with('/') || !wire::is_plain_text(prefix)) {
    return fail(ErrorCode::invalid_argument, "kubernetes=" + echo(prefix) +
                                                 " is no prefix of keys in etcd: give that of the kube-apiservers' "
                                                 "--etcd-prefix, such as /registry");
  }
  return std::make_unique<KubernetesRegistry>(std::move(options));
}

}  // namespace croft::store::etcd
