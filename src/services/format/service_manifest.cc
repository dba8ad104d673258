#include "services/format/service_manifest.h"

#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json/reader.h"
#include "base/printable.h"
#include "base/texts.h"
#include "services/format/kubernetes_objects.h"
#include "store/kube/format/yaml.h"

namespace croft::wire {
namespace {

using Json = nlohmann::json;

[[nodiscard]] Result<ServiceManifest> read_service(const Json& object) {
  constexpr std::size_t kDepthMax = 200;
  const std::string text = object.dump(-1, ' ', false, Json::error_handler_t::replace);
  TRY(const auto document, parse_json(text, {2 * kYamlBytesMax, kDepthMax}));
  ServiceManifest manifest;
  TRY(manifest.service, kube::decode_service_manifest(document.root(), manifest.resource_version));
  // Only the server says these.
  manifest.service.uid.clear();
  manifest.service.created = {};
  manifest.service.deleting = false;
  return manifest;
}

[[nodiscard]] std::string text_at(const Json& object, const char* name) {
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string();
}

[[nodiscard]] Result<void> read_object(const Json& object, const std::string& place, bool in_list,
                                       std::vector<ServiceManifest>& manifests) {
  if (!object.is_object()) return fail(ErrorCode::invalid_argument, place + " is no object");
  const std::string kind = text_at(object, "kind");
  const std::string version = text_at(object, "apiVersion");
  const bool is_list = !in_list && (kind == "List" || kind == "ServiceList");
  if (is_list && version == "v1") {
    const auto items = object.find("items");
    if (items == object.end() || items->is_null()) return {};
    if (!items->is_array()) return fail(ErrorCode::invalid_argument, place + ": items must be a list");
    for (std::size_t i = 0; i < items->size(); ++i) {
      TRY_VOID(read_object((*items)[i], fmt::format("{}, items[{}]", place, i), true, manifests));
    }
    return {};
  }
  // Items of a ServiceList need not say what they are.
  const bool is_service = (kind == "Service" && version == "v1") || (in_list && kind.empty() && version.empty());
  if (!is_service) {
    return fail(ErrorCode::invalid_argument, "{} is a {} of apiVersion {}, not a Service of v1", place, echo(kind),
                echo(version));
  }
  auto manifest = read_service(object);
  if (!manifest) return fail(manifest.error().in(place));
  manifests.push_back(*std::move(manifest));
  return {};
}

}  // namespace

Result<std::vector<ServiceManifest>> parse_service_manifests(std::string_view text) {
  TRY(const auto documents, parse_yaml_documents(text));
  std::vector<ServiceManifest> manifests;
  for (std::size_t i = 0; i < documents.size(); ++i) {
    TRY_VOID(read_object(documents[i], fmt::format("document {}", i + 1), false, manifests));
  }
  if (manifests.empty()) return fail(ErrorCode::invalid_argument, "there is no Service in it");
  return manifests;
}

}  // namespace croft::wire
