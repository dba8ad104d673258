#include "store/kube/form.h"

#include <array>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/net/echo.h"
#include "base/net/lenient.h"

namespace croft::store::kube {

wire::kube::ApiListOf Form::list_of(Kind kind) const {
  const FormKind is = about(kind);
  const auto& resource = is.resource;
  return {
      resource.group.empty() ? std::string(resource.version) : fmt::format("{}/{}", resource.group, resource.version),
      std::string(is.kind), false, is.kept};
}

Result<std::string> Form::path_of(const Key& key) const {
  TRY(const std::string name, object_name(key));
  const FormKind is = about(key.kind);
  const std::string name_space = is.is_namespaced ? key.name.substr(0, key.name.find('/')) : std::string();
  return wire::kube::object_path(is.resource, name_space, name);
}

Result<Stored> Form::stored_as(Key key, wire::JsonRef object, const wire::kube::ApiMeta& meta) {
  Stored stored;
  stored.basis = {meta.uid, meta.resource_version};
  TRY(stored.record.revision, revision_of(meta.resource_version));
  stored.record.key = std::move(key);
  const auto annotations = member_of(member_of(object, "metadata"), "annotations");
  if (const auto text = member_of(annotations, wire::kube::kTokenAnnotation)) {
    auto& token = stored.record.token.bytes;
    token = bytes_of_hex<std::tuple_size_v<std::decay_t<decltype(token)>>>(text->text()).value_or(token);
  }
  return stored;
}

Result<Revision> revision_of(const std::string& resource_version) {
  std::uint64_t number = 0;
  const char* end = resource_version.data() + resource_version.size();
  const auto [stop, fault] = std::from_chars(resource_version.data(), end, number);
  if (fault != std::errc() || stop != end || number == 0) {
    return fail(ErrorCode::corrupt,
                fmt::format("the API server's resourceVersion {} is no number", net::echo(resource_version)));
  }
  return Revision(number);
}

std::string resource_version_of(Revision revision) { return std::to_string(revision.value); }

// ---------------------------------------------------------------- Kubernetes' own kinds
namespace {

/// Where Calico keeps the tunnels of a node that is Kubernetes' (libcalico-go/lib/backend/k8s/resources/node.go).
struct Tunnel {
  std::string_view annotation;
  core::TunnelKind kind;
};
constexpr std::array kTunnels = {
    Tunnel{"projectcalico.org/IPv4IPIPTunnelAddr", core::TunnelKind::ipip},
    Tunnel{"projectcalico.org/IPv4VXLANTunnelAddr", core::TunnelKind::vxlan_v4},
    Tunnel{"projectcalico.org/IPv6VXLANTunnelAddr", core::TunnelKind::vxlan_v6},
    Tunnel{"projectcalico.org/IPv4WireguardInterfaceAddr", core::TunnelKind::wireguard_v4},
    Tunnel{"projectcalico.org/IPv6WireguardInterfaceAddr", core::TunnelKind::wireguard_v6},
};

using wire::kube::Kept;
constexpr std::array kSpecKept = {Kept{"podCIDR"}, Kept{"podCIDRs"}};
constexpr std::array kStatusKept = {Kept{"addresses"}};
constexpr std::array kNodeKept = {Kept{"metadata"}, Kept{"spec", kSpecKept}, Kept{"status", kStatusKept}};

std::map<std::string, std::string> labels_in(wire::JsonRef object) {
  std::map<std::string, std::string> found;
  const auto labels = member_of(member_of(object, "metadata"), "labels");
  for (auto label = labels ? labels->first_child() : std::nullopt; label; label = label->next_sibling()) {
    found.insert_or_assign(std::string(label->key()), std::string(label->text()));
  }
  return found;
}

[[nodiscard]] Result<Value> node_in(wire::JsonRef object, const wire::kube::ApiMeta& meta) {
  core::Node node;
  node.name = meta.name;
  node.orchestrators = {{"k8s", meta.name}};
  node.labels = labels_in(object);
  const auto annotations = member_of(member_of(object, "metadata"), "annotations");
  for (const Tunnel& tunnel : kTunnels) {
    const auto text = member_of(annotations, tunnel.annotation);
    const auto address = text ? net::parse_address_leniently(text->text()) : std::nullopt;
    // One that is none is not there.
    if (address && address->family() == core::family_of(tunnel.kind)) node.tunnels.push_back({tunnel.kind, *address});
  }
  return Value(std::move(node));
}

[[nodiscard]] Result<Value> namespace_in(wire::JsonRef object, const wire::kube::ApiMeta& meta) {
  return Value(core::Namespace{meta.name, labels_in(object)});
}

constexpr KubernetesKind kNode{Kind::node, {{"", "v1", "nodes"}, "Node", false, false, kNodeKept}, node_in};
constexpr KubernetesKind kNamespace{Kind::name_space, {{"", "v1", "namespaces"}, "Namespace"}, namespace_in};

class KubernetesForm final : public Form {
 public:
  explicit KubernetesForm(const KubernetesKind& kind) : kind_(kind) {}

  [[nodiscard]] bool has(Kind kind) const override { return kind == kind_.record; }
  [[nodiscard]] FormKind about(Kind) const override { return kind_.about; }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    const std::size_t slash = kind_.about.is_namespaced ? key.name.find('/') : key.name.npos;
    std::string name = key.name.substr(slash + 1);
    const bool is_one = (slash != key.name.npos) == kind_.about.is_namespaced && wire::kube::is_path_segment(name);
    if (is_one) return name;
    return fail(invalid_argument(fmt::format("{} is no name of a {}", net::echo(key.name), kind_.about.kind)));
  }
  [[nodiscard]] Result<void> check_write(const Write& write) const override {
    if (kind_.encode == nullptr) {
      return fail(ErrorCode::read_only, fmt::format("{} {} is Kubernetes' own: Croft only reads it; use kubectl",
                                                    kind_.about.kind, net::echo(write.key.name)));
    }
    if (!write.value || write.condition.kind == Condition::Kind::absent) return {};
    return fail(invalid_argument(fmt::format("{} {} is made or deleted, never changed: its spec is immutable",
                                             kind_.about.kind, net::echo(write.key.name))));
  }
  [[nodiscard]] Result<Stored> decode(Kind kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    const std::string name = kind_.about.is_namespaced ? meta.name_space + "/" + meta.name : meta.name;
    TRY(Stored stored, stored_as({kind, name}, object, meta));
    // One that can't be understood stands there as such: who needs it says so, and all others go on.
    stored.record.value = kind_.decode(object, meta);
    return stored;
  }
  [[nodiscard]] std::string encode(const Key&, const Value& value, const WriteToken&, const std::optional<Basis>&,
                                   WallTime) const override {
    return kind_.encode(value);
  }

 private:
  const KubernetesKind kind_;
};

}  // namespace

std::unique_ptr<Form> make_kubernetes_form(const KubernetesKind& kind) {
  return std::make_unique<KubernetesForm>(kind);
}
wire::kube::ApiListOf list_of_nodes() { return {"v1", "Node", false, kNodeKept}; }
std::unique_ptr<Form> make_node_form() { return make_kubernetes_form(kNode); }
std::unique_ptr<Form> make_namespace_form() { return make_kubernetes_form(kNamespace); }

}  // namespace croft::store::kube
