#include "os/neighbour_probe.h"

#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/texts.h"
#include "os/file_descriptor.h"
#include "os/interfaces.h"
#include "os/neighbour_packet.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

using std::chrono::nanoseconds;

/// The bytes of a frame that are looked at. Neighbour discovery's are shorter; a longer one fails by its checksum.
constexpr std::size_t kFrameBytes = 2048;
constexpr int kReceiveBufferBytes = 4 << 20;
/// Frames that are read, or sent, before the clock is looked at again: no flood holds up the window.
constexpr int kFramesAtOnce = 64;
/// Up to so many addresses the kernel itself drops what concerns none of them. More do not fit what Linux 5.x to 6.1
/// allow a socket's filter by default (net.core.optmem_max, 20 KiB).
constexpr std::size_t kFilteredMax = 128;
/// Groups that one socket joins, for the same limit.
constexpr std::size_t kGroupsASocket = 128;
/// How long the window may outlast what it should take, when the interface takes what is sent slowly.
constexpr nanoseconds kLookUpTime = std::chrono::seconds(5);

Error trouble(std::string_view doing, const std::string& interface, int error_number) {
  const std::string name = printable(interface, Printed::line);
  if (error_number == EPERM || error_number == EACCES) {
    return make_error(ErrorCode::permission_denied,
                      "cannot {} {}: CAP_NET_RAW is missing; run as root, or give the container that capability", doing,
                      name);
  }
  if (error_number == ENETDOWN || error_number == ENXIO || error_number == ENODEV) {
    return make_error(ErrorCode::unavailable, "cannot {} {}: it went down, or away", doing, name);
  }
  Error error = system_error(doing, name, error_number);
  if (error.code != ErrorCode::invalid_argument) error.code = ErrorCode::unavailable;
  return error;
}

[[nodiscard]] Result<void> check(std::span<const net::Address> addresses) {
  if (addresses.size() > kProbedMax) {
    return fail(ErrorCode::invalid_argument, "{} addresses are too many to probe at once; {} at most", addresses.size(),
                kProbedMax);
  }
  for (const net::Address& ip : addresses) {
    const bool is_loopback = ip.is_v4() && ip.bytes()[0] == 127;
    if (!can_be_somebodys(ip) || is_loopback) return fail(ErrorCode::invalid_argument, "{} is no address to probe", ip);
  }
  return {};
}

struct Wire {
  NetworkInterface interface;
  std::set<net::Mac> own_macs;  ///< of all of the host's interfaces
};

[[nodiscard]] Result<Wire> find_wire(const std::string& name, const Clock& clock, Deadline deadline) {
  const Deadline look_up{std::min(deadline.at_since_boot, clock.now().since_boot + kLookUpTime)};
  TRY(const auto all, list_interfaces(clock, look_up));
  Wire wire;
  for (const auto& one : all) {
    if (one.mac) wire.own_macs.insert(*one.mac);
    if (one.name == name) wire.interface = one;
  }
  const std::string shown = printable(name, Printed::line);
  if (wire.interface.index == 0) return fail(ErrorCode::not_found, "there is no interface {}", shown);
  if (!wire.interface.mac) {
    return fail(ErrorCode::invalid_argument, "interface {} is no Ethernet: addresses can't be probed there", shown);
  }
  if (wire.interface.is_part) {
    return fail(ErrorCode::invalid_argument,
                "interface {} is a port of a bridge or bond, which takes what comes in; name that one instead", shown);
  }
  if (!wire.interface.is_up || !wire.interface.has_carrier) {
    return fail(ErrorCode::unavailable, "interface {} {}", shown,
                wire.interface.is_up ? "has no carrier" : "is down; set it up");
  }
  return wire;
}

// ---------------------------------------------------------------- the kernel's filter

sock_filter statement(unsigned code, std::uint32_t k) { return {static_cast<std::uint16_t>(code), 0, 0, k}; }

/// Drops the frame unless the value at hand is `k`.
void demand(std::vector<sock_filter>& out, std::uint32_t k) {
  out.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, k});
  out.push_back(statement(BPF_RET | BPF_K, 0));
}
void load(std::vector<sock_filter>& out, unsigned size, std::uint32_t at) {
  out.push_back(statement(BPF_LD | size | BPF_ABS, at));
}

/// Takes the frame when the four bytes at `at` are one of `wanted`, 128 at most.
void take_if_among(std::vector<sock_filter>& out, std::uint32_t at, const std::set<std::uint32_t>& wanted) {
  load(out, BPF_W, at);
  std::size_t left = wanted.size();
  for (const std::uint32_t value : wanted) {
    // To the statement that takes it, behind the last comparison and the one that goes on.
    out.push_back({BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint8_t>(left), 0, value});
    --left;
  }
  out.push_back(statement(BPF_JMP | BPF_JA, 1));
  out.push_back(statement(BPF_RET | BPF_K, kFrameBytes));
}

/// `wanted`: the last four bytes of the addresses; empty: any.
std::vector<sock_filter> filter_of(bool is_v6, const std::set<std::uint32_t>& wanted) {
  std::vector<sock_filter> out;
  // A frame in a VLAN is no answer of this network. The kernel takes the tag off; where this host has no interface of
  // that VLAN it forgets it too, and calls the frame another host's.
  load(out, BPF_B, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT));
  demand(out, 0);
  load(out, BPF_B, static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE));
  out.push_back({BPF_JMP | BPF_JGE | BPF_K, 0, 1, PACKET_OTHERHOST});
  out.push_back(statement(BPF_RET | BPF_K, 0));
  if (!is_v6) {
    load(out, BPF_W, 14);
    demand(out, 0x0001'0800);  // Ethernet, IPv4
    load(out, BPF_H, 18);
    demand(out, 0x0604);  // the lengths of their addresses
  } else {
    load(out, BPF_H, 20);
    demand(out, 58 << 8 | 255);  // ICMPv6, hop limit
    load(out, BPF_B, 54);
    out.push_back({BPF_JMP | BPF_JEQ | BPF_K, 2, 0, 135});
    out.push_back({BPF_JMP | BPF_JEQ | BPF_K, 1, 0, 136});
    out.push_back(statement(BPF_RET | BPF_K, 0));
  }
  if (wanted.empty()) {
    out.push_back(statement(BPF_RET | BPF_K, kFrameBytes));
    return out;
  }
  // ARP's sender and target; IPv6's source, and the target of neighbour discovery.
  take_if_among(out, is_v6 ? 34 : 28, wanted);
  take_if_among(out, is_v6 ? 74 : 38, wanted);
  out.push_back(statement(BPF_RET | BPF_K, 0));
  return out;
}

bool attach(int socket, const std::vector<sock_filter>& filter) {
  // The kernel copies it.
  const sock_fprog program{static_cast<std::uint16_t>(filter.size()), const_cast<sock_filter*>(filter.data())};
  return ::setsockopt(socket, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program) == 0;
}

// ---------------------------------------------------------------- the sockets

/// One packet socket of a family, which stays with one interface.
class PacketSocket {
 public:
  /// That only sends.
  [[nodiscard]] static Result<PacketSocket> to_send(const NetworkInterface& interface) {
    TRY(PacketSocket made, make(interface));
    TRY_VOID(made.bind(interface, 0));
    return made;
  }

  /// That hears what concerns these addresses.
  [[nodiscard]] static Result<PacketSocket> open(const NetworkInterface& interface, bool is_v6,
                                                 std::span<const net::Address> addresses) {
    TRY(PacketSocket made, make(interface));
    const int fd = made.socket_.get();
    std::set<std::uint32_t> wanted;
    for (const net::Address& ip : addresses) {
      const auto last_four = static_cast<std::uint32_t>(ip.value().lo);
      if (ip.is_v6() == is_v6 && wanted.size() <= kFilteredMax) wanted.insert(last_four);
    }
    if (wanted.size() > kFilteredMax) wanted.clear();
    if (!attach(fd, filter_of(is_v6, wanted)) && !attach(fd, filter_of(is_v6, {}))) {
      return fail(trouble("filter what comes from", interface.name, errno));
    }
    // A larger buffer is a help, not a need; without CAP_NET_ADMIN it is what the machine allows.
    if (::setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &kReceiveBufferBytes, sizeof kReceiveBufferBytes) != 0) {
      (void)::setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &kReceiveBufferBytes, sizeof kReceiveBufferBytes);
    }
    TRY_VOID(made.bind(interface, is_v6 ? ETHERTYPE_IPV6 : ETHERTYPE_ARP));
    return made;
  }

  [[nodiscard]] int fd() const { return socket_.get(); }

  /// The interface lets these groups' frames in.
  [[nodiscard]] bool let_in(std::uint16_t kind, int interface_index, const net::Mac& mac) const {
    packet_mreq ask{};
    ask.mr_ifindex = interface_index;
    ask.mr_type = kind;
    ask.mr_alen = static_cast<std::uint16_t>(mac.bytes.size());
    std::ranges::copy(mac.bytes, std::begin(ask.mr_address));
    return ::setsockopt(fd(), SOL_PACKET, PACKET_ADD_MEMBERSHIP, &ask, sizeof ask) == 0;
  }

  /// False: the interface takes no more just now.
  [[nodiscard]] Result<bool> send(const std::string& frame) const {
    for (;;) {
      if (::send(fd(), frame.data(), frame.size(), MSG_NOSIGNAL) >= 0) return true;
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == ENOBUFS) return false;
      return fail(trouble("send on", interface_, errno));
    }
  }

  /// The bytes of the next frame; absent: there is none now.
  [[nodiscard]] Result<std::optional<std::size_t>> receive(std::span<std::uint8_t> buffer) const {
    for (;;) {
      const ssize_t size = ::recv(fd(), buffer.data(), buffer.size(), 0);
      if (size >= 0) return std::optional(static_cast<std::size_t>(size));
      if (errno == EINTR) continue;
      if (errno == EAGAIN) return std::optional<std::size_t>();
      return fail(trouble("listen on", interface_, errno));
    }
  }

  /// How many frames that the filter took were lost since.
  [[nodiscard]] unsigned dropped() const {
    tpacket_stats statistics{};
    socklen_t size = sizeof statistics;
    if (::getsockopt(fd(), SOL_PACKET, PACKET_STATISTICS, &statistics, &size) != 0) return 0;
    return statistics.tp_drops;
  }

 private:
  explicit PacketSocket(std::string interface) : interface_(std::move(interface)) {}

  /// Without a protocol, by which nothing comes in before the filter is there.
  [[nodiscard]] static Result<PacketSocket> make(const NetworkInterface& interface) {
    PacketSocket made(interface.name);
    made.socket_ = FileDescriptor(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!made.socket_.is_open()) return fail(trouble("open a packet socket for", interface.name, errno));
    return made;
  }

  [[nodiscard]] Result<void> bind(const NetworkInterface& interface, std::uint16_t protocol) {
    sockaddr_ll where{};
    where.sll_family = AF_PACKET;
    where.sll_protocol = htons(protocol);
    where.sll_ifindex = interface.index;
    if (::bind(fd(), reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0) return {};
    return fail(trouble("listen on", interface.name, errno));
  }

  std::string interface_;
  FileDescriptor socket_;
};

/// The memberships of solicited-node groups. It goes through the IPv6 stack, so that switches which look at MLD pass
/// their frames (RFC 4862 §5.4.2). Where that is off or has no room, the interface lets every group in.
class Groups {
 public:
  [[nodiscard]] Result<void> join(const PacketSocket& socket, const NetworkInterface& interface,
                                  std::span<const net::Address> addresses) {
    constexpr net::Mac kEverybody{{0x33, 0x33, 0, 0, 0, 1}};
    bool complete = socket.let_in(PACKET_MR_MULTICAST, interface.index, kEverybody);
    std::set<net::Address> groups;
    for (const net::Address& ip : addresses) {
      if (ip.is_v6()) groups.insert(solicited_node_group(ip));
    }
    std::size_t joined = 0;
    for (const net::Address& group : groups) {
      if (joined++ % kGroupsASocket == 0) {
        sockets_.emplace_back(::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0));
      }
      ipv6_mreq ask{};
      std::ranges::copy(group.bytes(), std::begin(ask.ipv6mr_multiaddr.s6_addr));
      ask.ipv6mr_interface = static_cast<unsigned>(interface.index);
      complete = complete && sockets_.back().is_open() &&
                 ::setsockopt(sockets_.back().get(), IPPROTO_IPV6, IPV6_ADD_MEMBERSHIP, &ask, sizeof ask) == 0;
      if (!complete) break;
    }
    if (complete || socket.let_in(PACKET_MR_ALLMULTI, interface.index, {})) return {};
    return fail(trouble("join the solicited-node groups on", interface.name, errno));
  }

 private:
  std::vector<FileDescriptor> sockets_;
};

/// Between 0 and `span`.
nanoseconds by_chance(nanoseconds span, Random& random) {
  return nanoseconds(static_cast<std::int64_t>(random.next() % (static_cast<std::uint64_t>(span.count()) + 1)));
}

/// Waits until `until`, or until one of them has something. The clock may be one that is moved by hand: never long.
void wait(const std::vector<PacketSocket>& sockets, nanoseconds until, const Clock& clock) {
  const auto left =
      std::clamp<nanoseconds>(until - clock.now().since_boot, nanoseconds(0), std::chrono::milliseconds(100));
  std::vector<pollfd> all;
  for (const auto& socket : sockets) {
    all.push_back({socket.fd(), POLLIN, 0});
  }
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(left).count();
  (void)::poll(all.data(), all.size(), static_cast<int>(ms));
}

struct Sending {
  nanoseconds at;  ///< since boot
  std::size_t which;
};

// ---------------------------------------------------------------- one window

class Window {
 public:
  Window(const Wire& wire, std::span<const net::Address> addresses, const ProbeTiming& timing, const Clock& clock,
         Random& random, Deadline deadline)
      : wire_(wire),
        addresses_(addresses),
        timing_(timing),
        clock_(clock),
        deadline_(deadline),
        found_(addresses.size()),
        had_(addresses.size()),
        buffer_(kFrameBytes) {
    for (std::size_t i = 0; i < 6; ++i) nonce_.at(i) = static_cast<std::uint8_t>(random.next());
    for (std::size_t i = 0; i < addresses.size(); ++i) places_[addresses[i]].push_back(i);
    left_ = places_.size();
    const nanoseconds now = clock.now().since_boot;
    for (const auto& [ip, places] : places_) {
      nanoseconds at = now + by_chance(timing.probe_wait, random);
      for (int i = 0; i < timing.probe_num; ++i) {
        plan_.push_back({at, places.front()});
        at += timing.probe_min + by_chance(timing.probe_max - timing.probe_min, random);
      }
    }
    std::ranges::sort(plan_, {}, &Sending::at);
  }

  [[nodiscard]] Result<std::vector<std::optional<net::Mac>>> run() {
    if (plan_.empty()) return std::move(found_);
    if (plan_.back().at + timing_.announce_wait > deadline_.at_since_boot) return fail(too_late());
    for (const bool is_v6 : {false, true}) {
      if (std::ranges::none_of(addresses_, [&](const net::Address& ip) { return ip.is_v6() == is_v6; })) continue;
      TRY(PacketSocket socket, PacketSocket::open(wire_.interface, is_v6, addresses_));
      if (is_v6) TRY_VOID(groups_.join(socket, wire_.interface, addresses_));
      sockets_.push_back(std::move(socket));
    }
    for (;;) {
      TRY_VOID(look());
      if (left_ == 0) return std::move(found_);
      TRY(const bool is_full, send_due());
      const nanoseconds now = clock_.now().since_boot;
      const bool is_sent = next_ == plan_.size();
      if (is_sent && now >= last_sent_ + timing_.announce_wait) break;
      if (now >= deadline_.at_since_boot) return fail(too_late());
      const nanoseconds next = is_sent ? last_sent_ + timing_.announce_wait : plan_[next_].at;
      // A queue that is full says by no event that it has room again.
      wait(sockets_, is_full ? now + std::chrono::milliseconds(2) : next, clock_);
    }
    TRY_VOID(drain());
    TRY_VOID(check_it_was_heard());
    return std::move(found_);
  }

 private:
  [[nodiscard]] static Error too_late() {
    return {ErrorCode::deadline_exceeded, "the deadline is before the end of the probe's window; allow more time", {}};
  }

  /// Up to kFramesAtOnce of each socket. True: there may be more.
  [[nodiscard]] Result<bool> look() {
    bool more = false;
    for (const auto& socket : sockets_) {
      for (int i = 0; i < kFramesAtOnce; ++i) {
        TRY(const auto size, socket.receive(buffer_));
        if (!size) break;
        for (const auto& sign : signs_in(std::span(buffer_).first(*size))) {
          if (sign) take(*sign);
        }
        more = more || i + 1 == kFramesAtOnce;
      }
    }
    return more;
  }

  /// Reads the frames that had come when the window ended: they are within the buffer, so this has an end, flood or
  /// not.
  [[nodiscard]] Result<void> drain() {
    constexpr int kRounds = kReceiveBufferBytes / 256 / kFramesAtOnce;  // no frame takes less of the buffer
    for (int i = 0; i < kRounds; ++i) {
      TRY(const bool more, look());
      if (!more) break;
    }
    return {};
  }

  void take(const NeighbourSign& sign) {
    const auto place = places_.find(sign.address);
    if (place == places_.end() || had_[place->second.front()]) return;
    if (sign.mac == *wire_.interface.mac) return;
    const bool asks = sign.kind == NeighbourSign::Kind::asks;
    if (asks && (sign.nonce == nonce_ || wire_.own_macs.contains(sign.mac))) return;
    for (const std::size_t i : place->second) {
      if (!found_[i]) found_[i] = sign.mac;
    }
    // A node that only asks has to hear of us too: we go on asking.
    if (asks) return;
    had_[place->second.front()] = true;
    --left_;
  }

  /// True: the interface took not all that is due.
  [[nodiscard]] Result<bool> send_due() {
    const nanoseconds now = clock_.now().since_boot;
    for (int sent = 0; next_ < plan_.size() && plan_[next_].at <= now; ++next_) {
      const std::size_t which = plan_[next_].which;
      if (had_[which]) continue;
      if (sent++ == kFramesAtOnce) return true;
      const net::Address& ip = addresses_[which];
      const auto& socket = ip.is_v6() ? sockets_.back() : sockets_.front();
      TRY(const bool taken, socket.send(probe_frame(ip, *wire_.interface.mac, nonce_)));
      if (!taken) return true;
      last_sent_ = std::max(last_sent_, clock_.now().since_boot);
    }
    return false;
  }

  /// Silence means something only where an answer would have been heard.
  [[nodiscard]] Result<void> check_it_was_heard() const {
    unsigned dropped = 0;
    for (const auto& socket : sockets_) dropped += socket.dropped();
    const std::string name = printable(wire_.interface.name, Printed::line);
    if (dropped != 0) {
      return fail(ErrorCode::unavailable,
                  "{} packets on {} were lost while addresses were probed, so many came; probe again, fewer "
                  "addresses at once",
                  dropped, name);
    }
    TRY(const Wire after, find_wire(wire_.interface.name, clock_, {}));
    if (after.interface.index == wire_.interface.index && after.interface.mac == wire_.interface.mac) return {};
    return fail(ErrorCode::unavailable, "interface {} became another one while addresses were probed", name);
  }

  const Wire& wire_;
  const std::span<const net::Address> addresses_;
  const ProbeTiming& timing_;
  const Clock& clock_;
  const Deadline deadline_;
  std::vector<std::optional<net::Mac>> found_;
  std::vector<bool> had_;  ///< somebody has it, at the first place of each
  std::vector<std::uint8_t> buffer_;
  ProbeNonce nonce_{};
  std::map<net::Address, std::vector<std::size_t>> places_;
  std::size_t left_ = 0;  ///< addresses that nobody is known to have
  std::vector<Sending> plan_;
  std::size_t next_ = 0;
  nanoseconds last_sent_{0};
  std::vector<PacketSocket> sockets_;
  Groups groups_;
};

}  // namespace

Result<std::vector<std::optional<net::Mac>>> probe_neighbours(const std::string& interface_name,
                                                              std::span<const net::Address> addresses,
                                                              const ProbeTiming& timing, const Clock& clock,
                                                              Random& random, Deadline deadline) {
  TRY_VOID(check(addresses));
  if (addresses.empty()) return std::vector<std::optional<net::Mac>>{};
  TRY(const Wire wire, find_wire(interface_name, clock, deadline));
  return Window(wire, addresses, timing, clock, random, deadline).run();
}

Result<void> announce_neighbours(const std::string& interface_name, std::span<const net::Address> addresses,
                                 const ProbeTiming& timing, const Clock& clock, Deadline deadline) {
  TRY_VOID(check(addresses));
  if (addresses.empty()) return {};
  TRY(const Wire wire, find_wire(interface_name, clock, deadline));
  std::vector<PacketSocket> socket;
  TRY(PacketSocket opened, PacketSocket::to_send(wire.interface));
  socket.push_back(std::move(opened));
  nanoseconds at = clock.now().since_boot;
  for (int i = 0; i < timing.announce_num; ++i, at += timing.announce_interval) {
    for (std::size_t next = 0; next < addresses.size() || clock.now().since_boot < at;) {
      const nanoseconds now = clock.now().since_boot;
      if (now >= deadline.at_since_boot) {
        return fail(ErrorCode::deadline_exceeded, "the deadline passed while addresses were announced");
      }
      if (now < at) {
        wait(socket, at, clock);
        continue;
      }
      TRY(const bool taken, socket.front().send(announcement_frame(addresses[next], *wire.interface.mac)));
      if (taken) {
        ++next;
      } else {
        wait(socket, now + std::chrono::milliseconds(2), clock);
      }
    }
  }
  return {};
}

}  // namespace croft::os
