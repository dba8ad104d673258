#include "base/net/range.h"

#include <fmt/format.h>

namespace croft::net {

Result<AddressRange> AddressRange::make(Address first, Address last) {
  const auto refuse = [&](std::string_view reason) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("invalid address range {}-{}: {}", first.to_string(), last.to_string(), reason));
  };
  if (!first.is_valid() || !last.is_valid()) return refuse("both ends must be given");
  if (first.family() != last.family()) return refuse("the ends are of different families");
  if (first > last) return refuse("the first address is above the last");
  return AddressRange{first, last};
}

std::string AddressRange::to_string() const {
  return is_valid() ? fmt::format("{}-{}", first_.to_string(), last_.to_string()) : "invalid";
}

std::vector<Prefix> prefixes_of(const AddressRange& range) {
  CROFT_ASSERT(range.is_valid());
  std::vector<Prefix> prefixes;
  for (Address first = range.first();;) {
    Prefix prefix = Prefix::containing(first, bit_length(first.family()));
    while (prefix.length() > 0) {
      const Prefix larger = Prefix::containing(first, prefix.length() - 1);
      if (larger.first() != first || larger.last() > range.last()) break;
      prefix = larger;
    }
    prefixes.push_back(prefix);
    if (prefix.last() == range.last()) return prefixes;
    first = *prefix.last().next();
  }
}

}  // namespace croft::net
