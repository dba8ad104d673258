#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "store/kube/format/objects.h"
#include "store/kube/read_form.h"

// What tells of the addresses and node ports of Services (docs/formats/kubernetes.md#api). The bitmaps beside them are
// in the etcd of the kube-apiservers alone.

namespace croft::store::kube {
namespace {

/// One that can't be understood stands there as such: who needs it says so, and all others go on.
template <class T>
void take_value(Stored& stored, Result<T> value) {
  if (value) {
    stored.record.value = *std::move(value);
  } else {
    stored.record.value = core::Damaged{stored.record.key.kind, std::move(value).error(), {}};
  }
}

class ServiceForm final : public ReadForm {
 public:
  ServiceForm() : ReadForm(Kind::service, {"", "v1", "services"}, "Service") {}

  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    const std::size_t slash = key.name.find('/');
    std::string name = slash == key.name.npos ? std::string() : key.name.substr(slash + 1);
    if (wire::kube::is_path_segment(name)) return name;
    return fail(is_no_name(key));
  }
  [[nodiscard]] bool is_namespaced(Kind) const override { return true; }
  [[nodiscard]] std::string object_namespace(const Key& key) const override {
    return key.name.substr(0, key.name.find('/'));
  }
  [[nodiscard]] Result<Stored> decode(Kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    const core::ServiceName name{meta.name_space, meta.name};
    TRY(Stored stored, stored_as(core::service_key(name), meta));
    take_value(stored, wire::kube::decode_service("Service " + net::echo(name.to_string()), name, object));
    return stored;
  }
};

class ServiceCidrForm final : public ReadForm {
 public:
  ServiceCidrForm() : ReadForm(Kind::service_cidr, {"networking.k8s.io", "v1", "servicecidrs"}, "ServiceCIDR") {}

  [[nodiscard]] bool may_be_unknown(Kind) const override { return true; }
  [[nodiscard]] Result<Stored> decode(Kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    TRY(Stored stored, stored_as({Kind::service_cidr, meta.name}, meta));
    take_value(stored, wire::kube::decode_service_cidr("ServiceCIDR " + net::echo(meta.name), meta.name, object));
    return stored;
  }
};

/// Made and deleted by the repair, never changed: what an address is for is fixed.
class IpAddressForm final : public ReadForm {
 public:
  IpAddressForm() : ReadForm(Kind::ip_address, {"networking.k8s.io", "v1", "ipaddresses"}, "IPAddress") {}

  [[nodiscard]] bool may_be_unknown(Kind) const override { return true; }
  [[nodiscard]] Result<void> check_write(const Write& write) const override {
    const bool is_change = write.value && write.condition.kind != Condition::Kind::absent;
    if (!is_change) return {};
    return fail(invalid_argument(fmt::format("IPAddress {} is made or deleted, never changed: its spec is immutable",
                                             net::echo(write.key.name))));
  }
  [[nodiscard]] Result<Stored> decode(Kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    TRY(Stored stored, stored_as(core::ip_address_key(meta.name), meta));
    take_value(stored, wire::kube::decode_ip_address("IPAddress " + net::echo(meta.name), meta.name, object));
    return stored;
  }
  [[nodiscard]] std::string encode(const Key&, const Value& value, const WriteToken&, const std::optional<Basis>&,
                                   WallTime) const override {
    const auto* object = std::get_if<core::IpAddressObject>(&value);
    CROFT_ASSERT(object != nullptr);
    return wire::kube::encode_ip_address_json(*object);
  }
};

}  // namespace

std::vector<std::unique_ptr<Form>> make_service_forms() {
  std::vector<std::unique_ptr<Form>> forms;
  forms.push_back(std::make_unique<ServiceForm>());
  forms.push_back(std::make_unique<IpAddressForm>());
  forms.push_back(std::make_unique<ServiceCidrForm>());
  return forms;
}

}  // namespace croft::store::kube
