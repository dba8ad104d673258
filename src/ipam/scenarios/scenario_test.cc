#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/letters.h"
#include "base/net/test_scenario.h"
#include "collector/decide/judge.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/explain.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "noderanges/decide/node_range_changes.h"
#include "register/service.h"
#include "register/test_register.h"
#include "services/audit/range_audit.h"
#include "services/decide/service_changes.h"

// Decisions told as text: ipam/scenarios/testdata/*/*.txt. A file is a test. With CROFT_REWRITE_SCENARIOS set, each
// file is written anew with what its commands print, to be read as a diff.

namespace croft::core {
namespace {

AffinityOwner host(const std::string& name) { return {AffinityOwner::Type::host, name}; }

/// A register, a clock, pods that live, and commands on them. Each command is a decision made and written, and prints
/// its answer.
class World {
 public:
  std::string run(const std::string& line) {
    out_.clear();
    Command command(line);
    const std::string name = command.word("the command");
    static const std::map<std::string, void (World::*)(Command&)> kCommands = {
        {"pool", &World::pool},
        {"enable-pool", &World::enable_pool},
        {"disable-pool", &World::disable_pool},
        {"delete-pool", &World::delete_pool},
        {"split-pool", &World::split_pool},
        {"reserve", &World::reserve},
        {"node", &World::node},
        {"delete-node", &World::delete_node},
        {"config", &World::config},
        {"add", &World::add},
        {"explain", &World::explain},
        {"del", &World::del},
        {"release", &World::release},
        {"claim", &World::claim},
        {"give-up", &World::give_up},
        {"free-cooled", &World::free_cooled},
        {"mend-handle", &World::mend_handle},
        {"handle", &World::handle},
        {"together", &World::together},
        {"commit", &World::commit},
        {"wait", &World::wait},
        {"reboot", &World::reboot},
        {"set-clock", &World::set_clock},
        {"pod", &World::pod},
        {"pod-gone", &World::pod_gone},
        {"lists", &World::lists},
        {"collect", &World::collect},
        {"node-ranges", &World::node_ranges},
        {"services", &World::services},
        {"service", &World::service},
        {"update-service", &World::update_service},
        {"delete-service", &World::delete_service},
        {"forget-service", &World::forget_service},
        {"repair", &World::repair},
        {"show", &World::show},
    };
    const auto found = kCommands.find(name);
    if (found == kCommands.end()) throw Malformed("unknown command " + name);
    (this->*found->second)(command);
    return out_;
  }

 private:
  template <class... Args>
  void say(fmt::format_string<Args...> format, Args&&... args) {
    out_ += fmt::format(format, std::forward<Args>(args)...) + "\n";
  }
  void say_error(const Error& error) {
    say("{}: {}", name_of(error.code), error.message);
    for (const std::string& line : Command::split(error.details, '\n')) say("  {}", line);
  }
  /// The answer of a decision that was written; nothing after saying why not.
  template <class Answer, class... Parameters>
  std::optional<Answer> decided(Step<Answer> (*by)(const Snapshot&, Parameters...),
                                std::type_identity_t<Parameters>... arguments) {
    auto answer = register_.decided(by, arguments...);
    if (answer) return std::move(*answer);
    say_error(answer.error());
    return std::nullopt;
  }
  Instant now() const { return clock_.now(); }
  template <class T>
  std::vector<const T*> all() const {
    std::vector<const T*> found;
    for (const auto& [key, value] : register_.records()) {
      if (const T* record = std::get_if<T>(&value)) found.push_back(record);
    }
    return found;
  }

  // -- pools

  void pool(Command& c) {
    PoolSpec spec;
    spec.name = c.word("a name");
    spec.cidr = Command::prefix_of(c.word("a CIDR"));
    if (c.has("block")) spec.block_length = static_cast<int>(c.number("block", 0));
    if (c.has("cooldown")) spec.cooldown = Command::parse_span(c.option("cooldown"));
    if (c.has("gateway")) {
      const std::string gateway = c.option("gateway");
      spec.gateway = gateway == "none" ? GatewayChoice{GatewayChoice::Kind::none, {}}
                                       : GatewayChoice{GatewayChoice::Kind::given, Command::address_of(gateway)};
    }
    if (c.flag("disabled")) spec.disabled = true;
    const std::string selector = c.option("selector", "all()"), namespaces = c.option("namespaces");
    const std::vector<std::string> uses = c.list("uses");
    const bool manual = c.flag("manual");
    c.done();
    const auto created = decided(plan_create_pool, spec);
    if (!created) return;
    // What a pool has from Calico only.
    Pool pool = created->pool;
    if (!created->existed_before) {
      pool.node_selector = selector;
      pool.namespace_selector = namespaces;
      if (manual) pool.assignment_mode = AssignmentMode::manual;
      if (!uses.empty()) pool.allowed_uses.clear();
      for (const std::string& use : uses) pool.allowed_uses.push_back(use_named(use));
      register_.put(pool_key(pool.name), pool);
    }
    say("{}{}", pool_line(pool), created->existed_before ? ", was there" : "");
  }
  static std::string pool_line(const Pool& pool) {
    return fmt::format("pool {} {} blocks=/{} gateway={} cooldown={}s{}", pool.name, pool.cidr.to_string(),
                       pool.block_length, pool.gateway ? pool.gateway->to_string() : "none", pool.cooldown.count(),
                       pool.disabled ? " disabled" : "");
  }
  static PoolUse use_named(const std::string& name) {
    if (name == "workload") return PoolUse::workload;
    if (name == "tunnel") return PoolUse::tunnel;
    if (name == "load-balancer") return PoolUse::load_balancer;
    throw Malformed("unknown use " + name);
  }
  void set_disabled(Command& c, bool disabled) {
    const std::string name = c.word("a name");
    c.done();
    if (const auto pool = decided(plan_change_pool, PoolSpec{name, {}, {}, {}, {}, disabled})) {
      say("{}", pool_line(*pool));
    }
  }
  void enable_pool(Command& c) { set_disabled(c, false); }
  void disable_pool(Command& c) { set_disabled(c, true); }
  void delete_pool(Command& c) {
    const std::string name = c.word("a name");
    c.done();
    for (int steps = 1;; ++steps) {
      const auto deleted = decided(plan_delete_pool, name, now());
      if (!deleted) return;
      if (deleted->complete) return say("deleted in {} {}", steps, steps == 1 ? "step" : "steps");
    }
  }
  void split_pool(Command& c) {
    PoolSplit split;
    split.pool = c.word("a pool");
    c.expect("into");
    split.parts = Command::number_of(c.word("a number"));
    const std::string gateways = c.option("gateways", "refuse");
    c.done();
    if (gateways == "none") {
      split.gateways = SplitGateways::none;
    } else if (gateways == "first") {
      split.gateways = SplitGateways::first_address;
    } else if (gateways != "refuse") {
      throw Malformed("gateways= is refuse, none or first");
    }
    const auto done = decided(plan_split_pool, split, now());
    if (!done) return;
    for (const Pool& part : done->parts) say("{}", pool_line(part));
    for (const net::Address& held : done->held_reserved) say("held, now reserved: {}", held.to_string());
  }
  void reserve(Command& c) {
    const net::Prefix cidr = Command::prefix_of(c.word("a CIDR"));
    c.done();
    const std::string name = fmt::format("reserved-{}", ++reservations_);
    register_.put(reservation_key(name), Reservation{name, {cidr}});
  }

  // -- nodes and configuration

  void node(Command& c) {
    const std::string name = c.word("a name");
    LabelChanges labels;
    for (auto& [key, value] : c.rest()) labels[key] = value;
    c.done();
    if (labels.empty()) {
      Node plain;
      plain.name = name;
      return register_.put(node_key(name), plain);
    }
    decided(plan_label_node, name, labels);
  }
  void delete_node(Command& c) {
    const std::string name = c.word("a name");
    c.done();
    if (const auto there = decided(plan_delete_node, name)) {
      say("{}", *there ? "deleted" : "was not there");
    }
  }
  void config(Command& c) {
    ConfigChange change;
    const auto on = [&](const char* name) -> std::optional<bool> {
      if (!c.has(name)) return std::nullopt;
      const std::string value = c.option(name);
      if (value != "on" && value != "off") throw Malformed(std::string(name) + "= is on or off");
      return value == "on";
    };
    change.strict_affinity = on("strict-affinity");
    change.auto_allocate_blocks = on("auto-allocate-blocks");
    if (c.has("max-blocks")) change.max_blocks_per_host = c.number("max-blocks", 0);
    if (c.has("cooldown")) {
      change.ip_cooldown_seconds = static_cast<std::uint32_t>(Command::parse_span(c.option("cooldown")).count());
    }
    c.done();
    if (const auto done = decided(plan_set_config, change)) {
      say("strict-affinity={} auto-allocate-blocks={} max-blocks={} cooldown={}s", done->strict_affinity ? "on" : "off",
          done->auto_allocate_blocks ? "on" : "off", done->max_blocks_per_host, done->ip_cooldown_seconds);
    }
  }

  // -- assignment

  /// `c1` or `c1..30`: c1, c2 … c30.
  static std::vector<std::string> names_of(const std::string& text) {
    const std::size_t dots = text.find("..");
    if (dots == std::string::npos) return {text};
    const std::size_t digits = text.find_last_not_of("0123456789", dots - 1) + 1;
    const std::uint32_t first = Command::number_of(text.substr(digits, dots - digits));
    const std::uint32_t last = Command::number_of(text.substr(dots + 2));
    std::vector<std::string> names;
    for (std::uint32_t i = first; i <= last; ++i) names.push_back(text.substr(0, digits) + std::to_string(i));
    return names;
  }
  static AssignRequest request(Command& c) {
    AssignRequest request;
    c.expect("on");
    request.node = host(c.word("a node"));
    request.owner.network = c.option("net", "net");
    request.owner.interface_name = c.option("if", "eth0");
    const bool exact = c.has("ip");
    for (const std::string& address : c.list("ip")) request.addresses.push_back(Command::address_of(address));
    request.count.v6 = c.number("ipv6", 0);
    request.count.v4 = c.number("ipv4", exact || request.count.v6 > 0 ? 0 : 1);
    for (const std::string& pool : c.list("pools")) request.pools.v4.push_back(asked_pool(pool));
    for (const std::string& pool : c.list("ipv6-pools")) request.pools.v6.push_back(asked_pool(pool));
    request.use = use_named(c.option("use", "workload"));
    request.block_limit = c.number("block-limit", 0);
    request.reserved_addresses = c.flag("reserved-too");
    request.cooling_addresses = c.flag("cooling-too");
    for (const std::string& label : c.list("namespace-labels")) {
      const auto parts = Command::split(label, ':');
      request.namespace_labels[parts.at(0)] = parts.size() > 1 ? parts[1] : "";
    }
    c.done();
    return request;
  }
  void name(AssignRequest& request, const std::string& container) const {
    request.owner.container_id = container;
    request.pod = {container, "default", {}};
  }
  static std::string text_of(const AssignedAddress& a) {
    return fmt::format("{} of {} pool={}{}{}", a.address.to_string(), a.block.to_string(), a.pool,
                       a.gateway ? " gateway=" + a.gateway->to_string() : "", a.held_before ? " held before" : "");
  }
  void say_refusal(const Refusal& refusal) {
    say("{}: {}", name_of(refusal.code), refusal.summary);
    for (const PoolVerdict& verdict : refusal.considered) {
      say("  {} {}: {}", verdict.pool, verdict.cidr.to_string(), verdict.reason);
    }
  }
  void add(Command& c) {
    const std::vector<std::string> containers = names_of(c.word("a container"));
    AssignRequest wanted = request(c);
    std::vector<std::string> got;
    for (const std::string& container : containers) {
      name(wanted, container);
      const auto answer = decided(plan_assign, wanted, now());
      if (!answer) return;
      if (const auto* refusal = std::get_if<Refusal>(&*answer)) {
        if (containers.size() > 1) say("{} granted, then {} is refused", got.size(), container);
        return say_refusal(*refusal);
      }
      const Assigned& assigned = std::get<Assigned>(*answer);
      for (const AssignedAddress& address : assigned.addresses) got.push_back(text_of(address));
    }
    if (containers.size() == 1) {
      for (const std::string& address : got) say("{}", address);
    } else {
      say("{} granted: {} … {}", got.size(), got.front(), got.back());
    }
  }
  void explain(Command& c) {
    const std::string container = c.word("a container");
    AssignRequest wanted = request(c);
    name(wanted, container);
    const auto done = decided(plan_explain, wanted, now());
    if (!done) return;
    for (const ExplainedAddress& address : done->addresses) {
      say("would be {}: {}{}", text_of(address.address), name_of(address.origin),
          address.block_owner.empty() ? "" : " of " + address.block_owner);
    }
    if (const auto* refusal = std::get_if<Refusal>(&done->answer)) say_refusal(*refusal);
    for (const FamilyFacts& family : done->families) {
      for (const PoolFact& fact : family.pools) {
        const std::string why = fact.usable ? "usable" : "not usable: " + fact.reason;
        say("{} {}{}", fact.pool, why, fact.selected.empty() ? "" : (fact.usable ? ": " : "; ") + fact.selected);
      }
    }
  }

  // -- release

  void say_released(const Released& released) {
    if (released.addresses.empty()) return say("held nothing");
    for (const net::Address& address : released.addresses) say("released {}", address.to_string());
  }
  void del(Command& c) {
    const std::vector<std::string> containers = names_of(c.word("a container"));
    Owner owner{c.option("net", "net"), {}, c.option("if", "eth0")};
    c.done();
    std::size_t count = 0;
    for (const std::string& container : containers) {
      owner.container_id = container;
      const auto done = decided(plan_release_owner, owner, now());
      if (!done) return;
      count += done->addresses.size();
      if (containers.size() == 1) say_released(*done);
    }
    if (containers.size() > 1) say("{} released", count);
  }
  std::optional<net::Prefix> block_with(const net::Address& address) const {
    for (const Block* block : all<Block>()) {
      if (block->cidr.contains(address)) return block->cidr;
    }
    return std::nullopt;
  }
  void release(Command& c) {
    AddressToRelease wanted;
    wanted.address = Command::address_of(c.word("an address"));
    if (c.has("handle")) wanted.handle_id = c.option("handle");
    c.done();
    const auto block = block_with(wanted.address);
    if (!block) return say("in no block");
    const auto done = decided(plan_release_addresses, *block, {wanted}, now());
    if (!done) return;
    if (!done->released.empty()) say("released");
    if (!done->not_held.empty()) say("not held");
    if (!done->mismatched.empty()) say("held by another: left alone");
  }

  // -- affinities

  void claim(Command& c) {
    const net::Prefix cidr = Command::prefix_of(c.word("a block"));
    c.expect("for");
    const AffinityOwner owner = host(c.word("a node"));
    c.done();
    const auto done = decided(plan_claim_affinity, owner, cidr, now());
    static constexpr const char* kTexts[] = {"claimed", "had it already", "belongs to others"};
    if (done) say("{}", kTexts[static_cast<std::size_t>(*done)]);
  }
  static std::string_view text_of(AffinityOutcome outcome) {
    static constexpr std::string_view kTexts[] = {"released", "was not there", "belonged to others", "not empty",
                                                  "changed meanwhile"};
    return kTexts[static_cast<std::size_t>(outcome)];
  }
  void give_up(Command& c) {
    AffinityRelease wanted;
    wanted.cidr = Command::prefix_of(c.word("a block"));
    c.expect("of");
    wanted.owner = host(c.word("a node"));
    wanted.must_be_empty = !c.flag("even-if-used");
    c.done();
    const auto done = decided(plan_release_affinity, wanted, now());
    if (done) say("{}", text_of(*done));
  }
  void free_cooled(Command& c) {
    const net::Prefix cidr = Command::prefix_of(c.word("a block"));
    c.done();
    const auto done = decided(plan_free_cooled, cidr, now());
    if (done) say("{}", *done ? "written down" : "nothing has ended");
  }
  void mend_handle(Command& c) {
    const std::string id = c.word("a handle");
    c.done();
    const auto done = decided(plan_mend_handle, id);
    if (done) say("{}", *done ? "mended" : "was right");
  }
  /// A handle record as somebody else may have left it.
  void handle(Command& c) {
    Handle record;
    record.id = c.word("a handle");
    for (const auto& [block, count] : c.rest()) record.blocks[block] = Command::number_of(count);
    c.done();
    register_.put(handle_key(record.id), record);
  }

  // -- time

  /// What follows is decided on one snapshot, up to `commit`.
  void together(Command& c) {
    c.done();
    register_.begin_batch();
  }
  void commit(Command& c) {
    c.done();
    say("{} records in one commit", register_.end_batch());
  }
  void wait(Command& c) {
    clock_.advance(Command::parse_span(c.word("a time")));
    c.done();
  }
  void reboot(Command& c) {
    clock_.reboot(Command::parse_span(c.option("down", "0s")));
    c.done();
  }
  void set_clock(Command& c) {
    const bool back = c.flag("back");
    const std::chrono::seconds by = Command::parse_span(c.word("a time"));
    c.done();
    clock_.jump_wall(back ? -by : by);
  }

  // -- the collector

  void pod(Command& c) {
    const std::vector<std::string> names = names_of(c.word("a pod"));
    c.expect("on");
    const std::string on = c.word("a node");
    collect::PodFact fact;
    for (const std::string& address : c.list("ip")) fact.addresses.push_back(Command::address_of(address));
    if (c.flag("evicted")) fact.phase = "Failed", fact.reason = "Evicted";
    c.done();
    fact.namespace_name = "default";
    fact.node = on;
    for (const std::string& name : names) {
      fact.name = name;
      pods_[name] = fact;
    }
  }
  void pod_gone(Command& c) {
    for (const std::string& name : names_of(c.word("a pod"))) {
      if (pods_.erase(name) == 0) throw Malformed("there is no pod " + name);
    }
    c.done();
  }
  void lists(Command& c) {
    const std::string what = c.word("whole or incomplete");
    if (what != "whole" && what != "incomplete") throw Malformed("lists are whole or incomplete");
    c.done();
    lists_whole_ = what == "whole";
  }
  collect::Facts facts() const {
    collect::Facts facts;
    for (const Node* node : all<Node>()) facts.add_node({node->name, node->labels, {}});
    facts.set_pods_known();
    for (const auto& [name, pod] : pods_) facts.add_pod(pod);
    facts.complete = lists_whole_;
    if (!lists_whole_) facts.incomplete_because = "the list broke off";
    facts.taken_at = now();
    facts.freeze();
    return facts;
  }
  Cooldowns cooldowns_of(const Block& block) const {
    for (const Pool* pool : all<Pool>()) {
      if (pool->cidr.contains(block.cidr.first())) return Cooldowns(pool->cooldown);
    }
    return Cooldowns(std::chrono::seconds(0));
  }
  void collect(Command& c) {
    collect::Settings settings;
    if (c.has("grace")) settings.grace = Command::parse_span(c.option("grace"));
    c.done();
    collect::RegisterView view;
    for (const Block* block : all<Block>()) view.add_block(*block, cooldowns_of(*block), now());
    for (const Affinity* affinity : all<Affinity>()) view.add_affinity(*affinity);
    for (const RemovedNode* removed : all<RemovedNode>()) view.add_removed(*removed);
    for (const Handle* handle : all<Handle>()) view.add_handle(handle->id);
    const collect::Facts facts = this->facts();
    const collect::Verdict verdict = judge(view, facts, memory_, settings, now(), now());
    memory_ = verdict.memory;
    for (const collect::Alarm& alarm : verdict.alarms) say("alarm {}", name_of(alarm.kind));
    const std::string before = out_;
    for (const collect::Leak& leak : verdict.leaks) collect_leak(leak, facts);
    if (verdict.leaks.size() > 3) {  // which of those that died at once are first is nobody's promise
      out_ = before;
      say("{} addresses released", verdict.leaks.size());
    }
    for (const collect::BlockToRelease& block : verdict.blocks) {
      const auto done = decided(plan_release_affinity, block.release, now());
      if (done) {
        say("block {} of {}: {}, {}", block.release.cidr.to_string(), block.release.owner.name,
            block.node_gone ? "node gone" : "surplus", text_of(*done));
      }
    }
    for (const collect::StrayHandle& handle : verdict.handles) {
      const auto done = decided(plan_mend_handle, handle.id);
      if (done) say("handle {}: {}", handle.id, *done ? "mended" : "was right");
    }
    for (const net::Prefix& cidr : verdict.cooled) {
      decided(plan_free_cooled, cidr, now());
      say("block {}: ended cooldowns written down", cidr.to_string());
    }
    say("{} look dead, {} confirmed, {} kept by the brake", verdict.candidates, verdict.confirmed,
        verdict.kept_by_brake);
  }
  void collect_leak(const collect::Leak& leak, const collect::Facts& facts) {
    const auto* block = register_.get(block_key(leak.block));
    const auto evidence = block == nullptr ? std::nullopt : prove(leak, *block, facts, now());
    if (!evidence) return say("{}: not proven any more", leak.address.to_string());
    const AddressToRelease wanted{leak.address, evidence->handle, leak.sequence};
    const auto done = decided(plan_release_addresses, leak.block, {wanted}, now());
    if (done) say("{} of {}: {}", leak.address.to_string(), evidence->pod, evidence->reason);
  }

  // -- node ranges

  void node_ranges(Command& c) {
    const std::string what = c.word("configure, assign, adopt or release");
    if (what == "configure") {
      NodeRangeSpec spec;
      for (const std::string& cidr : c.list("exclude")) spec.excluded.push_back(Command::prefix_of(cidr));
      while (c.more()) {
        const net::Prefix cidr = Command::prefix_of(c.word("a cluster CIDR"));
        const std::string length = c.word("a length like /24");
        if (!length.starts_with('/')) throw Malformed("a length is like /24");
        spec.cluster_cidrs.push_back({cidr, static_cast<int>(Command::number_of(length.substr(1)))});
      }
      c.done();
      const auto done = decided(plan_configure_node_ranges, spec);
      if (!done) return;
      say("{}", done->changed ? "configured" : "as it was");
      for (const NodeRange& range : done->outside) say("outside: {} of {}", range.cidr.to_string(), range.node);
    } else if (what == "assign") {
      std::vector<std::string> nodes;
      while (c.more()) nodes.push_back(c.word("a node"));
      c.done();
      const auto done = decided(plan_assign_node_ranges, nodes, NodeRecord::demand, {});
      if (!done) return;
      for (const NodeRangesAssigned& answer : *done) say_ranges(answer);
    } else if (what == "adopt") {
      const net::Prefix cidr = Command::prefix_of(c.word("a CIDR"));
      c.expect("for");
      const std::string node = c.word("a node");
      c.done();
      const auto done = decided(plan_adopt_node_range, node, cidr, NodeRecord::demand, {});
      if (done) say_ranges(*done);
    } else if (what == "release") {
      const std::string node = c.word("a node");
      const IfRecorded recorded = c.flag("even-if-recorded") ? IfRecorded::release : IfRecorded::refuse;
      c.done();
      const auto done = decided(plan_release_node_ranges, node, std::nullopt, recorded, {});
      if (!done) return;
      if (done->cidrs.empty()) say("had none");
      for (const net::Prefix& cidr : done->cidrs) say("released {}", cidr.to_string());
    } else {
      throw Malformed("unknown word " + what);
    }
  }
  void say_ranges(const NodeRangesAssigned& answer) {
    if (answer.refusal) return say_error(*answer.refusal);
    std::vector<std::string> texts;
    for (const net::Prefix& cidr : answer.cidrs) texts.push_back(cidr.to_string());
    say("{}: {}{}", answer.node, fmt::join(texts, " "), answer.added.empty() ? ", had them" : "");
  }

  // -- Services

  void services(Command& c) {
    const auto cidrs = service::parse_service_cidrs(c.option("cidr", "10.96.0.0/24"));
    const auto ports = service::parse_node_port_flag(c.option("ports"));
    c.done();
    if (!cidrs) return say_error(cidrs.error());
    if (!ports) return say_error(ports.error());
    ranges_ = ServiceRanges{*cidrs, *ports, true};
  }
  const ServiceRanges& ranges() const {
    if (!ranges_) throw Malformed("`services cidr=…` has to come first");
    return *ranges_;
  }
  static Service service_of(Command& c) {
    Service service;
    service.name = {"default", c.word("a name")};
    service.selector = {{"app", service.name.name}};
    const std::string type = c.option("type", "ClusterIP");
    const auto known = value_in(kServiceTypes, type);
    if (!known) throw Malformed("unknown type " + type);
    service.type = *known;
    service.cluster_ips = c.list("ip");
    if (!service.cluster_ips.empty()) service.cluster_ip = service.cluster_ips.front();
    const std::string policy = c.option("policy");
    if (!policy.empty()) service.ip_family_policy = value_in(kFamilyPolicies, policy);
    std::vector<std::string> node_ports = c.list("node-port");
    std::vector<std::string> ports = c.has("port") ? c.list("port") : std::vector<std::string>{"80"};
    for (std::size_t i = 0; i < ports.size(); ++i) {
      ServicePort port;
      port.name = ports.size() > 1 ? "p" + ports[i] : "";
      port.port = static_cast<std::uint16_t>(Command::number_of(ports[i]));
      if (i < node_ports.size()) port.node_port = static_cast<std::uint16_t>(Command::number_of(node_ports[i]));
      service.ports.push_back(port);
    }
    c.done();
    return service;
  }
  static std::string text_of(const Service& service) {
    std::vector<std::string> ports;
    for (const ServicePort& port : service.ports) {
      ports.push_back(fmt::format("{}{}", port.port, port.node_port == 0 ? "" : fmt::format(":{}", port.node_port)));
    }
    return fmt::format("{} {} {} ports={}", service.name.to_string(), word_of(service.type),
                       fmt::join(service.cluster_ips, ","), fmt::join(ports, ","));
  }
  void say_service(const std::optional<ServiceAnswer>& answer) {
    if (!answer) return;
    if (const auto* refusal = std::get_if<ServiceRefusal>(&*answer)) return say("refused: {}", refusal->to_string());
    const auto& changed = std::get<ServiceChanged>(*answer);
    say("{}", text_of(changed.service));
    for (const std::string& note : changed.notes) say("  {}", note);
  }
  void service(Command& c) {
    const Service wanted = service_of(c);
    say_service(decided(plan_create_service, wanted, ranges(), now(), random_));
  }
  void update_service(Command& c) {
    const Service wanted = service_of(c);
    say_service(decided(plan_update_service, wanted, std::nullopt, ranges(), random_));
  }
  void delete_service(Command& c) {
    const ServiceName name{"default", c.word("a name")};
    c.done();
    say_service(decided(plan_delete_service, name, random_));
  }
  /// The record goes without a word to the ranges, as after a crash of another program between its two writes.
  void forget_service(Command& c) {
    const ServiceName name{"default", c.word("a name")};
    c.done();
    register_.apply({to_delete(service_key(name), Guard::none)});
  }
  template <class M>
  audit::RangeSeen<M> seen(std::string_view name, const M& wanted) {
    const auto* stored = register_.get(range_allocation_key(name));
    return {std::string(name), stored == nullptr ? std::nullopt : std::optional(*stored), wanted,
            leaks_[std::string(name)]};
  }
  void repair(Command& c) {
    c.done();
    std::vector<audit::ServiceUse> uses;
    for (const Service* service : all<Service>()) uses.push_back(audit::use_of(*service));
    std::vector<audit::AddressRangeSeen> addresses;
    addresses.push_back(seen(kServiceIps, service::ServiceCidr::make(ranges().cidrs->primary).value()));
    if (ranges().cidrs->secondary.is_valid()) {
      addresses.push_back(seen(kSecondaryServiceIps, service::ServiceCidr::make(ranges().cidrs->secondary).value()));
    }
    std::vector<audit::RangeRepair> repairs = audit::repair_addresses(addresses, uses);
    repairs.push_back(audit::repair_node_ports(seen(kServiceNodePorts, *ranges().node_ports), uses));
    for (const audit::RangeRepair& repair : repairs) {
      if (repair.failure) say_error(*repair.failure);
      for (const audit::RepairFinding& finding : repair.findings) {
        say("{} {}: {}, {}", finding.range, finding.value, finding.reason, finding.mended ? "mended" : "left");
      }
      say("{} {}: {} of {} in the static band, {} of {} above it", repair.name, repair.range, repair.in_static.used,
          repair.in_static.size, repair.in_dynamic.used, repair.in_dynamic.size);
      if (repair.write) register_.put(range_allocation_key(repair.name), *repair.write);
      leaks_[repair.name] = repair.leaks;
    }
  }

  // -- looking

  void show(Command& c) {
    const std::string what = c.word("what");
    if (what == "block") {
      const net::Prefix cidr = Command::prefix_of(c.word("a block"));
      c.done();
      return show_block(cidr);
    }
    c.done();
    const std::string before = out_;
    if (what == "blocks") {
      for (const Block* block : all<Block>()) show_line(*block);
    } else if (what == "affinities") {
      for (const Affinity* a : all<Affinity>()) say("{} {}", to_string(a->owner), a->cidr.to_string());
    } else if (what == "handles") {
      for (const Handle* handle : all<Handle>()) {
        std::vector<std::string> blocks;
        for (const auto& [cidr, count] : handle->blocks) blocks.push_back(fmt::format("{}: {}", cidr, count));
        say("{} {}", handle->id, fmt::join(blocks, ", "));
      }
    } else if (what == "pools") {
      for (const Pool* pool : all<Pool>()) say("{}", pool_line(*pool));
    } else if (what == "services") {
      for (const Service* service : all<Service>()) say("{}", text_of(*service));
    } else if (what == "node-ranges") {
      for (const NodeRange* range : all<NodeRange>()) say("{} {}", range->cidr.to_string(), range->node);
    } else {
      throw Malformed("show blocks, block CIDR, affinities, handles, pools, services or node-ranges, not " + what);
    }
    if (out_ == before) say("none");
  }
  void show_line(const Block& block) {
    say("{} {} held={} cooling={} of {}", block.cidr.to_string(),
        block.affinity ? to_string(*block.affinity) : "nobody's", count_of(block, AddressState::held),
        count_of(block, AddressState::cooling), block_size(block.cidr));
  }
  void show_block(const net::Prefix& cidr) {
    const auto* block = register_.get(block_key(cidr));
    if (block == nullptr) return say("there is no block {}", cidr.to_string());
    show_line(*block);
    for (std::uint32_t i = 0; i < block_size(cidr); ++i) {
      const Attribute* attribute = attribute_of(*block, net::Ordinal{i});
      if (attribute == nullptr) continue;
      say("  {} {} {}", net::address_at(cidr, net::Ordinal{i}).to_string(), name_of(state_of(*block, net::Ordinal{i})),
          attribute->cooling ? "after " + attribute->cooling->previous_handle : attribute->handle_id.value_or("?"));
    }
  }

  TestRegister register_;
  ManualClock clock_;
  SeededRandom random_{1};
  std::map<std::string, collect::PodFact> pods_;
  bool lists_whole_ = true;
  collect::Memory memory_;
  std::optional<ServiceRanges> ranges_;
  std::map<std::string, audit::Leaks> leaks_;
  int reservations_ = 0;
  std::string out_;
};

// ---------------------------------------------------------------- files

const std::filesystem::path kFolder = CROFT_SCENARIOS;

std::string content_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<std::string> files() {
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() == ".txt") found.push_back(entry.path().lexically_relative(kFolder).string());
  }
  std::sort(found.begin(), found.end());
  return found;
}

std::string output_of(World& world, const Group& group) {
  std::string output;
  for (const auto& [number, line] : group.lines) {
    if (line.starts_with('#')) continue;
    try {
      output += world.run(line);
    } catch (const Malformed& fault) {
      throw Malformed(fmt::format("{}: {}: {}", number, line, fault.what()));
    }
  }
  return output;
}

std::string written(const std::vector<Group>& groups, const std::vector<std::string>& outputs) {
  std::string text;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    if (i > 0) text += "\n";
    for (const auto& [number, line] : groups[i].lines) text += line + "\n";
    if (!outputs[i].empty()) text += "----\n" + outputs[i];
  }
  return text;
}

class Scenario : public testing::TestWithParam<std::string> {};

TEST_P(Scenario, IsAsWritten) {
  const std::filesystem::path path = kFolder / GetParam();
  const bool rewrite = std::getenv("CROFT_REWRITE_SCENARIOS") != nullptr;
  try {
    const std::vector<Group> groups = groups_of(content_of(path));
    ASSERT_FALSE(groups.empty()) << GetParam() << ": empty";
    EXPECT_TRUE(groups.front().lines.front().second.starts_with("# ")) << GetParam() << ":1: begins without a comment";
    World world;
    std::vector<std::string> outputs;
    for (const Group& group : groups) {
      outputs.push_back(output_of(world, group));
      if (!rewrite) {
        EXPECT_EQ(outputs.back(), group.expected) << GetParam() << ":" << group.line;
      }
    }
    if (rewrite) std::ofstream(path, std::ios::binary) << written(groups, outputs);
  } catch (const Malformed& fault) {
    FAIL() << GetParam() << ":" << fault.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Core, Scenario, testing::ValuesIn(files()), [](const auto& tested) {
  std::string name = tested.param.substr(0, tested.param.size() - 4);
  std::replace_if(
      name.begin(), name.end(), [](char c) { return !is_alphanumeric(c); }, '_');
  return name;
});

TEST(ScenarioFile, MistakesAreRefused) {
  for (const char* line : {"pol a 10.0.0.0/24", "pool a", "pool a 10.0.0.0", "pool a 10.0.0.0/24 blok=26", "wait 3",
                           "add a", "add a on n extra", "show everything", "add \"a on n", "wait 1s 2s",
                           "pool a 10.0.0.0/24 block=26 block=27", "service a"}) {
    World world;
    EXPECT_THROW(world.run(line), Malformed) << line;
  }
  EXPECT_THROW(static_cast<void>(groups_of("----\n")), Malformed);
}

}  // namespace
}  // namespace croft::core
