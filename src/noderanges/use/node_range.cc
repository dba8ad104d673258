#include "noderanges/use/node_range.h"

#include <algorithm>
#include <map>
#include <variant>

#include <fmt/format.h>

#include "base/net/prefix.h"
#include "base/printable.h"
#include "base/texts.h"
#include "ipam/use/transact.h"

namespace croft::engine {
namespace {

using core::collect::Alarm;

core::NodeRecord record_in(const Context& context) {
  return context.store.capabilities().foreign_writers ? core::NodeRecord::demand : core::NodeRecord::make;
}

/// Whether the register can have what core::surplus_ranges() tells of.
bool may_have_surplus(const Context& context) { return !context.store.capabilities().atomic_commit; }

bool has_two_of_a_family(const std::vector<net::Prefix>& cidrs) {
  std::set<net::Family> families;
  return !std::ranges::all_of(cidrs, [&](const net::Prefix& cidr) { return families.insert(cidr.family()).second; });
}

/// Gives back what nodes have beside another range of the family, as two who gave one at once leave it: all but what
/// their objects say (`said`), else what was recorded first.
/// The answer includes what another gives back in the same moment. `kept` gets what is left, with its node.
[[nodiscard]] Result<std::vector<core::SurplusRange>> give_back_surplus(
    const Context& context, const std::vector<core::NodeRange>& said,
    std::map<net::Prefix, std::string>* kept = nullptr) {
  std::vector<core::RecordedRange> recorded;
  std::map<net::Prefix, store::Revision> revisions;
  TRY_VOID(for_each_record(context, {core::Kind::node_range, ""}, [&](const store::Record& record) {
    const auto& range = std::get<core::NodeRange>(*record.value);
    recorded.push_back({range, record.revision.value});
    revisions.insert_or_assign(range.cidr, record.revision);
  }));
  std::vector<core::SurplusRange> surplus = core::surplus_ranges(recorded, said);
  if (kept != nullptr) {
    for (const core::RecordedRange& one : recorded) kept->insert_or_assign(one.range.cidr, one.range.node);
    for (const core::SurplusRange& one : surplus) kept->erase(one.range.cidr);
  }
  for (const core::SurplusRange& one : surplus) {
    const store::Write write{core::node_range_key(one.range.cidr), std::nullopt,
                             store::Condition::if_revision(revisions.at(one.range.cidr)), false};
    const auto done = commit_once(context, {&write, 1}, deadline_of_use_case(context));
    if (!done && done.error().code != ErrorCode::conflict) return fail(done.error());
  }
  return surplus;
}

/// Where commits are not atomic, two who give ranges at once may both have recorded one for a node, and neither has
/// seen the other's; or one for two nodes that overlap, by two configurations. So who recorded one looks at all of them
/// afterwards, and answers once the node has one of a family, apart from all others.
[[nodiscard]] Result<std::vector<core::NodeRangesAssigned>> assign(const Context& context,
                                                                   const std::vector<std::string>& nodes,
                                                                   core::NodeRecord record,
                                                                   const std::vector<core::NodeRange>& said) {
  for (int tries = 0; tries < kTriesMax; ++tries) {
    TRY(auto answers, decided(context, core::plan_assign_node_ranges, nodes, record, said));
    const bool has_two = std::ranges::any_of(
        answers, [](const core::NodeRangesAssigned& one) { return has_two_of_a_family(one.cidrs); });
    // Also what is there already: a try before may have recorded it, and ended before it looked.
    if (!has_two && !may_have_surplus(context)) return answers;
    std::map<net::Prefix, std::string> kept;
    TRY_VOID(give_back_surplus(context, said, &kept));
    // An answer may have been given back, here or by another before this reading: then it is decided again. Two
    // of a family that stay are both said.
    const bool is_so = std::ranges::all_of(answers, [&](const core::NodeRangesAssigned& one) {
      return std::ranges::all_of(one.cidrs, [&](const net::Prefix& cidr) {
        const auto found = kept.find(cidr);
        return found != kept.end() && found->second == one.node;
      });
    });
    if (is_so && (!has_two || tries > 1)) return answers;
  }
  return fail(ErrorCode::conflict, "somebody else gives ranges to node {} all the time", nodes.front());
}

[[nodiscard]] Result<core::NodeRangesReleased> release(const Context& context, const std::string& node,
                                                       const core::OnlyIfGone& only_if_gone,
                                                       core::IfRecorded if_recorded, bool apply = true) {
  using Answer = core::NodeRangesReleased;
  // The ranges of the first reading are given back: another may have given them back in between.
  std::optional<std::vector<net::Prefix>> first;
  const auto decide = [&](const core::Snapshot& snapshot, const Instant&) -> core::Step<Answer> {
    auto step = core::plan_release_node_ranges(snapshot, node, only_if_gone, if_recorded, first);
    auto* const plan = std::get_if<core::Plan<Answer>>(&step);
    if (plan == nullptr || only_if_gone) return step;
    if (!first) {
      if (!plan->answer.cidrs.empty()) first = plan->answer.cidrs;
    } else {
      plan->answer.cidrs = *first;
    }
    if (!apply) plan->writes.clear();
    return step;
  };
  return transact(context, TurnTaking::before_writing, decide);
}

/// The ranges of nodes without record, by node.
std::map<std::string, std::vector<net::Prefix>> gone_in(const core::NodeRangeOverview& seen) {
  std::map<std::string, std::vector<net::Prefix>> gone;
  for (const core::NodeRangeSeen& one : seen.ranges) {
    if (!one.node_recorded) gone[one.range.node].push_back(one.range.cidr);
  }
  return gone;
}

/// One pass of reconcile_node_ranges.
class Reconciling {
 public:
  Reconciling(const Context& context, GoneNodes& memory, const ReconcileOptions& options)
      : context_(context), memory_(memory), options_(options) {
    result_.dry_run = options.dry_run;
  }

  [[nodiscard]] Result<NodeRangesReconciled> run() {
    TRY(result_.seen, read_node_range_overview(context_));
    if (const std::uint64_t epoch = context_.store.epoch(); memory_.epoch != epoch) {
      memory_ = {};
      memory_.epoch = epoch;
    }
    if (!result_.seen.set) return std::move(result_);
    TRY_VOID(look_at_surplus());
    // First what is given back: a node that waits may get it.
    TRY_VOID(look_at_gone());
    TRY_VOID(assign_to_bare());
    return std::move(result_);
  }

 private:
  /// A program may have died before it looked, or be of a version that did not.
  [[nodiscard]] Result<void> look_at_surplus() {
    const bool is_settled =
        result_.seen.surplus.empty() && (result_.seen.collisions.empty() || !may_have_surplus(context_));
    if (options_.dry_run || is_settled) return {};
    TRY(result_.surplus, give_back_surplus(context_, options_.said));
    TRY(result_.seen, read_node_range_overview(context_));
    return {};
  }

  [[nodiscard]] Result<void> look_at_gone() {
    const Sighting now = Sighting::at(context_.clock.now());
    const auto gone = gone_in(result_.seen);
    if (!is_trusted(gone)) return {};
    const auto before = std::exchange(memory_.since, {});
    for (const auto& [node, cidrs] : gone) {
      for (const net::Prefix& cidr : cidrs) memory_.since.see(before, {node, cidr}, now);
    }
    const std::size_t most = removals_allowed(result_.seen.ranges.size());
    std::size_t left = most;
    std::size_t braked = 0;
    for (const auto& [node, cidrs] : gone) {
      const bool long_enough = std::ranges::all_of(cidrs, [&](const net::Prefix& cidr) {
        return memory_.since.find({node, cidr})->has_stood(options_.grace, now.since_boot);
      });
      const bool is_braked = long_enough && cidrs.size() > left;
      if (is_braked) braked += cidrs.size();
      if (!long_enough || is_braked) {
        for (const net::Prefix& cidr : cidrs) result_.gone.push_back({node, cidr});
      } else {
        left -= cidrs.size();
        TRY_VOID(give_back(node, cidrs));
      }
    }
    if (braked > 0) {
      alarm(Alarm::Kind::too_many,
            fmt::format("{} more ranges of nodes that are gone are kept for later passes: one gives back {} of {}",
                        braked, most, result_.seen.ranges.size()));
    }
    return {};
  }

  /// Whether the list of nodes proves anything. If not, what is gone keeps what it has, and its time begins anew.
  [[nodiscard]] bool is_trusted(const std::map<std::string, std::vector<net::Prefix>>& gone) {
    const std::size_t nodes = result_.seen.nodes;
    std::set<std::string> holders;
    for (const core::NodeRangeSeen& one : result_.seen.ranges) holders.insert(one.range.node);
    // The first look has nothing before it but the ranges: each was given to a node that had a record.
    const std::size_t before = memory_.nodes > 0 ? memory_.nodes : holders.size();
    const bool is_empty = nodes == 0;
    if (!is_empty) memory_.nodes = nodes;
    if (gone.empty() || (!is_empty && !is_shrunken(before, nodes))) return true;
    memory_.since = {};
    for (const auto& [node, cidrs] : gone) {
      for (const net::Prefix& cidr : cidrs) result_.gone.push_back({node, cidr});
    }
    if (options_.grace.count() == 0) return false;
    alarm(Alarm::Kind::lists_do_not_fit,
          is_empty ? fmt::format("no node has a record, and {} ranges are given", result_.gone.size())
                   : fmt::format("{} nodes have a record, {} before", nodes, before));
    return false;
  }

  void alarm(Alarm::Kind kind, std::string text) { result_.alarms.push_back({kind, std::move(text)}); }

  [[nodiscard]] Result<void> give_back(const std::string& node, const std::vector<net::Prefix>& cidrs) {
    core::NodeRangesReleased released{node, cidrs};
    if (!options_.dry_run) {
      TRY(released, release(context_, node, cidrs, core::IfRecorded::refuse));
      for (const core::NodeRangeSeen& one : result_.seen.ranges) {
        const bool is_released = std::ranges::find(released.cidrs, one.range.cidr) != released.cidrs.end();
        if (is_released && one.cluster_cidr) ++result_.counts[*one.cluster_cidr].releases;
      }
    }
    if (released.cidrs.empty()) return {};
    result_.released.push_back(std::move(released));
    return {};
  }

  [[nodiscard]] Result<void> assign_to_bare() {
    if (options_.dry_run) return {};
    std::vector<std::string>& bare = result_.seen.bare;
    std::erase_if(bare, [&](const std::string& node) { return options_.as_they_are.contains(node); });
    for (std::size_t i = 0; i < bare.size(); i += core::kAssignNodesMax) {
      const auto first = bare.begin() + static_cast<std::ptrdiff_t>(i);
      const auto count = static_cast<std::ptrdiff_t>(std::min(core::kAssignNodesMax, bare.size() - i));
      TRY_VOID(assign_batch({first, first + count}));
    }
    return {};
  }

  [[nodiscard]] Result<void> assign_batch(const std::vector<std::string>& nodes) {
    TRY(std::vector<core::NodeRangesAssigned> answers,
        assign(context_, nodes, core::NodeRecord::demand, options_.said));
    for (core::NodeRangesAssigned& answer : answers) {
      for (const core::NodeRangeAdded& added : answer.added) {
        result_.counts[added.cluster_cidr].tries.push_back(added.tries);
      }
      if (answer.refusal) {
        result_.refused.push_back(std::move(answer));
      } else if (!answer.added.empty()) {
        result_.assigned.push_back(std::move(answer));
      }
    }
    return {};
  }

  const Context& context_;
  GoneNodes& memory_;
  const ReconcileOptions& options_;
  NodeRangesReconciled result_;
};

}  // namespace

Result<core::NodeRangesConfigured> configure_node_ranges(const Context& context, const core::NodeRangeSpec& spec) {
  return decided(context, core::plan_configure_node_ranges, spec);
}

Result<core::NodeRangesAssigned> assign_node_ranges(const Context& context, const std::string& node,
                                                    const std::vector<core::NodeRange>& said) {
  TRY(std::vector<core::NodeRangesAssigned> answers, assign(context, {node}, record_in(context), said));
  if (answers.front().refusal) return fail(*std::move(answers.front().refusal));
  return std::move(answers.front());
}

Result<core::NodeRangesAssigned> adopt_node_range(const Context& context, const std::string& node,
                                                  const net::Prefix& cidr, const std::vector<core::NodeRange>& said) {
  TRY(auto answer, decided(context, core::plan_adopt_node_range, node, cidr, record_in(context), said));
  if (answer.added.empty() || !may_have_surplus(context)) return answer;
  // A range given to it meanwhile is not the one that its object says.
  std::vector<core::NodeRange> all_said = said;
  all_said.push_back({node, cidr});
  TRY_VOID(give_back_surplus(context, all_said));
  return answer;
}

Result<core::NodeRangesReleased> release_node_ranges(const Context& context, const std::string& node,
                                                     core::IfRecorded if_recorded, bool apply) {
  return release(context, node, std::nullopt, if_recorded, apply);
}

namespace {

[[nodiscard]] Result<bool> has_node_ranges(const Context& context) {
  core::Missing wanted;
  wanted.records.insert(core::node_range_set_key());
  wanted.keys.insert({core::Kind::node_range, ""});
  TRY(const store::ReadAnswer found, context.store.read(wanted, deadline_of_use_case(context)));
  return found.records.front().has_value() || !found.keys.front()->empty();
}

}  // namespace

Result<core::NodeRangeOverview> read_node_range_overview(const Context& context) {
  auto seen = decided(context, core::read_node_range_overview);
  if (seen || seen.error().code != ErrorCode::permission_denied) return seen;
  // Nodes and ranges of Services, which this account may not read, are needed where there is a range.
  const auto has_some = has_node_ranges(context);
  if (has_some && !*has_some) return core::NodeRangeOverview{};
  return seen;
}

Result<NodeRangesReconciled> reconcile_node_ranges(const Context& context, GoneNodes& memory,
                                                   const ReconcileOptions& options) {
  return Reconciling(context, memory, options).run();
}

namespace {

std::string rival_text(const NodeCidrs::OfNode& one) {
  return fmt::format(
      "node {} was given {} by another program{}: only one may give ranges to nodes, and this controller gives none "
      "from "
      "here on; end the other (kube-controller-manager: --allocate-node-cidrs=false), then start this one again",
      echo(one.node), net::joined(one.cidrs), one.written_by.empty() ? "" : fmt::format(" ({})", echo(one.written_by)));
}

std::vector<core::NodeRange> all_said(const std::vector<NodeCidrs::OfNode>& all) {
  std::vector<core::NodeRange> said;
  for (const NodeCidrs::OfNode& one : all) {
    for (const net::Prefix& cidr : one.cidrs) said.push_back({one.node, cidr});
  }
  return said;
}

/// Another node's word about these.
const core::NodeRange* said_by_another(const std::vector<core::NodeRange>& said, const std::string& node,
                                       const std::vector<net::Prefix>& cidrs) {
  for (const core::NodeRange& other : said) {
    const bool overlaps =
        std::ranges::any_of(cidrs, [&](const net::Prefix& cidr) { return other.cidr.overlaps(cidr); });
    if (overlaps && other.node != node) return &other;
  }
  return nullptr;
}

Error kept_back(const std::string& node, const std::vector<net::Prefix>& ours, const core::NodeRange& other) {
  return make_error(ErrorCode::already_exists,
                    "its record says {}, and the object of node {} says {}: {} is not told its range; when nobody on "
                    "it has an address, `croft node range release {} --force` lets the next pass give it another",
                    net::joined(ours), echo(other.node), other.cidr, echo(node), node);
}

}  // namespace

Result<NodeCidrsLook> look_at_node_cidrs(NodeCidrs& cidrs) {
  TRY(const auto all, cidrs.all());
  NodeCidrsLook look{all_said(all), {}};
  for (const NodeCidrs::OfNode& one : all) {
    if (one.damage) look.unreadable.emplace_back(one.node, *one.damage);
  }
  return look;
}

Result<NodeCidrsAdopted> adopt_node_cidrs(const Context& context, NodeCidrs& cidrs, NodeCidrsMemory& memory,
                                          bool dry_run) {
  NodeCidrsAdopted result;
  // The objects first: what is said after this look is compared with the records of after it too.
  TRY(const auto all, cidrs.all());
  TRY(const core::NodeRangeOverview seen, read_node_range_overview(context));
  if (!seen.set) return result;
  auto recorded = seen.by_node();
  result.said = all_said(all);
  result.overlaps = core::compare_said(result.said, seen.records()).overlaps;
  std::set<std::string> without;
  for (const NodeCidrs::OfNode& one : all) {
    if (one.damage) {
      result.failed.emplace_back(one.node, *one.damage);
      result.as_they_are.insert(one.node);
      continue;
    }
    if (one.cidrs.empty()) {
      without.insert(one.node);
      if (one.being_deleted) result.as_they_are.insert(one.node);
      continue;
    }
    result.as_they_are.insert(one.node);
    const std::vector<net::Prefix>& ours = recorded[one.node];
    if (std::ranges::is_permutation(ours, one.cidrs)) continue;
    if (memory.without.contains(one.node)) memory.rival = rival_text(one);
    bool differs = false;
    for (const net::Prefix& cidr : one.cidrs) {
      if (std::ranges::find(ours, cidr) != ours.end() || dry_run) continue;
      const auto adopted = adopt_node_range(context, one.node, cidr);
      if (adopted) {
        result.adopted.emplace_back(one.node, cidr);
      } else if (!ours.empty()) {
        differs = true;
      } else {
        result.failed.emplace_back(one.node, adopted.error());
      }
    }
    if (differs) result.differing.push_back({one.node, one.cidrs, ours});
  }
  memory.without = std::move(without);
  result.rival = memory.rival;
  return result;
}

Result<NodeCidrsSaid> say_node_cidrs(const Context& context, NodeCidrs& cidrs) {
  NodeCidrsSaid result;
  TRY(const auto all, cidrs.all());
  TRY(core::NodeRangeOverview seen, read_node_range_overview(context));
  if (!seen.set || seen.set->cluster_cidrs.empty()) return result;
  const std::vector<core::NodeRange> said_before = all_said(all);
  if (!seen.surplus.empty() || (!seen.collisions.empty() && !context.store.capabilities().atomic_commit)) {
    // Another gave one in the same moment, after the look at the records in this pass.
    TRY(result.surplus, give_back_surplus(context, said_before));
    TRY(seen, read_node_range_overview(context));
  }
  auto recorded = seen.by_node();
  const net::Family first = seen.set->cluster_cidrs.front().cidr.family();
  for (const NodeCidrs::OfNode& one : all) {
    const bool waits = std::ranges::find(seen.bare, one.node) != seen.bare.end();
    std::vector<net::Prefix> ours = recorded[one.node];
    if (!one.cidrs.empty() || one.damage || one.being_deleted || waits || ours.empty()) continue;
    std::ranges::stable_partition(ours, [&](const net::Prefix& cidr) { return cidr.family() == first; });
    if (const core::NodeRange* other = said_by_another(said_before, one.node, ours)) {
      result.failed.emplace_back(one.node, kept_back(one.node, ours, *other));
      continue;
    }
    if (const auto said = cidrs.publish(one.node, ours); said) {
      result.said.emplace_back(one.node, std::move(ours));
    } else {
      result.failed.emplace_back(one.node, said.error());
    }
  }
  return result;
}

}  // namespace croft::engine
