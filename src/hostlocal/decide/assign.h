#pragma once

#include <compare>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/net/ranges.h"
#include "base/result.h"

// Range sets, the shape of host-local's configuration: an attachment gets one address of each set; the ranges of a set
// are alternatives. Rules and error texts are the reference's (docs/notes/host-local.md#load-order, #ranges),
// because callers match them.

namespace croft::core::host_local {

/// A range as it was written, unchecked. Absent addresses are invalid ones; IPv4-mapped ones are as written.
struct RangeSpec {
  net::AddressWithLength subnet;  ///< host bits kept; the invalid address when there was none
  net::Address first;             ///< `rangeStart`
  net::Address last;              ///< `rangeEnd`
  net::Address gateway;
  friend bool operator==(const RangeSpec&, const RangeSpec&) = default;
};

/// A range that passed the checks. `addresses` lies inside `subnet`; the gateway may lie anywhere and be of the other
/// family: it is never checked, only never handed out by the range that names it.
struct Range {
  net::Prefix subnet;
  net::AddressRange addresses;
  net::Address gateway;

  [[nodiscard]] bool contains(const net::Address& address) const { return addresses.contains(address); }
  friend bool operator==(const Range&, const Range&) = default;
};

/// One or more ranges of one family, apart from each other, in the order of the configuration.
class RangeSet {
 public:
  /// Errors, all invalid_argument with the reference's text (without the prefix that names the set): `empty range set`,
  /// `mixed address families`, `subnets <a> and <b> overlap`, and those of make_range.
  [[nodiscard]] static Result<RangeSet> make(const std::vector<RangeSpec>& specs);

  [[nodiscard]] const std::vector<Range>& ranges() const { return ranges_; }
  [[nodiscard]] net::Family family() const { return ranges_.front().addresses.family(); }
  /// The place in ranges() of the range that contains the address; nullopt when none does.
  [[nodiscard]] std::optional<std::size_t> find(const net::Address& address) const;
  [[nodiscard]] bool contains(const net::Address& address) const { return find(address).has_value(); }
  [[nodiscard]] bool overlaps(const RangeSet& other) const;

  /// The ranges as `<first>-<last>`, joined with `,`: the form of the error texts.
  [[nodiscard]] std::string to_string() const;

  friend bool operator==(const RangeSet&, const RangeSet&) = default;

 private:
  explicit RangeSet(std::vector<Range> ranges) : ranges_(std::move(ranges)) {}
  std::vector<Range> ranges_;
};

/// Checks one range and fills in what was not given (docs/notes/host-local.md#ranges). Gateway and first address are
/// the one after the network address; the last is that of the prefix, in IPv4 the one before the broadcast address.
/// Errors: invalid_argument with the reference's text.
[[nodiscard]] Result<Range> make_range(const RangeSpec& spec);

/// Which addresses of a subnet host-local gives to nobody, in order: the network address, the gateways, in IPv4 the
/// broadcast address. Without a gateway in the subnet it is the one that a range has by default. None of a subnet that
/// is too small to be a range.
[[nodiscard]] std::vector<net::Address> unassignable_addresses(const net::Prefix& subnet,
                                                               const std::vector<net::Address>& gateways);

/// The holder of a reservation of a host-local network: the container, and the interface in it.
struct Holder {
  std::string container_id;
  /// Empty: recorded by a plugin before v0.8.0, which knew the container only; such a record matches any interface.
  std::string interface_name;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

/// A reservation as it was read.
struct Reservation {
  net::Address address;
  /// Absent: the file says nothing (empty after a crash of the reference) or is no file that can be read.
  std::optional<Holder> holder;
  WallTime written{};  ///< when the file was changed last
  bool empty = false;  ///< a regular file without content: nobody holds it, an ADD takes it over
  std::string file;    ///< the name below the network's directory
  friend bool operator==(const Reservation&, const Reservation&) = default;
};

// The decision of a host-local ADD, pure: which address of each range set an attachment gets, or why none
// (docs/notes/host-local.md#add). The texts of refusals are the reference's.

// The order in which the addresses of a set are tried (docs/notes/host-local.md#round-robin). It is a ring over all
// ranges of the set, from the address behind the cursor round to the cursor itself, each address once, a range's own
// gateway never.

/// A stretch of the ring inside one range.
struct Stretch {
  std::size_t range = 0;  ///< place in RangeSet::ranges()
  net::AddressRange addresses;
  friend bool operator==(const Stretch&, const Stretch&) = default;
};

/// The ring cut into stretches, in the order of trying; gateways are still in it. `cursor` is the address handed out
/// last; one outside the set counts as none, and then the ring begins at the first address of the first range. With a
/// cursor, the range it lies in comes twice: behind the cursor first, up to and with the cursor last.
[[nodiscard]] std::vector<Stretch> ring_of(const RangeSet& set, const std::optional<net::Address>& cursor);

/// An address of a set, and the range it is from.
struct Candidate {
  std::size_t range = 0;
  net::Address address;
  friend bool operator==(const Candidate&, const Candidate&) = default;
};

/// The rest of a range above one of its addresses; nullopt when there is none.
[[nodiscard]] std::optional<net::AddressRange> rest_above(const net::AddressRange& range, const net::Address& address);

/// The first free address of the ring; nullopt when there is none. `next_free(AddressRange)` gives
/// Result<std::optional<Address>>: the lowest free address of a stretch; its error is passed on. Asks at most twice as
/// often as there are stretches, and one time more for each gateway.
template <class NextFree>
[[nodiscard]] Result<std::optional<Candidate>> find_free(const RangeSet& set, const std::optional<net::Address>& cursor,
                                                         NextFree&& next_free) {
  for (const Stretch& stretch : ring_of(set, cursor)) {
    const net::Address gateway = set.ranges()[stretch.range].gateway;
    std::optional<net::AddressRange> rest = stretch.addresses;
    while (rest) {
      TRY(const std::optional<net::Address> free, next_free(*rest));
      if (!free) break;
      if (*free != gateway) return std::optional(Candidate{stretch.range, *free});
      rest = rest_above(*rest, *free);
    }
  }
  return std::optional<Candidate>();
}

/// The questions of a decision about the reservations of a network. All answers are of one moment: nobody else writes
/// while a decision is made. An error of any of them but `cursor` ends the decision with that error.
class Taken {
 public:
  virtual ~Taken() = default;
  /// The lowest address of the range that is not reserved; nullopt when all are.
  [[nodiscard]] virtual Result<std::optional<net::Address>> next_free(const net::AddressRange& range) = 0;
  [[nodiscard]] virtual Result<bool> is_taken(const net::Address& address) = 0;
  /// The address that was handed out last of the set with this number; nullopt when there is no cursor or it is no
  /// address. With an error, which says that it cannot be read, the ring begins at its start.
  [[nodiscard]] virtual Result<std::optional<net::Address>> cursor(std::size_t set) = 0;
};

struct Request {
  std::string container_id;             ///< for texts only
  std::vector<net::Address> requested;  ///< wanted addresses, unmapped, without duplicates
  /// All addresses reserved for it, also those of an old plugin that recorded no interface. Asked once at most.
  std::function<Result<std::vector<net::Address>>()> held;
};

/// One address that was chosen.
struct Pick {
  std::size_t set = 0;
  net::AddressWithLength address;  ///< with the length of the subnet
  net::Address gateway;
  friend bool operator==(const Pick&, const Pick&) = default;
};

/// The decision. With a refusal the picks are those of the sets before the one that failed. They are not to be
/// reserved, but the reference has moved their cursors by then, and so do we.
struct Decision {
  std::vector<Pick> picks;              ///< one a set, in the order of the sets
  std::optional<Error> refusal;         ///< exhausted when a set is full, refused_by_configuration otherwise
  std::vector<std::string> warnings{};  ///< cursors that cannot be read
  friend bool operator==(const Decision&, const Decision&) = default;
};

/// For each set in order the first requested address that it contains and nobody took before, else the next free one of
/// the ring. Refusals, in the order they are found:
/// - `failed to allocate for range <i>: <why>`, where <why> is `requested ip <ip> is subnet's gateway`,
///   `requested IP address <ip> is not available in range set <set>`,
///   `<ip> has been allocated to <container>, duplicate allocation is not allowed`, or
///   `no IP addresses available in range set: <set>`;
/// - `failed to allocate all requested IPs: <ip> <ip>...` for those that no set contains.
/// A requested address skips the check for a second one of the same attachment, as in the reference.
[[nodiscard]] Result<Decision> assign(const std::vector<RangeSet>& sets, const Request& request, Taken& taken);

}  // namespace croft::core::host_local
