#include "hostlocal/decide/round_robin.h"

#include "base/assert.h"

namespace croft::core::host_local {
namespace {

net::AddressRange between(const net::Address& first, const net::Address& last) {
  const auto range = net::AddressRange::make(first, last);
  CROFT_ASSERT(range.has_value());
  return *range;
}

}  // namespace

std::optional<net::AddressRange> behind(const net::AddressRange& range, const net::Address& address) {
  CROFT_ASSERT(range.contains(address));
  if (address == range.last()) return std::nullopt;
  return between(*address.next(), range.last());
}

std::vector<Stretch> ring_of(const RangeSet& set, const std::optional<net::Address>& cursor) {
  const std::vector<Range>& ranges = set.ranges();
  const std::optional<std::size_t> cursor_range = cursor ? set.find(*cursor) : std::nullopt;
  std::vector<Stretch> ring;
  ring.reserve(ranges.size() + 1);
  const std::size_t begin = cursor_range.value_or(0);
  if (cursor_range) {
    if (const auto rest = behind(ranges[begin].addresses, *cursor)) ring.push_back({begin, *rest});
  }
  for (std::size_t step = cursor_range ? 1 : 0; step < ranges.size(); ++step) {
    const std::size_t at = (begin + step) % ranges.size();
    ring.push_back({at, ranges[at].addresses});
  }
  if (cursor_range) ring.push_back({begin, between(ranges[begin].addresses.first(), *cursor)});
  return ring;
}

}  // namespace croft::core::host_local
