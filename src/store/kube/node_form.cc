#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "store/kube/form.h"

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

class NodeForm final : public Form {
 public:
  [[nodiscard]] bool has(Kind kind) const override { return kind == Kind::node; }
  [[nodiscard]] wire::kube::ApiResource resource_of(Kind) const override { return {"", "v1", "nodes"}; }
  [[nodiscard]] std::string_view object_kind_of(Kind) const override { return "Node"; }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override { return key.name; }
  [[nodiscard]] std::vector<wire::kube::ApiSelection> selections(const core::Listing&) const override { return {{}}; }
  [[nodiscard]] bool marks_deleted(Kind) const override { return false; }
  [[nodiscard]] Result<void> check_write(const Write& write) const override {
    return fail(ErrorCode::read_only,
                fmt::format("node {} is Kubernetes' own: Croft only reads it; use kubectl", write.key.name));
  }

  [[nodiscard]] Result<Stored> decode(Kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    Stored stored;
    stored.basis = {meta.uid, meta.resource_version};
    TRY(stored.record.revision, revision_of(meta.resource_version));
    stored.record.key = core::node_key(meta.name);
    core::Node node;
    node.name = meta.name;
    node.orchestrators = {{"k8s", meta.name}};
    const auto metadata = member_of(object, "metadata");
    const auto labels = metadata ? member_of(*metadata, "labels") : std::nullopt;
    for (auto label = labels ? labels->first_child() : std::nullopt; label; label = label->next_sibling()) {
      node.labels.insert_or_assign(std::string(label->key()), std::string(label->text()));
    }
    const auto annotations = metadata ? member_of(*metadata, "annotations") : std::nullopt;
    for (const Tunnel& tunnel : kTunnels) {
      const auto text = annotations ? member_of(*annotations, tunnel.annotation) : std::nullopt;
      const auto address = text ? net::Address::parse(std::string(text->text())) : net::Address::parse("");
      // One that is none is not there.
      if (address && address->family() == core::family_of(tunnel.kind)) node.tunnels.push_back({tunnel.kind, *address});
    }
    stored.record.value = std::move(node);
    return stored;
  }

  [[nodiscard]] std::string encode(const Key&, const Value&, const WriteToken&, const std::optional<Basis>&,
                                   WallTime) const override {
    CROFT_ASSERT(false);  // check_write refuses
  }
  [[nodiscard]] Result<std::string> marked_deleted(Kind, wire::JsonRef, const WriteToken&) const override {
    return fail(ErrorCode::internal, "nodes have no mark of deletion");
  }
};

}  // namespace

std::unique_ptr<Form> make_node_form() { return std::make_unique<NodeForm>(); }

}  // namespace croft::store::kube
