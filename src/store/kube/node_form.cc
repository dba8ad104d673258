#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "net/echo.h"
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

std::map<std::string, std::string> labels_in(const std::optional<wire::JsonRef>& metadata) {
  std::map<std::string, std::string> found;
  const auto labels = metadata ? member_of(*metadata, "labels") : std::nullopt;
  for (auto label = labels ? labels->first_child() : std::nullopt; label; label = label->next_sibling()) {
    found.insert_or_assign(std::string(label->key()), std::string(label->text()));
  }
  return found;
}

/// Objects of the core group that are in no namespace, and that Croft only reads.
class ReadForm : public Form {
 public:
  ReadForm(Kind kind, std::string_view plural, std::string_view object_kind)
      : kind_(kind), plural_(plural), object_kind_(object_kind) {}
  [[nodiscard]] bool has(Kind kind) const override { return kind == kind_; }
  [[nodiscard]] wire::kube::ApiResource resource_of(Kind) const override { return {"", "v1", plural_}; }
  [[nodiscard]] std::string_view object_kind_of(Kind) const override { return object_kind_; }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    if (wire::kube::is_path_segment(key.name)) return key.name;
    return fail(invalid_argument(fmt::format("{} is no name of a {}", net::echo(key.name), core::name_of(kind_))));
  }
  [[nodiscard]] std::vector<wire::kube::ApiSelection> selections(const core::Listing&) const override { return {{}}; }
  [[nodiscard]] bool marks_deleted(Kind) const override { return false; }
  [[nodiscard]] Result<void> check_write(const Write& write) const override {
    return fail(ErrorCode::read_only, fmt::format("{} {} is Kubernetes' own: Croft only reads it; use kubectl",
                                                  core::name_of(kind_), write.key.name));
  }
  [[nodiscard]] std::string encode(const Key&, const Value&, const WriteToken&, const std::optional<Basis>&,
                                   WallTime) const override {
    CROFT_ASSERT(false);  // check_write refuses
  }
  [[nodiscard]] Result<std::string> marked_deleted(Kind, wire::JsonRef, const WriteToken&) const override {
    return fail(ErrorCode::internal, fmt::format("a {} has no mark of deletion", core::name_of(kind_)));
  }

 private:
  const Kind kind_;
  const std::string_view plural_;
  const std::string_view object_kind_;
};

class NodeForm final : public ReadForm {
 public:
  NodeForm() : ReadForm(Kind::node, "nodes", "Node") {}

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
    node.labels = labels_in(metadata);
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
};

class NamespaceForm final : public ReadForm {
 public:
  NamespaceForm() : ReadForm(Kind::name_space, "namespaces", "Namespace") {}

  [[nodiscard]] Result<Stored> decode(Kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    Stored stored;
    stored.basis = {meta.uid, meta.resource_version};
    TRY(stored.record.revision, revision_of(meta.resource_version));
    stored.record.key = core::namespace_key(meta.name);
    stored.record.value = core::Namespace{meta.name, labels_in(member_of(object, "metadata"))};
    return stored;
  }
};

}  // namespace

std::unique_ptr<Form> make_namespace_form() { return std::make_unique<NamespaceForm>(); }
std::unique_ptr<Form> make_node_form() { return std::make_unique<NodeForm>(); }

}  // namespace croft::store::kube
