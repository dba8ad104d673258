#include "wire/cni/cache.h"

#include <array>
#include <span>
#include <utility>

#include "net/address_with_length.h"
#include "wire/json/decode.h"
#include "wire/json/document.h"
#include "wire/json/writer.h"
#include "wire/text/base64.h"

namespace croft::wire::cni {
namespace {

/// No configuration is deeper; printing one goes as deep as it is.
constexpr std::size_t kDepthMax = 200;
constexpr std::size_t kPairsMax = 4096;

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

/// What has another shape is passed over, and counts as absent.
template <class T>
MaybeFault read_loosely(const JsonAt& at, std::span<const JsonMember<T>> members, T& out) {
  return read_object<T>(at, members, out, {.names = ObjectRules::Names::exact, .on_fault = OnFault::skip});
}

MaybeFault read_any_text(const JsonAt& at, std::string& out) {
  out.clear();
  return read_text(at, kCacheEntryBytesMax, out);
}

MaybeFault read_pair(const JsonAt& at, core::PodIdentity& pod) {
  std::vector<std::string> pair;
  const auto fault = read_list<std::string>(at, kPairsMax, read_any_text, pair);
  if (fault || pair.size() < 2) return {};
  if (pair[0] == "K8S_POD_NAME") pod.name = pair[1];
  if (pair[0] == "K8S_POD_NAMESPACE") pod.namespace_name = pair[1];
  if (pair[0] == "K8S_POD_UID") pod.uid = pair[1];
  return {};
}

/// Adds the address that a member of an object has as text.
MaybeFault add_address(const JsonAt& at, std::vector<net::Address>& out) {
  std::string text;
  if (auto fault = read_any_text(at, text)) return fault;
  const auto address = net::AddressWithLength::parse(text);
  if (address && out.size() < kCachedAddressesMax) out.push_back(address->address.unmapped());
  return {};
}

using Addresses = std::vector<net::Address>;
constexpr std::array<JsonMember<Addresses>, 1> kIpMembers = {{{"address", add_address}}};
constexpr std::array<JsonMember<Addresses>, 1> kLegacyIpMembers = {{{"ip", add_address}}};
constexpr std::array<JsonMember<std::string>, 1> kInterfaceMembers = {{{"sandbox", read_any_text}}};

MaybeFault read_interface(const JsonAt& at, CachedResult& out) {
  return out.sandbox.empty() ? read_loosely<std::string>(at, kInterfaceMembers, out.sandbox) : MaybeFault();
}

constexpr std::array<JsonMember<CachedResult>, 4> kResultMembers = {{
    {"ips",
     [](const JsonAt& at, CachedResult& out) {
       out.ips.clear();
       return each_element(at, kCachedAddressesMax,
                           [&](const JsonAt& ip) { return read_loosely<Addresses>(ip, kIpMembers, out.ips); });
     }},
    {"ip4", [](const JsonAt& at, CachedResult& out) { return read_loosely<Addresses>(at, kLegacyIpMembers, out.ip4); }},
    {"ip6", [](const JsonAt& at, CachedResult& out) { return read_loosely<Addresses>(at, kLegacyIpMembers, out.ip6); }},
    {"interfaces",
     [](const JsonAt& at, CachedResult& out) {
       return each_element(at, kCachedAddressesMax, [&](const JsonAt& one) { return read_interface(one, out); });
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
       return each_element(at, kPairsMax, [&](const JsonAt& pair) { return read_pair(pair, out.entry.pod); });
     }},
    {"config", [](const JsonAt& at, EntryDraft& out) { return read_any_text(at, out.config); }},
    {"capabilityArgs", read_capability_args},
    {"result",
     [](const JsonAt& at, EntryDraft& out) { return read_loosely<CachedResult>(at, kResultMembers, out.result); }},
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
