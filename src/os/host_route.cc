#include "os/host_route.h"

#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <memory>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "os/file_descriptor.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

constexpr std::size_t kPageBytes = std::size_t{64} << 10;
/// One route, with hundreds of ways.
constexpr std::size_t kRouteBytes = std::size_t{16} << 10;
constexpr int kTries = 10;
constexpr const char* kWhat = "the kernel's network tables (rtnetlink)";

Error refused(int error_number) {
  Error error = system_error("read", kWhat, error_number);
  if (error.code != ErrorCode::permission_denied) error.code = ErrorCode::unavailable;
  return error;
}

/// A question on a socket of its own: nothing of an earlier one is in it.
class Conversation {
 public:
  Conversation(const Clock& clock, Deadline deadline, std::size_t page_bytes)
      : clock_(clock),
        deadline_(deadline),
        page_bytes_(page_bytes),
        page_(std::make_unique_for_overwrite<std::uint8_t[]>(page_bytes)) {}

  /// `ask` begins with the nlmsghdr.
  [[nodiscard]] Result<void> begin(std::span<const std::uint8_t> ask) {
    socket_ = FileDescriptor(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE));
    if (!socket_.is_open()) return fail(refused(errno));
    while (::send(socket_.get(), ask.data(), ask.size(), 0) < 0) {
      if (errno != EINTR) return fail(refused(errno));
    }
    return {};
  }
  /// The next page; empty when the kernel lost some.
  [[nodiscard]] Result<std::span<const std::uint8_t>> receive() {
    for (;;) {
      sockaddr_nl from{};
      socklen_t from_size = sizeof from;
      const ssize_t size = ::recvfrom(socket_.get(), page_.get(), page_bytes_, MSG_TRUNC,
                                      reinterpret_cast<sockaddr*>(&from), &from_size);
      if (size > 0 && from.nl_pid != 0) continue;  // not the kernel
      if (size > 0 && static_cast<std::size_t>(size) > page_bytes_) return std::span<const std::uint8_t>();
      if (size > 0) return std::span<const std::uint8_t>(page_.get(), static_cast<std::size_t>(size));
      if (size == 0 || errno == ENOBUFS) return std::span<const std::uint8_t>();
      if (errno == EINTR) continue;
      if (errno != EAGAIN) return fail(refused(errno));
      const auto left = deadline_.at_since_boot - clock_.now().since_boot;
      if (left <= std::chrono::nanoseconds(0)) {
        return fail(ErrorCode::deadline_exceeded, "{} took longer than there was time", kWhat);
      }
      pollfd wait{socket_.get(), POLLIN, 0};
      // The clock is the caller's, who may move it: look at it again soon.
      const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
      (void)::poll(&wait, 1, static_cast<int>(std::min<std::int64_t>(ms, 1000)));
    }
  }

 private:
  const Clock& clock_;
  const Deadline deadline_;
  const std::size_t page_bytes_;
  std::unique_ptr<std::uint8_t[]> page_;  // not filled: each page touched costs an ADD as much as ten calls
  FileDescriptor socket_;
};

struct Message {
  nlmsghdr header{};
  std::span<const std::uint8_t> payload;
};
/// Takes the next message off a page; nothing at its end.
[[nodiscard]] Result<std::optional<Message>> next_message(std::span<const std::uint8_t>& rest) {
  Message message;
  if (rest.size() < sizeof message.header) return std::optional<Message>();
  std::memcpy(&message.header, rest.data(), sizeof message.header);
  const std::size_t length = message.header.nlmsg_len;
  if (length < sizeof message.header || length > rest.size()) {
    return fail(ErrorCode::unavailable, "{} answered with a length that does not fit", kWhat);
  }
  message.payload = rest.first(length).subspan(std::min<std::size_t>(NLMSG_HDRLEN, length));
  rest = rest.subspan(std::min<std::size_t>(NLMSG_ALIGN(length), rest.size()));
  return std::optional(message);
}

/// The error number of an NLMSG_ERROR, 0 for none.
int error_of(std::span<const std::uint8_t> payload) {
  nlmsgerr error{};
  if (payload.size() < sizeof error.error) return EIO;
  std::memcpy(&error.error, payload.data(), sizeof error.error);
  return -error.error;
}

/// One look at all of them; false when the answers are not of one moment.
[[nodiscard]] Result<bool> dump_once(std::uint16_t request, std::uint8_t family, const Clock& clock, Deadline deadline,
                                     const std::function<Result<void>(std::span<const std::uint8_t>)>& take) {
  struct {
    nlmsghdr header;
    // As long as the longest of the three kinds' headers: with less the kernel takes the family alone.
    ifinfomsg body;
  } ask{};
  ask.header.nlmsg_len = sizeof ask;
  ask.header.nlmsg_type = request;
  ask.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  ask.header.nlmsg_seq = 1;
  ask.body.ifi_family = family;
  if (request == RTM_GETROUTE) ask.header.nlmsg_len = NLMSG_LENGTH(sizeof(rtmsg));
  if (request == RTM_GETADDR) ask.header.nlmsg_len = NLMSG_LENGTH(sizeof(ifaddrmsg));
  const auto answer = request - (RTM_GETLINK - RTM_NEWLINK);  // of each kind in this order
  Conversation talk(clock, deadline, kPageBytes);
  TRY_VOID(talk.begin({reinterpret_cast<const std::uint8_t*>(&ask), ask.header.nlmsg_len}));
  bool torn = false;
  for (;;) {
    TRY(auto rest, talk.receive());
    if (rest.empty()) return false;
    for (;;) {
      TRY(const auto message, next_message(rest));
      if (!message) break;
      torn = torn || (message->header.nlmsg_flags & NLM_F_DUMP_INTR) != 0;
      if (message->header.nlmsg_type == NLMSG_DONE) return !torn;
      if (message->header.nlmsg_type == NLMSG_ERROR) {
        const int error = error_of(message->payload);
        if (error == EINTR || error == EAGAIN || error == EBUSY) return false;
        return fail(refused(error));
      }
      if (message->header.nlmsg_type == answer) TRY_VOID(take(message->payload));
    }
  }
}

/// The kernel's answers for an address that no route leads to, or one that says so (fib_props).
bool is_no_route(int error) {
  return error == ENETUNREACH || error == EHOSTUNREACH || error == EACCES || error == EINVAL || error == EAGAIN;
}

/// The index of lo in every network namespace (LOOPBACK_IFINDEX).
constexpr int kLoopbackDevice = 1;
/// The protocol of DHCP, which older headers do not name (RTPROT_DHCP).
constexpr std::uint8_t kProtocolDhcp = 16;

bool is_made_by_hand_or_program(std::uint8_t protocol) {
  return protocol != RTPROT_REDIRECT && protocol != RTPROT_KERNEL && protocol != RTPROT_RA && protocol != kProtocolDhcp;
}

/// The rtmsg of the route to an address, and the attributes behind it. Empty: there is none, or one that leaves it
/// unreachable.
[[nodiscard]] Result<std::vector<std::uint8_t>> ask_for_route(const net::Address& to, const Clock& clock,
                                                              Deadline deadline) {
  const auto bits = static_cast<unsigned>(bit_length(to.family()));
  struct {
    nlmsghdr header;
    rtmsg body;
    rtattr attribute;
    std::array<std::uint8_t, 16> destination;
  } ask{};
  ask.header.nlmsg_len = static_cast<std::uint32_t>(NLMSG_LENGTH(sizeof(rtmsg)) + RTA_LENGTH(bits / 8));
  ask.header.nlmsg_type = RTM_GETROUTE;
  ask.header.nlmsg_flags = NLM_F_REQUEST;
  ask.header.nlmsg_seq = 1;
  ask.body.rtm_family = to.is_v6() ? AF_INET6 : AF_INET;
  ask.body.rtm_dst_len = static_cast<std::uint8_t>(bits);
  ask.body.rtm_flags = RTM_F_FIB_MATCH;
  ask.attribute.rta_type = RTA_DST;
  ask.attribute.rta_len = static_cast<std::uint16_t>(RTA_LENGTH(bits / 8));
  ask.destination = to.bytes();
  Conversation talk(clock, deadline, kRouteBytes);
  TRY_VOID(talk.begin({reinterpret_cast<const std::uint8_t*>(&ask), ask.header.nlmsg_len}));
  TRY(auto rest, talk.receive());
  TRY(const auto message, next_message(rest));
  if (!message) return fail(ErrorCode::unavailable, "{} lost an answer", kWhat);
  if (message->header.nlmsg_type == NLMSG_ERROR) {
    const int error = error_of(message->payload);
    if (is_no_route(error)) return std::vector<std::uint8_t>();
    return fail(refused(error));
  }
  if (message->header.nlmsg_type != RTM_NEWROUTE) {
    return fail(ErrorCode::unavailable, "{} answered with something else", kWhat);
  }
  return std::vector<std::uint8_t>(message->payload.begin(), message->payload.end());
}

}  // namespace

Result<void> dump_routes(std::uint16_t request, std::uint8_t family, const Clock& clock, Deadline deadline,
                         const std::function<void()>& begin,
                         const std::function<Result<void>(std::span<const std::uint8_t> payload)>& take) {
  for (int tries = 0; tries < kTries; ++tries) {
    if (deadline.passed(clock.now())) {
      return fail(ErrorCode::deadline_exceeded, "{} took longer than there was time", kWhat);
    }
    begin();
    TRY(const bool is_whole, dump_once(request, family, clock, deadline, take));
    if (is_whole) return {};
  }
  return fail(ErrorCode::unavailable, "{} changed while they were read, {} times over", kWhat, kTries);
}

void for_each_attribute(std::span<const std::uint8_t> payload, std::size_t header_bytes,
                        const std::function<void(std::uint16_t type, std::span<const std::uint8_t> value)>& f) {
  const std::size_t begin = NLMSG_ALIGN(header_bytes);
  if (payload.size() < begin) return;
  auto rest = payload.subspan(begin);
  while (rest.size() >= sizeof(rtattr)) {
    rtattr attribute{};
    std::memcpy(&attribute, rest.data(), sizeof attribute);
    if (attribute.rta_len < sizeof attribute || attribute.rta_len > rest.size()) return;
    f(attribute.rta_type & NLA_TYPE_MASK, rest.first(attribute.rta_len).subspan(sizeof attribute));
    rest = rest.subspan(std::min<std::size_t>(RTA_ALIGN(attribute.rta_len), rest.size()));
  }
}

std::optional<net::Address> ip_of(std::uint8_t family, std::span<const std::uint8_t> value) {
  const auto ip = net::Address::of_bytes(value);
  return ip && family == (ip->is_v6() ? AF_INET6 : AF_INET) ? ip : std::nullopt;
}

std::optional<Route> parse_route(std::span<const std::uint8_t> payload) {
  rtmsg header{};
  if (payload.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, payload.data(), sizeof header);
  if (header.rtm_family != AF_INET && header.rtm_family != AF_INET6) return std::nullopt;
  Route route;
  route.type = header.rtm_type == RTN_UNICAST ? Route::Type::unicast : Route::Type::other;
  route.to = net::Address::from(header.rtm_family == AF_INET6 ? net::Family::v6 : net::Family::v4, 0);
  route.length = header.rtm_dst_len;
  route.protocol = header.rtm_protocol;
  route.is_of_a_path = (header.rtm_flags & RTM_F_CLONED) != 0;
  for_each_attribute(payload, sizeof header, [&](std::uint16_t kind, std::span<const std::uint8_t> value) {
    if (kind == RTA_DST) {
      route.to = ip_of(header.rtm_family, value).value_or(route.to);
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

bool shows_life(const Route& route, const net::Address& address) {
  return route.type == Route::Type::unicast && route.to == address && route.length == bit_length(address.family()) &&
         is_made_by_hand_or_program(route.protocol) && !route.is_of_a_path && !route.has_gateway &&
         !route.has_several_ways && route.device != 0 && route.device != kLoopbackDevice;
}

Result<std::optional<std::string>> device_of_living(const net::Address& address, const Clock& clock,
                                                    Deadline deadline) {
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
