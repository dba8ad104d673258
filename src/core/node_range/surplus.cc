#include "core/node_range/surplus.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace croft::core {

std::vector<SurplusRange> surplus_ranges(const std::vector<RecordedRange>& recorded,
                                         const std::vector<NodeRange>& said) {
  std::map<std::pair<std::string, net::Family>, std::vector<const RecordedRange*>> by_family;
  for (const RecordedRange& one : recorded) {
    by_family[{one.range.node, one.range.cidr.family()}].push_back(&one);
  }
  const auto is_said = [&](const RecordedRange& one) { return std::ranges::find(said, one.range) != said.end(); };
  std::vector<SurplusRange> surplus;
  for (auto& [of, ranges] : by_family) {
    if (ranges.size() == 1) continue;
    std::ranges::sort(
        ranges, {}, [&](const RecordedRange* one) { return std::tuple(!is_said(*one), one->since, one->range.cidr); });
    for (const RecordedRange* one : ranges) {
      if (one != ranges.front() && !is_said(*one)) surplus.push_back({one->range, ranges.front()->range.cidr});
    }
  }
  return surplus;
}

}  // namespace croft::core
