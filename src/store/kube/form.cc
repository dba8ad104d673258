#include "store/kube/form.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/net/echo.h"

namespace croft::store::kube {

wire::kube::ApiListOf Form::list_of(Kind kind) const {
  const FormKind is = about(kind);
  const auto& resource = is.resource;
  return {
      resource.group.empty() ? std::string(resource.version) : fmt::format("{}/{}", resource.group, resource.version),
      std::string(is.kind), is.is_namespaced, false, is.kept};
}

Result<wire::kube::ApiObjectOf> Form::object_of(const Key& key) const {
  TRY(std::string name, object_name(key));
  wire::kube::ApiListOf of = list_of(key.kind);
  std::string name_space = of.is_namespaced ? key.name.substr(0, key.name.find('/')) : std::string();
  return wire::kube::ApiObjectOf{std::move(of.api_version), std::move(of.kind), std::move(name_space), std::move(name)};
}

Result<std::string> Form::path_of(const Key& key) const {
  TRY(const auto object, object_of(key));
  return wire::kube::object_path(resource_of(key.kind), object.name_space, object.name);
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

}  // namespace croft::store::kube
