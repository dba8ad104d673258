// Node ranges, out of bytes: either one cluster CIDR of any family and lengths with any cursor, through a history of
// taking, occupying, giving back and excluding any prefixes, beside a model that has a flag for each node range; or a
// register with up to four cluster CIDRs, what is excluded, pools, ServiceCIDRs and nodes, and the decisions on it.
// Checked: nothing crashes; the set answers as the model. No two nodes have ranges that overlap; nobody gets a part of
// what is excluded, a pool or a ServiceCIDR, or what is outside the cluster CIDRs; a node gets all families or none,
// and is refused only when a family is full; asked again nothing is written; nothing but what was given back goes; each
// decision ends after a few readings. Records that no program writes are answered or refused.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "bytes.h"
#include "noderanges/decide/node_range_changes.h"
#include "noderanges/decide/node_range_overview.h"
#include "register/test_register.h"

namespace {

using namespace croft;
using fuzz::Bytes;
using namespace croft::core;
using core::node_range::CidrSet;
using net::Address;
using net::Family;
using net::Prefix;

constexpr std::size_t kActionsMax = 48;
/// What a model with a flag for each looks through quickly.
constexpr int kModelBitsMax = 10;
/// Of reading, in one decision.
constexpr int kRoundsMax = 4;

/// Few bases, so that what is made overlaps; now and then any address at all, and the ends of a family.
Prefix any_prefix(Bytes& in) {
  const std::uint8_t kind = in.byte();
  const Family family = (kind & 1) != 0 ? Family::v6 : Family::v4;
  const int bits = net::bit_length(family);
  net::U128 value;
  switch (kind >> 1 & 7) {
    case 0:
      value = family == Family::v4 ? net::U128(in.wide() >> 32) : net::U128{in.wide(), in.wide()};
      break;
    case 1:
      value = net::U128::low_bits(bits);
      break;
    case 2:
      value = family == Family::v4 ? net::U128(0) : net::U128(0xffff'0000'0000);  // IPv4-mapped
      break;
    default: {
      const std::uint64_t low = in.byte();
      const std::uint64_t middle = in.byte();
      value = family == Family::v4 ? net::U128(0x0a00'0000U | middle << 12 | low)
                                   : net::U128(0xfd00'0000'0000'0000U | middle << 16, low << 56 | middle);
    }
  }
  return Prefix::containing(Address::from(family, value),
                            static_cast<int>(in.below(static_cast<std::uint32_t>(bits) + 1)));
}

/// Mostly few node ranges; sometimes any length, also one that can't be.
int any_node_length(Bytes& in, const Prefix& cluster) {
  const std::uint8_t kind = in.byte();
  if (kind % 16 == 15) return static_cast<int>(in.below(140)) - 5;
  return std::min(cluster.length() + kind % 11, net::bit_length(cluster.family()));
}

// ---------------------------------------------------------------- one set beside its model

class SetAndModel {
 public:
  static void run(Bytes& in) {
    const Prefix cidr = any_prefix(in);
    const ClusterCidr cluster{cidr, any_node_length(in, cidr)};
    const std::uint64_t cursor = (in.byte() & 1) != 0 ? in.wide() : in.byte();
    auto set = CidrSet::make(cluster, cursor);
    const int family_bits = net::bit_length(cidr.family());
    const bool is_length = cluster.node_length >= cidr.length() && cluster.node_length <= family_bits;
    const int bits_max = cidr.family() == Family::v4 ? CidrSet::kIndexBitsMaxV4 : CidrSet::kIndexBitsMaxV6;
    CROFT_ASSERT(set.has_value() == (is_length && cluster.node_length - cidr.length() <= bits_max));
    if (!set) {
      CROFT_ASSERT(set.error().code == ErrorCode::invalid_argument && !set.error().message.empty());
      return;
    }
    if (cluster.node_length - cidr.length() > kModelBitsMax) return large(*set, in);
    SetAndModel both(*std::move(set), cursor);
    for (std::size_t i = 0; i < kActionsMax && !in.empty(); ++i) {
      both.act(in);
      both.check();
    }
  }

 private:
  SetAndModel(CidrSet set, std::uint64_t cursor)
      : set_(std::move(set)), taken_(set_.size()), cursor_(static_cast<std::size_t>(cursor % taken_.size())) {}

  /// Without a model: what it says of itself.
  static void large(CidrSet set, Bytes& in) {
    for (int i = 0; i < 4 && !in.empty(); ++i) {
      const std::uint32_t before = set.taken();
      const auto found = set.take_next();
      CROFT_ASSERT(found.has_value() == (before < set.size()));
      if (found) CROFT_ASSERT(set.taken() == before + 1 && set.cluster().cidr.contains(found->cidr));
      const Prefix cidr = any_prefix(in);
      const std::uint32_t held = set.taken();
      const auto changed = set.occupy(cidr);
      CROFT_ASSERT(changed.has_value() == set.cluster().cidr.overlaps(cidr));
      if (changed) CROFT_ASSERT(set.taken() == held + *changed);
    }
  }

  void act(Bytes& in) {
    if (in.below(2) == 0) return take_next();
    occupy(prefix(in));
  }

  /// Any one, or one in it, around it or beside it.
  Prefix prefix(Bytes& in) {
    const std::uint8_t kind = in.byte();
    if (kind % 4 == 0) return any_prefix(in);
    const Prefix one = set_.at(static_cast<std::uint32_t>(in.wide() % set_.size()));
    const int length = one.length() + static_cast<int>(in.below(9)) - 5;
    return Prefix::containing((kind & 16) != 0 ? one.last() : one.first(),
                              std::clamp(length, 0, net::bit_length(one.family())));
  }

  [[nodiscard]] std::vector<std::size_t> overlapped(const Prefix& cidr) const {
    std::vector<std::size_t> indices;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (set_.at(static_cast<std::uint32_t>(i)).overlaps(cidr)) indices.push_back(i);
    }
    const auto said = set_.indices_of(cidr);
    CROFT_ASSERT(said.has_value() == !indices.empty());
    CROFT_ASSERT(!said || (said->first == indices.front() && said->second == indices.back()));
    return indices;
  }

  void take_next() {
    std::size_t tries = 0;
    while (tries < taken_.size() && taken_[(cursor_ + tries) % taken_.size()]) ++tries;
    const auto found = set_.take_next();
    CROFT_ASSERT(found.has_value() == (tries < taken_.size()));
    if (!found) return;
    const std::size_t index = (cursor_ + tries) % taken_.size();
    CROFT_ASSERT(found->tries == tries && found->cidr == set_.at(static_cast<std::uint32_t>(index)));
    taken_[index] = true;
    cursor_ = (index + 1) % taken_.size();
  }

  void occupy(const Prefix& cidr) {
    std::uint32_t changed = 0;
    const auto indices = overlapped(cidr);
    for (const std::size_t i : indices) {
      if (!taken_[i]) ++changed;
      taken_[i] = true;
    }
    const auto done = set_.occupy(cidr);
    CROFT_ASSERT(indices.empty() ? !done.has_value() : done.value() == changed);
  }

  void check() const {
    const auto count = static_cast<std::size_t>(std::ranges::count(taken_, true));
    CROFT_ASSERT(set_.taken() == count && set_.is_full() == (count == taken_.size()));
    CROFT_ASSERT(set_.cursor() == cursor_);
  }

  CidrSet set_;
  std::vector<bool> taken_;
  std::size_t cursor_;
};

// ---------------------------------------------------------------- the decisions

class Register {
 public:
  explicit Register(Bytes& in) : in_(in) {
    const std::uint8_t kind = in_.byte();
    register_.foreign_writers = (kind & 1) != 0;
    damaged_ = kind % 16 == 15;
    if (damaged_) damage();
  }

  void act() {
    switch (in_.below(12)) {
      case 0:
        return configure();
      case 1:
      case 2:
      case 3:
      case 4:
        return assign();
      case 5:
      case 6:
        return adopt();
      case 7:
      case 8:
        return release();
      case 9:
        return others();
      case 10:
        return forget_node();
      default:
        return look();
    }
  }

  void check() const {
    if (damaged_) return;
    std::map<std::string, std::set<Prefix>> now;
    std::vector<Prefix> all;
    for (const auto& [key, value] : register_.records()) {
      const auto* range = std::get_if<NodeRange>(&value);
      if (range == nullptr) continue;
      CROFT_ASSERT(key == node_range_key(range->cidr));
      now[range->node].insert(range->cidr);
      for (const Prefix& other : all) CROFT_ASSERT(!other.overlaps(range->cidr));
      all.push_back(range->cidr);
    }
    CROFT_ASSERT(now == ranges_);
  }

 private:
  void damage() {
    NodeRangeSet set;
    set.generation = in_.wide();
    for (std::uint32_t count = in_.below(5); count > 0; --count) {
      const Prefix cidr = any_prefix(in_);
      set.cluster_cidrs.push_back({cidr, any_node_length(in_, cidr)});
    }
    for (std::uint32_t count = in_.below(4); count > 0; --count) set.excluded.push_back(any_prefix(in_));
    for (std::uint32_t count = in_.below(7); count > 0; --count) set.cursors.push_back(in_.wide());
    register_.put(node_range_set_key(), set);
    for (std::uint32_t count = in_.below(6); count > 0; --count) {
      const Prefix cidr = any_prefix(in_);
      const Key key = node_range_key(in_.byte() % 8 == 0 ? any_prefix(in_) : cidr);
      register_.put(key, NodeRange{node(), cidr});
    }
  }

  std::string node() {
    const std::uint32_t number = in_.below(9);
    return number == 8 ? "no node/" : "n" + std::to_string(number);
  }
  [[nodiscard]] const NodeRangeSet* set() const { return register_.get(node_range_set_key()); }

  /// What nobody may get.
  [[nodiscard]] std::vector<Prefix> forbidden() const {
    std::vector<Prefix> result = set()->excluded;
    for (const auto& [key, value] : register_.records()) {
      if (const auto* pool = std::get_if<Pool>(&value)) result.push_back(pool->cidr);
      const auto* services = std::get_if<ServiceCidrObject>(&value);
      if (services != nullptr) result.insert(result.end(), services->cidrs.begin(), services->cidrs.end());
    }
    return result;
  }
  [[nodiscard]] static bool overlaps_any(const Prefix& cidr, const std::vector<Prefix>& others) {
    return std::ranges::any_of(others, [&](const Prefix& other) { return other.overlaps(cidr); });
  }
  [[nodiscard]] std::vector<Prefix> given() const {
    std::vector<Prefix> all;
    for (const auto& [node, cidrs] : ranges_) all.insert(all.end(), cidrs.begin(), cidrs.end());
    return all;
  }
  [[nodiscard]] bool has_family(const std::string& node, Family family) const {
    const auto found = ranges_.find(node);
    return found != ranges_.end() &&
           std::ranges::any_of(found->second, [&](const Prefix& cidr) { return cidr.family() == family; });
  }

  template <class Answer, class Decide>
  [[nodiscard]] Result<Plan<Answer>> plan(Decide decide) {
    auto plan = register_.plan<Answer>(decide);
    CROFT_ASSERT(register_.rounds <= kRoundsMax);
    if (!plan) CROFT_ASSERT(!plan.error().message.empty());
    if (!plan && !damaged_) CROFT_ASSERT(plan.error().code != ErrorCode::corrupt);
    return plan;
  }

  void configure() {
    NodeRangeSpec spec;
    for (std::uint32_t count = in_.below(5); count > 0; --count) {
      const Prefix cidr = any_prefix(in_);
      spec.cluster_cidrs.push_back({cidr, any_node_length(in_, cidr)});
    }
    for (std::uint32_t count = in_.below(4); count > 0; --count) spec.excluded.push_back(any_prefix(in_));
    const auto done =
        plan<NodeRangesConfigured>([&](const Snapshot& s) { return plan_configure_node_ranges(s, spec); });
    if (!done) return;
    CROFT_ASSERT(done->answer.changed == !done->writes.empty());
    register_.apply(done->writes);
    if (damaged_) return;
    CROFT_ASSERT(set() != nullptr && *set() == done->answer.set && set()->cluster_cidrs == spec.cluster_cidrs);
    for (std::size_t i = 0; i < spec.cluster_cidrs.size(); ++i) {
      CROFT_ASSERT(CidrSet::make(spec.cluster_cidrs[i]).has_value());
      for (std::size_t j = 0; j < i; ++j)
        CROFT_ASSERT(!spec.cluster_cidrs[i].cidr.overlaps(spec.cluster_cidrs[j].cidr));
    }
  }

  void assign() {
    std::vector<std::string> nodes;
    for (std::uint32_t count = 1 + in_.below(3); count > 0; --count) nodes.push_back(node());
    const NodeRecord record = (in_.byte() & 1) != 0 ? NodeRecord::demand : NodeRecord::make;
    const auto decide = [&](const Snapshot& s) { return plan_assign_node_ranges(s, nodes, record); };
    const auto done = plan<std::vector<NodeRangesAssigned>>(decide);
    if (!done) return;
    CROFT_ASSERT(done->answer.size() == nodes.size());
    if (!damaged_) {
      for (const NodeRangesAssigned& answer : done->answer) note(answer);
    }
    register_.apply(done->writes);
    if (damaged_) return;
    const auto again = plan<std::vector<NodeRangesAssigned>>(decide);
    CROFT_ASSERT(again.has_value() && again->writes.empty());
  }

  void note(const NodeRangesAssigned& answer) {
    const std::vector<Prefix> no = forbidden();
    if (answer.refusal) {
      CROFT_ASSERT(answer.added.empty());
      if (answer.refusal->code == ErrorCode::exhausted) check_exhausted(answer.node, no);
      return;
    }
    for (const NodeRangeAdded& one : answer.added) {
      CROFT_ASSERT(!overlaps_any(one.cidr, no) && !overlaps_any(one.cidr, given()));
      CROFT_ASSERT(!has_family(answer.node, one.cidr.family()));
      const auto cluster = std::ranges::find(set()->cluster_cidrs, one.cluster_cidr, &ClusterCidr::cidr);
      CROFT_ASSERT(cluster != set()->cluster_cidrs.end() && cluster->cidr.contains(one.cidr));
      CROFT_ASSERT(cluster->node_length == one.cidr.length());
      // From the first with room.
      for (auto before = set()->cluster_cidrs.begin(); before != cluster; ++before) {
        if (before->cidr.family() == one.cidr.family()) CROFT_ASSERT(!has_room(*before, no));
      }
      ranges_[answer.node].insert(one.cidr);
    }
    for (const ClusterCidr& cluster : set()->cluster_cidrs)
      CROFT_ASSERT(has_family(answer.node, cluster.cidr.family()));
    CROFT_ASSERT(std::set(answer.cidrs.begin(), answer.cidrs.end()) == ranges_[answer.node]);
    CROFT_ASSERT(answer.cidrs.size() == ranges_[answer.node].size());
  }

  /// Too many to look at count as full.
  [[nodiscard]] bool has_room(const ClusterCidr& cluster, const std::vector<Prefix>& no) const {
    const int bits = cluster.node_length - cluster.cidr.length();
    if (bits > kModelBitsMax) return false;
    const auto taken = given();
    for (std::uint32_t i = 0; i < std::uint32_t{1} << bits; ++i) {
      const Prefix one = cluster.cidr.subprefix(i, cluster.node_length);
      if (!overlaps_any(one, no) && !overlaps_any(one, taken)) return true;
    }
    return false;
  }

  void check_exhausted(const std::string& node, const std::vector<Prefix>& no) const {
    std::map<Family, bool> room;
    for (const ClusterCidr& cluster : set()->cluster_cidrs) room[cluster.cidr.family()] |= has_room(cluster, no);
    CROFT_ASSERT(
        std::ranges::any_of(room, [&](const auto& one) { return !one.second && !has_family(node, one.first); }));
  }

  void adopt() {
    const std::string whose = node();
    Prefix cidr = any_prefix(in_);
    if (set() != nullptr && !set()->cluster_cidrs.empty() && in_.byte() % 4 != 0) {
      const auto count = static_cast<std::uint32_t>(set()->cluster_cidrs.size());
      const ClusterCidr& cluster = set()->cluster_cidrs[in_.below(count)];
      const int bits = std::clamp(cluster.node_length - cluster.cidr.length(), 0, 8);
      cidr = cluster.cidr.subprefix(in_.byte() & ((1U << bits) - 1), cluster.cidr.length() + bits);
    }
    const NodeRecord record = (in_.byte() & 1) != 0 ? NodeRecord::demand : NodeRecord::make;
    const auto decide = [&](const Snapshot& s) { return plan_adopt_node_range(s, whose, cidr, record); };
    const auto done = plan<NodeRangesAssigned>(decide);
    if (!done) return;
    if (!damaged_ && !done->answer.refusal && !done->answer.added.empty()) {
      CROFT_ASSERT(done->answer.added.size() == 1 && done->answer.added.front().cidr == cidr);
      CROFT_ASSERT(!overlaps_any(cidr, forbidden()) && !overlaps_any(cidr, given()));
      CROFT_ASSERT(!has_family(whose, cidr.family()));
      CROFT_ASSERT(std::ranges::any_of(set()->cluster_cidrs,
                                       [&](const ClusterCidr& cluster) { return cluster.cidr.contains(cidr); }));
      ranges_[whose].insert(cidr);
    }
    register_.apply(done->writes);
    if (damaged_) return;
    const auto again = plan<NodeRangesAssigned>(decide);
    CROFT_ASSERT(again.has_value() && again->writes.empty() && again->answer.added.empty());
  }

  void release() {
    const std::string whose = node();
    OnlyIfGone only;
    const auto held = ranges_.find(whose);
    const std::uint8_t kind = in_.byte();
    if (kind % 4 == 0) only.emplace();
    if (kind % 4 <= 1 && held != ranges_.end()) only.emplace(held->second.rbegin(), held->second.rend());
    if (kind % 16 == 0 && only) only->push_back(any_prefix(in_));
    const bool recorded = register_.get(node_key(whose)) != nullptr;
    const auto if_recorded = only ? IfRecorded::refuse : IfRecorded::release;
    const auto done = plan<NodeRangesReleased>(
        [&](const Snapshot& s) { return plan_release_node_ranges(s, whose, only, if_recorded); });
    if (!done) return;
    register_.apply(done->writes);
    if (damaged_ || held == ranges_.end()) {
      CROFT_ASSERT(damaged_ || done->answer.cidrs.empty());
      return;
    }
    const bool holds = !only || (!recorded && std::set(only->begin(), only->end()) == held->second &&
                                 only->size() == held->second.size());
    CROFT_ASSERT(holds ? std::set(done->answer.cidrs.begin(), done->answer.cidrs.end()) == held->second
                       : done->answer.cidrs.empty() && done->writes.empty());
    if (holds) ranges_.erase(held);
  }

  /// What other programs make and take away.
  void others() {
    const std::uint8_t kind = in_.byte();
    const std::string name = "other" + std::to_string(kind >> 4 & 1);
    if ((kind & 1) != 0) {
      Pool pool;
      pool.name = name;
      pool.cidr = any_prefix(in_);
      pool.block_length = net::bit_length(pool.cidr.family());
      if ((kind & 2) != 0) {
        register_.put(pool_key(name), pool);
      } else {
        register_.apply({{pool_key(name), std::nullopt, Guard::none, false}});
      }
    } else if ((kind & 2) != 0) {
      ServiceCidrObject services;
      services.name = name;
      services.cidrs = {any_prefix(in_)};
      register_.put(service_cidr_key(name), services);
    } else {
      register_.apply({{service_cidr_key(name), std::nullopt, Guard::none, false}});
    }
  }

  void forget_node() { register_.apply({{node_key(node()), std::nullopt, Guard::none, false}}); }

  void look() {
    const auto seen = plan<NodeRangeOverview>([](const Snapshot& s) { return read_node_range_overview(s); });
    if (!seen) return;
    CROFT_ASSERT(seen->writes.empty());
    if (damaged_) return;
    CROFT_ASSERT(seen->answer.collisions.empty() && seen->answer.ranges.size() == given().size());
    for (const ClusterCidrUse& use : seen->answer.use) {
      CROFT_ASSERT(use.excluded <= use.taken && use.taken <= use.size);
      CROFT_ASSERT(use.cluster.node_length - use.cluster.cidr.length() > kModelBitsMax ||
                   has_room(use.cluster, forbidden()) == (use.taken < use.size));
    }
  }

  Bytes& in_;
  TestRegister register_;
  bool damaged_ = false;
  std::map<std::string, std::set<Prefix>> ranges_;  ///< by node
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes in(data, size);
  if (in.byte() % 4 == 0) {
    SetAndModel::run(in);
    return 0;
  }
  Register all(in);
  for (std::size_t i = 0; i < kActionsMax && !in.empty(); ++i) {
    all.act();
    all.check();
  }
  return 0;
}
