#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/net/echo.h"
#include "register/format/records.h"
#include "store/kube/form.h"

namespace croft::store::kube {
namespace {

using wire::kube::OwnKind;

const OwnKind& own(Kind kind) {
  const OwnKind* found = wire::kube::own_kind_of(kind);
  CROFT_ASSERT(found != nullptr);
  return *found;
}

class OwnForm final : public Form {
 public:
  explicit OwnForm(wire::kube::Digest sha256) : sha256_(std::move(sha256)) {}

  [[nodiscard]] bool has(Kind kind) const override { return wire::kube::own_kind_of(kind) != nullptr; }
  [[nodiscard]] FormKind about(Kind kind) const override { return {own(kind).resource(), own(kind).kind}; }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    return wire::kube::own_object_name(key.name, sha256_);
  }
  [[nodiscard]] std::vector<wire::kube::ApiSelection> selections(const core::Listing& listing) const override {
    const auto owner = wire::kube::owner_in_name(listing.name_prefix);
    if (!owner) return {{}};
    return {{fmt::format("{}={}", wire::kube::kOwnerLabel, wire::kube::own_owner_label(*owner, sha256_)), {}}};
  }

  [[nodiscard]] Result<Stored> decode(Kind kind, const Key* key, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    TRY(Stored stored, stored_as(key != nullptr ? *key : Key{kind, meta.name}, object, meta));
    const auto spec = member_of(object, "spec");
    // The name is read by itself: what else is damaged belongs to a record all the same.
    const auto name = member_of(spec, "name");
    const bool is_named = key == nullptr && name && !name->text().empty() &&
                          wire::kube::own_object_name(name->text(), sha256_) == meta.name;
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
                                               wire::kube::own_owner_label(*owner, sha256_))
                                 : "";
    return fmt::format(
        R"({{"apiVersion":"{}","kind":"{}","metadata":{{"name":"{}"{}{}{},"annotations":{{"{}":"{}"}}}},"spec":{}}})",
        wire::kube::kOwnApiVersion, own(key.kind).kind, wire::kube::own_object_name(key.name, sha256_), is, as, of,
        wire::kube::kTokenAnnotation, hex_of(token.bytes),
        wire::kube::own_spec(own(key.kind), key.name, wire::encode_record(value)));
  }

 private:
  [[nodiscard]] static Result<Value> read(const Key& key, const std::optional<wire::JsonRef>& spec,
                                          const wire::kube::ApiMeta& meta) {
    const auto damaged = [&](std::string_view why) {
      return fail(ErrorCode::corrupt,
                  fmt::format("{} {} ({}): {}", own(key.kind).plural, meta.name, net::echo(key.name), why));
    };
    if (!spec) return damaged("it has no spec");
    const auto record = wire::kube::read_own_spec(own(key.kind), *spec);
    if (!record) return damaged(record.error().message);
    if (record->name != key.name) return damaged(fmt::format("spec.name is {}", net::echo(record->name)));
    auto value = wire::decode_record(key, record->record);
    if (!value) return fail(value.error().in(fmt::format("{} {}", own(key.kind).plural, meta.name)));
    return value;
  }

  const wire::kube::Digest sha256_;
};

}  // namespace

std::unique_ptr<Form> make_own_form(wire::kube::Digest sha256) { return std::make_unique<OwnForm>(std::move(sha256)); }

}  // namespace croft::store::kube
