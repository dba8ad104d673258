#include "collector/decide/brake.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/planted.h"
#include "base/time_text.h"

namespace croft::core::collect {
namespace {

constexpr std::size_t kAllowanceMin = 10;
constexpr std::size_t kAllowanceDivisor = 100;  // 1 %
/// Both clocks are slewed alike; what they differ by beyond the time between two readings is a step.
constexpr std::chrono::seconds kClockStep{2};

std::optional<Distrust> empty_list(const RegisterView& view, const Facts& facts) {
  const bool knows_nodes = view.nodes().size() > 1;  // beside the empty name
  if (facts.node_count() == 0 && knows_nodes) {
    return Distrust{fmt::format("the list of nodes is empty, the register knows {}", view.nodes().size() - 1)};
  }
  if (facts.pods_known() && facts.pod_count() == 0 && view.pod_count() > 0) {
    return Distrust{
        fmt::format("the list of pods is empty, the register holds {} addresses for pods", view.pod_count())};
  }
  return {};
}

/// Two names are enough to see what is wrong with them.
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kNamed = 2;
  std::string text;
  for (std::size_t i = 0; i < names.size() && i < kNamed; ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() > kNamed ? text + ", …" : text;
}

/// Nodes go, but not all that hold something at once. Then the list speaks of another cluster, or names nodes otherwise
/// than the allocations do (a host name is not always the node's name).
std::optional<Distrust> other_nodes(const RegisterView& view, const Facts& facts, const Memory& before) {
  std::vector<bool> holds(view.nodes().size());
  for (const HeldRow& row : view.held()) {
    if (!view.is_of_removed_node(row)) holds[row.node] = true;
  }
  std::vector<std::string> unlisted;
  for (std::uint32_t i = 0; i < holds.size(); ++i) {
    const std::string& name = view.nodes()[i];
    if (i == RegisterView::kNoNode || !holds[i]) continue;
    if (facts.has_node(name) || before.listed_nodes.contains(name)) return {};
    unlisted.push_back(name);
  }
  if (unlisted.empty()) return {};
  std::vector<std::string> listed(facts.nodes().begin(), facts.nodes().end());
  std::ranges::sort(listed);
  return Distrust{
      fmt::format("no address is held on any of the {} nodes listed ({}); the register has {} ({}): the list has "
                  "to name nodes as allocations do (`nodename`, else the host name)",
                  listed.size(), some_of(listed), unlisted.size(), some_of(unlisted))};
}

std::optional<Distrust> shrunken_list(const Facts& facts, const Memory& before) {
  if (is_shrunken(before.node_count, facts.node_count())) {
    return Distrust{fmt::format("{} nodes, {} in the look before", facts.node_count(), before.node_count)};
  }
  if (facts.pods_known() && is_shrunken(before.bound_pod_count, facts.bound_pod_count())) {
    return Distrust{
        fmt::format("{} pods on nodes, {} in the look before", facts.bound_pod_count(), before.bound_pod_count)};
  }
  return {};
}

/// One of two servers may lag behind, and a cache may answer for them.
std::optional<Distrust> older_list(const Facts& facts, const Memory& before) {
  if (!facts.pods_revision || !before.pods_revision || *facts.pods_revision >= *before.pods_revision) return {};
  return Distrust{
      fmt::format("the list of pods is of revision {}, that of the look before was of {}: the grace begins "
                  "anew; look whether a server of the API lags behind, or a cache answers for it",
                  *facts.pods_revision, *before.pods_revision)};
}

}  // namespace

std::string_view name_of(Alarm::Kind kind) {
  constexpr std::array<std::string_view, 8> kNames = {"lists_do_not_fit", "nodes_unknown",     "pods_differ",
                                                      "clock_step",       "register_replaced", "too_many",
                                                      "block_corrupt",    "not_done"};
  return kNames[static_cast<std::size_t>(kind)];
}

bool is_shrunken(std::size_t before, std::size_t now) { return 2 * now < before; }

std::size_t allowance(std::size_t held) {
  if (is_planted("brake_off")) return std::max(kAllowanceMin, held);
  return std::max(kAllowanceMin, held / kAllowanceDivisor);
}

std::optional<Distrust> distrust(const RegisterView& view, const Facts& facts, const Memory& before,
                                 const Instant& register_read) {
  if (is_planted("empty_list_believed")) return {};
  if (!facts.complete) {
    const bool says_why = !facts.incomplete_because.empty();
    return Distrust{says_why ? facts.incomplete_because : "the source says its lists are not whole", true};
  }
  if (facts.taken_at.boot != register_read.boot || facts.taken_at.since_boot < register_read.since_boot) {
    return Distrust{fmt::format("nodes and pods are as of {}, the register was read at {}",
                                rfc3339_rounded_up(facts.taken_at.wall), rfc3339_rounded_up(register_read.wall)),
                    true};
  }
  if (auto older = older_list(facts, before)) return older;
  if (auto empty = empty_list(view, facts)) return empty;
  if (auto other = other_nodes(view, facts, before)) return other;
  return shrunken_list(facts, before);
}

bool clock_stepped(const Instant& before, const Instant& now) {
  if (before.boot != now.boot || now.since_boot < before.since_boot) return true;
  const auto step = (now.wall - before.wall) - (now.since_boot - before.since_boot);
  return step > kClockStep || step < -kClockStep;
}

}  // namespace croft::core::collect
