#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "base/net/u128.h"

namespace croft::store::hostlocal {

/// The hash of what a reservation's content comes down to (wire::host_local::holder_key). Part of the index's format.
[[nodiscard]] std::uint32_t content_hash(std::string_view key);

/// Addresses as numbers in one space: IPv4 ones as their IPv4-mapped form.
[[nodiscard]] net::U128 number_of(const net::Address& address);
[[nodiscard]] net::Address address_of(net::U128 number);
/// The same where the family is known: an IPv4-mapped number of an IPv6 range stays IPv6.
[[nodiscard]] net::Address address_of(net::U128 number, net::Family family);

/// The knowledge of a directory without reading it again: either everything was read just now, or the index says so. A
/// view says where to look; what it says of holders has to be read from the file before anything is done about it.
class View {
 public:
  virtual ~View() = default;

  /// False when it says so from the index and not from the files.
  [[nodiscard]] virtual bool is_first_hand() const = 0;
  [[nodiscard]] virtual std::uint64_t reservation_count() const = 0;
  /// `first` and `last` of one family.
  [[nodiscard]] virtual std::optional<net::Address> next_free(const net::Address& first, const net::Address& last) = 0;
  /// Addresses whose content has this hash.
  [[nodiscard]] virtual std::vector<net::Address> with_hash(std::uint32_t hash) = 0;

  /// Follow what was done to the files.
  virtual void add(const net::Address& address, std::uint32_t hash) = 0;
  virtual void remove(const net::Address& address, std::uint32_t hash) = 0;

  /// True when an answer may be wrong because the index could not be read or contradicts itself.
  [[nodiscard]] virtual bool failed() const = 0;
};

}  // namespace croft::store::hostlocal
