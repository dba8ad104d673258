#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hex.h"
#include "base/json/writer.h"
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
    auto value = read(stored.record.key, spec, meta);
    stored.record.value = value ? *std::move(value) : Value(core::Damaged{kind, std::move(value).error(), {}});
    return stored;
  }

  [[nodiscard]] std::string encode(const Key& key, const Value& value, const WriteToken& token,
                                   const std::optional<Basis>& basis, WallTime /*now*/) const override {
    wire::JsonWriter out(wire::JsonWriter::Layout::compact);
    const auto member = [&out](std::string_view name, std::string_view text) {
      out.key(name);
      out.text(text);
    };
    const auto begin = [&out](std::string_view name) {
      out.key(name);
      out.begin_object();
    };
    out.begin_object();
    member("apiVersion", wire::kube::kOwnApiVersion);
    member("kind", own(key.kind).kind);
    begin("metadata");
    member("name", wire::kube::own_object_name(key.name, sha256_));
    if (basis) {
      if (!basis->uid.empty()) member("uid", basis->uid);
      member("resourceVersion", basis->resource_version);
    }
    if (const auto owner = wire::kube::owner_in_name(key.name)) {
      begin("labels");
      member(wire::kube::kOwnerLabel, wire::kube::own_owner_label(*owner, sha256_));
      out.end_object();
    }
    begin("annotations");
    member(wire::kube::kTokenAnnotation, hex_of(token.bytes));
    out.end_object();
    out.end_object();
    out.key("spec");
    out.raw(wire::kube::own_spec(own(key.kind), key.name, wire::encode_record(value)));
    out.end_object();
    return std::move(out).take();
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
