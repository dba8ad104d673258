#include "wire/cni/cache.h"

#include <algorithm>
#include <optional>

#include <nlohmann/json.hpp>

#include "net/address_with_length.h"
#include "wire/json/document.h"
#include "wire/text/base64.h"

namespace croft::wire::cni {
namespace {

/// No configuration is deeper; printing one goes as deep as it is.
constexpr std::size_t kDepthMax = 200;

std::optional<JsonRef> member_of(const JsonRef& object, std::string_view name) {
  std::optional<JsonRef> found;
  for (auto member = object.first_child(); member; member = member->next_sibling()) {
    if (object.kind() == JsonKind::object && member->key() == name) found = member;
  }
  return found;
}

std::string text_of(const JsonRef& object, std::string_view name) {
  const auto member = member_of(object, name);
  return member && member->kind() == JsonKind::string ? std::string(member->text()) : std::string();
}

void read_pair(const JsonRef& pair, core::PodIdentity& pod) {
  const auto key = pair.first_child();
  const auto value = key ? key->next_sibling() : std::nullopt;
  if (!value || value->kind() != JsonKind::string) return;
  if (key->text() == "K8S_POD_NAME") pod.name = value->text();
  if (key->text() == "K8S_POD_NAMESPACE") pod.namespace_name = value->text();
  if (key->text() == "K8S_POD_UID") pod.uid = value->text();
}

core::PodIdentity pod_of(const JsonRef& entry) {
  core::PodIdentity pod;
  const auto args = member_of(entry, "cniArgs");
  if (!args || args->kind() != JsonKind::array) return pod;
  for (auto pair = args->first_child(); pair; pair = pair->next_sibling()) {
    if (pair->kind() == JsonKind::array) read_pair(*pair, pod);
  }
  return pod;
}

/// `ips` of version 0.3.0 and later, `ip4` and `ip6` before that.
std::vector<net::Address> addresses_of(const JsonRef& entry) {
  std::vector<net::Address> addresses;
  const auto add = [&](const std::string& text) {
    const auto address = net::AddressWithLength::parse(text);
    if (address && addresses.size() < kCachedAddressesMax) addresses.push_back(address->address.unmapped());
  };
  const auto result = member_of(entry, "result");
  if (!result) return addresses;
  const auto ips = member_of(*result, "ips");
  for (auto ip = ips ? ips->first_child() : std::nullopt; ip; ip = ip->next_sibling()) add(text_of(*ip, "address"));
  for (const char* family : {"ip4", "ip6"}) {
    if (const auto ip = member_of(*result, family)) add(text_of(*ip, "ip"));
  }
  return addresses;
}

std::string netns_of(const JsonRef& entry) {
  std::string netns = text_of(entry, "netns");
  const auto result = member_of(entry, "result");
  const auto interfaces = result ? member_of(*result, "interfaces") : std::nullopt;
  for (auto one = interfaces ? interfaces->first_child() : std::nullopt; one && netns.empty();
       one = one->next_sibling()) {
    netns = text_of(*one, "sandbox");
  }
  return netns;
}

/// JsonRef has no printer, and only this is ever printed.
std::string capability_args_of(std::string_view bytes) {
  const auto entry = nlohmann::json::parse(bytes, nullptr, false);
  const auto member = entry.find("capabilityArgs");
  return member == entry.end() || !member->is_object() ? std::string() : member->dump();
}

}  // namespace

Result<CacheEntry> read_whole_cache_entry(std::string_view bytes) {
  TRY(const JsonDocument document, parse_json(bytes, {.depth_max = kDepthMax}));
  const JsonRef root = document.root();
  CacheEntry entry;
  entry.owner = {text_of(root, "networkName"), text_of(root, "containerId"), text_of(root, "ifName")};
  if (entry.owner.network.empty() || entry.owner.container_id.empty() || entry.owner.interface_name.empty()) {
    return fail(ErrorCode::invalid_argument, "it lacks networkName, containerId or ifName");
  }
  entry.netns = netns_of(root);
  entry.pod = pod_of(root);
  entry.addresses = addresses_of(root);
  entry.config = decode_base64(text_of(root, "config")).value_or("");
  entry.capability_args = capability_args_of(bytes);
  return entry;
}

}  // namespace croft::wire::cni
