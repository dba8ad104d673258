#include "noderanges/decide/node_range_changes.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/printable.h"
#include "base/texts.h"
#include "register/address_claims.h"

namespace croft::core {

namespace {

using node_range::CidrSet;

/// Checks cluster CIDRs by themselves.
[[nodiscard]] Result<void> check_spec(const NodeRangeSpec& spec, const std::vector<net::Prefix>& excluded) {
  if (spec.cluster_cidrs.empty() || spec.cluster_cidrs.size() > kClusterCidrsMax) {
    return fail(ErrorCode::invalid_argument, "{} cluster CIDRs: 1 to {} are allowed", spec.cluster_cidrs.size(),
                kClusterCidrsMax);
  }
  if (spec.excluded.size() > kExcludedMax) {
    return fail(ErrorCode::invalid_argument, "{} excluded ranges: at most {} are allowed", spec.excluded.size(),
                kExcludedMax);
  }
  for (auto cluster = spec.cluster_cidrs.begin(); cluster != spec.cluster_cidrs.end(); ++cluster) {
    TRY(CidrSet set, CidrSet::make(*cluster));
    if (is_v4_mapped(cluster->cidr)) {
      return fail(ErrorCode::invalid_argument,
                  "cluster CIDR {} has IPv4-mapped addresses, a node would get IPv4 in two forms: give the IPv4 CIDR",
                  cluster->cidr);
    }
    for (auto other = spec.cluster_cidrs.begin(); other != cluster; ++other) {
      if (other->cidr.overlaps(cluster->cidr)) {
        return fail(ErrorCode::refused_by_configuration, "cluster CIDR {} overlaps cluster CIDR {}", cluster->cidr,
                    other->cidr);
      }
    }
    for (const net::Prefix& cidr : excluded) {
      set.exclude(cidr);
      if (set.is_full()) {
        return fail(ErrorCode::refused_by_configuration,
                    "nothing is left of cluster CIDR {}: Service range {} takes the rest of it", cluster->cidr, cidr);
      }
    }
  }
  return {};
}

[[nodiscard]] Result<void> check_claims(const NodeRangeSpec& spec, const AddressClaims& claims) {
  for (const ClusterCidr& cluster : spec.cluster_cidrs) {
    const auto claim = claims.against_cluster_cidr(cluster.cidr);
    if (!claim) continue;
    return fail(ErrorCode::refused_by_configuration, "cluster CIDR {} overlaps {}", cluster.cidr, *claim);
  }
  return {};
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

}  // namespace

Step<NodeRangesConfigured> plan_configure_node_ranges(const Snapshot& snapshot, const NodeRangeSpec& spec) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangesConfigured>> {
    TRY_VOID(check_spec(spec, spec.excluded));
    // Both sets before the lists. The pools' set is written, so that a pool made meanwhile conflicts with this.
    PlannedWrite pool_set = next_pool_set(reader);
    const NodeRangeTable table(reader);
    TRY_VOID(table.check(reader));

    std::vector<net::Prefix> excluded = table.claims().prefixes_kept_from_nodes();
    excluded.insert(excluded.end(), spec.excluded.begin(), spec.excluded.end());
    TRY_VOID(check_claims(spec, table.claims()));
    TRY_VOID(check_spec(spec, excluded));
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

namespace {

using node_range::CidrSet;

Error not_configured() {
  return {ErrorCode::refused_by_configuration,
          "node ranges are not configured: say what to cut them from with `croft node range config --cluster-cidr=...`",
          {}};
}

std::string text_of_use(const CidrSet& set) {
  const std::string excluded =
      set.excluded_count() > 0 ? fmt::format(", {} of them excluded", set.excluded_count()) : std::string();
  return fmt::format("cluster CIDR {} is full ({} of {} of length {} taken{})", set.cluster().cidr, set.taken(),
                     counted(set.size(), "node range"), set.cluster().node_length, excluded);
}

/// How much of a cluster CIDR is taken by what only nodes' objects say; empty when nothing is.
std::string text_of_said(const CidrSet& set, const NodeRangeTable& table, const std::vector<NodeRange>& said) {
  const auto count = std::ranges::count_if(said, [&](const NodeRange& one) {
    return set.cluster().cidr.overlaps(one.cidr) && std::ranges::find(table.ranges(), one) == table.ranges().end();
  });
  if (count == 0) return {};
  return fmt::format(" beside {} that nodes' objects say without a record (`croft node range show` tells them)", count);
}

Error exhausted(const std::string& node, net::Family family, const std::vector<CidrSet>& sets,
                const NodeRangeTable& table, const std::vector<NodeRange>& said) {
  std::string full;
  for (const CidrSet& set : sets) {
    if (set.cluster().cidr.family() != family) continue;
    full += (full.empty() ? "" : ", ") + text_of_use(set) + text_of_said(set, table, said);
  }
  return make_error(ErrorCode::exhausted,
                    "no {} range is left for node {}: {}; add another {} CIDR to --cluster-cidr of `croft node range "
                    "config`, or give back the ranges of nodes that are gone (`croft node range list` names them)",
                    net::name_of(family), node, full, net::name_of(family));
}

Error takes_no_other(const NodeRange& said) {
  return make_error(ErrorCode::refused_by_configuration,
                    "the object of node {} says {}, and takes no other range for as long as it lives: `croft node "
                    "range assign {} --cidr {}` records that one",
                    echo(said.node), said.cidr, said.node, said.cidr);
}

/// The record of a node that is to have a range; nothing to write when it is there.
[[nodiscard]] Result<std::optional<PlannedWrite>> node_record(const Reader& reader, const std::string& node,
                                                              NodeRecord record) {
  TRY_VOID(check_node_name(node));
  if (reader.find(node_key(node)) != nullptr) return std::optional<PlannedWrite>();
  if (record == NodeRecord::demand) {
    return fail(ErrorCode::not_found, "there is no node {}: `croft node list` names them", echo(node));
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
                                                           const NodeRangeTable& table,
                                                           const std::vector<NodeRange>& said) {
  std::vector<net::Family> lacking = families_of(table.stored()->cluster_cidrs);
  std::erase_if(lacking, [&](net::Family family) {
    return std::ranges::any_of(has, [&](const net::Prefix& cidr) { return cidr.family() == family; });
  });
  const auto has_room = [&](net::Family family) {
    return std::ranges::any_of(
        sets, [&](const CidrSet& set) { return set.cluster().cidr.family() == family && !set.is_full(); });
  };
  std::vector<NodeRangeAdded> added;
  if (const auto full = std::ranges::find_if_not(lacking, has_room); full != lacking.end()) {
    return fail(exhausted(node, *full, sets, table, said));
  }
  for (const net::Family family : lacking) {
    auto one = take_of(family, reader, sets);
    if (!one) return fail(exhausted(node, family, sets, table, said));
    added.push_back(*one);
  }
  return added;
}

/// Whether the range is free for the node.
[[nodiscard]] Result<void> check_free(const net::Prefix& cidr, const NodeRangeTable& table) {
  for (const net::Prefix& excluded : table.excluded()) {
    if (excluded.overlaps(cidr)) {
      return fail(ErrorCode::refused_by_configuration,
                  "{} overlaps {}, which no node may have (a Service range, a pool, or excluded)", cidr, excluded);
    }
  }
  for (const NodeRange& other : table.ranges()) {
    if (other.cidr.overlaps(cidr)) {
      return fail(ErrorCode::already_exists, "{} overlaps {}, the range of node {}", cidr, other.cidr, other.node);
    }
  }
  return {};
}

/// A plan whose new ranges were looked up, so that making them is guarded by their absence.
template <class Answer>
Plan<Answer> guarded(Reader& reader, Answer answer, std::vector<PlannedWrite> writes) {
  for (const PlannedWrite& write : writes) {
    if (write.key.kind == Kind::node_range) static_cast<void>(reader.get(KeyOf<NodeRange>(write.key)));
  }
  return {std::move(answer), std::move(writes)};
}

}  // namespace

Step<std::vector<NodeRangesAssigned>> plan_assign_node_ranges(const Snapshot& snapshot,
                                                              const std::vector<std::string>& nodes, NodeRecord record,
                                                              const std::vector<NodeRange>& said) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<std::vector<NodeRangesAssigned>>> {
    CROFT_ASSERT(nodes.size() <= kAssignNodesMax);
    for (const std::string& node : nodes) {
      if (check_node_name(node)) static_cast<void>(reader.get(node_key(node)));
    }
    const NodeRangeTable table(reader);
    TRY_VOID(table.check(reader));
    if (!table.is_configured()) return fail(not_configured());
    TRY(auto sets, table.sets(said));

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
      if (const auto fixed = std::ranges::find(said, node, &NodeRange::node); fixed != said.end()) {
        if (answer.cidrs.empty()) answer.refusal = takes_no_other(*fixed);
        continue;
      }
      auto added = take_for(node, answer.cidrs, reader, sets, table, said);
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
                                               const net::Prefix& cidr, NodeRecord record,
                                               const std::vector<NodeRange>& said) {
  return decide(snapshot, [&](Reader& reader) -> Flow<Plan<NodeRangesAssigned>> {
    TRY_VOID(check_node_name(node));
    static_cast<void>(reader.get(node_key(node)));
    const NodeRangeTable table(reader);
    TRY_VOID(table.check(reader));
    if (!table.is_configured()) return fail(not_configured());
    TRY(auto made, node_record(reader, node, record));

    NodeRangesAssigned answer{node, table.ranges_of(node), {}, {}};
    std::vector<PlannedWrite> writes;
    if (made) writes.push_back(*std::move(made));
    if (std::ranges::find(answer.cidrs, cidr) != answer.cidrs.end()) {
      return Plan<NodeRangesAssigned>{std::move(answer), std::move(writes)};
    }
    const auto place = cluster_cidr_of(cidr, table.stored()->cluster_cidrs);
    if (!place) {
      return fail(ErrorCode::invalid_argument, "node {} has {}, which lies in no cluster CIDR", echo(node), cidr);
    }
    for (const net::Prefix& has : answer.cidrs) {
      if (has.family() != cidr.family()) continue;
      return fail(ErrorCode::invalid_argument, "may specify no more than one CIDR for each IP family: node {} has {}",
                  node, has);
    }
    TRY_VOID(check_free(cidr, table));
    for (const NodeRange& other : said) {
      if (other.node == node || !other.cidr.overlaps(cidr)) continue;
      return fail(ErrorCode::already_exists, "{} overlaps {}, which the object of node {} says", cidr, other.cidr,
                  echo(other.node));
    }
    if (const auto* other = reader.find(node_range_key(cidr))) {
      return fail(ErrorCode::already_exists, "{} is the range of node {}", cidr, other->node);
    }
    answer.cidrs.push_back(cidr);
    table.put_in_order(answer.cidrs);
    answer.added.push_back({cidr, *place, 0});
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
      return fail(ErrorCode::refused_for_safety,
                  "node {} has a record, so its pods may live in {}: `croft node remove {} --force` when it is gone "
                  "for good, or --force when it has no pods any more",
                  node, answer.cidrs.front(), node);
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

}  // namespace croft::core

namespace croft::core::node_range {

using space::Ordinal;

Result<CidrSet> CidrSet::make(const ClusterCidr& cluster, std::uint64_t cursor) {
  CROFT_ASSERT(cluster.cidr.is_valid());
  const net::Family family = cluster.cidr.family();
  if (cluster.node_length < cluster.cidr.length() || cluster.node_length > net::bit_length(family)) {
    return fail(ErrorCode::invalid_argument, "node ranges of cluster CIDR {} must be of length {} to {}, not {}",
                cluster.cidr, cluster.cidr.length(), net::bit_length(family), cluster.node_length);
  }
  const int bits = cluster.cidr.subprefix_count_log2(cluster.node_length);
  const int bits_max = family == net::Family::v6 ? kIndexBitsMaxV6 : kIndexBitsMaxV4;
  if (bits > bits_max) {
    return fail(ErrorCode::invalid_argument,
                "New CIDR set failed; the node CIDR size is too big: {} cut into /{} makes 2^{} node ranges, and 2^{} "
                "is the most",
                cluster.cidr, cluster.node_length, bits, bits_max);
  }
  const std::uint32_t size = std::uint32_t{1} << bits;
  return CidrSet(cluster, size, static_cast<std::uint32_t>(cursor % size));
}

std::optional<CidrSet::Found> CidrSet::take_next() {
  auto found = bits_.next_free(cursor_, size());
  if (!found) found = bits_.next_free(0, cursor_);
  if (!found) return std::nullopt;
  bits_.take(*found);
  // All between the cursor and what was found are taken. The size is a power of two: the mask is the remainder.
  const std::uint32_t tries = (found->value - cursor_) & (size() - 1);
  cursor_ = (found->value + 1) & (size() - 1);
  return Found{at(found->value), tries};
}

Result<std::pair<std::uint32_t, std::uint32_t>> CidrSet::indices_of(const net::Prefix& cidr) const {
  if (!cluster_.cidr.overlaps(cidr)) {
    return fail(ErrorCode::invalid_argument, "cidr {} is out the range of cluster cidr {}", cidr, cluster_.cidr);
  }
  if (cidr.length() <= cluster_.cidr.length()) return std::pair{std::uint32_t{0}, size() - 1};
  const auto index = [&](const net::Address& address) {
    return static_cast<std::uint32_t>(
        cluster_.cidr.subprefix_index(net::Prefix::containing(address, cluster_.node_length)).lo);
  };
  return std::pair{index(cidr.first()), index(cidr.last())};
}

Result<std::uint32_t> CidrSet::occupy(const net::Prefix& cidr) {
  TRY(const auto indices, indices_of(cidr));
  // Whole words: a prefix may overlap 2^24 node ranges, and a hundred prefixes the same ones.
  return bits_.take_all(Ordinal{indices.first}, Ordinal{indices.second});
}

void CidrSet::exclude(const net::Prefix& cidr) {
  if (const auto changed = occupy(cidr)) excluded_ += *changed;
}

}  // namespace croft::core::node_range

namespace croft::core {

std::vector<net::Family> families_of(const std::vector<ClusterCidr>& cluster_cidrs) {
  std::vector<net::Family> families;
  for (const ClusterCidr& cluster : cluster_cidrs) {
    if (std::ranges::find(families, cluster.cidr.family()) == families.end()) families.push_back(cluster.cidr.family());
  }
  return families;
}

std::optional<net::Prefix> cluster_cidr_of(const net::Prefix& cidr, const std::vector<ClusterCidr>& cluster_cidrs) {
  for (const ClusterCidr& cluster : cluster_cidrs) {
    if (cluster.cidr.contains(cidr)) return cluster.cidr;
  }
  return std::nullopt;
}

NodeRangeTable::NodeRangeTable(Reader& reader, AddressClaims::For purpose) {
  // Before the lists: what changes after it then shows as a conflict on it.
  if (const auto* stored = reader.get(node_range_set_key())) stored_ = *stored;
  claims_.emplace(reader, purpose);
  if (!reader.ready()) return;
  for (const auto& [key, value] : reader.list({Kind::node_range, ""})) {
    const auto& range = std::get<NodeRange>(value);
    if (key != node_range_key(range.cidr)) {
      fault_ = make_error(ErrorCode::corrupt, "node range {} says that it is {}", echo(key.name), range.cidr);
      return;
    }
    ranges_.push_back(range);
    by_node_[range.node].push_back(range.cidr);
  }
  std::ranges::sort(ranges_, {}, &NodeRange::cidr);
}

Flow<void> NodeRangeTable::check(const Reader& reader) const {
  TRY_VOID(reader.ready());
  if (fault_) return fail(*fault_);
  return {};
}

std::vector<net::Prefix> NodeRangeTable::excluded() const {
  std::vector<net::Prefix> result = claims_->prefixes_kept_from_nodes();
  if (stored_) result.insert(result.end(), stored_->excluded.begin(), stored_->excluded.end());
  return result;
}

std::vector<net::Prefix> NodeRangeTable::ranges_of(const std::string& node) const {
  const auto found = by_node_.find(node);
  if (found == by_node_.end()) return {};
  std::vector<net::Prefix> result = found->second;
  put_in_order(result);
  return result;
}

void NodeRangeTable::put_in_order(std::vector<net::Prefix>& cidrs) const {
  const auto families = families_of(stored_ ? stored_->cluster_cidrs : std::vector<ClusterCidr>());
  std::ranges::sort(cidrs, {}, [&](const net::Prefix& cidr) {
    return std::pair(std::ranges::find(families, cidr.family()) - families.begin(), cidr);
  });
}

Result<std::vector<node_range::CidrSet>> NodeRangeTable::sets(const std::vector<NodeRange>& said) const {
  std::vector<node_range::CidrSet> result;
  if (!stored_) return result;
  const auto excluded_ranges = excluded();
  for (std::size_t i = 0; i < stored_->cluster_cidrs.size(); ++i) {
    auto set =
        node_range::CidrSet::make(stored_->cluster_cidrs[i], i < stored_->cursors.size() ? stored_->cursors[i] : 0);
    if (!set) return fail(ErrorCode::corrupt, "stored configuration of node ranges: " + set.error().message);
    for (const net::Prefix& cidr : excluded_ranges) set->exclude(cidr);
    for (const std::vector<NodeRange>* taken : {&ranges_, &said}) {
      for (const NodeRange& range : *taken) {
        if (set->cluster().cidr.overlaps(range.cidr)) TRY_VOID(set->occupy(range.cidr));
      }
    }
    result.push_back(*std::move(set));
  }
  return result;
}

PlannedWrite NodeRangeTable::next_set(const std::vector<node_range::CidrSet>& sets) const {
  NodeRangeSet next = stored_.value_or(NodeRangeSet());
  ++next.generation;
  if (!sets.empty()) next.cursors.clear();
  for (const node_range::CidrSet& set : sets) next.cursors.push_back(set.cursor());
  return to_put(node_range_set_key(), std::move(next));
}

}  // namespace croft::core
