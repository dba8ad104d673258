#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/net/echo.h"
#include "store/kube/form.h"

namespace croft::store::kube {

/// One kind of Kubernetes' own objects, that Croft only reads. Private to store/kube.
class ReadForm : public Form {
 public:
  ReadForm(Kind kind, wire::kube::ApiResource resource, std::string_view object_kind)
      : kind_(kind), resource_(resource), object_kind_(object_kind) {}
  [[nodiscard]] bool has(Kind kind) const override { return kind == kind_; }
  [[nodiscard]] wire::kube::ApiResource resource_of(Kind) const override { return resource_; }
  [[nodiscard]] std::string_view object_kind_of(Kind) const override { return object_kind_; }
  [[nodiscard]] Result<std::string> object_name(const Key& key) const override {
    if (wire::kube::is_path_segment(key.name)) return key.name;
    return fail(is_no_name(key));
  }
  [[nodiscard]] std::vector<wire::kube::ApiSelection> selections(const core::Listing&) const override { return {{}}; }
  [[nodiscard]] bool marks_deleted(Kind) const override { return false; }
  [[nodiscard]] Result<void> check_write(const Write& write) const override {
    return fail(ErrorCode::read_only, fmt::format("{} {} is Kubernetes' own: Croft only reads it; use kubectl",
                                                  object_kind_, net::echo(write.key.name)));
  }
  [[nodiscard]] std::string encode(const Key&, const Value&, const WriteToken&, const std::optional<Basis>&,
                                   WallTime) const override {
    CROFT_ASSERT(false);  // check_write refuses
  }
  [[nodiscard]] Result<std::string> marked_deleted(Kind, wire::JsonRef, const WriteToken&) const override {
    return fail(ErrorCode::internal, fmt::format("a {} has no mark of deletion", object_kind_));
  }

 protected:
  [[nodiscard]] Error is_no_name(const Key& key) const {
    return invalid_argument(fmt::format("{} is no name of a {}", net::echo(key.name), object_kind_));
  }
  /// A record without its value.
  [[nodiscard]] static Result<Stored> stored_as(Key key, const wire::kube::ApiMeta& meta) {
    Stored stored;
    stored.basis = {meta.uid, meta.resource_version};
    TRY(stored.record.revision, revision_of(meta.resource_version));
    stored.record.key = std::move(key);
    return stored;
  }

 private:
  const Kind kind_;
  const wire::kube::ApiResource resource_;
  const std::string_view object_kind_;
};

}  // namespace croft::store::kube
