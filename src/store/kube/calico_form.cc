#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/net/echo.h"
#include "calico/etcd.h"
#include "store/calico/codec.h"
#include "store/kube/form.h"

namespace croft::store::kube {
namespace {

using wire::calico::ApiGroup;

/// The data that Calico's objects have no place for (calico/beside.h): cooling addresses of a block, gateway and
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
  const auto parsed = wire::calico::key_of(key);
  const auto printed = parsed ? wire::calico::print_key(*parsed) : Result<std::string>(fail(parsed.error()));
  const std::size_t at = printed ? message.find(*printed) : message.npos;
  if (at != message.npos) message.replace(at, printed->size(), key.name);
  return message;
}

class CalicoForm final : public Form {
 public:
  CalicoForm(ApiGroup group, wire::calico::Digests digests) : group_(group), digests_(std::move(digests)) {}

  [[nodiscard]] bool has(Kind kind) const override { return wire::calico::has_crd(kind); }
  [[nodiscard]] FormKind about(Kind kind) const override {
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
  [[nodiscard]] std::string object_text(Kind kind, const std::string& name) const {
    return fmt::format("{}/{}", resource_of(kind).resource, name);
  }

  [[nodiscard]] Result<Value> read(Kind kind, const Key* key, wire::JsonRef object, const wire::kube::ApiMeta& meta,
                                   Stored& stored) const {
    const std::string text = fmt::format("{} ({})", object_text(kind, meta.name), stored.record.key.name);
    auto found = wire::calico::from_crd(kind, group_, object, kOwnPrefix);
    if (!found) return fail(ErrorCode::corrupt, Error(found.error()).in(text).message);
    // As Calico does; but the mark of a block, whose addresses another gets then, counts only once it can be read.
    stored.is_deleted = found->is_deleted && kind != Kind::block;
    if (!found->key) return fail(ErrorCode::corrupt, fmt::format("{}: its spec does not say which record it is", text));
    const auto name = object_name(*found->key);
    if (!name || *name != meta.name || (key != nullptr && *key != *found->key)) {
      return fail(ErrorCode::corrupt, fmt::format("{}: its spec is that of {}", text, net::echo(found->key->name)));
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

std::unique_ptr<Form> make_calico_form(ApiGroup group, wire::calico::Digests digests) {
  return std::make_unique<CalicoForm>(group, std::move(digests));
}

}  // namespace croft::store::kube
