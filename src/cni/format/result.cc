#include "cni/format/result.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/json/writer.h"
#include "base/text/go_text.h"

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

void put_address(JsonWriter& out, std::string_view key, const std::optional<net::Address>& address) {
  if (address) out.text(key, address->to_string());
}

void put_number(JsonWriter& out, std::string_view key, std::optional<std::int64_t> value) {
  if (!value) return;
  out.integer(key, *value);
}

std::optional<std::int64_t> unless_zero(std::int64_t value) { return value == 0 ? std::nullopt : std::optional(value); }

void put_list(JsonWriter& out, std::string_view key, const std::vector<std::string>& values) {
  if (!values.empty()) out.texts(key, values);
}

std::string text_of(const net::AddressWithLength& destination) {
  return destination.address.is_valid() ? destination.to_string() : "<nil>";
}

void put_route(JsonWriter& out, const Route& route, Form form) {
  const bool is_sorted = form == Form::alphabetical;
  out.begin_object();
  if (is_sorted) put_number(out, "advmss", unless_zero(route.advmss));
  out.text("dst", text_of(route.destination));
  put_address(out, "gw", route.gateway);
  if (form != Form::by_family) {
    put_number(out, "mtu", unless_zero(route.mtu));
    if (!is_sorted) put_number(out, "advmss", unless_zero(route.advmss));
    put_number(out, "priority", unless_zero(route.priority));
    if (is_sorted) put_number(out, "scope", route.scope);
    put_number(out, "table", route.table);
    if (!is_sorted) put_number(out, "scope", route.scope);
  }
  out.end_object();
}

template <class Filter>
void put_routes(JsonWriter& out, const std::vector<Route>& routes, Form form, Filter wanted) {
  if (std::none_of(routes.begin(), routes.end(), wanted)) return;
  out.begin_array("routes");
  for (const Route& route : routes) {
    if (wanted(route)) put_route(out, route, form);
  }
  out.end_array();
}

void put_dns(JsonWriter& out, const Dns& dns, Form form) {
  const bool is_sorted = form == Form::alphabetical;
  if (is_sorted && dns == Dns{}) return;
  out.begin_object("dns");
  const auto put_domain = [&] {
    if (!dns.domain.empty()) out.text("domain", dns.domain);
  };
  if (is_sorted) put_domain();
  put_list(out, "nameservers", dns.nameservers);
  if (!is_sorted) put_domain();
  if (!is_sorted) put_list(out, "search", dns.search);
  put_list(out, "options", dns.options);
  if (is_sorted) put_list(out, "search", dns.search);
  out.end_object();
}

void put_ips(JsonWriter& out, const std::vector<AssignedAddress>& ips, Form form) {
  if (ips.empty()) return;
  out.begin_array("ips");
  for (const AssignedAddress& ip : ips) {
    out.begin_object();
    if (form == Form::list) out.text("version", ip.address.address.is_v4() ? "4" : "6");
    out.text("address", ip.address.to_string());
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
  out.begin_object(family == Family::v4 ? "ip4" : "ip6");
  out.text("ip", ip->address.to_string());
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
  out.text("cniVersion", version);
  if (*form == Form::alphabetical) put_dns(out, result.dns, *form);
  if (*form == Form::by_family) {
    put_family(out, result, Family::v4);
    put_family(out, result, Family::v6);
  } else {
    put_ips(out, result.ips, *form);
    put_routes(out, result.routes, *form, [](const Route&) { return true; });
  }
  if (*form != Form::alphabetical) put_dns(out, result.dns, *form);
  out.end_object();
  return std::move(out).take();
}

}  // namespace croft::wire::cni

namespace croft::wire {
namespace {

/// Go's bufio.MaxScanTokenSize: what a line must stay below.
constexpr std::size_t kLineBytesMax = std::size_t{64} << 10;

/// Go's strings.Fields: the pieces between white space.
std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  std::size_t start = 0;
  std::size_t at = 0;
  const auto end_field = [&] {
    if (at > start) fields.push_back(line.substr(start, at - start));
  };
  while (at < line.size()) {
    const Rune rune = first_rune(line.substr(at));
    if (rune.valid && is_space(rune.code)) {
      end_field();
      start = at + rune.size;
    }
    at += rune.size;
  }
  end_field();
  return fields;
}

void append(std::vector<std::string>& to, const std::vector<std::string_view>& fields) {
  to.insert(to.end(), fields.begin() + 1, fields.end());
}

void take_line(std::string_view line, cni::Dns& dns) {
  const std::vector<std::string_view> fields = fields_of(line);
  if (fields.size() < 2 || fields[0].front() == '#' || fields[0].front() == ';') return;
  if (fields[0] == "nameserver") dns.nameservers.emplace_back(fields[1]);
  if (fields[0] == "domain") dns.domain = fields[1];
  if (fields[0] == "search") append(dns.search, fields);
  if (fields[0] == "options") append(dns.options, fields);
}

}  // namespace

Result<cni::Dns> parse_resolv_conf(std::string_view text) {
  cni::Dns dns;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (line.size() >= kLineBytesMax) return fail(ErrorCode::invalid_argument, "bufio.Scanner: token too long");
    take_line(line, dns);
    text.remove_prefix(line.size() == text.size() ? line.size() : line.size() + 1);
  }
  return dns;
}

}  // namespace croft::wire
