#include "noderanges/format/subnet_env.h"

#include <fmt/format.h>

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

}  // namespace croft::wire
