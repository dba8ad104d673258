#include "ipam/commands/explain_view.h"

#include <cstddef>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/counted.h"
#include "base/printable.h"
#include "base/time_text.h"

namespace croft::app {
namespace {

constexpr std::size_t kPoolsToldApart = 3;  // more in a row of which the same is to be said are told together

std::string labels_text(const core::Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels)
    text += fmt::format("{}{}={}", text.empty() ? "" : ", ", printable(key, Printed::line),
                        printable(value, Printed::line));
  return text.empty() ? "none" : text;
}

std::string block_text(const core::OwnBlockFact& block) {
  if (!block.fault.empty()) return block.fault;
  std::string text = block.free > 0 ? fmt::format("{} free", block.free) : "full";
  if (block.cools_until) text += ", the first cooling one is free again at " + rfc3339_rounded_up(*block.cools_until);
  return text;
}

std::string lenders_text(const core::PoolFact& fact, const core::Explanation& explanation) {
  if (fact.to_borrow.empty()) return "nothing to borrow from others' blocks\n";
  if (explanation.strict_affinity) return "others' blocks have room, but affinity is strict: nothing is borrowed\n";
  std::string text = "could borrow from";
  for (const net::Prefix& cidr : fact.to_borrow) text += " " + cidr.to_string();
  if (fact.to_borrow.size() == core::kExplainBlocksMax) text += " …";
  return text + "\n";
}

std::string usable_text(const core::PoolFact& fact, const core::FamilyFacts& facts,
                        const core::Explanation& explanation) {
  const std::string indent = "     ";
  std::string text;
  for (const core::OwnBlockFact& block : fact.own) {
    text += indent + fmt::format("own block {}: {}\n", block.cidr.to_string(), block_text(block));
  }
  if (fact.own.empty()) text += indent + "no block of its own here\n";
  if (!explanation.auto_allocate_blocks) {
    text += indent + "claims nothing: autoAllocateBlocks is off\n";
  } else if (facts.block_limit > 0 && facts.owned_blocks >= facts.block_limit) {
    text += indent + fmt::format("claims nothing: it has {} of at most {}\n", facts.owned_blocks,
                                 counted(facts.block_limit, "block"));
  } else if (fact.claimable) {
    text += indent + fmt::format("could claim block {}\n", fact.claimable->to_string());
  } else {
    text += indent + fmt::format("nothing to claim: {}\n", fact.not_claimable);
  }
  return text + indent + lenders_text(fact, explanation);
}

/// The words about a pool that follow its name.
std::string verdict_of(const core::PoolFact& fact, const core::FamilyFacts& facts,
                       const core::Explanation& explanation) {
  if (fact.usable) return fact.selected + "\n" + usable_text(fact, facts, explanation);
  return fact.reason + (fact.selected.empty() ? "" : "; " + fact.selected) + "\n";
}

/// "pool a (10.1.0.0/24)", or the first and the last of several in a row.
std::string pools_named(const std::vector<core::PoolFact>& pools, std::size_t begin, std::size_t end) {
  const auto one = [](const core::PoolFact& fact) { return fmt::format("{} ({})", fact.pool, fact.cidr.to_string()); };
  if (end - begin == 1) return "pool " + one(pools[begin]);
  return fmt::format("{} pools in a row, {} to {}", end - begin, one(pools[begin]), one(pools[end - 1]));
}

std::string family_text(const core::FamilyFacts& facts, const core::Explanation& explanation) {
  std::string text =
      fmt::format("{}: {} of its own, {}\n", net::name_of(facts.family), counted(facts.owned_blocks, "block"),
                  facts.block_limit == 0 ? std::string("no limit") : fmt::format("at most {}", facts.block_limit));
  std::size_t place = 0;
  for (std::size_t at = 0; at < facts.pools.size();) {
    const core::PoolFact& first = facts.pools[at];
    const std::string verdict = verdict_of(first, facts, explanation);
    std::size_t end = at + 1;
    while (end < facts.pools.size() && facts.pools[end].usable == first.usable &&
           verdict_of(facts.pools[end], facts, explanation) == verdict) {
      ++end;
    }
    if (end - at <= kPoolsToldApart) end = at + 1;
    place += first.usable ? end - at : 0;
    text += first.usable ? fmt::format("  {}. ", place - (end - at) + 1) : "  -  ";
    text += pools_named(facts.pools, at, end) + ": " + verdict;
    at = end;
  }
  return facts.pools.empty() ? text + "  no pool of this family\n" : text;
}

std::string answer_text(const core::Explanation& explanation) {
  if (const auto* refusal = std::get_if<core::Refusal>(&explanation.answer)) {
    const Error error = core::to_error(*refusal);
    return fmt::format("Answer: refused ({}): {}\n{}", name_of(error.code), error.message,
                       error.details.empty() ? "" : "  " + error.details + "\n");
  }
  std::string text;
  for (const core::ExplainedAddress& one : explanation.addresses) {
    text += fmt::format("Answer: {} of pool {}, {} {}{}\n", one.address.address.to_string(), one.address.pool,
                        core::name_of(one.origin), one.address.block.to_string(),
                        one.origin == core::Origin::borrowed || one.origin == core::Origin::taken_over
                            ? " of " + (one.block_owner.empty() ? std::string("nobody") : one.block_owner)
                            : std::string());
  }
  return text;
}

}  // namespace

std::string text_of(const core::Explanation& explanation, const core::AssignRequest& request) {
  std::string text = answer_text(explanation);
  text += fmt::format("Node {}: labels {}{}\n", request.node.name, labels_text(explanation.node_labels),
                      explanation.node_recorded ? "" : " (it has no record)");
  text += fmt::format("Switches: strictAffinity {}, autoAllocateBlocks {}\n", explanation.strict_affinity,
                      explanation.auto_allocate_blocks);
  for (const core::FamilyFacts& facts : explanation.families) text += family_text(facts, explanation);
  return text;
}

}  // namespace croft::app
