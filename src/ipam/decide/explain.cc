#include "ipam/decide/explain.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "ipam/decide/claim_choice.h"
#include "ipam/decide/draft.h"
#include "ipam/decide/family_search.h"

namespace croft::core {
namespace {

using net::Family;
using net::Prefix;

std::string labels_text(const Labels& labels) {
  std::string text;
  for (const auto& [key, value] : labels) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", key, value);
  return text.empty() ? "no labels" : text;
}

class Explaining {
 public:
  Explaining(Reader& reader, const AssignRequest& request, const Instant& now) : in_(reader, request, now) {}

  /// `decided` is the plan of the same snapshot.
  [[nodiscard]] Flow<Plan<Explanation>> run(Plan<AssignAnswer> decided) {
    for (const PlannedWrite& write : decided.writes) {
      const auto* block = write.value ? std::get_if<Block>(&*write.value) : nullptr;
      if (block != nullptr && block->affinity == in_.request.node) taken_over_.insert(block->cidr);
    }
    result_.node_recorded = in_.reader.sound(node_key(in_.request.node.name)) != nullptr;
    TRY_VOID(in_.reader.ready());
    result_.strict_affinity = in_.pools.config().strict_affinity;
    result_.auto_allocate_blocks = in_.pools.config().auto_allocate_blocks;
    result_.node_labels = in_.node_labels();
    namespace_labels_ = namespace_labels_of(in_.reader, in_.pools, in_.request.pod, in_.request.namespace_labels);
    for (const Family family : net::kFamilies) {
      if (is_asked(family)) TRY_VOID(add_facts_of(family));
    }
    if (const auto* assigned = std::get_if<Assigned>(&decided.answer)) {
      for (const AssignedAddress& address : assigned->addresses) result_.addresses.push_back(explained(address));
    }
    result_.answer = std::move(decided.answer);
    return Plan<Explanation>{std::move(result_), {}};
  }

 private:
  [[nodiscard]] bool is_asked(Family family) const {
    const auto& addresses = in_.request.addresses;
    return in_.request.count[family] > 0 ||
           std::ranges::find(addresses, family, &net::Address::family) != addresses.end();
  }

  [[nodiscard]] Flow<void> add_facts_of(Family family) {
    FamilyPools search(in_, family);
    auto chosen = search.choose();
    TRY_VOID(in_.reader.ready());
    if (chosen) TRY_VOID(search.add_unlabelled());
    FamilyFacts facts;
    facts.family = family;
    facts.block_limit = block_limit_of(in_.request, in_.pools.config());
    facts.owned_blocks = search.owned();
    for (const Pool* pool : search.usable()) facts.pools.push_back(usable_fact(*pool, search.own()));
    const auto& rejected = chosen ? search.considered() : chosen.error().refusal()->considered;
    for (const PoolVerdict& verdict : rejected) facts.pools.push_back(rejected_fact(verdict));
    result_.families.push_back(std::move(facts));
    return {};
  }

  PoolFact rejected_fact(const PoolVerdict& verdict) const {
    PoolFact fact{verdict.pool, verdict.cidr, false, verdict.reason, {}, {}, {}, {}, {}};
    const Pool* pool = in_.pools.named(verdict.pool);
    if (pool == nullptr) return fact;
    if (const auto selected = selects_node(*pool, result_.node_labels); selected && !*selected) {
      fact.selected = fmt::format("the node has {}", labels_text(result_.node_labels));
    } else if (const auto other = selects_namespace(*pool, namespace_labels_); other && !*other) {
      fact.selected = fmt::format("the namespace has {}", labels_text(namespace_labels_));
    }
    return fact;
  }

  PoolFact usable_fact(const Pool& pool, const OwnBlocks& own) {
    PoolFact fact{pool.name, pool.cidr, true, {}, grounds_of(pool), {}, {}, {}, {}};
    for (const Prefix& cidr : own_in(pool, own)) fact.own.push_back(own_fact(cidr));
    // Goes on when that has to read more: what the other facts need is asked for together with it.
    if (auto claim = choose_block_to_claim(in_.reader, in_.pools, pool, in_.request.node)) {
      fact.claimable = claim->block;
      fact.not_claimable = std::move(claim->reason);
    }
    std::size_t looked_at = 0;
    for (const Prefix& cidr : blocks_with_room(in_.reader, in_.pools, pool, in_.request.node)) {
      if (++looked_at > kExplainLooksMax) break;
      const bool is_own = std::any_of(fact.own.begin(), fact.own.end(), [&](const auto& o) { return o.cidr == cidr; });
      if (!is_own && fact.to_borrow.size() < kExplainBlocksMax) add_lender(fact, cidr);
    }
    return fact;
  }

  [[nodiscard]] std::string grounds_of(const Pool& pool) const {
    const auto& asked = in_.request.pools[pool.cidr.family()];
    if (!asked.empty()) return "asked for; its selectors don't matter";
    std::string text = is_for_all_nodes(pool) ? "serves all nodes"
                                              : fmt::format("nodeSelector {} selects the node ({})", pool.node_selector,
                                                            labels_text(result_.node_labels));
    if (!pool.namespace_selector.empty()) {
      text += fmt::format("; namespaceSelector {} selects the namespace ({})", pool.namespace_selector,
                          labels_text(namespace_labels_));
    }
    return text;
  }

  /// The blocks that the node has in a pool, full ones too, as its claims say.
  std::vector<Prefix> own_in(const Pool& pool, const OwnBlocks& own) {
    std::vector<Prefix> result;
    const auto add = [&](const Prefix& cidr) {
      if (pool.cidr.contains(cidr) && std::find(result.begin(), result.end(), cidr) == result.end()) {
        result.push_back(cidr);
      }
    };
    for (const Prefix& cidr : own.ready) add(cidr);
    for (const Prefix& cidr : own.waiting) add(cidr);
    for (const auto& [cidr, row] : own.rows) add(cidr);
    for (const Key& key : in_.reader.keys({Kind::affinity, owned_names_of(in_.request.node, pool.cidr.family())})) {
      if (const auto cidr = cidr_of(key)) add(*cidr);
    }
    return result;
  }

  OwnBlockFact own_fact(const Prefix& cidr) {
    OwnBlockFact fact{cidr, 0, {}, {}};
    const auto block = in_.draft.block(cidr);
    if (!block) {
      fact.fault = block.error().message;
    } else if (!*block) {
      fact.fault = "the claim has no block yet";
    } else if ((*block)->affinity != in_.request.node) {
      fact.fault = "the block belongs to " + ((*block)->affinity ? to_string(*(*block)->affinity) : "nobody");
    } else {
      fact.free = free_count(**block, in_.pools.reservations());
      fact.cools_until = first_cooldown_end(**block, in_.pools.cooldowns_of(cidr), in_.draft.now());
    }
    return fact;
  }

  void add_lender(PoolFact& fact, const Prefix& cidr) {
    const auto block = in_.draft.block(cidr);
    if (block && *block && (*block)->affinity != in_.request.node &&
        free_count(**block, in_.pools.reservations()) > 0) {
      fact.to_borrow.push_back(cidr);
    }
  }

  ExplainedAddress explained(const AssignedAddress& address) {
    ExplainedAddress result{address, Origin::held_before, {}};
    if (address.held_before) return result;
    const Block* before = in_.reader.get(block_key(address.block));
    if (before == nullptr) {
      result.origin = Origin::new_block;
      return result;
    }
    result.block_owner = before->affinity ? to_string(*before->affinity) : "";
    if (before->affinity == in_.request.node) {
      result.origin = Origin::own_block;
    } else {
      result.origin = taken_over_.contains(address.block) ? Origin::taken_over : Origin::borrowed;
    }
    return result;
  }

  Assignment in_;
  Labels namespace_labels_;
  std::set<Prefix> taken_over_;  ///< the blocks that the decision writes under the node's name
  Explanation result_;
};

}  // namespace

Step<Explanation> plan_explain(const Snapshot& snapshot, const AssignRequest& request, const Instant& now) {
  Step<AssignAnswer> decided = plan_assign(snapshot, request, now);
  if (auto* missing = std::get_if<Missing>(&decided)) return std::move(*missing);
  if (auto* error = std::get_if<Error>(&decided)) return std::move(*error);
  auto& plan = std::get<Plan<AssignAnswer>>(decided);
  return decide(snapshot, [&](Reader& reader) { return Explaining(reader, request, now).run(std::move(plan)); });
}

std::string_view name_of(Origin origin) {
  constexpr std::string_view kNames[] = {"held before", "own block", "new block", "block taken over", "borrowed"};
  return kNames[static_cast<std::size_t>(origin)];
}

}  // namespace croft::core
