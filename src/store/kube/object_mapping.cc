#include "store/kube/object_mapping.h"

#include <array>
#include <charconv>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "calico/etcd_records.h"
#include "register/format/records.h"
#include "store/calico/codec.h"

namespace croft::store::kube {

wire::kube::ApiListOf ObjectMapping::list_of(Kind kind) const {
  const MappedKind is = about(kind);
  return {is.resource.api_version(), std::string(is.kind), false, is.kept};
}

Result<std::string> ObjectMapping::path_of(const Key& key) const {
  TRY(const std::string name, object_name(key));
  const MappedKind is = about(key.kind);
  const std::string name_space = is.is_namespaced ? key.name.substr(0, key.name.find('/')) : std::string();
  return wire::kube::object_path(is.resource, name_space, name);
}

Result<Stored> ObjectMapping::stored_as(Key key, wire::JsonRef object, const wire::kube::ApiMeta& meta) {
  Stored stored;
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
    return fail(ErrorCode::corrupt, "the API server's resourceVersion {} is no number", echo(resource_version));
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

class KubernetesMapping final : public ObjectMapping {
 public:
  explicit KubernetesMapping(const KubernetesKind& kind) : kind_(kind) {}

  [[nodiscard]] bool has(Kind kind) const override { return kind == kind_.record; }
  [[nodiscard]] MappedKind about(Kind) const override { return kind_.about; }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    const std::size_t slash = kind_.about.is_namespaced ? key.name.find('/') : key.name.npos;
    std::string name = key.name.substr(slash + 1);
    const bool is_one = (slash != key.name.npos) == kind_.about.is_namespaced && wire::kube::is_path_segment(name);
    if (is_one) return name;
    return fail(ErrorCode::invalid_argument, "{} is no name of a {}", echo(key.name), kind_.about.kind);
  }
  [[nodiscard]] Result<void> check_write(const Write& write) const override {
    return fail(ErrorCode::read_only, "{} {} is Kubernetes' own: Croft only reads it; use kubectl", kind_.about.kind,
                echo(write.key.name));
  }
  [[nodiscard]] Result<Stored> decode(Kind kind, const Key*, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    const std::string name = kind_.about.is_namespaced ? meta.name_space + "/" + meta.name : meta.name;
    TRY(Stored stored, stored_as({kind, name}, object, meta));
    // One that can't be understood stands there as such: who needs it says so, and all others go on.
    stored.record.value = kind_.decode(object, meta);
    return stored;
  }
  [[nodiscard]] std::string encode(const Key&, const Value&, const WriteToken&, const std::optional<Basis>&,
                                   WallTime) const override {
    CROFT_ASSERT(false);  // check_write() comes first
  }

 private:
  const KubernetesKind kind_;
};

}  // namespace

std::unique_ptr<ObjectMapping> make_kubernetes_mapping(const KubernetesKind& kind) {
  return std::make_unique<KubernetesMapping>(kind);
}
wire::kube::ApiListOf list_of_nodes() { return {"v1", "Node", false, kNodeKept}; }
std::unique_ptr<ObjectMapping> make_node_mapping() { return make_kubernetes_mapping(kNode); }
std::unique_ptr<ObjectMapping> make_namespace_mapping() { return make_kubernetes_mapping(kNamespace); }

namespace {

using wire::kube::OwnKind;

const OwnKind& own(Kind kind) {
  const OwnKind* found = wire::kube::croft_kind_of(kind);
  CROFT_ASSERT(found != nullptr);
  return *found;
}

class CroftMapping final : public ObjectMapping {
 public:
  explicit CroftMapping(wire::kube::Digest sha256) : sha256_(std::move(sha256)) {}

  [[nodiscard]] bool has(Kind kind) const override { return wire::kube::croft_kind_of(kind) != nullptr; }
  [[nodiscard]] MappedKind about(Kind kind) const override { return {own(kind).resource(), own(kind).kind}; }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    return wire::kube::croft_object_name(key.name, sha256_);
  }
  [[nodiscard]] std::vector<wire::kube::ApiSelection> selections(const core::Listing& listing) const override {
    const auto owner = wire::kube::owner_in_name(listing.name_prefix);
    if (!owner) return {{}};
    return {{fmt::format("{}={}", wire::kube::kOwnerLabel, wire::kube::croft_owner_label(*owner, sha256_)), {}}};
  }

  [[nodiscard]] Result<Stored> decode(Kind kind, const Key* key, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    TRY(Stored stored, stored_as(key != nullptr ? *key : Key{kind, meta.name}, object, meta));
    const auto spec = member_of(object, "spec");
    // The name is read by itself: what else is damaged belongs to a record all the same.
    const auto name = member_of(spec, "name");
    const bool is_named = key == nullptr && name && !name->text().empty() &&
                          wire::kube::croft_object_name(name->text(), sha256_) == meta.name;
    if (is_named) stored.record.key.name = name->text();
    stored.record.value = read(stored.record.key, spec, meta);
    return stored;
  }

  [[nodiscard]] std::string encode(const Key& key, const Value& value, const WriteToken& token,
                                   const std::optional<Basis>& basis, WallTime /*now*/) const override {
    // Nothing beside the spec has to be escaped: names and digits of Kubernetes, and our own.
    const auto owner = wire::kube::owner_in_name(key.name);
    const std::string is = basis && !basis->uid.empty() ? fmt::format(R"(,"uid":"{}")", basis->uid) : "";
    const std::string as = basis ? fmt::format(R"(,"resourceVersion":"{}")", basis->resource_version) : "";
    const std::string of = owner ? fmt::format(R"(,"labels":{{"{}":"{}"}})", wire::kube::kOwnerLabel,
                                               wire::kube::croft_owner_label(*owner, sha256_))
                                 : "";
    return fmt::format(
        R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}"{}{}{},"annotations":{{"{}":"{}"}}}},"spec":{}}})",
        wire::kube::kOwnApiVersion, own(key.kind).kind, wire::kube::croft_object_name(key.name, sha256_), is, as, of,
        wire::kube::kTokenAnnotation, hex_of(token.bytes),
        wire::kube::croft_spec(own(key.kind), key.name, wire::encode_record(value)));
  }

 private:
  [[nodiscard]] static Result<Value> read(const Key& key, const std::optional<wire::JsonRef>& spec,
                                          const wire::kube::ApiMeta& meta) {
    const auto damaged = [&](std::string_view why) {
      return fail(ErrorCode::corrupt, "{} {} ({}): {}", own(key.kind).plural, meta.name, echo(key.name), why);
    };
    if (!spec) return damaged("it has no spec");
    const auto record = wire::kube::read_croft_spec(own(key.kind), *spec);
    if (!record) return damaged(record.error().message);
    if (record->name != key.name) return damaged(fmt::format("spec.name is {}", echo(record->name)));
    auto value = wire::decode_record(key, record->record);
    if (!value) return fail(value.error().in(fmt::format("{} {}", own(key.kind).plural, meta.name)));
    return value;
  }

  const wire::kube::Digest sha256_;
};

}  // namespace

std::unique_ptr<ObjectMapping> make_croft_mapping(wire::kube::Digest sha256) {
  return std::make_unique<CroftMapping>(std::move(sha256));
}

namespace {

using wire::calico::ApiGroup;

/// The data that Calico's objects have no place for (calico/etcd_records.h): cooling addresses of a block, gateway and
/// cooldown of a pool. In the object itself, so that both are written at once.
constexpr std::string_view kBesideAnnotation = "ipam.croft.dev/beside";
/// The length of a block's CIDR, so that blocks of other lengths can be asked for. Calico's library drops it with its
/// next write: then a block is found among the others, where it does no harm.
constexpr std::string_view kLengthLabel = "ipam.croft.dev/length";
constexpr std::string_view kOwnPrefix = "ipam.croft.dev/";
constexpr std::string_view kHostnameHash = "projectcalico.org/hostname-hash";

std::optional<std::string> annotation_in(wire::JsonRef object, std::string_view name) {
  const auto text = member_of(member_of(member_of(object, "metadata"), "annotations"), name);
  return text && text->kind() == wire::JsonKind::string ? std::optional(std::string(text->text())) : std::nullopt;
}

/// The readers of the bytes name the key that these would have in etcd.
std::string with_record_named(std::string message, const Key& key) {
  const auto place = wire::calico::place_of(key);
  const std::size_t at = place ? message.find(*place) : message.npos;
  if (at != message.npos) message.replace(at, place->size(), key.name);
  return message;
}

class CalicoMapping final : public ObjectMapping {
 public:
  CalicoMapping(ApiGroup group, wire::calico::Digests digests) : group_(group), digests_(std::move(digests)) {}

  [[nodiscard]] bool has(Kind kind) const override { return wire::calico::has_crd(kind); }
  [[nodiscard]] MappedKind about(Kind kind) const override {
    const auto crd = wire::calico::crd_kind_of(kind, group_);
    return {{crd.group, crd.version, crd.plural}, crd.kind};
  }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    return wire::calico::crd_name(key, digests_);
  }

  /// Selects a node's affinities by Calico's labels; `as_stored` first adds those without, which versions before 3.31
  /// make. One that is labelled in between is seen twice and not missed. Calico itself, from 3.31 on, only sees the
  /// former.
  [[nodiscard]] std::vector<wire::kube::ApiSelection> selections(const core::Listing& listing) const override {
    constexpr std::string_view kHost = "host/";
    if (listing.kind != Kind::affinity || !listing.name_prefix.starts_with(kHost)) return {{}};
    const std::string_view rest = std::string_view(listing.name_prefix).substr(kHost.size());
    const std::size_t slash = rest.find('/');
    if (slash == rest.npos) return {{}};
    const core::AffinityOwner owner{core::AffinityOwner::Type::host, std::string(rest.substr(0, slash))};
    const bool is_v4 = rest.substr(slash + 1).starts_with("ipv4/");
    const bool is_v6 = rest.substr(slash + 1).starts_with("ipv6/");
    std::string labelled;
    for (const auto& [name, value] :
         wire::calico::affinity_labels(owner, is_v6 ? net::Family::v6 : net::Family::v4, digests_)) {
      if (name == "projectcalico.org/ip-version" && !is_v4 && !is_v6) continue;
      labelled += fmt::format("{}{}={}", labelled.empty() ? "" : ",", name, value);
    }
    if (!listing.as_stored) return {{labelled, {}}};
    return {{fmt::format("!{}", kHostnameHash), {}}, {labelled, {}}};
  }

  [[nodiscard]] std::optional<wire::kube::ApiSelection> but_length(Kind kind, int length) const override {
    if (kind != Kind::block) return {};
    return wire::kube::ApiSelection{fmt::format("{}!={}", kLengthLabel, length), {}};
  }

  /// A block's; an object of a name that is none is taken for one of that name, as decode() does.
  [[nodiscard]] std::optional<Key> key_of_name(Kind kind, const std::string& name) const override {
    return kind == Kind::block ? std::optional(wire::calico::key_of_crd_name(kind, name)) : std::nullopt;
  }

  [[nodiscard]] Result<Stored> decode(Kind kind, const Key* key, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    TRY(Stored stored, stored_as(key != nullptr ? *key : wire::calico::key_of_crd_name(kind, meta.name), object, meta));
    stored.record.value = read(kind, key, object, meta, stored);
    if (!stored.record.value) {
      Error& error = stored.record.value.error();
      error.message = with_record_named(std::move(error.message), stored.record.key);
    }
    return stored;
  }

  [[nodiscard]] std::string encode(const Key& key, const Value& value, const WriteToken& token,
                                   const std::optional<Basis>& basis, WallTime now) const override {
    const calico::StoredBytes bytes = calico::encode(value, token, now);
    wire::calico::CrdFrame frame;
    frame.group = group_;
    frame.name = object_name(key).value();  // who writes it has asked for its path
    if (basis) {
      frame.uid = basis->uid;
      frame.resource_version = basis->resource_version;
    }
    frame.annotations.emplace(wire::kube::kTokenAnnotation, hex_of(token.bytes));
    if (bytes.beside) frame.annotations.emplace(kBesideAnnotation, *bytes.beside);
    if (const auto* affinity = std::get_if<core::Affinity>(&value)) {
      frame.labels = wire::calico::affinity_labels(affinity->owner, affinity->cidr.family(), digests_);
    }
    if (const auto* block = std::get_if<core::Block>(&value)) {
      frame.labels.emplace(kLengthLabel, std::to_string(block->cidr.length()));
    }
    return wire::calico::to_crd(key, bytes.value, frame);
  }

 private:
  [[nodiscard]] Result<Value> read(Kind kind, const Key* key, wire::JsonRef object, const wire::kube::ApiMeta& meta,
                                   Stored& stored) const {
    const std::string text = fmt::format("{}/{} ({})", resource_of(kind).resource, meta.name, stored.record.key.name);
    auto found = wire::calico::from_crd(kind, group_, object, kOwnPrefix);
    if (!found) return fail(ErrorCode::corrupt, found.error().in(text).message);
    // As Calico does; but the mark of a block, whose addresses another gets then, counts only once it can be read.
    stored.is_deleted = found->is_deleted && kind != Kind::block;
    if (!found->key) return fail(ErrorCode::corrupt, "{}: its spec does not say which record it is", text);
    const auto name = object_name(*found->key);
    if (!name || *name != meta.name || (key != nullptr && *key != *found->key)) {
      return fail(ErrorCode::corrupt, "{}: its spec is that of {}", text, echo(found->key->name));
    }
    stored.record.key = *found->key;
    const auto beside = annotation_in(object, kBesideAnnotation);
    auto decoded = calico::decode(*found->key, text, found->bytes, beside);
    if (!decoded) {
      if (beside) stored.record.calicos = calico::without_beside(*found->key, text, found->bytes);
      Error error = std::move(decoded).error();
      if (error.code != ErrorCode::newer_version) error.code = ErrorCode::corrupt;
      return fail(std::move(error));
    }
    if (const auto* block = std::get_if<core::Block>(&decoded->value)) stored.is_deleted = block->deleted;
    // A write into it goes with the last finalizer.
    if (meta.deletion_timestamp && !stored.is_deleted && wire::calico::has_deletion_mark(kind)) {
      return fail(ErrorCode::corrupt, text + ": it is being deleted, and a finalizer keeps its object");
    }
    return std::move(decoded->value);
  }

  const ApiGroup group_;
  const wire::calico::Digests digests_;
};

}  // namespace

std::unique_ptr<ObjectMapping> make_calico_mapping(ApiGroup group, wire::calico::Digests digests) {
  return std::make_unique<CalicoMapping>(group, std::move(digests));
}

}  // namespace croft::store::kube
