#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/net/lenient.h"
#include "store/kube/read_form.h"

namespace croft::store::kube {
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

std::map<std::string, std::string> labels_in(const std::optional<wire::JsonRef>& metadata) {
  std::map<std::string, std::string> found;
  const auto labels = metadata ? member_of(*metadata, "labels") : std::nullopt;
  for (auto label = labels ? labels->first_child() : std::nullopt; label; label = label->next_sibling()) {
    found.insert_or_assign(std::string(label->key()), std::string(label->text()));
  }
  return found;
}

class NodeForm final : public ReadForm {
 public:
  NodeForm() : ReadForm(Kind::node, {"", "v1", "nodes"}, "Node") {}

  [[nodiscard]] wire::kube::ApiListOf list_of(Kind) const override { return list_of_nodes(); }

  [[nodiscard]] Result<Stored> decode(Kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    TRY(Stored stored, stored_as(core::node_key(meta.name), meta));
    core::Node node;
    node.name = meta.name;
    node.orchestrators = {{"k8s", meta.name}};
    const auto metadata = member_of(object, "metadata");
    node.labels = labels_in(metadata);
    const auto annotations = metadata ? member_of(*metadata, "annotations") : std::nullopt;
    for (const Tunnel& tunnel : kTunnels) {
      const auto text = annotations ? member_of(*annotations, tunnel.annotation) : std::nullopt;
      const auto address = text ? net::parse_address_leniently(text->text()) : std::nullopt;
      // One that is none is not there.
      if (address && address->family() == core::family_of(tunnel.kind)) node.tunnels.push_back({tunnel.kind, *address});
    }
    stored.record.value = std::move(node);
    return stored;
  }
};

class NamespaceForm final : public ReadForm {
 public:
  NamespaceForm() : ReadForm(Kind::name_space, {"", "v1", "namespaces"}, "Namespace") {}

  [[nodiscard]] Result<Stored> decode(Kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    TRY(Stored stored, stored_as(core::namespace_key(meta.name), meta));
    stored.record.value = core::Namespace{meta.name, labels_in(member_of(object, "metadata"))};
    return stored;
  }
};

}  // namespace

wire::kube::ApiListOf list_of_nodes() { return {"v1", "Node", false, false, kNodeKept}; }
std::unique_ptr<Form> make_namespace_form() { return std::make_unique<NamespaceForm>(); }
std::unique_ptr<Form> make_node_form() { return std::make_unique<NodeForm>(); }

}  // namespace croft::store::kube
