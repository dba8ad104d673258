#include "noderanges/decide/surplus.h"

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
  // Of two that overlap the one that is said stays, else the first; also beside one that goes itself, since another
  // pass may see that one alone. Sorted, what lies inside a prefix comes behind it, so that only the prefixes around a
  // range have to be kept at hand.
  std::vector<const RecordedRange*> sorted;
  for (const RecordedRange& one : recorded) sorted.push_back(&one);
  std::ranges::sort(sorted, {}, [](const RecordedRange* one) { return one->range.cidr; });
  std::vector<const RecordedRange*> around;
  const auto is_given_back = [&](const RecordedRange& one) {
    return std::ranges::any_of(surplus, [&](const SurplusRange& other) { return other.range == one.range; });
  };
  for (const RecordedRange* one : sorted) {
    std::erase_if(around, [&](const RecordedRange* outer) { return !outer->range.cidr.contains(one->range.cidr); });
    for (const RecordedRange* outer : around) {
      if (outer->range.node == one->range.node) continue;
      const bool outer_stays = std::tuple(!is_said(*outer), outer->since) < std::tuple(!is_said(*one), one->since);
      const RecordedRange& goes = outer_stays ? *one : *outer;
      if (!is_said(goes) && !is_given_back(goes))
        surplus.push_back({goes.range, (outer_stays ? *outer : *one).range.cidr});
    }
    around.push_back(one);
  }
  return surplus;
}

}  // namespace croft::core
