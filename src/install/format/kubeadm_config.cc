#include "install/format/kubeadm_config.h"

#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/net/echo.h"
#include "base/net/lenient.h"
#include "store/kube/format/yaml_documents.h"

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
    const auto cidr = net::parse_prefix_leniently(text);
    if (!cidr) return fail(ErrorCode::invalid_argument, fmt::format("{}: {} is no CIDR", field, net::echo(text)));
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

/// Whether a document is the configuration that kubeadm reads: it says so, or says no kind and is the first.
[[nodiscard]] bool is_of_cluster(const Json& document, bool is_first) {
  if (!document.is_object()) return false;
  const Json* kind = member(document, "kind");
  if (kind == nullptr) return is_first;
  const Json* version = member(document, "apiVersion");
  const bool is_kubeadms =
      version == nullptr ||
      (version->is_string() && version->get_ref<const std::string&>().starts_with("kubeadm.k8s.io/"));
  return *kind == "ClusterConfiguration" && is_kubeadms;
}

[[nodiscard]] Result<KubeadmNetworking> networking_of(const Json& document) {
  KubeadmNetworking said;
  const Json* networking = member(document, "networking");
  if (networking == nullptr) return said;
  if (!networking->is_object()) return fail(ErrorCode::invalid_argument, "networking is no object");
  TRY(said.pod_subnets, subnets(*networking, "podSubnet"));
  TRY(said.service_subnets, subnets(*networking, "serviceSubnet"));
  return said;
}

}  // namespace

Result<KubeadmNetworking> parse_kubeadm_config(std::string_view yaml) {
  TRY(const auto documents, parse_yaml(yaml));
  for (const Json& document : documents) {
    if (is_of_cluster(document, &document == documents.data())) return networking_of(document);
  }
  return KubeadmNetworking();
}

}  // namespace croft::wire
