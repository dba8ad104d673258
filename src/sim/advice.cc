#include "sim/advice.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include <fmt/format.h>

#include "sim/chart.h"

namespace croft::sim {
namespace {

/// Blocks of 8 to 256 addresses.
constexpr int kHostBitsMin = 3, kHostBitsMax = 8;
/// An ADD may take so many times the requests of the cheapest length.
constexpr double kDearer = 1.15;
constexpr double kGrowthDays = 180;

/// "1 node", "1.2 blocks".
std::string counted(double number, const char* one, const char* more) {
  const std::string text = to_text(number);
  return fmt::format("{} {}", text, text == "1" ? one : more);
}

}  // namespace

Result<Advice> advise(const Plan& plan, const Measured& measured) {
  struct Tried {
    int length = 0;
    Measured measured;
    double idle = 0;  ///< addresses of a node that no pod holds
  };
  const int bits = net::bit_length(measured.pool.family());
  std::vector<Tried> tried;
  for (int length = bits - kHostBitsMax; length <= bits - kHostBitsMin; ++length) {
    Plan part = part_of(plan, kPartNodes);
    part.growth = 0;
    // The same for all lengths, with room for the largest blocks.
    part.block_length = bits - kHostBitsMax;
    part.pool = pool_for(part, measured.pool.family());
    part.block_length = length;
    TRY(Measured of, run(part));
    const double idle = static_cast<double>(of.space.spare + of.space.cooling) / static_cast<double>(of.nodes);
    tried.push_back({length, std::move(of), idle});
  }
  /// The requests of a pod that starts with all others, and of one that is replaced.
  const auto requests = [](const Tried& one) { return one.measured.requests_an_add + one.measured.requests_a_pod; };
  const auto cheapest = std::ranges::min_element(tried, {}, requests);
  const Tried* best = &*cheapest;
  for (const Tried& one : tried) {
    if (requests(one) <= requests(*cheapest) * kDearer && one.idle < best->idle) best = &one;
  }
  Advice advice;
  advice.block_length = best->length;
  const std::uint32_t part = part_of(plan, kPartNodes).nodes;
  if (part < plan.nodes) {
    advice.reasons.push_back(fmt::format("Each length was run with {} of the {} nodes.", part, plan.nodes));
  }
  const auto size = static_cast<double>(std::uint64_t{1} << (bits - best->length));
  advice.reasons.push_back(fmt::format("A /{} block has {}, and a node with {} takes {}.", best->length,
                                       counted(size, "address", "addresses"), counted(plan.pods, "pod", "pods"),
                                       counted(best->measured.blocks_a_node, "block", "blocks")));
  for (const Tried& one : tried) {
    if (std::abs(one.length - best->length) > 1 && &one != &*cheapest) continue;
    // In a short run no pod is replaced.
    const std::string replaced = one.measured.requests_a_pod > 0
                                     ? fmt::format(", a replaced pod takes {:.1f}", one.measured.requests_a_pod)
                                     : "";
    advice.reasons.push_back(fmt::format(
        "With /{} an ADD takes {:.2f} requests while all pods start{}, and a node has {:.0f} idle addresses.",
        one.length, one.measured.requests_an_add, replaced, one.idle));
  }
  advice.reasons.push_back(fmt::format(
      "/{} takes the fewest requests. Of the lengths within {:.0f} % of it, /{} has the fewest idle addresses.",
      cheapest->length, (kDearer - 1) * 100, best->length));
  // One block in eight is for nodes that have none (core::plan_claim_ahead).
  const double now = static_cast<double>(plan.nodes) * best->measured.blocks_a_node * size;
  double wanted = now * 8 / 7;
  advice.reasons.push_back(fmt::format("The blocks of {} have {}; one block in eight stays free for new nodes.",
                                       counted(plan.nodes, "node", "nodes"), counted(now, "address", "addresses")));
  if (plan.growth > 0) {
    const double growth = plan.growth * kGrowthDays * now / (static_cast<double>(plan.nodes) * plan.pods);
    wanted += growth;
    advice.reasons.push_back(fmt::format("Growth of {:.0f} pods a day takes {:.0f} addresses more in {:.0f} days.",
                                         plan.growth, growth, kGrowthDays));
  }
  if (measured.recovered_minutes && plan.failures > 0) {
    const double kept = plan.failures * *measured.recovered_minutes / 1440 * plan.pods;
    wanted += kept;
    advice.reasons.push_back(
        fmt::format("The addresses of a lost node are free again after {:.0f} minutes. With {:g} lost a day, {:.1f} of "
                    "them wait on average.",
                    *measured.recovered_minutes, plan.failures, kept));
  }
  advice.pool = prefix_of(measured.pool, wanted);
  const bool is_enough = std::exp2(bits - advice.pool.length()) >= wanted;
  advice.reasons.push_back(is_enough ? fmt::format("The smallest pool with {} is a /{}.",
                                                   counted(wanted, "address", "addresses"), advice.pool.length())
                                     : fmt::format("No pool has {}. Plan with less growth, or with an IPv6 pool.",
                                                   counted(wanted, "address", "addresses")));
  return advice;
}

}  // namespace croft::sim
