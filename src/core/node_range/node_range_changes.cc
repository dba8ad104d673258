#include "core/node_range/node_range_changes.h"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"
#include "core/node_range/cidr_set.h"
#include "core/register/address_claims.h"
#include "core/register/affinity.h"
#include "core/register/node.h"
#include "net/echo.h"

namespace croft::core {
namespace {

using node_range::CidrSet;

std::string_view name_of_family(net::Family family) { return family == net::Family::v4 ? "IPv4" : "IPv6"; }

/// The families of the cluster CIDRs, in the order of their first.
std::vector<net::Family> families_of(const std::vector<ClusterCidr>& cluster_cidrs) {
  std::vector<net::Family> families;
  for (const ClusterCidr& cluster : cluster_cidrs) {
    if (std::ranges::find(families, cluster.cidr.family()) == families.end()) families.push_back(cluster.cidr.family());
  }
  return families;
}

/// The node ranges of a snapshot, as every decision looks at them.
class NodeRangeTable {
 public:
  /// Asks for what it needs; meaningful once checked.
  explicit NodeRangeTable(Reader& reader, AddressClaims::For purpose = AddressClaims::For::to_claim) {
    // Before the lists: what changes after it then shows as a conflict on it.
    if (const auto* stored = reader.get(node_range_set_key())) stored_ = *stored;
    claims_.emplace(reader, purpose);
    if (!reader.ready()) return;
    for (const auto& [key, value] : reader.list({Kind::node_range, ""})) {
      const auto& range = std::get<NodeRange>(value);
      if (key != node_range_key(range.cidr)) {
        fault_ = Error{ErrorCode::corrupt,
                       fmt::format("node range {} says that it is {}", net::echo(key.name), range.cidr.to_string()),
                       {}};
        return;
      }
      ranges_.push_back(range);
      by_node_[range.node].push_back(range.cidr);
    }
    std::ranges::sort(ranges_, {}, &NodeRange::cidr);
  }

  [[nodiscard]] const std::optional<NodeRangeSet>& stored() const { return stored_; }
  [[nodiscard]] const std::vector<NodeRange>& ranges() const { return ranges_; }
  /// That it has been read, and is sound.
  [[nodiscard]] Flow<void> check(const Reader& reader) const {
    TRY_VOID(reader.ready());
    if (fault_) return fail(*fault_);
    return {};
  }

  [[nodiscard]] const AddressClaims& claims() const { return *claims_; }

  /// What no node may get.
  [[nodiscard]] std::vector<net::Prefix> excluded() const {
    std::vector<net::Prefix> result = claims_->not_for_nodes();
    if (stored_) result.insert(result.end(), stored_->excluded.begin(), stored_->excluded.end());
    return result;
  }

  /// The ranges of a node: of the first family first, then by CIDR.
  [[nodiscard]] std::vector<net::Prefix> ranges_of(const std::string& node) const {
    const auto found = by_node_.find(node);
    if (found == by_node_.end()) return {};
    std::vector<net::Prefix> result = found->second;
    put_in_order(result);
    return result;
  }

  void put_in_order(std::vector<net::Prefix>& cidrs) const {
    const auto families = families_of(stored_ ? stored_->cluster_cidrs : std::vector<ClusterCidr>());
    std::ranges::sort(cidrs, {}, [&](const net::Prefix& cidr) {
      return std::pair(std::ranges::find(families, cidr.family()) - families.begin(), cidr);
    });
  }

  /// The cluster CIDRs with what is excluded or somebody's taken. Error: corrupt.
  [[nodiscard]] Result<std::vector<CidrSet>> sets() const {
    std::vector<CidrSet> result;
    if (!stored_) return result;
    TRY_VOID(check_stored());
    const auto excluded_ranges = excluded();
    for (std::size_t i = 0; i < stored_->cluster_cidrs.size(); ++i) {
      auto set = CidrSet::make(stored_->cluster_cidrs[i], i < stored_->cursors.size() ? stored_->cursors[i] : 0);
      if (!set) return fail(ErrorCode::corrupt, "stored configuration of node ranges: " + set.error().message);
      for (const net::Prefix& cidr : excluded_ranges) set->exclude(cidr);
      for (const NodeRange& range : ranges_) {
        if (set->cluster().cidr.overlaps(range.cidr)) TRY_VOID(set->occupy(range.cidr));
      }
      result.push_back(*std::move(set));
    }
    return result;
  }

  /// The record as it is to be written: with the cursors of these sets.
  [[nodiscard]] PlannedWrite next_set(const std::vector<CidrSet>& sets) const {
    NodeRangeSet next = stored_.value_or(NodeRangeSet());
    ++next.generation;
    if (!sets.empty()) next.cursors.clear();
    for (const CidrSet& set : sets) next.cursors.push_back(set.cursor());
    return to_put(node_range_set_key(), std::move(next));
  }

 private:
  /// What is never configured: one could not be looked through, and two that overlap would each give out the same.
  [[nodiscard]] Result<void> check_stored() const {
    const auto& clusters = stored_->cluster_cidrs;
    if (clusters.size() > kClusterCidrsMax) {
      return fail(ErrorCode::corrupt, fmt::format("stored configuration of node ranges: {} cluster CIDRs, at most {} "
                                                  "are allowed; restore the record from a backup",
                                                  clusters.size(), kClusterCidrsMax));
    }
    for (auto cluster = clusters.begin(); cluster != clusters.end(); ++cluster) {
      const auto other = std::find_if(clusters.begin(), cluster,
                                      [&](const ClusterCidr& before) { return before.cidr.overlaps(cluster->cidr); });
      if (other == cluster) continue;
      return fail(ErrorCode::corrupt,
                  fmt::format("stored configuration of node ranges: cluster CIDR {} overlaps cluster "
                              "CIDR {}; restore the record from a backup",
                              cluster->cidr.to_string(), other->cidr.to_string()));
    }
    return {};
  }

  std::optional<NodeRangeSet> stored_;
  std::optional<AddressClaims> claims_;
  std::vector<NodeRange> ranges_;
  std::map<std::string, std::vector<net::Prefix>> by_node_;
  std::optional<Error> fault_;
};

Error not_configured() {
  return {ErrorCode::refused_by_configuration,
          "node ranges are not configured: say what to cut them from with `croft node range config --cluster-cidr=...`",
          {}};
}

std::string text_of_use(const CidrSet& set) {
  const std::string excluded =
      set.excluded_count() > 0 ? fmt::format(", {} of them excluded", set.excluded_count()) : std::string();
  return fmt::format("cluster CIDR {} is full ({} of {} node ranges of length {} taken{})",
                     set.cluster().cidr.to_string(), set.taken(), set.size(), set.cluster().node_length, excluded);
}

Error exhausted(const std::string& node, net::Family family, const std::vector<CidrSet>& sets) {
  std::string full;
  for (const CidrSet& set : sets) {
    if (set.cluster().cidr.family() == family) full += (full.empty() ? "" : ", ") + text_of_use(set);
  }
  return {ErrorCode::exhausted,
          fmt::format("no {} range is left for node {}: {}; add another {} CIDR to --cluster-cidr of `croft node range "
                      "config`, or give back the ranges of nodes that are gone (`croft node range list` names them)",
                      name_of_family(family), node, full, name_of_family(family)),
          {}};
}

/// The record of a node that is to have a range; nothing to write when it is there.
[[nodiscard]] Result<std::optional<PlannedWrite>> node_record(const Reader& reader, const std::string& node,
                                                              NodeRecord record) {
  TRY_VOID(check_node_name(node));
  if (reader.find(node_key(node)) != nullptr) return std::optional<PlannedWrite>();
  if (record == NodeRecord::demand) {
    return fail(ErrorCode::not_found, fmt::format("there is no node {}", net::echo(node)));
  }
  Node made;
  made.name = node;
  return std::optional(to_put(node_key(node), std::move(made)));
}

/// Takes the next free range of a family. One that somebody made since the list was read is passed over.
std::optional<NodeRangeAdded> take_of(net::Family family, const Reader& reader, std::vector<CidrSet>& sets) {
  for (CidrSet& set : sets) {
    if (set.cluster().cidr.family() != family) continue;
    while (const auto found = set.take_next()) {
      if (reader.find(node_range_key(found->cidr)) != nullptr) continue;
      return NodeRangeAdded{found->cidr, set.cluster().cidr, found->tries};
    }
  }
  return std::nullopt;
}

/// Takes one range for each family that the node has none of; all or none: the reference leaks what it took of the
/// first family when the second is full.
[[nodiscard]] Result<std::vector<NodeRangeAdded>> take_for(const std::string& node, const std::vector<net::Prefix>& has,
                                                           const Reader& reader, std::vector<CidrSet>& sets,
                                                           const NodeRangeSet& stored) {
  std::vector<net::Family> lacking = families_of(stored.cluster_cidrs);
  std::erase_if(lacking, [&](net::Family family) {
    return std::ranges::any_of(has, [&](const net::Prefix& cidr) { return cidr.family() == family; });
  });
  const auto has_room = [&](net::Family family) {
    return std::ranges::any_of(
        sets, [&](const CidrSet& set) { return set.cluster().cidr.family() == family && !set.is_full(); });
  };
  std::vector<NodeRangeAdded> added;
  if (const auto full = std::ranges::find_if_not(lacking, has_room); full != lacking.end()) {
    return fail(exhausted(node, *full, sets));
  }
  for (const net::Family family : lacking) {
    auto one = take_of(family, reader, sets);
    if (!one) return fail(exhausted(node, family, sets));
    added.push_back(*one);
  }
  return added;
}

/// Where an adopted range would lie, or why it can't.
[[nodiscard]] Result<const CidrSet*> place_of(const std::string& node, const net::Prefix& cidr,
                                              std::size_t ranges_before, const std::vector<CidrSet>& sets) {
  const CidrSet* of_family = nullptr;
  for (const CidrSet& set : sets) {
    const net::Prefix& cluster = set.cluster().cidr;
    if (cluster.contains(cidr)) return &set;
    if (cidr.contains(cluster)) {
      return fail(ErrorCode::invalid_argument, fmt::format("cidr {} contains cluster cidr {}: it can't be one node's",
                                                           cidr.to_string(), cluster.to_string()));
    }
    if (cluster.family() == cidr.family() && of_family == nullptr) of_family = &set;
  }
  if (of_family == nullptr) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("node:{} has an allocated cidr: {} at index:{} that does not exist in cluster cidrs "
                            "configuration",
                            node, cidr.to_string(), ranges_before));
  }
  return fail(of_family->indices_of(cidr).error());
}

/// Whether the range is free for the node.
[[nodiscard]] Result<void> check_free(const net::Prefix& cidr, const NodeRangeTable& table) {
  for (const net::Prefix& excluded : table.excluded()) {
    if (excluded.overlaps(cidr)) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{} overlaps {}, which no node may have (a Service range, a pool, or excluded)",
                              cidr.to_string(), excluded.to_string()));
    }
  }
  for (const NodeRange& other : table.ranges()) {
    if (other.cidr.overlaps(cidr)) {
      return fail(ErrorCode::already_exists, fmt::format("{} overlaps {}, the range of node {}", cidr.to_string(),
                                                         other.cidr.to_string(), other.node));
    }
  }
  return {};
}

/// What can be said of cluster CIDRs by themselves.
[[nodiscard]] Result<void> check_spec(const NodeRangeSpec& spec, const std::vector<net::Prefix>& excluded) {
  if (spec.cluster_cidrs.empty() || spec.cluster_cidrs.size() > kClusterCidrsMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} cluster CIDRs: 1 to {} are allowed", spec.cluster_cidrs.size(), kClusterCidrsMax));
  }
  if (spec.excluded.size() > kExcludedMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("{} excluded ranges: at most {} are allowed", spec.excluded.size(), kExcludedMax));
  }
  for (auto cluster = spec.cluster_cidrs.begin(); cluster != spec.cluster_cidrs.end(); ++cluster) {
    TRY(CidrSet set, CidrSet::make(*cluster));
    if (is_v4_mapped(cluster->cidr)) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("cluster CIDR {} has IPv4-mapped addresses, a node would get IPv4 in two forms: give the "
                              "IPv4 CIDR",
                              cluster->cidr.to_string()));
    }
    for (auto other = spec.cluster_cidrs.begin(); other != cluster; ++other) {
      if (other->cidr.overlaps(cluster->cidr)) {
        return fail(ErrorCode::refused_by_configuration,
                    fmt::format("cluster CIDR {} overlaps cluster CIDR {}", cluster->cidr.to_string(),
                                other->cidr.to_string()));
      }
    }
    for (const net::Prefix& cidr : excluded) {
      set.exclude(cidr);
      if (set.is_full()) {
        return fail(ErrorCode::refused_by_configuration,
                    fmt::format("nothing is left of cluster CIDR {}: Service range {} takes the rest of it",
                                cluster->cidr.to_string(), cidr.to_string()));
      }
    }
  }
  return {};
}

[[nodiscard]] Result<void> check_claims(const NodeRangeSpec& spec, const AddressClaims& claims) {
  for (const ClusterCidr& cluster : spec.cluster_cidrs) {
    const auto claim = claims.against_cluster_cidr(cluster.cidr);
    if (!claim) continue;
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("cluster CIDR {} overlaps {}", cluster.cidr.to_string(), *claim));
  }
  return {};
}

[[nodiscard]] Result<void> check_one_length(const NodeRangeSpec& spec, const NodeRangeTable& table) {
  const auto refuse = [](const ClusterCidr& cluster, int length) {
    return fail(ErrorCode::refused_by_configuration,
                fmt::format("cluster CIDR {} has node ranges of length {}; this store can't keep ranges of several "
                            "lengths apart",
                            cluster.cidr.to_string(), length));
  };
  for (const ClusterCidr& cluster : spec.cluster_cidrs) {
    for (const NodeRange& range : table.ranges()) {
      const bool differs = range.cidr.length() != cluster.node_length && cluster.cidr.overlaps(range.cidr);
      if (differs) return refuse(cluster, range.cidr.length());
    }
    // Also without ranges: a writer that saw the length before may be on its way.
    for (const ClusterCidr& before : table.stored() ? table.stored()->cluster_cidrs : std::vector<ClusterCidr>()) {
      const bool differs = before.node_length != cluster.node_length && before.cidr.overlaps(cluster.cidr);
      if (differs) return refuse(cluster, before.node_length);
    }
  }
  return {};
}

std::optional<net::Prefix> cluster_cidr_of(const net::Prefix& cidr, const std::vector<ClusterCidr>& cluster_cidrs) {
  for (const ClusterCidr& cluster : cluster_cidrs) {
    if (cluster.cidr.contains(cidr)) return cluster.cidr;
  }
  return std::nullopt;
}

NodeRangeSet configured(const NodeRangeSpec& spec, const NodeRangeSet& before) {
  NodeRangeSet set{before.generation + 1, spec.cluster_cidrs, spec.excluded, {}};
  for (const ClusterCidr& cluster : spec.cluster_cidrs) {
    const auto same = std::ranges::find(before.cluster_cidrs, cluster);
    const auto place = static_cast<std::size_t>(same - before.cluster_cidrs.begin());
    set.cursors.push_back(place < before.cursors.size() ? before.cursors[place] : 0);
  }
  return set;
}

/// A plan whose new ranges were looked up, so that making them is guarded by their absence.
template <class Answer>
Plan<Answer> guarded(Reader& reader, Answer answer, std::vector<PlannedWrite> writes) {
  for (const PlannedWrite& write : writes) {
    if (write.key.kind == Kind::node_range) static_cast<void>(reader.get(KeyOf<NodeRange>(write.key)));
  }
  return {std::move(answer), std::move(writes)};
}

bool is_configured(const NodeRangeTable& table) { return table.stored() && !table.stored()->cluster_cidrs.empty(); }

}  // namespace

Step<NodeRangesConfigured> plan_configure_node_ranges(const Snapshot& snapshot, const NodeRangeSpec& spec,
                                                      Lengths lengths) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangesConfigured>> {
    TRY_VOID(check_spec(spec, spec.excluded));
    // Both sets before the lists. The pools' set is written, so that a pool made meanwhile conflicts with this.
    PlannedWrite pool_set = next_pool_set(reader);
    const NodeRangeTable table(reader);
    TRY_VOID(table.check(reader));

    std::vector<net::Prefix> excluded = table.claims().not_for_nodes();
    excluded.insert(excluded.end(), spec.excluded.begin(), spec.excluded.end());
    TRY_VOID(check_claims(spec, table.claims()));
    TRY_VOID(check_spec(spec, excluded));
    if (lengths == Lengths::one) {
      TRY_VOID(check_one_length(spec, table));
    }
    const NodeRangeSet before = table.stored().value_or(NodeRangeSet());
    NodeRangesConfigured answer{before, false, {}};
    for (const NodeRange& range : table.ranges()) {
      if (!cluster_cidr_of(range.cidr, spec.cluster_cidrs)) answer.outside.push_back(range);
    }
    if (before.cluster_cidrs == spec.cluster_cidrs && before.excluded == spec.excluded) {
      return Plan<NodeRangesConfigured>{std::move(answer), {}};
    }
    answer.set = configured(spec, before);
    answer.changed = true;
    std::vector<PlannedWrite> writes;
    writes.push_back(std::move(pool_set));
    writes.push_back(to_put(node_range_set_key(), answer.set));
    return Plan<NodeRangesConfigured>{std::move(answer), std::move(writes)};
  });
}

Step<std::vector<NodeRangesAssigned>> plan_assign_node_ranges(const Snapshot& snapshot,
                                                              const std::vector<std::string>& nodes,
                                                              NodeRecord record) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<std::vector<NodeRangesAssigned>>> {
    CROFT_ASSERT(nodes.size() <= kAssignNodesMax);
    for (const std::string& node : nodes) {
      if (check_node_name(node)) static_cast<void>(reader.get(node_key(node)));
    }
    const NodeRangeTable table(reader);
    TRY_VOID(table.check(reader));
    if (!is_configured(table)) return fail(not_configured());
    TRY(auto sets, table.sets());

    std::vector<NodeRangesAssigned> answers;
    std::vector<PlannedWrite> writes;
    bool any_added = false;
    for (const std::string& node : nodes) {
      if (const auto before = std::ranges::find(answers, node, &NodeRangesAssigned::node); before != answers.end()) {
        answers.push_back({node, before->cidrs, {}, before->refusal});
        continue;
      }
      auto& answer = answers.emplace_back(NodeRangesAssigned{node, table.ranges_of(node), {}, {}});
      auto made = node_record(reader, node, record);
      if (!made) {
        answer.refusal = made.error();
        continue;
      }
      auto added = take_for(node, answer.cidrs, reader, sets, *table.stored());
      if (!added) {
        answer.refusal = added.error();
        continue;
      }
      // The ranges before the cursor: where commits are not atomic, a crash then leaves a range that its node has.
      if (*made) writes.push_back(**std::move(made));
      for (const NodeRangeAdded& one : *added) {
        writes.push_back(to_put(node_range_key(one.cidr), NodeRange{node, one.cidr}));
        answer.cidrs.push_back(one.cidr);
        any_added = true;
      }
      answer.added = *std::move(added);
      table.put_in_order(answer.cidrs);
    }
    if (any_added) writes.push_back(table.next_set(sets));
    return guarded(reader, std::move(answers), std::move(writes));
  });
}

Step<NodeRangesAssigned> plan_adopt_node_range(const Snapshot& snapshot, const std::string& node,
                                               const net::Prefix& cidr, Lengths lengths, NodeRecord record) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangesAssigned>> {
    TRY_VOID(check_node_name(node));
    static_cast<void>(reader.get(node_key(node)));
    const NodeRangeTable table(reader);
    TRY_VOID(table.check(reader));
    if (!is_configured(table)) return fail(not_configured());
    TRY(const auto sets, table.sets());
    TRY(auto made, node_record(reader, node, record));

    NodeRangesAssigned answer{node, table.ranges_of(node), {}, {}};
    std::vector<PlannedWrite> writes;
    if (made) writes.push_back(*std::move(made));
    if (std::ranges::find(answer.cidrs, cidr) != answer.cidrs.end()) {
      return Plan<NodeRangesAssigned>{std::move(answer), std::move(writes)};
    }
    TRY(const CidrSet* place, place_of(node, cidr, answer.cidrs.size(), sets));
    for (const net::Prefix& has : answer.cidrs) {
      if (has.family() != cidr.family()) continue;
      return fail(
          ErrorCode::invalid_argument,
          fmt::format("may specify no more than one CIDR for each IP family: node {} has {}", node, has.to_string()));
    }
    TRY_VOID(check_free(cidr, table));
    if (const auto* other = reader.find(node_range_key(cidr))) {
      return fail(ErrorCode::already_exists, fmt::format("{} is the range of node {}", cidr.to_string(), other->node));
    }
    const ClusterCidr& cluster = place->cluster();
    if (lengths == Lengths::one && cidr.length() != cluster.node_length) {
      return fail(ErrorCode::refused_by_configuration,
                  fmt::format("{} is no node range of length {}; this store can't keep ranges of several lengths apart",
                              cidr.to_string(), cluster.node_length));
    }
    answer.cidrs.push_back(cidr);
    table.put_in_order(answer.cidrs);
    answer.added.push_back({cidr, cluster.cidr, 0});
    writes.push_back(to_put(node_range_key(cidr), NodeRange{node, cidr}));
    writes.push_back(table.next_set({}));
    return guarded(reader, std::move(answer), std::move(writes));
  });
}

Step<NodeRangesReleased> plan_release_node_ranges(const Snapshot& snapshot, const std::string& node,
                                                  const OnlyIfGone& only_if_gone, IfRecorded if_recorded,
                                                  const std::optional<std::vector<net::Prefix>>& only_these) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangesReleased>> {
    TRY_VOID(check_node_name(node));
    const bool is_recorded = reader.sound(node_key(node)) != nullptr || reader.damage(node_key(node)) != nullptr;
    const NodeRangeTable table(reader);
    TRY_VOID(table.check(reader));
    NodeRangesReleased answer{node, table.ranges_of(node)};
    const bool holds = !only_if_gone || (!is_recorded && std::ranges::is_permutation(answer.cidrs, *only_if_gone));
    if (!holds) answer.cidrs.clear();
    if (only_these) {
      std::erase_if(answer.cidrs,
                    [&](const net::Prefix& cidr) { return std::ranges::find(*only_these, cidr) == only_these->end(); });
    }
    if (answer.cidrs.empty()) return Plan<NodeRangesReleased>{std::move(answer), {}};
    for (const net::Prefix& cidr : answer.cidrs) static_cast<void>(reader.get(node_range_key(cidr)));
    TRY_VOID(reader.ready());
    if (is_recorded && if_recorded == IfRecorded::refuse) {
      return fail(
          ErrorCode::refused_for_safety,
          fmt::format(
              "node {} has a record, so its pods may live in {}: `croft node remove {} --force` when it is gone for "
              "good, or --force when it has no pods any more",
              node, answer.cidrs.front().to_string(), node));
    }

    // Here the set goes first: where commits are not atomic, a crash then leaves the node its ranges.
    std::vector<PlannedWrite> writes;
    if (if_recorded == IfRecorded::refuse) writes.push_back(to_check(node_key(node)));
    writes.push_back(table.next_set({}));
    for (const net::Prefix& cidr : answer.cidrs) {
      writes.push_back(to_delete(node_range_key(cidr)));
    }
    return Plan<NodeRangesReleased>{std::move(answer), std::move(writes)};
  });
}

Step<NodeRangesSeen> look_at_node_ranges(const Snapshot& snapshot) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangesSeen>> {
    const NodeRangeTable table(reader, AddressClaims::For::to_look);
    const auto& nodes = reader.keys({Kind::node, ""});
    TRY_VOID(table.check(reader));
    TRY(const auto sets, table.sets());

    NodeRangesSeen seen;
    if (is_configured(table)) seen.set = table.stored();
    for (const CidrSet& set : sets) {
      seen.use.push_back({set.cluster(), set.size(), set.taken(), set.excluded_count()});
    }
    std::set<std::string> recorded;
    for (const Key& key : nodes) recorded.insert(key.name);
    seen.nodes = recorded.size();
    const auto cluster_cidrs = table.stored().value_or(NodeRangeSet()).cluster_cidrs;
    const NodeRange* outer = nullptr;
    for (const NodeRange& range : table.ranges()) {
      seen.ranges.push_back({range, recorded.contains(range.node), cluster_cidr_of(range.cidr, cluster_cidrs)});
      // Sorted, what lies inside a prefix comes behind it.
      if (outer != nullptr && outer->cidr.contains(range.cidr)) {
        seen.collisions.emplace_back(*outer, range);
      } else {
        outer = &range;
      }
    }
    const auto families = families_of(cluster_cidrs);
    for (const std::string& node : recorded) {
      const auto has = table.ranges_of(node);
      const bool lacks = std::ranges::any_of(families, [&](net::Family family) {
        return std::ranges::none_of(has, [&](const net::Prefix& cidr) { return cidr.family() == family; });
      });
      if (lacks) seen.bare.push_back(node);
    }
    return Plan<NodeRangesSeen>{std::move(seen), {}};
  });
}

}  // namespace croft::core
