#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "base/net/address.h"
#include "base/net/count.h"
#include "base/net/prefix.h"
#include "base/net/range.h"

namespace croft::net {

/// A set of addresses of both families as intervals, sorted, none touching another. Made once, from any number of
/// prefixes in any order (n log n steps, n when they are sorted); asked in log n steps each.
class Intervals {
 public:
  Intervals() = default;
  /// Invalid prefixes are passed over.
  explicit Intervals(std::vector<Prefix> prefixes);

  [[nodiscard]] bool empty() const { return intervals_.empty(); }
  [[nodiscard]] std::size_t size() const { return intervals_.size(); }

  [[nodiscard]] bool contains(const Address& address) const { return at(address) != nullptr; }
  /// All of the prefix.
  [[nodiscard]] bool covers(const Prefix& prefix) const;
  /// Any of it.
  [[nodiscard]] bool overlaps(const Prefix& prefix) const;
  /// How many addresses of the prefix are in the set. Takes as many steps as intervals touch the prefix.
  [[nodiscard]] Count count_in(const Prefix& prefix) const;
  /// The last address of the interval that an address is in; nullopt when it is in none.
  [[nodiscard]] std::optional<Address> last_from(const Address& address) const;

 private:
  [[nodiscard]] const AddressRange* at(const Address& address) const;
  /// The first interval that ends at or after an address.
  [[nodiscard]] std::vector<AddressRange>::const_iterator from(const Address& address) const;

  std::vector<AddressRange> intervals_;
};

}  // namespace croft::net
