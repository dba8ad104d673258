#include "cni/format/pod_annotations.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "base/net/echo.h"
#include "cni/format/args.h"
#include "cni/format/config.h"
#include "cni/format/config_parts.h"

namespace croft::wire::cni {
namespace {

constexpr std::string_view kCrofts = "ipam.croft.dev/";
constexpr std::string_view kCalicos = "cni.projectcalico.org/";

/// The value of an annotation, itself a JSON text.
template <class Read>
MaybeFault read_list_in(const JsonAt& at, Read read) {
  if (at.value.kind() != JsonKind::string) return at.wrong_type("a string");
  const auto document = parse_json(at.value.text());
  if (!document) return at.bad_value("it is no JSON list: " + document.error().message);
  // Elements are named as those of the annotation.
  return read(JsonAt{document->root(), at.parent, at.name, {}});
}

MaybeFault read_addresses(const JsonAt& at, std::vector<net::Address>& out) {
  std::vector<net::Address> read;
  auto fault = each_element(at, kRequestedAddressesMax, [&](const JsonAt& element) -> MaybeFault {
    if (element.value.kind() != JsonKind::string) return element.wrong_type("a string");
    const auto address = parse_requested_address(element.value.text());
    if (!address) return element.bad_value("invalid IP address " + net::echo(element.value.text()));
    read.push_back(*address);
    return {};
  });
  if (!fault) out = std::move(read);
  return fault;
}

MaybeFault read_families(const JsonAt& at, std::optional<net::PerFamily<bool>>& out) {
  net::PerFamily<bool> read{false, false};
  auto fault = each_element(at, 2, [&](const JsonAt& element) -> MaybeFault {
    if (element.value.kind() != JsonKind::string) return element.wrong_type("a string");
    const std::string_view text = element.value.text();
    if (text != "IPv4" && text != "IPv6") return element.bad_value(net::echo(text) + " is neither IPv4 nor IPv6");
    read[text == "IPv4" ? net::Family::v4 : net::Family::v6] = true;
    return {};
  });
  if (fault) return fault;
  if (!read.v4 && !read.v6) return at.bad_value("it names no family");
  out = read;
  return {};
}

/// The wish of an annotation, without the prefix of its name.
MaybeFault read_wish(const JsonAt& at, std::string_view name, PodWishes& out) {
  if (name == "ipAddrs")
    return read_list_in(at, [&](const JsonAt& list) { return read_addresses(list, out.addresses); });
  if (name == "ipFamilies") {
    return read_list_in(at, [&](const JsonAt& list) { return read_families(list, out.families); });
  }
  const net::Family family = name == "ipv4pools" ? net::Family::v4 : net::Family::v6;
  return read_list_in(at, [&](const JsonAt& list) {
    return read_asked_pools(list, family, kAskedPoolsMax, out.pools[family].emplace());
  });
}

constexpr std::array<std::string_view, 4> kWishes = {"ipv4pools", "ipv6pools", "ipAddrs", "ipFamilies"};

MaybeFault read_annotations(const JsonAt& at, bool of_pod, PodWishes& out) {
  std::set<std::string_view> of_croft;
  const auto take_all = [&](std::string_view prefix) {
    return each_member(at, [&](const JsonAt& annotation) -> MaybeFault {
      if (!annotation.name.starts_with(prefix)) return {};
      const std::string_view name = annotation.name.substr(prefix.size());
      if (of_pod && prefix == kCalicos && name == "ipAddrsNoIpam") {
        return annotation.bad_value("an address past IPAM is not given by an IPAM plugin; remove the annotation");
      }
      if (std::ranges::find(kWishes, name) == kWishes.end() || (!of_pod && name == "ipAddrs")) return {};
      if (prefix == kCrofts) of_croft.insert(name);
      if (prefix == kCalicos && of_croft.contains(name)) return {};
      return read_wish(annotation, name, out);
    });
  };
  if (auto fault = take_all(kCrofts)) return fault;
  return take_all(kCalicos);
}

}  // namespace

MaybeFault read_pod_annotations(const JsonAt& at, PodWishes& out) { return read_annotations(at, true, out); }
MaybeFault read_namespace_annotations(const JsonAt& at, PodWishes& out) { return read_annotations(at, false, out); }

}  // namespace croft::wire::cni
