#include "cni/format/cache.h"

#include <array>
#include <span>
#include <utility>

#include "base/json/reader.h"
#include "base/json/writer.h"
#include "base/net/prefix.h"
#include "base/text/base64.h"

namespace croft::wire::cni {
namespace {

/// No configuration is deeper; printing one goes as deep as it is.
constexpr std::size_t kDepthMax = 200;
/// The bound of a list: no file has room for as many.
constexpr std::size_t kElementsMax = kCacheEntryBytesMax;

struct CachedResult {
  std::vector<net::Address> ips;  ///< of version 0.3.0 and later
  std::vector<net::Address> ip4;  ///< before that, as `ip6`
  std::vector<net::Address> ip6;
  std::string sandbox;  ///< the first
};

struct EntryDraft {
  CacheEntry entry;
  std::string config;  ///< in base64
  CachedResult result;
};

/// A member of another shape is passed over, and counts as absent. The last of repeated members counts.
template <class T>
MaybeFault read_loosely(const JsonAt& at, std::span<const JsonMember<T>> members, T& out) {
  return read_object<T>(at, members, out, {.names = ObjectRules::Names::exact, .on_fault = OnFault::skip});
}

MaybeFault read_any_text(const JsonAt& at, std::string& out) {
  out.clear();
  return read_text(at, kCacheEntryBytesMax, out);
}

/// A pair of CNI_ARGS; what follows its value is not looked at.
MaybeFault read_pair(const JsonAt& at, core::PodIdentity& pod) {
  if (at.value.kind() != JsonKind::array) return {};
  const auto name = at.value.first_child();
  const auto value = name ? name->next_sibling() : std::nullopt;
  if (!value || name->kind() != JsonKind::string || value->kind() != JsonKind::string) return {};
  std::string key;
  if (read_any_text({*name, &at, {}, 0}, key)) return {};
  std::string* const member = key == "K8S_POD_NAME"        ? &pod.name
                              : key == "K8S_POD_NAMESPACE" ? &pod.namespace_name
                              : key == "K8S_POD_UID"       ? &pod.uid
                                                           : nullptr;
  return member == nullptr ? MaybeFault() : read_any_text({*value, &at, {}, 1}, *member);
}

using Addresses = std::vector<net::Address>;

void add_address(const std::string& text, Addresses& out) {
  const auto address = net::parse_address_leniently(text.substr(0, text.find('/')));
  if (address && out.size() < kCachedAddressesMax) out.push_back(*address);
}

/// Adds the address that an object has in its one member of interest.
MaybeFault add_address_of(const JsonAt& at, const JsonMember<std::string>& member, Addresses& out) {
  std::string text;
  auto fault = read_loosely<std::string>(at, {&member, 1}, text);
  add_address(text, out);
  return fault;
}

constexpr JsonMember<std::string> kIpMember = {"address", read_any_text};
constexpr JsonMember<std::string> kLegacyIpMember = {"ip", read_any_text};
constexpr JsonMember<std::string> kSandboxMember = {"sandbox", read_any_text};

MaybeFault read_interface(const JsonAt& at, CachedResult& out) {
  return out.sandbox.empty() ? read_loosely<std::string>(at, {&kSandboxMember, 1}, out.sandbox) : MaybeFault();
}

constexpr std::array<JsonMember<CachedResult>, 4> kResultMembers = {{
    {"ips",
     [](const JsonAt& at, CachedResult& out) {
       out.ips.clear();
       return each_element(at, kElementsMax, [&](const JsonAt& ip) { return add_address_of(ip, kIpMember, out.ips); });
     }},
    {"ip4",
     [](const JsonAt& at, CachedResult& out) {
       out.ip4.clear();
       return add_address_of(at, kLegacyIpMember, out.ip4);
     }},
    {"ip6",
     [](const JsonAt& at, CachedResult& out) {
       out.ip6.clear();
       return add_address_of(at, kLegacyIpMember, out.ip6);
     }},
    {"interfaces",
     [](const JsonAt& at, CachedResult& out) {
       out.sandbox.clear();
       return each_element(at, kElementsMax, [&](const JsonAt& one) { return read_interface(one, out); });
     }},
}};

MaybeFault read_capability_args(const JsonAt& at, EntryDraft& out) {
  out.entry.capability_args.clear();
  if (at.value.kind() != JsonKind::object) return {};
  JsonWriter json(JsonWriter::Layout::compact);
  copy_json(json, at.value);
  out.entry.capability_args = std::move(json).take();
  return {};
}

constexpr std::array<JsonMember<EntryDraft>, 8> kEntryMembers = {{
    {"networkName", [](const JsonAt& at, EntryDraft& out) { return read_any_text(at, out.entry.owner.network); }},
    {"containerId", [](const JsonAt& at, EntryDraft& out) { return read_any_text(at, out.entry.owner.container_id); }},
    {"ifName", [](const JsonAt& at, EntryDraft& out) { return read_any_text(at, out.entry.owner.interface_name); }},
    {"netns", [](const JsonAt& at, EntryDraft& out) { return read_any_text(at, out.entry.netns); }},
    {"cniArgs",
     [](const JsonAt& at, EntryDraft& out) {
       out.entry.pod = {};
       return each_element(at, kElementsMax, [&](const JsonAt& pair) { return read_pair(pair, out.entry.pod); });
     }},
    {"config", [](const JsonAt& at, EntryDraft& out) { return read_any_text(at, out.config); }},
    {"capabilityArgs", read_capability_args},
    {"result",
     [](const JsonAt& at, EntryDraft& out) {
       out.result = {};
       return read_loosely<CachedResult>(at, kResultMembers, out.result);
     }},
}};

}  // namespace

Result<CacheEntry> read_whole_cache_entry(std::string_view bytes) {
  TRY(const JsonDocument document, parse_json(bytes, {.bytes_max = kCacheEntryBytesMax, .depth_max = kDepthMax}));
  EntryDraft draft;
  static_cast<void>(read_loosely<EntryDraft>({document.root(), nullptr, {}, {}}, kEntryMembers, draft));
  CacheEntry entry = std::move(draft.entry);
  if (entry.owner.network.empty() || entry.owner.container_id.empty() || entry.owner.interface_name.empty()) {
    return fail(ErrorCode::invalid_argument, "it lacks networkName, containerId or ifName");
  }
  if (entry.netns.empty()) entry.netns = draft.result.sandbox;
  for (const Addresses* some : {&draft.result.ips, &draft.result.ip4, &draft.result.ip6}) {
    for (const net::Address& address : *some) {
      if (entry.addresses.size() < kCachedAddressesMax) entry.addresses.push_back(address);
    }
  }
  entry.config = decode_base64(draft.config).value_or("");
  return entry;
}

}  // namespace croft::wire::cni
