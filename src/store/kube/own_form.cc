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
  [[nodiscard]] wire::kube::ApiResource resource_of(Kind kind) const override { return own(kind).resource(); }
  [[nodiscard]] std::string_view object_kind_of(Kind kind) const override { return own(kind).kind; }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    return wire::kube::own_object_name(key.name, sha256_);
  }
  [[nodiscard]] std::vector<wire::kube::ApiSelection> selections(const core::Listing& listing) const override {
    const auto owner = wire::kube::owner_in_name(listing.name_prefix);
    if (!owner) return {{}};
    return {{fmt::format("{}={}", wire::kube::kOwnerLabel, wire::kube::own_owner_label(*owner, sha256_)), {}}};
  }
  [[nodiscard]] bool marks_deleted(Kind) const override { return false; }
  [[nodiscard]] Result<void> check_write(const Write&) const override { return {}; }

  [[nodiscard]] Result<Stored> decode(Kind kind, const Key* key, wire::JsonRef object,
                                      const wire::kube::ApiMeta& meta) const override {
    Stored stored;
    stored.basis = {meta.uid, meta.resource_version};
    TRY(stored.record.revision, revision_of(meta.resource_version));
    stored.record.token = token_in(object);
    stored.record.key = key != nullptr ? *key : Key{kind, meta.name};
    auto value = read(kind, object, meta, stored.record.key, key != nullptr);
    if (value) {
      stored.record.value = *std::move(value);
    } else {
      stored.record.value = core::Damaged{kind, std::move(value).error(), {}};
    }
    return stored;
  }

  [[nodiscard]] std::string encode(const Key& key, const Value& value, const WriteToken& token,
                                   const std::optional<Basis>& basis, WallTime /*now*/) const override {
    const OwnKind& kind = own(key.kind);
    wire::JsonWriter out(wire::JsonWriter::Layout::compact);
    const auto member = [&out](std::string_view name, std::string_view text) {
      out.key(name);
      out.text(text);
    };
    out.begin_object();
    member("apiVersion", fmt::format("{}/{}", wire::kube::kOwnGroup, wire::kube::kOwnVersion));
    member("kind", kind.kind);
    out.key("metadata");
    out.begin_object();
    member("name", wire::kube::own_object_name(key.name, sha256_));
    if (basis) {
      if (!basis->uid.empty()) member("uid", basis->uid);
      member("resourceVersion", basis->resource_version);
    }
    if (const auto owner = wire::kube::owner_in_name(key.name)) {
      out.key("labels");
      out.begin_object();
      member(wire::kube::kOwnerLabel, wire::kube::own_owner_label(*owner, sha256_));
      out.end_object();
    }
    out.key("annotations");
    out.begin_object();
    member(wire::kube::kTokenAnnotation, hex_of(token.bytes));
    out.end_object();
    out.end_object();
    out.key("spec");
    out.raw(wire::kube::own_spec(kind, key.name, wire::encode_record(value)));
    out.end_object();
    return std::move(out).take();
  }

  [[nodiscard]] Result<std::string> marked_deleted(Kind, wire::JsonRef, const WriteToken&) const override {
    return fail(ErrorCode::internal, "own objects have no mark of deletion");
  }

 private:
  [[nodiscard]] Result<Value> read(Kind kind, wire::JsonRef object, const wire::kube::ApiMeta& meta, Key& key,
                                   bool key_is_known) const {
    const auto damaged = [&](std::string_view why) {
      return fail(ErrorCode::corrupt,
                  fmt::format("{} {} ({}): {}", own(kind).plural, meta.name, net::echo(key.name), why));
    };
    const auto spec = member_of(object, "spec");
    if (!spec) return damaged("it has no spec");
    const auto name = member_of(*spec, "name");
    const std::string_view own_name = name ? name->text() : std::string_view();
    // The name is read by itself: what else is damaged belongs to a record all the same.
    if (!key_is_known && !own_name.empty() && wire::kube::own_object_name(own_name, sha256_) == meta.name) {
      key.name = own_name;
    }
    const auto record = wire::kube::read_own_spec(own(kind), *spec);
    if (!record) return damaged(record.error().message);
    if (record->name != key.name) return damaged(fmt::format("spec.name is {}", net::echo(record->name)));
    auto value = wire::decode_record(key, record->record);
    if (!value) return fail(value.error().in(fmt::format("{} {}", own(kind).plural, meta.name)));
    return value;
  }

  const wire::kube::Digest sha256_;
};

}  // namespace

std::unique_ptr<Form> make_own_form(wire::kube::Digest sha256) { return std::make_unique<OwnForm>(std::move(sha256)); }

}  // namespace croft::store::kube
