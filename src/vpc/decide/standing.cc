#include "vpc/decide/standing.h"

#include <algorithm>
#include <utility>

namespace croft::core::warm {

using std::chrono::nanoseconds;

void Standing::note(const std::vector<WarmAddress>& records, const Instant& now) {
  std::map<net::Address, Stand> stands;
  for (const WarmAddress& record : records) {
    if (const Stand* known = find(record)) {
      stands.emplace(record.address, *known);
      continue;
    }
    nanoseconds before = std::max<nanoseconds>(now.wall - record.since, nanoseconds{0});
    // It was not so the last time: it cannot be older than that, whatever the wall clock says.
    if (noted_at_) before = std::min(before, now.since_boot - *noted_at_);
    stands.emplace(record.address, Stand{record.state, record.since, now.since_boot, before});
  }
  stands_ = std::move(stands);
  noted_at_ = now.since_boot;
}

const Standing::Stand* Standing::find(const WarmAddress& record) const {
  const auto found = stands_.find(record.address);
  const bool is_same =
      found != stands_.end() && found->second.state == record.state && found->second.since == record.since;
  return is_same ? &found->second : nullptr;
}

bool Standing::stood_at(const WarmAddress& record, const Instant& then) const {
  const Stand* stand = find(record);
  return stand != nullptr && stand->noted_at <= then.since_boot;
}

nanoseconds Standing::seen_for(const WarmAddress& record, const Instant& now) const {
  const Stand* stand = find(record);
  return stand == nullptr ? nanoseconds{0} : now.since_boot - stand->noted_at;
}

nanoseconds Standing::age(const WarmAddress& record, const Instant& now) const {
  const Stand* stand = find(record);
  return stand == nullptr ? nanoseconds{0} : now.since_boot - stand->noted_at + stand->before;
}

}  // namespace croft::core::warm
