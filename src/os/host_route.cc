#include "os/host_route.h"

#include <linux/rtnetlink.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "base/printable.h"
#include "os/route_netlink.h"

namespace croft::os {
namespace {

/// The index of lo in every network namespace (LOOPBACK_IFINDEX).
constexpr int kLoopbackDevice = 1;
/// The protocol of DHCP, which older headers do not name (RTPROT_DHCP).
constexpr std::uint8_t kProtocolDhcp = 16;

bool is_made_by_hand_or_program(std::uint8_t protocol) {
  return protocol != RTPROT_REDIRECT && protocol != RTPROT_KERNEL && protocol != RTPROT_RA && protocol != kProtocolDhcp;
}

}  // namespace

std::optional<Route> parse_route(std::span<const std::uint8_t> payload) {
  rtmsg header{};
  if (payload.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, payload.data(), sizeof header);
  if (header.rtm_family != AF_INET && header.rtm_family != AF_INET6) return std::nullopt;
  Route route;
  route.type = header.rtm_type == RTN_UNICAST ? Route::Type::unicast : Route::Type::other;
  route.to.is_v6 = header.rtm_family == AF_INET6;
  route.length = header.rtm_dst_len;
  route.protocol = header.rtm_protocol;
  route.is_of_a_path = (header.rtm_flags & RTM_F_CLONED) != 0;
  for_each_attribute(payload, sizeof header, [&](std::uint16_t kind, std::span<const std::uint8_t> value) {
    if (kind == RTA_DST && value.size() == (route.to.is_v6 ? 16U : 4U)) {
      std::ranges::copy(value, route.to.bytes.begin());
    } else if (kind == RTA_GATEWAY || kind == RTA_VIA) {
      route.has_gateway = true;
    } else if (kind == RTA_MULTIPATH) {
      route.has_several_ways = true;
    } else if (kind == RTA_OIF && value.size() == sizeof route.device) {
      std::memcpy(&route.device, value.data(), sizeof route.device);
    }
  });
  return route;
}

bool shows_life(const Route& route, const IpBytes& address) {
  const int full_length = address.is_v6 ? 128 : 32;
  return route.type == Route::Type::unicast && route.to == address && route.length == full_length &&
         is_made_by_hand_or_program(route.protocol) && !route.is_of_a_path && !route.has_gateway &&
         !route.has_several_ways && route.device != 0 && route.device != kLoopbackDevice;
}

Result<std::optional<std::string>> device_of_living(const IpBytes& address, const Clock& clock, Deadline deadline) {
  TRY(const auto answer, ask_for_route(address, clock, deadline));
  const auto route = parse_route(answer);
  if (!route || !shows_life(*route, address)) return std::optional<std::string>();
  std::array<char, IF_NAMESIZE> name{};
  // It may have gone since: then its number tells.
  if (::if_indextoname(static_cast<unsigned>(route->device), name.data()) == nullptr) {
    return std::optional(fmt::format("#{}", route->device));
  }
  return std::optional(printable(name.data(), Printed::line));
}

}  // namespace croft::os
