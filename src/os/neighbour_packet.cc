#include "os/neighbour_packet.h"

#include <algorithm>
#include <cstddef>

#include "base/assert.h"

namespace croft::os {
namespace {

using namespace net::literals;
using Bytes = std::span<const std::uint8_t>;

constexpr net::Mac kBroadcast{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
constexpr net::Mac kAllNodesMac{{0x33, 0x33, 0, 0, 0, 1}};

constexpr std::size_t kEthernetBytes = 14;
constexpr std::size_t kArpBytes = 28;
constexpr std::size_t kIpv6Bytes = 40;
constexpr std::size_t kNeighbourBytes = 24;  // ICMPv6's four, flags or reserved, the target
constexpr std::uint16_t kArp = 0x0806;
constexpr std::uint16_t kIpv6 = 0x86dd;
constexpr std::uint8_t kIcmpv6 = 58;
constexpr std::uint8_t kSolicitation = 135;
constexpr std::uint8_t kAdvertisement = 136;
constexpr std::uint8_t kSourceOption = 1;
constexpr std::uint8_t kTargetOption = 2;
constexpr std::uint8_t kNonceOption = 14;
constexpr std::uint8_t kSolicitedFlag = 0x40;
constexpr std::uint8_t kOverrideFlag = 0x20;

void put(std::string& out, Bytes bytes) { out.append(bytes.begin(), bytes.end()); }
void put(std::string& out, const net::Address& ip) { put(out, Bytes(ip.bytes()).first(ip.is_v6() ? 16 : 4)); }
void put8(std::string& out, unsigned value) { out.push_back(static_cast<char>(value)); }
void put16(std::string& out, unsigned value) {
  put8(out, value >> 8 & 0xff);
  put8(out, value & 0xff);
}

std::uint16_t read16(Bytes bytes, std::size_t at) { return static_cast<std::uint16_t>(bytes[at] << 8 | bytes[at + 1]); }

ProbeNonce six_bytes_at(Bytes bytes, std::size_t at) {
  ProbeNonce six;
  std::ranges::copy(bytes.subspan(at, six.size()), six.begin());
  return six;
}
net::Mac mac_at(Bytes bytes, std::size_t at) { return {six_bytes_at(bytes, at)}; }

/// `size`: 4 or 16.
net::Address ip_at(Bytes bytes, std::size_t at, std::size_t size) {
  return *net::Address::of_bytes(bytes.subspan(at, size));
}

bool is_of_one(const net::Mac& mac) { return mac != net::Mac() && (mac.bytes[0] & 1) == 0; }

/// RFC 1071's sum over the pseudo header of RFC 8200 §8.1 and the message. A right message with its checksum gives 0.
std::uint16_t checksum(const net::Address& source, const net::Address& destination, Bytes message) {
  std::uint32_t sum = static_cast<std::uint32_t>(message.size()) + kIcmpv6;
  const auto add = [&](Bytes bytes) {
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      sum += i % 2 == 0 ? static_cast<std::uint32_t>(bytes[i]) << 8 : bytes[i];
    }
  };
  add(source.bytes());
  add(destination.bytes());
  add(message);
  while (sum >> 16 != 0) sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(~sum);
}

std::string ethernet(const net::Mac& to, const net::Mac& from, std::uint16_t type) {
  std::string out;
  out.reserve(kEthernetBytes + kIpv6Bytes + kNeighbourBytes + 8);
  put(out, to.bytes);
  put(out, from.bytes);
  put16(out, type);
  return out;
}

std::string arp_request(const net::Mac& own, const net::Address& sender, const net::Address& target) {
  std::string out = ethernet(kBroadcast, own, kArp);
  put16(out, 1);       // Ethernet
  put16(out, 0x0800);  // IPv4
  put8(out, 6);
  put8(out, 4);
  put16(out, 1);  // request
  put(out, own.bytes);
  put(out, sender);
  put(out, net::Mac().bytes);
  put(out, target);
  return out;
}

/// `message` with 0 where its checksum belongs.
std::string icmpv6(const net::Mac& to_mac, const net::Mac& own, const net::Address& source,
                   const net::Address& destination, std::string message) {
  const Bytes bytes(reinterpret_cast<const std::uint8_t*>(message.data()), message.size());
  const std::uint16_t sum = checksum(source, destination, bytes);
  message[2] = static_cast<char>(sum >> 8);
  message[3] = static_cast<char>(sum & 0xff);
  std::string out = ethernet(to_mac, own, kIpv6);
  put8(out, 0x60);
  put8(out, 0);
  put16(out, 0);
  put16(out, static_cast<unsigned>(message.size()));
  put8(out, kIcmpv6);
  put8(out, 255);
  put(out, source);
  put(out, destination);
  return out + message;
}

using Signs = std::array<std::optional<NeighbourSign>, 2>;

Signs signs_in_arp(Bytes arp) {
  if (arp.size() < kArpBytes) return {};
  const bool is_of_ipv4 = read16(arp, 0) == 1 && read16(arp, 2) == 0x0800 && arp[4] == 6 && arp[5] == 4;
  const std::uint16_t operation = read16(arp, 6);
  if (!is_of_ipv4 || (operation != 1 && operation != 2)) return {};
  const net::Mac mac = mac_at(arp, 8);
  const net::Address sender = ip_at(arp, 14, 4);
  const net::Address target = ip_at(arp, 24, 4);
  if (!is_of_one(mac)) return {};
  if (can_be_somebodys(sender)) return {NeighbourSign{NeighbourSign::Kind::has, sender, mac, {}}};
  if (operation == 1 && sender == "0.0.0.0"_ip && can_be_somebodys(target)) {
    return {NeighbourSign{NeighbourSign::Kind::asks, target, mac, {}}};
  }
  return {};
}

struct Options {
  bool has_source = false;
  std::optional<net::Mac> target_mac;
  std::optional<ProbeNonce> nonce;
};

/// None when a length does not fit.
std::optional<Options> read_options(Bytes rest) {
  Options options;
  while (!rest.empty()) {
    if (rest.size() < 2 || rest[1] == 0) return std::nullopt;
    const std::size_t size = std::size_t{rest[1]} * 8;
    if (size > rest.size()) return std::nullopt;
    if (rest[0] == kSourceOption) options.has_source = true;
    if (rest[0] == kTargetOption && size == 8) options.target_mac = mac_at(rest, 2);
    if (rest[0] == kNonceOption && size == 8) options.nonce = six_bytes_at(rest, 2);
    rest = rest.subspan(size);
  }
  return options;
}

/// `from`: the frame's own sender.
Signs signs_in_ipv6(Bytes packet, const net::Mac& from) {
  if (packet.size() < kIpv6Bytes + kNeighbourBytes || packet[0] >> 4 != 6) return {};
  if (packet[6] != kIcmpv6 || packet[7] != 255) return {};
  const std::size_t size = read16(packet, 4);
  if (size < kNeighbourBytes || size > packet.size() - kIpv6Bytes) return {};
  const net::Address source = ip_at(packet, 8, 16);
  const net::Address destination = ip_at(packet, 24, 16);
  const Bytes message = packet.subspan(kIpv6Bytes, size);
  const std::uint8_t type = message[0];
  if ((type != kSolicitation && type != kAdvertisement) || message[1] != 0) return {};
  if (checksum(source, destination, message) != 0) return {};
  const net::Address target = ip_at(message, 8, 16);
  const auto options = read_options(message.subspan(kNeighbourBytes));
  if (!can_be_somebodys(target) || !options || !is_of_one(from)) return {};
  const bool is_nobodys = source == "::"_ip;
  if (!is_nobodys && !can_be_somebodys(source)) return {};

  if (type == kSolicitation) {
    if (!is_nobodys) return {NeighbourSign{NeighbourSign::Kind::has, source, from, {}}};
    if (options->has_source || destination != solicited_node_group(target)) return {};
    return {NeighbourSign{NeighbourSign::Kind::asks, target, from, options->nonce}};
  }
  if (is_nobodys || (destination.bytes()[0] == 0xff && (message[4] & kSolicitedFlag) != 0)) return {};
  const net::Mac mac = options->target_mac.value_or(from);
  if (!is_of_one(mac)) return {};
  Signs signs{NeighbourSign{NeighbourSign::Kind::has, target, mac, {}}};
  if (source != target) signs[1] = NeighbourSign{NeighbourSign::Kind::has, source, from, {}};
  return signs;
}

}  // namespace

bool can_be_somebodys(const net::Address& ip) {
  return ip.value() != net::U128() && ip.bytes()[0] < (ip.is_v6() ? 0xff : 224);
}

net::Address solicited_node_group(const net::Address& address) {
  CROFT_ASSERT(address.is_v6());
  return net::Address::v6("ff02::1:ff00:0"_ip.value() | (address.value() & net::U128::low_bits(24)));
}

std::string probe_frame(const net::Address& address, const net::Mac& own, const ProbeNonce& nonce) {
  if (!address.is_v6()) return arp_request(own, "0.0.0.0"_ip, address);
  std::string message;
  put8(message, kSolicitation);
  message.append(7, '\0');
  put(message, address);
  put8(message, kNonceOption);
  put8(message, 1);
  put(message, nonce);
  const auto bytes = address.bytes();
  // Where the group is sent to (RFC 2464 §7).
  const net::Mac group{{0x33, 0x33, 0xff, bytes[13], bytes[14], bytes[15]}};
  return icmpv6(group, own, "::"_ip, solicited_node_group(address), std::move(message));
}

std::string announcement_frame(const net::Address& address, const net::Mac& own) {
  if (!address.is_v6()) return arp_request(own, address, address);
  std::string message;
  put8(message, kAdvertisement);
  message.append(3, '\0');
  put8(message, kOverrideFlag);
  message.append(3, '\0');
  put(message, address);
  put8(message, kTargetOption);
  put8(message, 1);
  put(message, own.bytes);
  return icmpv6(kAllNodesMac, own, address, "ff02::1"_ip, std::move(message));
}

std::array<std::optional<NeighbourSign>, 2> signs_in(std::span<const std::uint8_t> frame) {
  if (frame.size() < kEthernetBytes) return {};
  const std::uint16_t type = read16(frame, 12);
  if (type == kArp) return signs_in_arp(frame.subspan(kEthernetBytes));
  if (type == kIpv6) return signs_in_ipv6(frame.subspan(kEthernetBytes), mac_at(frame, 6));
  return {};
}

}  // namespace croft::os
