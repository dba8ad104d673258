#include "cni/format/result.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/text/go_text.h"
#include "cni/format/version.h"

namespace croft::wire::cni {
namespace {

using net::Family;

/// The three layouts behind the seven versions.
enum class Form : std::uint8_t {
  by_family,     ///< 0.1.0, 0.2.0: `ip4` and `ip6`
  list,          ///< 0.3.0 to 0.4.0: `ips` with `version`, `dns` always
  alphabetical,  ///< from 1.0.0: members sorted at every level, `dns` only when there is some
};

std::optional<Form> form_of(std::string_view version) {
  if (std::find(kSupportedVersions.begin(), kSupportedVersions.end(), version) == kSupportedVersions.end()) return {};
  if (version == "0.1.0" || version == "0.2.0") return Form::by_family;
  return version.starts_with("0.") ? Form::list : Form::alphabetical;
}

void put_text(JsonWriter& out, std::string_view key, std::string_view value) {
  out.key(key);
  out.text(value);
}

void put_address(JsonWriter& out, std::string_view key, const std::optional<net::Address>& address) {
  if (address) put_text(out, key, address->to_string());
}

void put_number(JsonWriter& out, std::string_view key, std::optional<std::int64_t> value) {
  if (!value) return;
  out.key(key);
  out.integer(*value);
}

std::optional<std::int64_t> unless_zero(std::int64_t value) { return value == 0 ? std::nullopt : std::optional(value); }

void put_list(JsonWriter& out, std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  out.key(key);
  out.begin_array();
  for (const std::string& value : values) out.text(value);
  out.end_array();
}

std::string text_of(const net::AddressWithLength& destination) {
  return destination.address.is_valid() ? destination.to_string() : "<nil>";
}

void put_route(JsonWriter& out, const Route& route, Form form) {
  out.begin_object();
  switch (form) {
    case Form::by_family:
      put_text(out, "dst", text_of(route.destination));
      put_address(out, "gw", route.gateway);
      break;
    case Form::list:
      put_text(out, "dst", text_of(route.destination));
      put_address(out, "gw", route.gateway);
      put_number(out, "mtu", unless_zero(route.mtu));
      put_number(out, "advmss", unless_zero(route.advmss));
      put_number(out, "priority", unless_zero(route.priority));
      put_number(out, "table", route.table);
      put_number(out, "scope", route.scope);
      break;
    case Form::alphabetical:
      put_number(out, "advmss", unless_zero(route.advmss));
      put_text(out, "dst", text_of(route.destination));
      put_address(out, "gw", route.gateway);
      put_number(out, "mtu", unless_zero(route.mtu));
      put_number(out, "priority", unless_zero(route.priority));
      put_number(out, "scope", route.scope);
      put_number(out, "table", route.table);
      break;
  }
  out.end_object();
}

template <class Filter>
void put_routes(JsonWriter& out, const std::vector<Route>& routes, Form form, Filter wanted) {
  if (std::none_of(routes.begin(), routes.end(), wanted)) return;
  out.key("routes");
  out.begin_array();
  for (const Route& route : routes) {
    if (wanted(route)) put_route(out, route, form);
  }
  out.end_array();
}

void put_dns(JsonWriter& out, const Dns& dns, Form form) {
  if (form == Form::alphabetical && dns == Dns{}) return;
  out.key("dns");
  out.begin_object();
  const auto put_domain = [&] {
    if (!dns.domain.empty()) put_text(out, "domain", dns.domain);
  };
  if (form == Form::alphabetical) {
    put_domain();
    put_list(out, "nameservers", dns.nameservers);
    put_list(out, "options", dns.options);
    put_list(out, "search", dns.search);
  } else {
    put_list(out, "nameservers", dns.nameservers);
    put_domain();
    put_list(out, "search", dns.search);
    put_list(out, "options", dns.options);
  }
  out.end_object();
}

void put_ips(JsonWriter& out, const std::vector<AssignedAddress>& ips, Form form) {
  if (ips.empty()) return;
  out.key("ips");
  out.begin_array();
  for (const AssignedAddress& ip : ips) {
    out.begin_object();
    if (form == Form::list) put_text(out, "version", ip.address.address.is_v4() ? "4" : "6");
    put_text(out, "address", ip.address.to_string());
    put_address(out, "gateway", ip.gateway);
    out.end_object();
  }
  out.end_array();
}

/// A destination that is missing counts as IPv6: its family is "not IPv4" in the reference.
bool is_v4(const Route& route) { return route.destination.address.unmapped().is_v4(); }

void put_family(JsonWriter& out, const AddResult& result, Family family) {
  const auto ip = std::find_if(result.ips.begin(), result.ips.end(), [family](const AssignedAddress& candidate) {
    return candidate.address.address.is_valid() && candidate.address.address.family() == family;
  });
  if (ip == result.ips.end()) return;
  out.key(family == Family::v4 ? "ip4" : "ip6");
  out.begin_object();
  put_text(out, "ip", ip->address.to_string());
  put_address(out, "gateway", ip->gateway);
  put_routes(out, result.routes, Form::by_family,
             [family](const Route& route) { return is_v4(route) == (family == Family::v4); });
  out.end_object();
}

}  // namespace

Checked<std::string> print_result(const AddResult& result, std::string_view version) {
  const auto form = form_of(version);
  if (!form)
    return Error{Code::internal, fmt::format("cannot convert: no result form for version {}", go_quote(version)), {}};
  if (*form == Form::by_family && result.ips.empty()) {
    return Error{Code::internal, "cannot convert: no valid IP addresses", {}};
  }
  JsonWriter out;
  out.begin_object();
  put_text(out, "cniVersion", version);
  switch (*form) {
    case Form::by_family:
      put_family(out, result, Family::v4);
      put_family(out, result, Family::v6);
      put_dns(out, result.dns, *form);
      break;
    case Form::list:
      put_ips(out, result.ips, *form);
      put_routes(out, result.routes, *form, [](const Route&) { return true; });
      put_dns(out, result.dns, *form);
      break;
    case Form::alphabetical:
      put_dns(out, result.dns, *form);
      put_ips(out, result.ips, *form);
      put_routes(out, result.routes, *form, [](const Route&) { return true; });
      break;
  }
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::cni
