#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "base/space/free_ordinals.h"
#include "register/service.h"

namespace croft::core::service {

using space::Ordinal;

/// Takes the next one as Kubernetes' allocator (docs/notes/service-ranges.md#bitmap): the first free one at or after a
/// uniform start, in two bands; first in the dynamic one, `band` to size - 1, round inside it; only when that is full
/// in the static one, 0 to `band` - 1, from a start of its own. It falls on each ordinal as often as the reference's
/// search step by step, so not evenly on the free ones. nullopt when none is free. Draws once or twice from `random`.
[[nodiscard]] inline std::optional<Ordinal> take_next(space::DenseBitmap& bits, std::uint32_t band, Random& random) {
  if (bits.free_count() == 0) return std::nullopt;
  const auto take_in = [&](std::uint32_t begin, std::uint32_t end) -> std::optional<Ordinal> {
    if (begin == end) return std::nullopt;
    const std::uint32_t start = begin + static_cast<std::uint32_t>((random.next() >> 32) * (end - begin) >> 32);
    auto found = bits.next_free(start, end);
    if (!found) found = bits.next_free(begin, start);
    if (found) bits.take(*found);
    return found;
  };
  band = std::min(band, bits.size());
  const auto taken = take_in(band, bits.size());
  return taken ? taken : take_in(0, band);
}

/// Kubernetes' bytes of what is taken (docs/notes/service-ranges.md#bit-order): the big-endian magnitude of one number,
/// whose bit `o` says that ordinal `o` is taken. So ordinal 0 is the lowest bit of the last byte. As few bytes as it
/// takes.
[[nodiscard]] std::string bytes_of(const space::DenseBitmap& bits);
/// Replaces what is taken by what such bytes say: any number of them, leading zeros and none at all included; the
/// reader limits them. Returns how many bits are set at or above size(), which is damage: they are left out. (The
/// reference counts them, and then has fewer free ones than none.)
std::uint64_t read_bytes(std::string_view data, space::DenseBitmap& bits);

/// The outside values of a range's ordinals: Service addresses (ServiceCidr) or ports (NodePortRange).
///
///   M::parse(text)   reads what text() prints; Result<M>
///   text()           the identity of the range, as it is stored
///   size(), band()   the number of ordinals, and of those in the static band
///   ordinal_of(v)    nullopt when the value is not in the range
///   value_at(o)      the inverse; `o` is below size()
///   not_in_range(v)  the text of that error; kAllocated is that of a taken value
template <class M>
concept RangeMap = std::copyable<M> && std::equality_comparable<M> &&
                   requires(const M& map, typename M::Value value, Ordinal ordinal) {
                     { M::parse(std::string_view()) } -> std::same_as<Result<M>>;
                     { map.text() } -> std::same_as<std::string>;
                     { map.size() } -> std::same_as<std::uint32_t>;
                     { map.band() } -> std::same_as<std::uint32_t>;
                     { map.ordinal_of(value) } -> std::same_as<std::optional<Ordinal>>;
                     { map.value_at(ordinal) } -> std::same_as<typename M::Value>;
                     { map.not_in_range(value) } -> std::same_as<std::string>;
                     { M::kAllocated } -> std::convertible_to<std::string_view>;
                   };

/// A range of Service addresses or node ports: values go in and come out, the errors have the reference's texts. A pure
/// value of one bit an ordinal: copy it to try something. Not synchronised.
template <RangeMap M>
class BitmapRange {
 public:
  using Value = typename M::Value;

  explicit BitmapRange(M map) : map_(std::move(map)), bits_(map_.size()) {}

  [[nodiscard]] const M& map() const { return map_; }
  [[nodiscard]] std::uint32_t free_count() const { return bits_.free_count(); }
  [[nodiscard]] std::uint32_t taken_count() const { return bits_.size() - bits_.free_count(); }

  /// Takes this value, from either band. Errors: invalid_argument when it is not in the range, already_exists
  /// (M::kAllocated) when it is taken.
  [[nodiscard]] Result<void> take(const Value& value) {
    const auto ordinal = map_.ordinal_of(value);
    if (!ordinal) return fail(ErrorCode::invalid_argument, map_.not_in_range(value));
    if (!bits_.take(*ordinal)) return fail(ErrorCode::already_exists, std::string(M::kAllocated));
    return {};
  }
  /// Takes the next one, from the static band only when the dynamic one is full. Error: exhausted, `range is full`.
  [[nodiscard]] Result<Value> take_next(Random& random) {
    const auto ordinal = service::take_next(bits_, map_.band(), random);
    if (!ordinal) return fail(ErrorCode::exhausted, "range is full");
    return map_.value_at(*ordinal);
  }
  /// False, and nothing changes, when it was free or is not in the range (map().ordinal_of() tells the two apart).
  bool give_back(const Value& value) {
    const auto ordinal = map_.ordinal_of(value);
    return ordinal && bits_.give_back(*ordinal);
  }
  /// False also for what is not in the range.
  [[nodiscard]] bool has(const Value& value) const {
    const auto ordinal = map_.ordinal_of(value);
    return ordinal && !bits_.is_free(*ordinal);
  }
  /// Calls f(Value) for each taken one, ascending; `f` must not change the range.
  template <class F>
  void for_each_taken(F&& f) const {
    bits_.for_each_taken([&](Ordinal ordinal) { f(map_.value_at(ordinal)); });
  }

  /// A new record of it.
  [[nodiscard]] RangeAllocation snapshot() const { return {map_.text(), bytes_of(bits_), nullptr}; }
  /// As read_bytes.
  std::uint64_t restore(std::string_view data) { return read_bytes(data, bits_); }

 private:
  M map_;
  space::DenseBitmap bits_;
};

/// A range that was kept, with what was wrong in it.
template <RangeMap M>
struct RestoredRange {
  BitmapRange<M> range;
  std::uint64_t beyond = 0;  ///< bits set outside the range: damage, see read_bytes
};

/// Makes the range that a record tells of. Errors: those of M::parse.
template <RangeMap M>
[[nodiscard]] Result<RestoredRange<M>> range_from(const RangeAllocation& record) {
  TRY(M map, M::parse(record.range));
  BitmapRange<M> range(std::move(map));
  const std::uint64_t beyond = range.restore(record.data);
  return RestoredRange<M>{std::move(range), beyond};
}

// The ports that Services have on every node (node ports) as kube-apiserver's bitmap keeps them. Rules and texts are
// the reference's (docs/notes/service-ranges.md#offsets, #flags, #bands, #range-errors).

/// A range of TCP, UDP and SCTP ports. Ordinal 0 is its first port.
class NodePortRange {
 public:
  using Value = int;
  static constexpr std::string_view kAllocated = "provided port is already allocated";

  /// No ports at all.
  constexpr NodePortRange() = default;
  /// Reads `N`, `A-B` (both ends in it) or `A+n` (to A+n), blanks around it allowed; no text is the range without
  /// ports. Error: invalid_argument, with the reference's text where a number is out of bounds.
  [[nodiscard]] static Result<NodePortRange> parse(std::string_view text);

  /// `A-B`, also of a single port; empty without ports.
  [[nodiscard]] std::string text() const;
  [[nodiscard]] constexpr int first() const { return first_; }
  [[nodiscard]] constexpr std::uint32_t size() const { return size_; }
  /// The lowest ports, which only those get who ask by name: a 32nd of the range, 16 to 128; none of a range of up
  /// to 16.
  [[nodiscard]] std::uint32_t band() const;
  [[nodiscard]] std::optional<Ordinal> ordinal_of(int port) const;
  [[nodiscard]] int value_at(Ordinal ordinal) const { return first_ + static_cast<int>(ordinal.value); }
  [[nodiscard]] std::string not_in_range(int port) const;

  friend bool operator==(const NodePortRange&, const NodePortRange&) = default;

 private:
  constexpr NodePortRange(int first, std::uint32_t size) : first_(first), size_(size) {}
  int first_ = 0;
  std::uint32_t size_ = 0;
};

using NodePorts = BitmapRange<NodePortRange>;

/// Reads `--service-node-port-range`: as NodePortRange::parse, and 30000-32767 when nothing is given.
[[nodiscard]] Result<NodePortRange> parse_node_port_flag(std::string_view flag);

// The addresses of Services (ClusterIPs) as kube-apiserver's bitmaps keep them. Rules and texts are the reference's
// (docs/notes/service-ranges.md#offsets, #flags, #bands, #range-errors).

/// The most that is worth keeping in one record: 20 host bits, 128 KiB. Addresses that are objects have no such bound.
inline constexpr int kServiceHostBitsMax = 20;

/// A bitmap covers so many addresses of an IPv6 prefix, the first ones.
inline constexpr std::uint32_t kServiceV6AddressesMax = 65536;

/// Whether the prefix has addresses that no bitmap covers.
[[nodiscard]] bool exceeds_service_bitmap(const net::Prefix& cidr);

/// A prefix of Service addresses. Ordinal 0 is the address after the network address.
class ServiceCidr {
 public:
  using Value = net::Address;
  static constexpr std::string_view kAllocated = "provided IP is already allocated";

  /// The prefix must be valid. Errors, invalid_argument: an IPv4 prefix of more than kServiceHostBitsMax host bits, an
  /// IPv4-mapped one. An IPv6 prefix may be as large as it likes, its first 65535 addresses count.
  [[nodiscard]] static Result<ServiceCidr> make(const net::Prefix& cidr);
  /// Host bits are dropped, as the reference does.
  [[nodiscard]] static Result<ServiceCidr> parse(std::string_view text);

  [[nodiscard]] const net::Prefix& cidr() const { return cidr_; }
  [[nodiscard]] std::string text() const { return cidr_.to_string(); }
  /// In IPv4 all but the network and the broadcast address; in IPv6 all of those that a bitmap covers but the network
  /// address. 0 for prefixes of one or two IPv4 addresses, and for those of half a family or more, which the reference
  /// can't count.
  [[nodiscard]] std::uint32_t size() const { return size_; }
  /// A sixteenth of the whole prefix, 16 to 256; none when the prefix has no more than 16 addresses.
  [[nodiscard]] std::uint32_t band() const;
  /// An IPv4-mapped address counts as the IPv4 one.
  [[nodiscard]] std::optional<Ordinal> ordinal_of(const net::Address& address) const;
  [[nodiscard]] net::Address value_at(Ordinal ordinal) const {
    return net::address_at(cidr_, Ordinal{ordinal.value + 1});
  }
  [[nodiscard]] std::string not_in_range(const net::Address& address) const;

  friend bool operator==(const ServiceCidr&, const ServiceCidr&) = default;

 private:
  explicit ServiceCidr(const net::Prefix& cidr);
  net::Prefix cidr_;
  std::uint32_t size_ = 0;
};

using ServiceAddresses = BitmapRange<ServiceCidr>;

/// The prefixes that a cluster's Services get their addresses from.
struct ServiceCidrs {
  net::Prefix primary;
  net::Prefix secondary;  ///< the invalid prefix in a cluster of one family
  friend bool operator==(const ServiceCidrs&, const ServiceCidrs&) = default;
};

/// Reads `--service-cluster-ip-range`: one prefix, or two of different families behind a comma; host bits are dropped.
/// No text is 10.0.0.0/24. Errors: invalid_argument with the reference's text. No prefix is too large: a kube-apiserver
/// of 1.33 and newer bounds none, and a range that is a bitmap has its own bound (ServiceCidr).
[[nodiscard]] Result<ServiceCidrs> parse_service_cidrs(std::string_view flag);

}  // namespace croft::core::service
