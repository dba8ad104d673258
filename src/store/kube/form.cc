#include "store/kube/form.h"

#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/hex.h"
#include "base/net/echo.h"

namespace croft::store::kube {

WriteToken token_in(wire::JsonRef object) {
  WriteToken token;
  const auto annotations = member_of(member_of(object, "metadata"), "annotations");
  const auto text = member_of(annotations, wire::kube::kTokenAnnotation);
  if (!text) return token;
  if (const auto bytes = bytes_of_hex<std::tuple_size_v<decltype(token.bytes)>>(text->text())) token.bytes = *bytes;
  return token;
}

wire::kube::ApiListOf Form::list_of(Kind kind) const {
  const auto resource = resource_of(kind);
  return {
      resource.group.empty() ? std::string(resource.version) : fmt::format("{}/{}", resource.group, resource.version),
      std::string(object_kind_of(kind)), is_namespaced(kind)};
}

Result<wire::kube::ApiObjectOf> Form::object_of(const Key& key) const {
  TRY(std::string name, object_name(key));
  wire::kube::ApiListOf of = list_of(key.kind);
  return wire::kube::ApiObjectOf{std::move(of.api_version), std::move(of.kind), object_namespace(key), std::move(name)};
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
