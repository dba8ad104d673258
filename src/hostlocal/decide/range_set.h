#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/net/address.h"
#include "base/net/address_with_length.h"
#include "base/net/prefix.h"
#include "base/net/range.h"
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
[[nodiscard]] std::vector<net::Address> never_given(const net::Prefix& subnet,
                                                    const std::vector<net::Address>& gateways);

}  // namespace croft::core::host_local
