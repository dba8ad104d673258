#include "base/net/intervals.h"

#include <algorithm>

namespace croft::net {

Intervals::Intervals(std::vector<Prefix> prefixes) {
  if (!std::is_sorted(prefixes.begin(), prefixes.end())) std::sort(prefixes.begin(), prefixes.end());
  intervals_.reserve(prefixes.size());
  for (const Prefix& prefix : prefixes) {
    if (!prefix.is_valid()) continue;
    const AddressRange next = AddressRange::of(prefix);
    if (intervals_.empty() || intervals_.back().family() != next.family()) {
      intervals_.push_back(next);
      continue;
    }
    AddressRange& last = intervals_.back();
    const auto beyond = last.last().next();
    if (beyond && *beyond < next.first()) {
      intervals_.push_back(next);
    } else if (last.last() < next.last()) {
      last = last.extended_to(next.last());
    }
  }
}

std::vector<AddressRange>::const_iterator Intervals::from(const Address& address) const {
  return std::lower_bound(intervals_.begin(), intervals_.end(), address,
                          [](const AddressRange& interval, const Address& a) { return interval.last() < a; });
}

const AddressRange* Intervals::at(const Address& address) const {
  const auto it = from(address);
  return it != intervals_.end() && it->contains(address) ? &*it : nullptr;
}

bool Intervals::covers(const Prefix& prefix) const {
  const AddressRange* interval = at(prefix.first());
  return interval != nullptr && prefix.last() <= interval->last();
}

bool Intervals::overlaps(const Prefix& prefix) const {
  const auto it = from(prefix.first());
  return it != intervals_.end() && it->overlaps(AddressRange::of(prefix));
}

Count Intervals::count_in(const Prefix& prefix) const {
  Count count;
  const AddressRange all = AddressRange::of(prefix);
  for (auto it = from(prefix.first()); it != intervals_.end() && it->overlaps(all); ++it) {
    const Address first = std::max(it->first(), all.first());
    const Address last = std::min(it->last(), all.last());
    count += Count::up_to(last.value() - first.value());
  }
  return count;
}

std::optional<Address> Intervals::last_from(const Address& address) const {
  const AddressRange* interval = at(address);
  return interval != nullptr ? std::optional(interval->last()) : std::nullopt;
}

}  // namespace croft::net
