#include "wire/manifests/kubeadm_config.h"

#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "net/echo.h"
#include "wire/manifests/yaml_documents.h"

namespace croft::wire {
namespace {

using Json = nlohmann::json;

/// A member of an object; nothing where it is absent or null.
const Json* member(const Json& object, const char* name) {
  const auto found = object.find(name);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

/// One CIDR, or two of different families with a comma between.
[[nodiscard]] Result<std::vector<net::Prefix>> subnets(const Json& networking, const char* name) {
  std::vector<net::Prefix> all;
  const Json* value = member(networking, name);
  if (value == nullptr) return all;
  const std::string field = fmt::format("networking.{}", name);
  if (!value->is_string()) return fail(ErrorCode::invalid_argument, field + " is no text");
  std::string_view rest = value->get_ref<const std::string&>();
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    std::string_view text = rest.substr(0, comma);
    rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 1);
    while (text.starts_with(' ')) text.remove_prefix(1);
    while (text.ends_with(' ')) text.remove_suffix(1);
    const auto cidr = net::Prefix::parse(text);
    if (!cidr) return fail(cidr.error().in(fmt::format("{}: {}", field, net::echo(text))));
    for (const net::Prefix& other : all) {
      if (other.family() == cidr->family()) {
        return fail(ErrorCode::invalid_argument, fmt::format("{} has two subnets of one family: {} and {}", field,
                                                             other.to_string(), cidr->to_string()));
      }
    }
    all.push_back(*cidr);
  }
  return all;
}

/// Empty where it says none. The ConfigMap is the API's JSON, which may hold what YAML may not.
[[nodiscard]] Result<std::string> cluster_configuration(std::string_view json) {
  const Json map = Json::parse(json, nullptr, false);
  if (!map.is_object()) return fail(ErrorCode::invalid_argument, "it is no ConfigMap");
  const Json* data = member(map, "data");
  const Json* text = data != nullptr && data->is_object() ? member(*data, "ClusterConfiguration") : nullptr;
  if (text == nullptr) return std::string();
  if (!text->is_string()) return fail(ErrorCode::invalid_argument, "data.ClusterConfiguration is no text");
  return text->get<std::string>();
}

}  // namespace

Result<KubeadmNetworking> parse_kubeadm_config_map(std::string_view json) {
  const auto read = [&]() -> Result<KubeadmNetworking> {
    KubeadmNetworking result;
    TRY(const std::string text, cluster_configuration(json));
    TRY(const auto documents, parse_yaml(text));
    for (const Json& document : documents) {
      const Json* networking = document.is_object() ? member(document, "networking") : nullptr;
      if (networking == nullptr) continue;
      if (!networking->is_object()) return fail(ErrorCode::invalid_argument, "networking is no object");
      TRY(result.pod_subnets, subnets(*networking, "podSubnet"));
      TRY(result.service_subnets, subnets(*networking, "serviceSubnet"));
    }
    return result;
  };
  auto result = read();
  if (!result) return fail(result.error().in("ConfigMap kube-system/kubeadm-config"));
  return result;
}

}  // namespace croft::wire
