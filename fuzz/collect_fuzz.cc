// A cluster and its collector, out of bytes: pods that start, end, are evicted, get a new container and report their
// addresses late; nodes that go, come back or are taken away by an operator; claims, handles and blocks that are left
// over; and looks with lists that are whole, a while old, cut off, stale, empty, shrunken or name nodes otherwise, by a
// clock that is set and a machine that restarts. What a look concludes is done as the engine does it, after more has
// happened in between.
// Checked, as long as lists that say they are whole are so, or are so short that they must be doubted: no address of a
// container that lives is freed. Whatever the lists say: nothing crashes, no decision takes more than a bound of steps;
// a list that is not whole or is stale frees nothing and changes no memory; what is freed looked dead in every look
// that counted for a grace, unchanged, with no doubtful look or step of a clock between; nothing on a node that no list
// had and no operator removed; no more than the brake lets through; not while another address of the handle lives; of
// the blocks of a node that is there one of a family stays; every handle still finds what it holds.

#include <algorithm>
#include <array>
#include <chrono>
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
#include "collector/decide/judge.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"

namespace {

using namespace croft;
using fuzz::Bytes;
using namespace croft::core;
using namespace croft::core::collect;
using net::Address;
using net::Family;
using net::Prefix;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::size_t kActionsMax = 64;
constexpr std::uint64_t kStepsMax = 20000;
constexpr std::uint32_t kNodes = 4;
constexpr std::uint32_t kPods = 8;
constexpr const char* kNamespace = "d";

/// Who holds addresses, in truth.
struct Container {
  enum class Kind : std::uint8_t { pod, tunnel, kept } kind = Kind::pod;
  std::string handle, pod;
  std::uint32_t node = 0;
  bool alive = true;
  std::set<Address> addresses;
};

/// A pod as the API has it.
struct Pod {
  std::uint32_t node = 0;
  bool evicted = false, twice = false, unreadable = false, mapped = false;
  bool shy = false;  ///< it never reports more than one address
  std::vector<Address> reported;
  std::string handle;                          ///< of its container; empty: it has none
  std::optional<nanoseconds> to_report_since;  ///< `reported` is not what the container has
};

struct Lists {
  nanoseconds at{};
  std::vector<NodeFact> nodes;
  std::vector<PodFact> pods;
};

/// A look, as far as it matters for later ones.
struct Look {
  enum class Kind : std::uint8_t { counts, begins_anew } kind = Kind::counts;
  Instant now;
  std::set<std::string> nodes;
  struct Row {
    SequenceNumber sequence;
    std::string handle;
    bool dead = false;  ///< as the lists say
  };
  std::map<Address, Row> rows;
};

class World {
 public:
  explicit World(Bytes& in) : in_(in) {
    const std::uint8_t kind = in_.byte();
    register_.foreign_writers = (kind & 1) != 0;
    register_.knows_claimed = (kind & 2) != 0;
    pods_known_ = (kind & 12) != 0;
    misnamed_ = in_.one_in(4) ? in_.byte() % 16 : 0;
    crowd_ = in_.one_in(8) ? 0 : 8;
    constexpr std::array<int, 8> kGraces{900, 900, 900, 60, 10, 2, 0, 86400};
    settings_.grace = seconds(kGraces.at(in_.below(8)));
    make_pools();
    node_is_there_.fill(true);
    for (std::uint32_t i = in_.below(4); i > 0; --i) add_tunnel();
  }

  void act() {
    switch (in_.below(20)) {
      case 0:
      case 1:
      case 2:
      case 3:
        return start();
      case 4:
      case 5:
        return end(true);
      case 6:
        return report(in_.below(kPods));
      case 7:
        return change_pod();
      case 8:
        return lose_node();
      case 9:
        return node_returns();
      case 10:
        return remove_node();
      case 11:
      case 12:
        pass(settings_.grace / 4 * static_cast<int>(in_.below(6)));
        return pass(seconds(in_.below(8)));
      case 13:
        return set_clock();
      case 14:
        file_ = lists();
        return;
      case 15:
        return leave_over();
      default:
        return look();
    }
  }

  void check() const {
    CROFT_ASSERT(register_.steps <= kStepsMax);
    std::map<std::string, std::map<std::string, std::uint32_t>> counts;
    std::map<Address, std::string> held;
    for (const auto& [key, value] : register_.records()) {
      const auto* block = std::get_if<Block>(&value);
      if (block == nullptr) continue;
      CROFT_ASSERT(check_block(*block).has_value());
      for (std::uint32_t i = 0; i < block->allocations.size(); ++i) {
        if (state_of(*block, net::Ordinal(i)) != AddressState::held) continue;
        const std::string& handle = *attribute_of(*block, net::Ordinal(i))->handle_id;
        CROFT_ASSERT(held.emplace(net::address_at(block->cidr, net::Ordinal(i)), handle).second);
        ++counts[handle][block->cidr.to_string()];
      }
    }
    for (const auto& [id, blocks] : counts) {
      const auto* handle = register_.get(handle_key(id));
      CROFT_ASSERT(handle != nullptr);
      for (const auto& [cidr, count] : blocks) {
        CROFT_ASSERT(handle->blocks.contains(cidr) && handle->blocks.at(cidr) >= count);
      }
    }
    for (const auto& [id, container] : containers_) {
      if (!container.alive) continue;
      for (const Address& address : container.addresses) {
        const auto found = held.find(address);
        CROFT_ASSERT(found != held.end() && found->second == id);
      }
    }
  }

 private:
  // -------------------------------------------------------------- time

  /// The collector's; the others' clocks differ a little and do not matter here.
  [[nodiscard]] Instant now() const {
    Instant instant;
    instant.wall = WallTime(seconds(1'768'471'200)) + truth_ + off_;
    instant.since_boot = truth_ - booted_at_;
    instant.boot.bytes = {1, boot_};
    return instant;
  }
  [[nodiscard]] Instant writers_now() const {
    Instant instant = now();
    instant.wall = WallTime(seconds(1'768'471'200)) + truth_;
    instant.since_boot = truth_;
    instant.boot.bytes = {2};
    return instant;
  }

  /// A pod's status follows within half a grace.
  void pass(nanoseconds span) {
    truth_ += span;
    for (std::uint32_t i = 0; i < kPods; ++i) {
      const auto pod = pods_.find(i);
      if (pod != pods_.end() && pod->second.to_report_since &&
          truth_ - *pod->second.to_report_since >= settings_.grace / 2) {
        report(i);
      }
    }
  }

  void set_clock() {
    const std::uint8_t kind = in_.byte();
    if (kind % 4 == 0) {
      booted_at_ = truth_;
      ++boot_;
      if ((kind & 16) != 0) forget();
    } else if (kind % 4 == 1) {
      forget();
    } else {
      off_ = seconds(static_cast<int>(in_.pair()) - 32768) * (kind % 4 == 2 ? 1 : 3600);
    }
  }
  /// The collector's process begins anew.
  void forget() {
    memory_ = {};
    history_.clear();
  }

  // -------------------------------------------------------------- the register

  void make_pools() {
    const std::uint32_t count = 1 + in_.below(2);
    for (std::uint32_t i = 0; i < count; ++i) {
      Pool pool;
      pool.name = "p" + std::to_string(i);
      const Family family = i == 0 ? Family::v4 : Family::v6;
      const int length = net::bit_length(family) - 2 - static_cast<int>(in_.below(5));
      const Address first =
          family == Family::v4 ? Address::v4(0x0a00'0000) : Address::v6(net::U128(0xfd00'0000'0000'0000, 0));
      pool.cidr = Prefix::containing(first, length);
      pool.block_length = std::min(net::bit_length(family), length + static_cast<int>(in_.below(4)));
      pool.cooldown = seconds(in_.below(3) * 20);
      register_.put(pool_key(pool.name), pool);
    }
  }

  static std::string name_of_node(std::uint32_t i) { return "n" + std::to_string(i); }
  static AffinityOwner host(std::uint32_t i) { return {AffinityOwner::Type::host, name_of_node(i)}; }
  static std::string name_of_pod(std::uint32_t i) { return "p" + std::to_string(i); }

  [[nodiscard]] std::vector<Block> blocks() const {
    std::vector<Block> all;
    for (const auto& [key, value] : register_.records()) {
      if (const auto* block = std::get_if<Block>(&value)) all.push_back(*block);
    }
    return all;
  }

  // -------------------------------------------------------------- what happens

  void start() {
    const std::uint32_t number = in_.below(kPods);
    const std::uint8_t kind = in_.byte();
    Container made;
    made.node = in_.below(kNodes);
    made.kind = kind % 16 == 15 ? Container::Kind::kept : Container::Kind::pod;
    if (!node_is_there_.at(made.node)) return;
    const auto old = pods_.find(number);
    if (made.kind == Container::Kind::pod && old != pods_.end()) {
      // A new container in its place, on the same node; the old one's addresses may stay behind.
      if (old->second.evicted) return;
      made.node = old->second.node;
      if (!node_is_there_.at(made.node)) return;
      kill(old->second.handle, (kind & 16) != 0);
    }
    AssignRequest wanted;
    wanted.owner = {"net", "c" + std::to_string(++made_), "eth0"};
    if (made.kind == Container::Kind::pod) wanted.pod = {name_of_pod(number), kNamespace, "u" + std::to_string(made_)};
    wanted.node = host(made.node);
    wanted.count.v4 = 1 + (kind & 32) / 32;
    wanted.count.v6 = (kind & 64) / 64;
    made.handle = handle_of(wanted.owner);
    made.pod = wanted.pod.name;
    if (made.kind == Container::Kind::pod) {  // in the API before it runs
      Pod& pod = pods_[number];
      pod.node = made.node;
      pod.handle = made.handle;
      if (!pod.to_report_since) pod.to_report_since = truth_;
    }
    const auto done =
        register_.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, wanted, writers_now()); });
    const auto* assigned = done ? std::get_if<Assigned>(&*done) : nullptr;
    if (assigned != nullptr) {
      for (const AssignedAddress& one : assigned->addresses) made.addresses.insert(one.address);
    }
    containers_[made.handle] = made;
    if ((kind & 128) != 0 && made.kind == Container::Kind::pod) report(number);
  }

  /// The container ends; with its DEL or without.
  void kill(const std::string& handle, bool properly) {
    const auto found = containers_.find(handle);
    if (found == containers_.end()) return;
    found->second.alive = false;
    end_tunnels();
    if (!properly || found->second.kind == Container::Kind::tunnel) return;
    const Owner owner{"net", handle.substr(4), "eth0"};
    static_cast<void>(
        register_.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, owner, writers_now()); }));
  }

  void end(bool may_stay_listed) {
    const auto pod = pods_.find(in_.below(kPods));
    const std::uint8_t kind = in_.byte();
    if (pod == pods_.end()) return;
    kill(pod->second.handle, (kind & 1) != 0);
    if (may_stay_listed && (kind & 6) == 6) {
      pod->second.evicted = (kind & 8) != 0;
    } else {
      pods_.erase(pod);
    }
  }

  void report(std::uint32_t number) {
    const auto pod = pods_.find(number);
    if (pod == pods_.end()) return;
    pod->second.to_report_since.reset();
    const auto container = containers_.find(pod->second.handle);
    if (container == containers_.end() || !container->second.alive) return;
    pod->second.reported.assign(container->second.addresses.begin(), container->second.addresses.end());
  }

  void change_pod() {
    const auto pod = pods_.find(in_.below(kPods));
    const std::uint8_t kind = in_.byte();
    if (pod == pods_.end()) return;
    pod->second.twice = kind % 8 == 1;
    pod->second.unreadable = kind % 4 == 2;
    pod->second.shy = kind % 4 == 3;
    pod->second.mapped = kind % 2 == 0;
  }

  /// The node's record goes. Where pods are listed what runs there may go on, and is still listed.
  void lose_node() {
    const std::uint32_t node = in_.below(kNodes);
    const bool goes_on = pods_known_ && in_.one_in(4);
    const bool pods_stay = in_.one_in(3);
    if (!goes_on) stop_all(node, pods_stay);
    node_is_there_.at(node) = false;
    end_tunnels();
  }
  void stop_all(std::uint32_t node, bool pods_stay) {
    for (auto& [id, container] : containers_) {
      if (container.node == node) container.alive = false;
    }
    if (!pods_stay) std::erase_if(pods_, [&](const auto& pod) { return pod.second.node == node; });
  }
  void end_tunnels() {
    for (auto& [id, tunnel] : containers_) {
      if (tunnel.kind != Container::Kind::tunnel || node_is_there_.at(tunnel.node)) continue;
      const bool lives = std::ranges::any_of(containers_, [&](const auto& other) {
        return other.second.alive && other.second.node == tunnel.node && other.second.kind == Container::Kind::pod &&
               !other.second.addresses.empty();
      });
      if (!lives) tunnel.alive = false;
    }
  }
  void node_returns() { node_is_there_.at(in_.below(kNodes)) = true; }

  /// As the engine does it for an operator who says that the node is gone for good.
  void remove_node() {
    const std::uint32_t node = in_.below(kNodes);
    stop_all(node, in_.one_in(3));
    node_is_there_.at(node) = false;
    RemovedNode removed{name_of_node(node), {}};
    for (const Block& block : blocks()) {
      for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
        const Attribute* attribute = attribute_of(block, net::Ordinal(i));
        if (attribute == nullptr || attribute->cooling || node_of(*attribute) != removed.node) continue;
        SequenceNumber& sequence = removed.held[block.cidr.to_string()];
        sequence = std::max(sequence, sequence_of(block, net::Ordinal(i)));
      }
    }
    if (!removed.held.empty()) {
      static_cast<void>(register_.decide<bool>([&](const Snapshot& s) { return plan_note_removed(s, removed); }));
    }
    for (const Block& block : blocks()) give_up(node, block.cidr, false);
  }
  static std::string node_of(const Attribute& attribute) {
    const auto found = attribute.secondary.find(kNodeKey);
    return found == attribute.secondary.end() ? std::string() : found->second;
  }

  void give_up(std::uint32_t node, const Prefix& cidr, bool must_be_empty) {
    const AffinityRelease release{host(node), cidr, must_be_empty, {}};
    static_cast<void>(register_.decide<AffinityOutcome>(
        [&](const Snapshot& s) { return plan_release_affinity(s, release, writers_now()); }));
  }

  /// As a node's own daemon does it: not through a request with a container.
  void add_tunnel() {
    const std::uint32_t node = in_.below(kNodes);
    for (const Block& block : blocks()) {
      Attribute attribute;
      attribute.handle_id = "ipip-tunnel-addr-" + name_of_node(node);
      attribute.secondary[kNodeKey] = name_of_node(node);
      attribute.secondary["type"] = "ipipTunnelAddress";
      if (block.affinity != host(node) || containers_.contains(*attribute.handle_id)) continue;
      const auto taken = take_next(block, attribute, [](const Address&) { return false; });
      if (!taken) continue;
      Container made{Container::Kind::tunnel, *attribute.handle_id, "", node, true, {taken->address}};
      register_.put(block_key(block.cidr), with_next_sequence_number(taken->block));
      register_.put(handle_key(made.handle), Handle{made.handle, {{block.cidr.to_string(), 1}}});
      containers_[made.handle] = made;
      return;
    }
  }

  /// What others leave in a register.
  void leave_over() {
    const auto all = blocks();
    const std::uint8_t kind = in_.byte();
    const std::uint32_t node = in_.below(kNodes);
    const std::string stray = "net.stray" + std::to_string(kind >> 4);
    if (all.empty()) return;
    const Prefix cidr = all.at(in_.below(static_cast<std::uint32_t>(all.size()))).cidr;
    switch (kind % 4) {
      case 0:
        register_.put(handle_key(stray), Handle{stray, {{cidr.to_string(), 1 + kind / 64U}}});
        return;
      case 1:
        register_.put(affinity_key(host(node), cidr), Affinity{host(node), cidr, AffinityState::pending, false});
        return;
      case 2:
        return give_up(node, cidr, (kind & 16) != 0);
      default:
        static_cast<void>(register_.decide<ClaimOutcome>(
            [&](const Snapshot& s) { return plan_claim_affinity(s, host(node), cidr, writers_now()); }));
    }
  }

  // -------------------------------------------------------------- a look

  [[nodiscard]] std::string listed_name(std::uint32_t node) const {
    return ((misnamed_ >> node & 1U) != 0 ? "host-" : "") + name_of_node(node);
  }

  [[nodiscard]] Lists lists() const {
    Lists all;
    all.at = truth_;
    for (std::uint32_t i = 0; i < kNodes; ++i) {
      if (!node_is_there_.at(i)) continue;
      NodeFact fact{listed_name(i), {}, {}};
      const auto tunnel = containers_.find("ipip-tunnel-addr-" + name_of_node(i));
      if (tunnel != containers_.end() && tunnel->second.alive) {
        fact.tunnel_addresses.assign(tunnel->second.addresses.begin(), tunnel->second.addresses.end());
      }
      all.nodes.push_back(std::move(fact));
    }
    for (const auto& [number, pod] : pods_) {
      PodFact fact{kNamespace, name_of_pod(number), "", listed_name(pod.node), "Running", "", {}, pod.unreadable};
      if (pod.evicted) fact.phase = "Failed", fact.reason = "Evicted";
      for (const Address& address : pod.reported) {
        const bool other_form = pod.mapped && address.is_v4();
        fact.addresses.push_back(other_form ? Address::v6(net::U128(0xffff'0000'0000) | address.value()) : address);
      }
      if (pod.unreadable && !fact.addresses.empty()) fact.addresses.pop_back();
      if (pod.shy && fact.addresses.size() > 1) fact.addresses.resize(1);
      if (pod.twice) all.pods.push_back(fact);
      all.pods.push_back(std::move(fact));
    }
    for (std::uint32_t i = 0; i < crowd_; ++i) {
      all.pods.push_back({"crowd", name_of_pod(i), "", "elsewhere", "Running", "", {Address::v4(0xc000'0201)}, false});
    }
    return all;
  }

  template <class List>
  void drop_some(List& list) {
    for (std::uint32_t count = 1 + in_.below(4); count > 0 && !list.empty(); --count) {
      list.erase(list.begin() + in_.below(static_cast<std::uint32_t>(list.size())));
    }
  }

  void look() {
    RegisterView view = see();
    const Instant register_read = now();
    if (in_.one_in(4)) start();  // comes about while the lists are fetched
    pass(std::chrono::milliseconds(in_.below(3)));
    Lists listed = lists();
    Facts facts;
    facts.complete = true;
    facts.taken_at = now();
    bool proves_nothing = false;
    switch (in_.below(16)) {
      case 0:
      case 1:
        if (file_ && truth_ - file_->at <= settings_.grace / 2) listed = *file_;
        break;
      case 2:
        drop_some(listed.pods);
        drop_some(listed.nodes);
        facts.complete = false;
        proves_nothing = true;
        break;
      case 3:
        if (file_) listed = *file_;
        facts.taken_at = register_read;
        facts.taken_at.since_boot -= nanoseconds(1 + in_.byte());
        if (in_.one_in(2)) facts.taken_at.boot.bytes = {9};
        proves_nothing = true;
        break;
      case 4:
        if (view.pod_count() > 0) listed.pods.clear();
        break;
      case 5:
        if (view.nodes().size() > 1) listed.nodes.clear();
        break;
      case 6:
        while (listed.pods.size() > 1 && !is_shrunken(memory_.bound_pod_count, listed.pods.size())) {
          listed.pods.erase(listed.pods.begin());
        }
        if (!is_shrunken(memory_.bound_pod_count, listed.pods.size()) || !pods_known_) listed = lists();
        break;
      case 7:
        while (listed.nodes.size() > 1 && !is_shrunken(memory_.node_count, listed.nodes.size())) {
          listed.nodes.erase(listed.nodes.begin());
        }
        if (!is_shrunken(memory_.node_count, listed.nodes.size())) listed = lists();
        break;
      default:
        break;
    }
    for (const NodeFact& fact : listed.nodes) facts.add_node(fact);
    if (pods_known_) facts.set_pods_known();
    for (const PodFact& fact : listed.pods) {
      if (pods_known_) facts.add_pod(fact);
    }
    facts.freeze();
    pass(std::chrono::milliseconds(in_.below(3)));
    const Instant judged_at = now();
    Verdict verdict = judge(view, facts, memory_, settings_, register_read, judged_at);
    note(view, facts, listed, proves_nothing, verdict, judged_at);
    for (std::uint32_t i = in_.below(4); i > 0; --i) meanwhile();
    carry_out(verdict, facts);
  }

  /// Between a look and what it leads to: what the lists say stays true of what was there.
  void meanwhile() {
    if (in_.one_in(3)) return end(false);
    start();
  }

  [[nodiscard]] RegisterView see() const {
    RegisterView view;
    for (const Block& block : blocks()) {
      const Prefix& cidr = block.cidr;
      seconds cooldown = kDefaultCooldown;
      for (const auto& [key, value] : register_.records()) {
        const auto* pool = std::get_if<Pool>(&value);
        if (pool != nullptr && pool->cidr.contains(cidr)) cooldown = pool->cooldown;
      }
      view.add_block(block, cooldown, now());
    }
    for (const auto& [key, value] : register_.records()) {
      if (const auto* affinity = std::get_if<Affinity>(&value)) view.add_affinity(*affinity);
      if (const auto* removed = std::get_if<RemovedNode>(&value)) view.add_removed(*removed);
    }
    for (const auto& [key, value] : register_.records()) {
      if (std::get_if<Handle>(&value) != nullptr) view.add_handle(key.name);
    }
    return view;
  }

  /// What the lists say about one allocation, without the classes under test.
  [[nodiscard]] bool looks_dead(const Container& holder, const Address& address, const Lists& listed,
                                const std::set<std::string>& nodes) const {
    const bool node_gone = !nodes.contains(name_of_node(holder.node));
    for (const NodeFact& node : listed.nodes) {
      if (std::ranges::find(node.tunnel_addresses, address) != node.tunnel_addresses.end()) return false;
    }
    if (holder.kind == Container::Kind::kept) return false;
    if (holder.kind == Container::Kind::tunnel || !pods_known_) return node_gone;
    bool dead = true;
    for (const PodFact& pod : listed.pods) {
      if (pod.namespace_name != kNamespace || pod.name != holder.pod) continue;
      const bool pending = pod.addresses.empty() && !(node_gone && !nodes.contains(pod.node));
      const bool has_it =
          std::ranges::any_of(pod.addresses, [&](const Address& other) { return other.unmapped() == address; });
      if (pod.phase != "Failed" && (pending || has_it || pod.has_unreadable_address)) dead = false;
    }
    return dead;
  }

  void note(const RegisterView& view, const Facts& facts, const Lists& listed, bool proves_nothing, Verdict& verdict,
            const Instant& judged_at) {
    const auto is_doubt = [](const Alarm& alarm) { return alarm.kind == Alarm::Kind::lists_do_not_fit; };
    const bool doubted = std::ranges::any_of(verdict.alarms, is_doubt);
    CROFT_ASSERT(!proves_nothing || doubted);
    if (doubted || settings_.grace.count() == 0) {
      CROFT_ASSERT(verdict.leaks.empty() && verdict.blocks.empty());
      CROFT_ASSERT(verdict.affinities.empty() && verdict.handles.empty());
    }
    if (proves_nothing) {
      CROFT_ASSERT(verdict.memory.last_look == memory_.last_look);
      CROFT_ASSERT(verdict.memory.suspects.size() == memory_.suspects.size());
      CROFT_ASSERT(verdict.memory.listed_nodes == memory_.listed_nodes);
      return;
    }
    Look seen;
    seen.now = judged_at;
    seen.kind = doubted ? Look::Kind::begins_anew : Look::Kind::counts;
    for (const NodeFact& fact : listed.nodes) seen.nodes.insert(fact.name);
    for (const HeldRow& row : view.held()) {
      const Address address = view.address(row);
      const auto holder =
          std::ranges::find_if(containers_, [&](const auto& one) { return handle_identity(one.first) == row.handle; });
      CROFT_ASSERT(holder != containers_.end());
      seen.rows[address] = {row.sequence, holder->first, looks_dead(holder->second, address, listed, seen.nodes)};
    }
    history_.push_back(std::move(seen));
    CROFT_ASSERT(verdict.leaks.size() <= removals_allowed(view.held().size()));
    for (const Leak& leak : verdict.leaks) check_leak(leak, facts);
    check_blocks(view, verdict);
    memory_ = std::move(verdict.memory);
  }

  void check_leak(const Leak& leak, const Facts& facts) const {
    const Look& last = history_.back();
    const auto& row = last.rows.at(leak.address);
    CROFT_ASSERT(row.dead && row.sequence == leak.sequence && handle_identity(row.handle) == leak.handle);
    for (const auto& [address, other] : last.rows) CROFT_ASSERT(other.handle != row.handle || other.dead);
    const Container& holder = containers_.at(row.handle);
    const std::string node = name_of_node(holder.node);
    const bool node_absent = !last.nodes.contains(node);
    if (node_absent) {
      const bool was_listed = std::ranges::any_of(history_, [&](const Look& one) { return one.nodes.contains(node); });
      const bool was_removed = register_.get(removed_node_key(node)) != nullptr;
      CROFT_ASSERT(leak.node_end != Leak::NodeEnd::none);
      CROFT_ASSERT(leak.node_end == Leak::NodeEnd::listed ? was_listed : was_removed);
    }
    // Since when it was so in every look.
    std::optional<nanoseconds> since;
    for (auto look = history_.rbegin(); look != history_.rend(); ++look) {
      const auto earlier = look->rows.find(leak.address);
      const bool same = earlier != look->rows.end() && earlier->second.sequence == row.sequence &&
                        earlier->second.handle == row.handle;
      if (look->kind != Look::Kind::counts || !same) break;
      // On a node that is gone the end of a pod is believed at once.
      if (node_absent ? look->nodes.contains(node) : !earlier->second.dead) break;
      since = look->now.since_boot;
      if (std::next(look) != history_.rend() && clock_stepped(std::next(look)->now, look->now)) break;
    }
    CROFT_ASSERT(since && facts.taken_at.since_boot - *since >= settings_.grace && settings_.grace.count() > 0);
  }

  void check_blocks(const RegisterView& view, const Verdict& verdict) const {
    std::map<std::pair<std::string, Family>, std::size_t> left;
    for (const BlockRow& row : view.blocks()) {
      if (row.owner_type == AffinityOwner::Type::host) ++left[{view.nodes()[row.owner], row.cidr.family()}];
    }
    for (const BlockToRelease& block : verdict.blocks) {
      const std::string& owner = block.release.owner.name;
      const bool is_there = history_.back().nodes.contains(owner);
      CROFT_ASSERT(block.node_gone != is_there);
      --left.at({owner, block.release.cidr.family()});
      CROFT_ASSERT(!is_there || left.at({owner, block.release.cidr.family()}) > 0);
      CROFT_ASSERT(is_there ||
                   std::ranges::any_of(history_, [&](const Look& one) { return one.nodes.contains(owner); }));
    }
  }

  // -------------------------------------------------------------- what it leads to, as in the engine

  void carry_out(const Verdict& verdict, const Facts& facts) {
    const Instant when = now();
    for (const Leak& leak : verdict.leaks) {
      const auto* block = register_.get(block_key(leak.block));
      const auto evidence = block != nullptr ? prove(leak, *block, facts, when) : std::nullopt;
      if (!evidence) continue;
      CROFT_ASSERT(!to_string(*evidence).empty());
      const Container& holder = containers_.at(evidence->handle);
      CROFT_ASSERT(!holder.alive && holder.kind != Container::Kind::kept);
      const AddressToRelease wanted{leak.address, evidence->handle, leak.sequence};
      const auto done = register_.decide<AddressReleases>(
          [&](const Snapshot& s) { return plan_release_addresses(s, leak.block, {wanted}, when); });
      CROFT_ASSERT(done.has_value() && done->released.size() == 1);
    }
    for (const BlockToRelease& block : verdict.blocks) {
      CROFT_ASSERT(!to_string(evidence_of(block, facts, when)).empty());
      static_cast<void>(register_.decide<AffinityOutcome>(
          [&](const Snapshot& s) { return plan_release_affinity(s, block.release, when); }));
    }
    for (const StrayAffinity& stray : verdict.affinities) drop(stray.affinity, when);
    for (const StrayHandle& stray : verdict.handles) {
      static_cast<void>(register_.decide<bool>([&](const Snapshot& s) { return plan_mend_handle(s, stray.id); }));
    }
    for (const Prefix& cidr : verdict.cooled) {
      static_cast<void>(register_.decide<bool>([&](const Snapshot& s) { return plan_free_cooled(s, cidr, when); }));
    }
    end_tunnels();
  }

  void drop(const Affinity& stray, const Instant& when) {
    const auto* block = register_.get(block_key(stray.cidr));
    const auto* row = register_.get(affinity_key(stray.owner, stray.cidr));
    if ((block != nullptr && block->affinity == stray.owner) || row == nullptr || row->state != stray.state) return;
    static_cast<void>(register_.decide<AffinityOutcome>([&](const Snapshot& s) {
      return plan_release_affinity(s, {stray.owner, stray.cidr, true, {}}, when);
    }));
  }

  Bytes& in_;
  TestRegister register_;
  Settings settings_;
  Memory memory_;
  std::vector<Look> history_;  ///< that the memory stands for
  bool pods_known_ = true;
  std::uint32_t misnamed_ = 0;  ///< nodes that the lists never call by their names
  std::uint32_t crowd_ = 0;     ///< pods that hold nothing here
  nanoseconds truth_{}, off_{}, booted_at_{};
  std::uint8_t boot_ = 0;
  std::uint64_t made_ = 0;
  std::array<bool, kNodes> node_is_there_{};
  std::map<std::uint32_t, Pod> pods_;
  std::map<std::string, Container> containers_;  ///< by handle
  std::optional<Lists> file_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes in(data, size);
  World world(in);
  world.check();
  for (std::size_t i = 0; i < kActionsMax && !in.empty(); ++i) {
    world.act();
    world.check();
  }
  return 0;
}
