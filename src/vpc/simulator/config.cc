#include <algorithm>
#include <array>
#include <set>

#include "base/json/decode.h"
#include "base/net/echo.h"
#include "vpc/simulator/world.h"

namespace croft::cloud::simulator {
namespace {

using wire::JsonAt;
using wire::JsonMember;
using wire::MaybeFault;

constexpr std::size_t kNodesMax = 10'000;
constexpr std::size_t kNameBytesMax = 63;
constexpr std::int64_t kMillisecondsMax = 86'400'000;

/// A name that needs no quoting anywhere.
MaybeFault read_name(const JsonAt& at, std::string& out) {
  if (auto fault = wire::read_text(at, kNameBytesMax, out)) return fault;
  if (out.empty() ||
      out.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.@") != out.npos) {
    return at.bad_value(net::echo(out) + " is no name: letters, digits and -_.@");
  }
  return {};
}

template <auto member>
MaybeFault span(const JsonAt& at, Config& out) {
  std::int64_t value = 0;
  if (auto fault = wire::read_integer(at, 0, kMillisecondsMax, value)) return fault;
  if constexpr (std::is_same_v<decltype(member(out)), Between&>) {
    member(out) = {std::chrono::milliseconds(0), std::chrono::milliseconds(value)};
  } else {
    member(out) = std::chrono::milliseconds(value);
  }
  return {};
}

MaybeFault read_address(const JsonAt& at, net::Address& out) {
  std::string text;
  if (auto fault = wire::read_text(at, 64, text)) return fault;
  const auto address = net::Address::parse(text);
  if (!address) return at.bad_value(address.error().message);
  out = *address;
  return {};
}

constexpr std::array<JsonMember<Subnet>, 3> kSubnetMembers{{
    {"id", [](const JsonAt& at, Subnet& out) { return read_name(at, out.id); }},
    {"range",
     [](const JsonAt& at, Subnet& out) -> MaybeFault {
       std::string text;
       if (auto fault = wire::read_text(at, 64, text)) return fault;
       const auto range = net::Prefix::parse(text);
       if (!range) return at.bad_value(range.error().message);
       if (net::bit_length(range->family()) - range->length() < 3) return at.bad_value("it has less than 8 addresses");
       out.range = *range;
       return {};
     }},
    {"gateway", [](const JsonAt& at, Subnet& out) { return read_address(at, out.gateway); }},
}};

constexpr std::array<JsonMember<Node>, 4> kNodeMembers{{
    {"name", [](const JsonAt& at, Node& out) { return read_name(at, out.name); }},
    {"mac",
     [](const JsonAt& at, Node& out) -> MaybeFault {
       std::string text;
       if (auto fault = wire::read_text(at, 64, text)) return fault;
       const auto mac = net::Mac::parse(text);
       if (!mac) return at.bad_value(mac.error().message);
       out.mac = *mac;
       return {};
     }},
    {"subnet", [](const JsonAt& at, Node& out) { return read_name(at, out.subnet); }},
    {"address", [](const JsonAt& at, Node& out) { return read_address(at, out.address.emplace()); }},
}};

MaybeFault read_subnet(const JsonAt& at, Subnet& out) {
  return wire::read_object<Subnet>(at, kSubnetMembers, out, {.unknown = wire::ObjectRules::Unknown::refused});
}
MaybeFault read_node(const JsonAt& at, Node& out) {
  return wire::read_object<Node>(at, kNodeMembers, out, {.unknown = wire::ObjectRules::Unknown::refused});
}

constexpr std::array<JsonMember<Config>, 13> kMembers{{
    {"region", [](const JsonAt& at, Config& out) { return read_name(at, out.region); }},
    {"zone", [](const JsonAt& at, Config& out) { return read_name(at, out.zone); }},
    {"project", [](const JsonAt& at, Config& out) { return read_name(at, out.project); }},
    {"vpc", [](const JsonAt& at, Config& out) { return read_name(at, out.vpc); }},
    {"publicKey", [](const JsonAt& at, Config& out) { return read_name(at, out.user.public_key); }},
    {"privateKey", [](const JsonAt& at, Config& out) { return read_name(at, out.user.private_key); }},
    {"tokenLifeSeconds",
     [](const JsonAt& at, Config& out) -> MaybeFault {
       std::int64_t value = 0;
       if (auto fault = wire::read_integer(at, 1, 86'400, value)) return fault;
       out.token_life = std::chrono::seconds(value);
       return {};
     }},
    {"callsPerSecond",
     [](const JsonAt& at, Config& out) -> MaybeFault {
       std::int64_t value = 0;
       if (auto fault = wire::read_integer(at, 0, 100'000, value)) return fault;
       out.calls_per_second = static_cast<double>(value);
       return {};
     }},
    {"latencyMaxMs", span<[](Config& c) -> Between& { return c.latency; }>},
    {"flowMaxMs", span<[](Config& c) -> Between& { return c.flow; }>},
    {"availableLagMs", span<[](Config& c) -> Span& { return c.available_lag; }>},
    {"subnets", [](const JsonAt& at, Config& out) { return wire::read_list(at, 1000, read_subnet, out.subnets); }},
    {"nodes", [](const JsonAt& at, Config& out) { return wire::read_list(at, kNodesMax, read_node, out.nodes); }},
}};

}  // namespace

Result<Config> decode_config(std::string_view json) {
  TRY(const wire::JsonDocument document, wire::parse_json(json, {std::size_t{4} << 20, 16, 200'000}));
  Config config;
  const JsonAt root{document.root(), nullptr, {}, {}};
  if (auto fault =
          wire::read_object<Config>(root, kMembers, config, {.unknown = wire::ObjectRules::Unknown::refused})) {
    return fail(invalid_argument(fault->to_string()));
  }
  std::set<std::string> ids;
  for (const Subnet& subnet : config.subnets) {
    if (!ids.insert(subnet.id).second) return fail(invalid_argument("subnets: " + subnet.id + " comes twice"));
    if (!subnet.range.is_valid()) return fail(invalid_argument("subnets: " + subnet.id + " has no range"));
    if (!subnet.range.contains(subnet.gateway)) {
      return fail(invalid_argument("subnets: the gateway of " + subnet.id + " is not in its range"));
    }
  }
  std::set<std::string> names;
  std::set<net::Mac> macs;
  std::set<std::pair<std::string, net::Address>> addresses;
  for (Node& node : config.nodes) {
    if (!names.insert(node.name).second) return fail(invalid_argument("nodes: " + node.name + " comes twice"));
    if (!macs.insert(node.mac).second) return fail(invalid_argument("nodes: the mac of " + node.name + " comes twice"));
    if (!ids.contains(node.subnet))
      return fail(invalid_argument("nodes: " + node.name + " has no subnet that is there"));
    if (node.address) {
      const auto subnet = std::ranges::find(config.subnets, node.subnet, &Subnet::id);
      if (!subnet->range.contains(*node.address)) {
        return fail(invalid_argument("nodes: the address of " + node.name + " is not in its subnet"));
      }
      if (!addresses.insert({node.subnet, *node.address}).second) {
        return fail(invalid_argument("nodes: the address of " + node.name + " comes twice"));
      }
    }
    node.instance = "uhost-" + node.name;
    node.interface_id = "uni-" + node.name;
  }
  if (config.subnets.empty() || config.nodes.empty()) return fail(invalid_argument("subnets and nodes are needed"));
  return config;
}

}  // namespace croft::cloud::simulator
