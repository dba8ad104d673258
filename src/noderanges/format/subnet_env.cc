#include "noderanges/format/subnet_env.h"

#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "base/net/lenient.h"

namespace croft::wire {
namespace {

struct Names {
  const char* network;
  const char* subnet;
};

Names names_of(net::Family family) {
  if (family == net::Family::v4) return {"FLANNEL_NETWORK", "FLANNEL_SUBNET"};
  return {"FLANNEL_IPV6_NETWORK", "FLANNEL_IPV6_SUBNET"};
}

using Values = std::map<std::string_view, std::string_view>;

Values values_of(std::string_view text) {
  Values values;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == text.npos ? text.size() : end + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (const std::size_t equals = line.find('='); equals != line.npos) {
      values[line.substr(0, equals)] = line.substr(equals + 1);
    }
  }
  return values;
}

std::optional<std::string_view> find(const Values& values, std::string_view key) {
  const auto found = values.find(key);
  return found == values.end() ? std::nullopt : std::optional(found->second);
}

auto wrong(std::string_view key, const std::string& why) {
  return fail(ErrorCode::invalid_argument, fmt::format("{}: {}", key, why));
}

[[nodiscard]] Result<std::vector<net::Prefix>> networks_of(std::string_view key, std::string_view text,
                                                           net::Family family) {
  std::vector<net::Prefix> networks;
  for (;;) {
    const std::size_t comma = text.find(',');
    const auto network = net::parse_prefix_leniently(text.substr(0, comma));
    if (!network) return wrong(key, net::echo(text.substr(0, comma)) + " is no CIDR");
    if (network->family() != family) return wrong(key, network->to_string() + " is of the other family");
    networks.push_back(*network);
    if (comma == text.npos) return networks;
    text.remove_prefix(comma + 1);
  }
}

[[nodiscard]] Result<std::optional<SubnetEnvFamily>> family_in(const Values& values, net::Family family) {
  const Names names = names_of(family);
  const auto network = find(values, names.network);
  const auto subnet = find(values, names.subnet);
  if (!network && !subnet) return std::optional<SubnetEnvFamily>();
  if (!network || !subnet) {
    return fail(ErrorCode::invalid_argument, fmt::format("missing {}", network ? names.subnet : names.network));
  }
  SubnetEnvFamily result;
  TRY(result.networks, networks_of(names.network, *network, family));
  const auto parsed = net::AddressWithLength::parse(*subnet);
  if (!parsed) return wrong(names.subnet, parsed.error().message);
  if (parsed->address.family() != family) return wrong(names.subnet, parsed->to_string() + " is of the other family");
  result.subnet = *parsed;
  return std::optional(std::move(result));
}

[[nodiscard]] Result<int> mtu_of(std::string_view text) {
  int mtu = 0;
  for (const char c : text) {
    if (c < '0' || c > '9' || mtu > kMtuMax) return wrong("FLANNEL_MTU", net::echo(text) + " is no MTU");
    mtu = mtu * 10 + (c - '0');
  }
  if (mtu < kMtuMin || mtu > kMtuMax) return wrong("FLANNEL_MTU", net::echo(text) + " is no MTU");
  return mtu;
}

}  // namespace

Result<net::AddressWithLength> first_usable(const net::Prefix& range) {
  const auto second = range.first().next();
  if (!second || !range.contains(*second)) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} has one address only, and it would be the gateway's", range.to_string()));
  }
  return net::AddressWithLength{*second, range.length()};
}

std::string encode_subnet_env(const SubnetEnv& env) {
  std::string text;
  for (const SubnetEnvFamily& family : env.families) {
    const Names names = names_of(family.subnet.address.family());
    std::string networks;
    for (const net::Prefix& network : family.networks) networks += (networks.empty() ? "" : ",") + network.to_string();
    text += fmt::format("{}={}\n{}={}\n", names.network, networks, names.subnet, family.subnet.to_string());
  }
  return text + fmt::format("FLANNEL_MTU={}\nFLANNEL_IPMASQ={}\n", env.mtu, env.ip_masquerade);
}

Result<SubnetEnv> decode_subnet_env(std::string_view text) {
  if (text.size() > kSubnetEnvBytesMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} bytes are too long for a subnet.env; {} are allowed", text.size(), kSubnetEnvBytesMax));
  }
  const Values values = values_of(text);
  SubnetEnv env;
  for (const net::Family family : {net::Family::v4, net::Family::v6}) {
    TRY(auto found, family_in(values, family));
    if (found) env.families.push_back(*std::move(found));
  }
  const auto mtu = find(values, "FLANNEL_MTU");
  const auto masquerade = find(values, "FLANNEL_IPMASQ");
  std::string missing;
  const auto miss = [&](const char* names) { missing += (missing.empty() ? "" : ", ") + std::string(names); };
  if (env.families.empty()) miss("FLANNEL_NETWORK, FLANNEL_IPV6_NETWORK, FLANNEL_SUBNET, FLANNEL_IPV6_SUBNET");
  if (!mtu) miss("FLANNEL_MTU");
  if (!masquerade) miss("FLANNEL_IPMASQ");
  if (!missing.empty()) return fail(ErrorCode::invalid_argument, "missing " + missing);
  TRY(env.mtu, mtu_of(*mtu));
  if (*masquerade != "true" && *masquerade != "false") {
    return wrong("FLANNEL_IPMASQ", net::echo(*masquerade) + " is neither true nor false");
  }
  env.ip_masquerade = *masquerade == "true";
  return env;
}

}  // namespace croft::wire
