#include "vpc/decide/rebuild.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

namespace croft::core::warm {

WarmIntent rebuild_intent(const Instant& now) {
  WarmIntent intent;
  intent.id = std::string(32, '0');
  intent.what = WarmIntent::What::allocate;
  intent.count = kRebuildMax;
  intent.begun = now.wall;
  intent.begun_at = {now.boot, now.since_boot};
  return intent;
}

RebuildStep step_rebuild(RebuildMemory& memory, const std::vector<WarmAddress>& records, const Look& look,
                         std::chrono::nanoseconds rest, const Instant& now) {
  RebuildStep step;
  if (!look.cloud || !look.host) return step;
  if (!memory.begun) memory.begun = now.since_boot;
  std::set<net::Address> recorded;
  for (const WarmAddress& record : records) {
    if (record.state != WarmState::lent) recorded.insert(record.address);
  }
  std::map<net::Address, std::chrono::nanoseconds> unused;
  for (const Given& given : *look.cloud) {
    if (recorded.contains(given.address) || look.apart.contains(given.address)) continue;
    if (is_used_by_pod(look, given.address)) {
      ++step.of_pods;
      continue;
    }
    if (look.host->contains(given.address)) {
      ++step.of_host;
      continue;
    }
    const auto known = memory.unused_since.find(given.address);
    const auto since = known != memory.unused_since.end() ? known->second : now.since_boot;
    unused.emplace(given.address, since);
    if (now.since_boot - since < rest || step.take.size() == kRebuildMax) {
      ++step.resting;
    } else {
      step.take.push_back(given);
    }
  }
  memory.unused_since = std::move(unused);
  step.is_done = step.resting == 0 && step.of_pods == 0 && now.since_boot - *memory.begun >= rest;
  return step;
}

}  // namespace croft::core::warm
