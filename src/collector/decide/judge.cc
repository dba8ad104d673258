#include "collector/decide/judge.h"

#include <algorithm>
#include <array>
#include <tuple>

#include <fmt/format.h>

#include "base/planted.h"
#include "base/texts.h"
#include "base/time_text.h"
#include "register/records.h"

namespace croft::core::collect {
namespace {

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

/// "a, b, …"
template <class T>
std::string first_of(std::span<const T> all, std::size_t named) {
  return fmt::format("{}{}", fmt::join(all.first(std::min(all.size(), named)), ", "), all.size() > named ? ", …" : "");
}

/// Two names are enough to see what is wrong with them.
std::string some_of(const std::vector<std::string>& names) { return first_of(std::span(names), 2); }

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

std::string absent_node(std::string_view node, const Facts& facts, Leak::NodeEnd end) {
  return fmt::format("node {} is not among {} nodes, {}", node, facts.node_count(),
                     end == Leak::NodeEnd::removed ? "and was removed by hand" : "and was in an earlier list");
}

Evidence evidence_about(Evidence::What what, std::string subject, std::string reason, std::string node,
                        const Sighting& first, const Instant& now, std::string fact) {
  Evidence evidence;
  evidence.what = what;
  evidence.subject = std::move(subject);
  evidence.reason = std::move(reason);
  evidence.node = std::move(node);
  evidence.first_look = first;
  evidence.last_look = Sighting::at(now);
  evidence.facts.push_back(std::move(fact));
  return evidence;
}

}  // namespace

std::string_view name_of(Alarm::Kind kind) {
  constexpr std::array<std::string_view, 8> kNames = {"lists_do_not_fit", "nodes_unknown",     "pods_differ",
                                                      "clock_step",       "register_replaced", "too_many",
                                                      "block_corrupt",    "not_done"};
  return kNames[static_cast<std::size_t>(kind)];
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

std::string addresses_text(std::span<const net::Address> addresses) {
  constexpr std::size_t kAddressesNamed = 8;  // no pod has more in practice
  return first_of(addresses, kAddressesNamed);
}

std::string pod_fact(const AllocationOwner& owner, const Facts::Pod& pod, const Facts& facts) {
  const std::string name = fmt::format("pod {}/{}", owner.namespace_name, owner.pod);
  if (pod.answer == Facts::Pod::Answer::absent) {
    return fmt::format("{} is not among {}", name, counted(facts.pod_count(), "pod"));
  }
  if (pod.evicted) return name + " was evicted";
  const std::uint64_t uid = uid_identity(owner.uid);
  if (uid != 0 && pod.uid != 0 && uid != pod.uid) {
    return name + " is another one by now: its UID is not the one recorded";
  }
  if (pod.addresses.empty()) return fmt::format("{} has no address and is bound to no node that exists", name);
  return fmt::format("{} has the addresses {} and not this one", name, addresses_text(pod.addresses));
}

std::string_view name_of(Evidence::What what) {
  constexpr std::array<std::string_view, 4> kNames = {"address", "block", "affinity", "handle"};
  return kNames[static_cast<std::size_t>(what)];
}

std::string to_string(const Evidence& evidence) {
  std::string text =
      fmt::format("{} {}: {}, since {}, seen again {}", name_of(evidence.what), evidence.subject, evidence.reason,
                  rfc3339_rounded_up(evidence.first_look.wall), rfc3339_rounded_up(evidence.last_look.wall));
  if (!evidence.uid.empty()) text += ", pod UID " + evidence.uid;
  if (!evidence.handle.empty()) text += ", handle " + evidence.handle;
  if (evidence.sequence.value != 0) text += fmt::format(", sequence {}", evidence.sequence.value);
  for (const std::string& fact : evidence.facts) text += "; " + fact;
  return text;
}

std::optional<Evidence> prove(const Leak& leak, const Block& block, const Facts& facts, const Instant& now) {
  const auto ordinal = net::ordinal_of(block.cidr, leak.address);
  if (!ordinal || state_of(block, *ordinal) != AddressState::held) return {};
  const Attribute& attribute = *attribute_of(block, *ordinal);
  if (!attribute.handle_id || handle_identity(*attribute.handle_id) != leak.handle) return {};
  if (sequence_of(block, *ordinal) != leak.sequence) return {};

  const AllocationOwner owner = owner_of_allocation(attribute);
  const bool node_gone =
      leak.node_end != Leak::NodeEnd::none && !owner.node.empty() && !facts.has_node(std::string(owner.node));
  Evidence evidence;
  Doubt doubt = Doubt::none;
  if (owner.kind == AllocationOwner::Kind::tunnel) {
    if (node_gone && !facts.is_tunnel_address(leak.address)) doubt = Doubt::node_gone;
  } else if (owner.kind == AllocationOwner::Kind::pod) {
    const Facts::Pod pod = facts.pod(owner.namespace_name, owner.pod);
    doubt = doubt_of_pod(facts, pod, {leak.address, node_gone, owner.is_static, uid_identity(owner.uid)});
    evidence.facts.push_back(facts.pods_known() ? pod_fact(owner, pod, facts) : "pods are not known");
  }
  if (doubt == Doubt::none) return {};
  if (node_gone) evidence.facts.push_back(absent_node(owner.node, facts, leak.node_end));
  evidence.subject = leak.address.to_string();
  evidence.reason = name_of(doubt);
  evidence.handle = *attribute.handle_id;
  evidence.node = owner.node;
  evidence.namespace_name = owner.namespace_name;
  evidence.pod = owner.pod;
  evidence.uid = owner.uid;
  evidence.sequence = leak.sequence;
  evidence.first_look = leak.first;
  evidence.last_look = Sighting::at(now);
  return evidence;
}

bool is_confirmed(const Evidence& by_list, const Leak& leak, const Block& block, const Facts& facts, const Facts& asked,
                  const Instant& now) {
  const auto again = prove(leak, block, asked, now);
  if (!again) return false;
  const std::string_view node_gone = name_of(Doubt::node_gone), not_the_pods = name_of(Doubt::not_the_pods);
  if ((again->reason == node_gone) != (by_list.reason == node_gone)) return false;
  if (again->reason != not_the_pods) return true;
  // That it holds this one no more was concluded from the others that it had.
  const auto before = facts.pod(by_list.namespace_name, by_list.pod).addresses;
  return by_list.reason == not_the_pods &&
         std::ranges::equal(before, asked.pod(by_list.namespace_name, by_list.pod).addresses);
}

bool is_left_out(const Evidence& by_list, const PodFact& pod) {
  if (by_list.reason != name_of(Doubt::pod_gone)) return false;
  if (!by_list.uid.empty() && by_list.uid == pod.uid) return true;
  const auto address = net::Address::parse(by_list.subject);
  return address && std::ranges::find(pod.addresses, *address) != pod.addresses.end();
}

Evidence evidence_of(const BlockToRelease& block, const Facts& facts, const Instant& now) {
  const std::string& node = block.release.owner.name;
  Evidence evidence =
      evidence_about(Evidence::What::block, block.release.cidr.to_string(), block.node_gone ? "node_gone" : "surplus",
                     node, block.first, now, "it holds no address");
  if (block.release.sequence_number) evidence.sequence = *block.release.sequence_number;
  evidence.facts.push_back(block.node_gone ? absent_node(node, facts, Leak::NodeEnd::listed)
                                           : "its node has another block of the family");
  return evidence;
}

Evidence evidence_of(const StrayAffinity& affinity, const Instant& now) {
  const Affinity& claim = affinity.affinity;
  return evidence_about(Evidence::What::affinity, affinity_key(claim.owner, claim.cidr).name, "stray_affinity",
                        claim.owner.name, affinity.first, now, "its block does not exist or belongs to another");
}

Evidence evidence_of(const StrayHandle& handle, const Instant& now) {
  Evidence evidence = evidence_about(Evidence::What::handle, handle.id, "stray_handle", "", handle.first, now,
                                     "no block holds an address of it");
  evidence.handle = handle.id;
  return evidence;
}

namespace {

class Judge {
 public:
  Judge(const RegisterView& view, const Facts& facts, const Memory& before, const Settings& settings,
        const Instant& now)
      : view_(view),
        facts_(facts),
        before_(before),
        grace_(settings.grace),
        now_(now),
        is_stepped_(before.last_look && clock_stepped(*before.last_look, now)),
        seen_(is_stepped_ ? nothing_ : before) {}

  Verdict run() {
    note_look();
    note_nodes();
    judge_held();
    judge_tunnels();
    note_unknown_nodes();
    choose_leaks();
    judge_blocks();
    judge_affinities();
    judge_handles();
    return std::move(verdict_);
  }

 private:
  /// How a node stands that the register names.
  struct NodeState {
    bool absent = false;     ///< the facts don't have it
    bool listed = false;     ///< they have it, or had it in an earlier look
    bool unknown = false;    ///< it holds what nothing can be concluded about: absent, never listed, not removed
    bool confirmed = false;  ///< it was absent in two looks a grace apart
    bool busy = false;       ///< holds an address that isn't proven dead
  };

  [[nodiscard]] Memory& memory() { return verdict_.memory; }

  /// A suspicion of before goes on where its witness is the same; else it begins now.
  template <class Key, class Witness>
  Sighting see(Sightings<Key, Witness> Memory::*kind, const Key& key, const Witness& witness = {}) {
    return (memory().*kind).see(seen_.*kind, key, Sighting::at(now_), witness);
  }
  /// The facts are what is a grace away from the first look: they may have been taken before `now_`.
  [[nodiscard]] bool is_old_enough(const Sighting& first) const {
    return is_planted("one_look") || first.has_stood(grace_, facts_.taken_at.since_boot);
  }

  void note_look() {
    memory().last_look = now_;
    memory().node_count = facts_.node_count();
    memory().bound_pod_count = facts_.pods_known() ? facts_.bound_pod_count() : before_.bound_pod_count;
    memory().pods_revision = facts_.pods_revision;
    if (is_stepped_) {
      verdict_.alarms.push_back(
          {Alarm::Kind::clock_step,
           fmt::format("the clock was set between the looks of {} and {}: the grace begins anew",
                       rfc3339_rounded_up(before_.last_look->wall), rfc3339_rounded_up(now_.wall))});
    }
  }

  void note_nodes() {
    nodes_.resize(view_.nodes().size());
    memory().listed_nodes = facts_.nodes();
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const std::string& name = view_.nodes()[i];
      nodes_[i].absent = i != RegisterView::kNoNode && !facts_.has_node(name);
      nodes_[i].listed = !nodes_[i].absent || before_.listed_nodes.contains(name);
      if (nodes_[i].absent && nodes_[i].listed) memory().listed_nodes.insert(name);
      if (!nodes_[i].absent) continue;
      nodes_[i].confirmed = is_old_enough(see(&Memory::absent_nodes, name));
    }
  }

  /// Remembers an allocation that looks dead, or whose node is absent, and tells since when.
  Sighting remember(const HeldRow& row, const net::Address& address) {
    return see(&Memory::suspects, address, Memory::Allocation{row.sequence, row.handle});
  }

  /// Why the node of an allocation counts as gone.
  [[nodiscard]] Leak::NodeEnd node_end(const HeldRow& row) const {
    if (!nodes_[row.node].absent) return Leak::NodeEnd::none;
    if (nodes_[row.node].listed) return Leak::NodeEnd::listed;
    return view_.is_of_removed_node(row) ? Leak::NodeEnd::removed : Leak::NodeEnd::none;
  }
  /// Held on a node of which nothing is known: whether the list means the same nodes is not.
  [[nodiscard]] bool keep_as_unknown(const HeldRow& row) {
    if (!nodes_[row.node].absent || node_end(row) != Leak::NodeEnd::none) return false;
    nodes_[row.node].unknown = true;
    ++held_on_unknown_;
    keep(row);
    return true;
  }

  void keep(const HeldRow& row) {
    undecided_handles_.push_back(row.handle);
    nodes_[row.node].busy = true;
  }

  void doubt(const HeldRow& row, const net::Address& address, bool node_gone) {
    ++verdict_.candidates;
    const Sighting suspected = remember(row, address);
    const Sighting dead = see(&Memory::dead, address, Memory::Allocation{row.sequence, row.handle});
    // On a node that is gone the end of a pod is believed at once; on one that came back it is not.
    const Sighting first = node_gone ? suspected : dead;
    if (!is_old_enough(first) || (node_gone && !nodes_[row.node].confirmed)) return keep(row);
    ++verdict_.confirmed;
    confirmed_.push_back({view_.blocks()[row.block].cidr, address, row.sequence, row.handle, first, node_end(row)});
  }

  /// Whether a pod reports an address that it was given later, in the place of this one. A pod's report may be of a
  /// sandbox before, where its node's kubelet is away, and is of its first interface only. By itself it proves nothing
  /// against another address that the pod holds. The sequence numbers of one block tell which came later; over blocks
  /// nothing does, as clocks are set, and those of two machines differ.
  [[nodiscard]] bool is_superseded(const HeldRow& row, const Facts::Pod& pod) {
    if (rows_by_pod_.empty()) {
      const auto& held = view_.held();
      rows_by_pod_.reserve(held.size());
      for (std::uint32_t i = 0; i < held.size(); ++i) rows_by_pod_.emplace_back(held[i].pod, i);
      std::ranges::sort(rows_by_pod_);
    }
    const auto begin = std::ranges::lower_bound(rows_by_pod_, row.pod, {}, [](const auto& one) { return one.first; });
    for (auto one = begin; one != rows_by_pod_.end() && one->first == row.pod; ++one) {
      const HeldRow& other = view_.held()[one->second];
      if (other.kind != row.kind || other.line != row.line || &other == &row) continue;
      const bool is_later = other.block == row.block && other.sequence > row.sequence;
      const net::Address address = view_.address(other).unmapped();
      if (is_later && std::ranges::find(pod.addresses, address) != pod.addresses.end()) return true;
    }
    return false;
  }

  void judge_held() {
    undecided_handles_.reserve(view_.held().size());
    for (const HeldRow& row : view_.held()) {
      if (keep_as_unknown(row) || row.kind == AllocationOwner::Kind::tunnel) continue;
      if (row.kind == AllocationOwner::Kind::kept) {
        keep(row);
        continue;
      }
      const net::Address address = view_.address(row);
      const bool absent = nodes_[row.node].absent;
      const Facts::Pod pod = facts_.pod_by_identity(row.pod);
      Doubt why = doubt_of_pod(facts_, pod, {address, absent, row.is_static, row.uid});
      if (why == Doubt::not_the_pods && !is_superseded(row, pod)) why = Doubt::none;
      if (why != Doubt::none) {
        doubt(row, address, why == Doubt::node_gone);
        continue;
      }
      // When its pod ends on a node that is gone, that the allocation is the same is known by this.
      if (absent) remember(row, address);
      keep(row);
    }
  }

  /// A tunnel's address goes last: when its node is gone and nothing else of the node is alive.
  void judge_tunnels() {
    for (const HeldRow& row : view_.held()) {
      if (row.kind != AllocationOwner::Kind::tunnel) continue;
      const net::Address address = view_.address(row);
      if (node_end(row) == Leak::NodeEnd::none || facts_.is_tunnel_address(address)) {
        undecided_handles_.push_back(row.handle);
      } else if (nodes_[row.node].busy || view_.is_partial()) {
        undecided_handles_.push_back(row.handle);
        remember(row, address);
      } else {
        ++verdict_.candidates;
        const Sighting first = remember(row, address);
        if (!is_old_enough(first) || !nodes_[row.node].confirmed) {
          undecided_handles_.push_back(row.handle);
          continue;
        }
        ++verdict_.confirmed;
        confirmed_.push_back({view_.blocks()[row.block].cidr, address, row.sequence, row.handle, first, node_end(row)});
      }
    }
  }

  void note_unknown_nodes() {
    constexpr std::size_t kNamedMax = 8;
    std::string names;
    std::size_t count = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      if (!nodes_[i].unknown || ++count > kNamedMax) continue;
      names += (names.empty() ? "" : ", ") + view_.nodes()[i];
    }
    if (count == 0) return;
    if (count > kNamedMax) names += fmt::format(" and {} more", count - kNamedMax);
    verdict_.alarms.push_back(
        {Alarm::Kind::nodes_unknown,
         fmt::format(
             "{} addresses are held on nodes that no list of nodes had since this collector started: {}; nothing "
             "is concluded about them. List the nodes by the names that the register has, or, if one is gone "
             "for good, `croft node remove NAME`, which names what is held there",
             held_on_unknown_, names)});
  }

  void choose_leaks() {
    std::ranges::sort(undecided_handles_);
    std::erase_if(confirmed_, [&](const Leak& leak) {
      const bool waits = std::ranges::binary_search(undecided_handles_, leak.handle);
      if (waits) ++verdict_.waiting_for_handle;
      return waits;
    });
    std::ranges::sort(confirmed_, [](const Leak& a, const Leak& b) {
      return std::tie(a.first.since_boot, a.handle, a.address) < std::tie(b.first.since_boot, b.handle, b.address);
    });
    const std::size_t most = removals_allowed(view_.held().size());
    if (confirmed_.size() > most) {
      verdict_.kept_by_brake = confirmed_.size() - most;
      verdict_.alarms.push_back(
          {Alarm::Kind::too_many, fmt::format("{} addresses are proven dead, one pass frees {} of {} held: {} are kept "
                                              "for later passes",
                                              confirmed_.size(), most, view_.held().size(), verdict_.kept_by_brake)});
      confirmed_.resize(most);
    }
    verdict_.leaks = std::move(confirmed_);
  }

  static std::size_t family_index(const net::Prefix& cidr) { return cidr.family() == net::Family::v4 ? 0 : 1; }

  void judge_blocks() {
    std::vector<std::array<std::size_t, 2>> counts(nodes_.size());
    for (const BlockRow& row : view_.blocks()) {
      if (row.owner_type == AffinityOwner::Type::host) ++counts[row.owner][family_index(row.cidr)];
    }
    for (const BlockRow& row : view_.blocks()) {
      if (row.has_cooled) verdict_.cooled.push_back(row.cidr);
      if (row.owner_type != AffinityOwner::Type::host || !row.empty) continue;
      const Sighting first = see(&Memory::empty_blocks, row.cidr, row.sequence);
      const NodeState& node = nodes_[row.owner];
      std::size_t& left = counts[row.owner][family_index(row.cidr)];
      const bool surplus = !node.absent && left > 1 && !view_.is_claimed_by_hand() && is_old_enough(first);
      const bool node_gone = node.confirmed && node.listed;
      if (!surplus && !node_gone) continue;
      --left;
      const AffinityOwner owner{AffinityOwner::Type::host, view_.nodes()[row.owner]};
      const Sighting since = node_gone ? *memory().absent_nodes.find(owner.name) : first;
      verdict_.blocks.push_back({{owner, row.cidr, true, row.sequence}, node_gone, since});
    }
  }

  void judge_affinities() {
    if (view_.is_partial()) return;
    for (const Affinity& affinity : view_.affinities()) {
      if (affinity.deleted) continue;
      const BlockRow* block = view_.block(affinity.cidr);
      const bool is_owners = block != nullptr && block->owner_type == affinity.owner.type &&
                             view_.nodes()[block->owner] == affinity.owner.name;
      if (is_owners) continue;
      const Sighting first = see(&Memory::stray_affinities, affinity_key(affinity.owner, affinity.cidr).name);
      if (is_old_enough(first)) verdict_.affinities.push_back({affinity, first});
    }
  }

  void judge_handles() {
    if (view_.is_partial()) return;
    for (const std::string& id : view_.stray_handles()) {
      const Sighting first = see(&Memory::stray_handles, handle_identity(id));
      if (is_old_enough(first)) verdict_.handles.push_back({id, first});
    }
  }

  const RegisterView& view_;
  const Facts& facts_;
  const Memory& before_;
  const std::chrono::nanoseconds grace_;
  const Instant now_;
  const bool is_stepped_;  ///< the clock was, since the look before: what that has seen does not count
  const Memory nothing_{};
  const Memory& seen_;
  std::size_t held_on_unknown_ = 0;
  std::vector<NodeState> nodes_;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> rows_by_pod_;  ///< sorted; made when it is asked for
  std::vector<Leak> confirmed_;
  std::vector<std::uint64_t> undecided_handles_;  ///< that hold an address which isn't proven dead
  Verdict verdict_;
};

/// The verdict when nothing may be concluded.
Verdict keep_all(const RegisterView& view, Alarm alarm, Memory memory) {
  Verdict verdict;
  for (const BlockRow& row : view.blocks()) {
    if (row.has_cooled) verdict.cooled.push_back(row.cidr);
  }
  verdict.candidates = memory.suspects.size();
  verdict.memory = std::move(memory);
  verdict.alarms.push_back(std::move(alarm));
  return verdict;
}

/// A list that shrank may be cut off: what was concluded from it and before is forgotten. The next look is compared
/// with this one, but never with an empty list.
Memory begun_anew(const Facts& facts, const Memory& before, const Instant& now) {
  Memory memory;
  memory.last_look = now;
  // Those it has are there, and those it lacks were.
  memory.listed_nodes = before.listed_nodes;
  memory.listed_nodes.insert(facts.nodes().begin(), facts.nodes().end());
  memory.node_count = facts.node_count() > 0 ? facts.node_count() : before.node_count;
  memory.bound_pod_count = facts.bound_pod_count() > 0 ? facts.bound_pod_count() : before.bound_pod_count;
  memory.pods_revision = facts.pods_revision;
  return memory;
}

}  // namespace

Verdict judge(const RegisterView& view, const Facts& facts, const Memory& before, const Settings& settings,
              const Instant& register_read, const Instant& now) {
  if (auto distrusted = distrust(view, facts, before, register_read)) {
    Memory memory = distrusted->proves_nothing ? before : begun_anew(facts, before, now);
    return keep_all(view, {Alarm::Kind::lists_do_not_fit, std::move(distrusted->why)}, std::move(memory));
  }
  return Judge(view, facts, before, settings, now).run();
}

}  // namespace croft::core::collect
