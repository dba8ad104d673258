#include "base/net/range_prefixes.h"

namespace croft::net {

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
