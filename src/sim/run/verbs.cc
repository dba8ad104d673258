// The deeds of people and fate in the cluster.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "ipam/use/nodes.h"
#include "ipam/use/pools.h"
#include "sim/run/cluster.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;

/// With these names begin the pods that run at the end.
constexpr std::string_view kKept = "kept-";

}  // namespace

const std::vector<Cluster::Verb>& Cluster::verbs() {
  using C = Cluster;
  using S = const Step&;
  constexpr bool kName = true, kNode = true, kSpan = true, kNo = false;
  static constexpr auto kMeet = [](C& c, S s, Mishap mishap) { c.node_of(s).way.mishaps.push_back({mishap, s.span}); };
  // The load comes first: script_of() knows these by their places.
  static const std::vector<Verb> kVerbs{
      {"create", kName, kNode, kNo, 0, {}, {}, [](C& c, S s) { c.create_pod(s.name, s.node); }},
      {"delete", kName, kNo, kNo, 0, {}, {}, [](C& c, S s) { c.delete_pod(s.name); }},
      // The runtime makes its sandbox anew.
      {"restart", kName, kNo, kNo, 6, {}, {}, [](C& c, S s) { c.restart_pod(s.name); }},
      // The runtime calls DEL for its sandbox, has so much patience with it, and calls ADD with the same name.
      {"redo", kName, kNo, kSpan, 8, 50ms, 20s, [](C& c, S s) { c.redo_pod(s.name, s.span); }},
      // The same of all sandboxes of a node, as when its runtime is started anew.
      {"redo-all", kNo, kNode, kSpan, 6, 50ms, 20s,
       [](C& c, S s) {
         for (const auto& [name, pod] : c.pods_) {
           if (c.nodes_[pod->node].get() == &c.node_of(s)) c.redo_pod(name, s.span);
         }
       }},
      {"force-delete", kName, kNo, kNo, 3, {}, {}, [](C& c, S s) { c.force_delete_pod(s.name); }},
      {"add-again", kName, kNo, kNo, 3, {}, {}, [](C& c, S s) { c.add_again(s.name); }},
      {"kill-agent", kNo, kNode, kSpan, 6, 200ms, 8s, [](C& c, S s) { c.kill_agent(c.node_of(s), s.span); }},
      {"kill-plugins", kNo, kNode, kNo, 6, {}, {}, [](C& c, S s) { c.kill_plugins(c.node_of(s)); }},
      {"freeze-agent", kNo, kNode, kSpan, 5, 500ms, 20s,
       [](C& c, S s) {
         Node& node = c.node_of(s);
         node.frozen_until = c.until(s);
         if (node.agent) node.agent->process().freeze_until(node.frozen_until);
       }},
      {"lose-reply", kNo, kNode, kNo, 8, {}, {}, [](C& c, S s) { kMeet(c, s, Mishap::lose_reply); }},
      {"lose-request", kNo, kNode, kNo, 6, {}, {}, [](C& c, S s) { kMeet(c, s, Mishap::lose_request); }},
      {"late-request", kNo, kNode, kSpan, 6, 10ms, 20s, [](C& c, S s) { kMeet(c, s, Mishap::late_request); }},
      {"conflict", kNo, kNode, kNo, 5, {}, {}, [](C& c, S s) { kMeet(c, s, Mishap::conflict); }},
      {"cut", kNo, kNode, kSpan, 4, 100ms, 20s, [](C& c, S s) { c.node_of(s).way.cut_until = c.until(s); }},
      // For 20 s, its watches see everything so much later.
      {"lag", kNo, kNode, kSpan, 4, 50ms, 3s,
       [](C& c, S s) {
         c.node_of(s).way.lag = s.span;
         c.node_of(s).way.lag_until = c.schedule_.now() + 20s;
       }},
      {"set-clock", kNo, kNode, kSpan, 4, -30min, 30min, [](C& c, S s) { c.node_of(s).clock.set_skew(s.span); }},
      {"reboot", kNo, kNode, kSpan, 2, 1s, 30s, [](C& c, S s) { c.reboot(c.node_of(s), s.span); }},
      {"lose-node", kNo, kNode, kNo, 1, {}, {}, [](C& c, S s) { c.lose_node(c.node_of(s)); }},
      {"store-down", kNo, kNo, kSpan, 3, 100ms, 15s, [](C& c, S s) { c.server_.troubles().down_until = c.until(s); }},
      // The store's machine loses power for a while, and with it what was not on disk.
      {"power-cut", kNo, kNo, kSpan, 3, 100ms, 10s,
       [](C& c, S s) {
         c.server_.lose_unsynced();
         c.server_.troubles().down_until = c.until(s);
       }},
      {"slow-store", kNo, kNo, kSpan, 4, 1s, 60s, [](C& c, S s) { c.server_.troubles().slow_until = c.until(s); }},
      {"disk-full", kNo, kNo, kSpan, 2, 500ms, 15s, [](C& c, S s) { c.server_.troubles().full_until = c.until(s); }},
      {"restart-controller", kNo, kNo, kSpan, 2, 100ms, 10s, [](C& c, S s) { c.restart_controller(s.span); }},
      {"freeze-controller", kNo, kNo, kSpan, 2, 1s, 40s,
       [](C& c, S s) {
         if (c.controller_) c.controller_->freeze_until(c.until(s));
       }},
      // The list of pods stays as it is; pods that are asked for by themselves are as they are.
      {"stale-lists", kNo, kNo, kSpan, 2, 20s, 200s,
       [](C& c, S s) {
         c.stale_until_ = Span{0};
         c.stale_ = c.pod_facts();
         c.stale_until_ = c.until(s);
       }},
      // The API has no pods, however it is asked.
      {"empty-api", kNo, kNo, kSpan, 1, 10s, 200s, [](C& c, S s) { c.empty_until_ = c.until(s); }},
      // The node's kubelet reports no addresses.
      {"mute", kNo, kNode, kSpan, 2, 10s, 200s, [](C& c, S s) { c.node_of(s).muted_until = c.until(s); }},
      {"disable-pool", kName, kNo, kNo, 2, {}, {}, [](C& c, S s) { c.set_pool_disabled(s.name, true); }},
      {"enable-pool", kName, kNo, kNo, 3, {}, {}, [](C& c, S s) { c.set_pool_disabled(s.name, false); }},
      {"delete-pool", kName, kNo, kNo, 1, {}, {}, [](C& c, S s) { c.delete_pool(s.name); }},
      {"create-pool", kName, kNo, kNo, 3, {}, {}, [](C& c, S s) { c.create_pool(s.name); }},
      {"remove-node", kNo, kNode, kNo, 1, {}, {}, [](C& c, S s) { c.remove_node(c.node_of(s)); }},
      {"take-copy", kNo, kNo, kNo, 1, {}, {}, [](C& c, S) { c.copy_ = c.server_.copy(); }},
      {"restore", kNo, kNo, kNo, 1, {}, {}, [](C& c, S) { c.restore(); }},
  };
  return kVerbs;
}

const Cluster::Verb* Cluster::verb_of(std::string_view name) {
  const auto found = std::ranges::find(verbs(), name, &Verb::name);
  return found == verbs().end() ? nullptr : &*found;
}

std::string to_text(const Step& step) {
  const Cluster::Verb& verb = *Cluster::verb_of(step.verb);
  std::string text = fmt::format("{}ms {}", step.at / 1ms, step.verb);
  if (verb.takes_name) text += " " + step.name;
  if (verb.takes_node) text += fmt::format(" n{}", step.node + 1);
  if (verb.takes_span) text += fmt::format(" for={}ms", step.span / 1ms);
  return text;
}

void Cluster::act(const Step& step) {
  if (tell_) tell_("> " + to_text(step));
  verb_of(step.verb)->act(*this, step);
}

std::shared_ptr<Cluster::Pod> Cluster::pod_of(const std::string& name) const {
  const auto found = pods_.find(name);
  return found == pods_.end() ? nullptr : found->second;
}

void Cluster::create_pod(const std::string& name, std::size_t node) {
  Node& on = *nodes_[node % nodes_.size()];
  if (pods_.contains(name) || !on.is_listed) return;
  auto pod = std::make_shared<Pod>();
  pod->name = name;
  pod->uid = fmt::format("uid-{}", ++containers_);
  pod->node = node % nodes_.size();
  pods_[name] = pod;
  if (on.is_up) schedule_.spawn(*on.machine, [this, &on, pod] { run_pod(on, pod); });
}

void Cluster::delete_pod(const std::string& name) {
  const auto pod = pod_of(name);
  if (!pod) return;
  pod->is_deleted = true;
  pod->changed.notify_all();
}

void Cluster::restart_pod(const std::string& name) {
  const auto pod = pod_of(name);
  if (!pod) return;
  ++pod->generation;
  pod->changed.notify_all();
}

void Cluster::redo_pod(const std::string& name, Span patience) {
  const auto pod = pod_of(name);
  if (!pod || pod->container.empty()) return;
  pod->redo_patience = patience;
  pod->changed.notify_all();
}

/// The API has it no more; its kubelet ends it ten seconds later.
void Cluster::force_delete_pod(const std::string& name) {
  const auto pod = pod_of(name);
  if (!pod) return;
  // A list that stayed old for longer than the grace makes it a suspect while it runs: that is one thing too many
  // (docs/limits.md).
  if (is_stale() || has_read_stale_) return delete_pod(name);
  pod->is_hidden = true;
  schedule_.after(10s, [pod] {
    pod->is_deleted = true;
    pod->changed.notify_all();
  });
}

/// The runtime calls ADD again for a sandbox that has its addresses.
void Cluster::add_again(const std::string& name) {
  const auto pod = pod_of(name);
  if (!pod || pod->container.empty()) return;
  Node& node = *nodes_[pod->node];
  if (!node.is_up) return;
  (void)start_plugin(
      node, kAddTime, [this, &node, request = request_for(node, *pod, pod->container), pod](Plugin& self) {
        self.assigned = add(node, request);
        const auto* assigned = *self.assigned ? std::get_if<core::Assigned>(&**self.assigned) : nullptr;
        if (assigned == nullptr || pod->container != request.owner.container_id) return;
        for (const core::AssignedAddress& one : assigned->addresses) {
          if (checker_.living_with(one.address) == core::handle_of(request.owner)) continue;
          checker_.violate("another answer",
                           fmt::format("asked again, {} got {}", pod->container, one.address.to_string()));
        }
      });
}

void Cluster::kill_agent(Node& node, Span until_restart) {
  if (!node.agent) return;
  stop_agent(node);
  const std::uint64_t start = ++node.starts;
  schedule_.after(until_restart, [this, &node, start] {
    if (node.starts == start) start_agent(node);
  });
}

void Cluster::kill_plugins(Node& node) {
  for (const auto& plugin : std::exchange(node.plugins, {})) {
    plugin->process.kill();
    plugin->done.notify_all();
  }
}

void Cluster::reboot(Node& node, Span down) {
  if (!node.is_up || node.is_lost) return;
  stop_machine(node);
  schedule_.after(down, [this, &node] {
    if (node.is_up || node.is_lost) return;
    node.clock.reboot();
    start_machine(node);
  });
}

/// The machine is lost, and its Node object goes a moment later. The last one stays.
void Cluster::lose_node(Node& node) {
  if (node.is_lost || std::ranges::count(nodes_, false, [](const auto& one) { return one->is_lost; }) <= 1) return;
  tell(fmt::format("{} loses power for ever", node.name));
  stop_machine(node);
  node.is_lost = true;
  schedule_.after(15s, [this, &node] {
    node.is_listed = false;
    const std::size_t pods =
        std::erase_if(pods_, [&](const auto& pod) { return nodes_[pod.second->node].get() == &node; });
    tell(fmt::format("Node object {} goes, and its pods, {}", node.name, pods));
  });
}

/// An operator's command, which does what it can.
void Cluster::command(std::function<void(const engine::Context&)> body) {
  schedule_.spawn(people_, [this, body = std::move(body)] {
    TroubledClient client(server_, control_clock_);
    engine::Context context{client, control_clock_, control_random_};
    context.wait_by = [](std::chrono::nanoseconds span) { sleep(span); };
    body(context);
  });
}

void Cluster::set_pool_disabled(const std::string& name, bool disabled) {
  command(
      [name, disabled](const engine::Context& context) { (void)engine::set_pool_disabled(context, name, disabled); });
}

void Cluster::delete_pool(const std::string& name) {
  command([name](const engine::Context& context) { (void)engine::delete_pool(context, name); });
}

void Cluster::create_pool(const std::string& name) {
  const auto pool = std::ranges::find(setup_.later, name, &Setup::Pool::name);
  if (pool == setup_.later.end()) return;
  command([spec = spec_of(*pool)](const engine::Context& context) { (void)engine::create_pool(context, spec); });
}

void Cluster::remove_node(const Node& node) {
  if (!node.is_lost) return;
  command([name = node.name](const engine::Context& context) {
    (void)engine::remove_node(context, {name, true, false});
  });
}

/// The register is put back to the copy, in the runbook's order.
void Cluster::restore() {
  if (!copy_) return;
  // Nothing is made, and no facts of now are held against a register of then.
  is_stopped_ = true;
  controller_.reset();
  for (const auto& node : nodes_) {
    kill_plugins(*node);
    kill_agent(*node, 3s);
  }
  server_.put_back(*copy_);
  checker_.put_back(server_);
  // Pods whose addresses the register does not have are made again; the others live on with theirs.
  for (const auto& node : nodes_) {
    for (auto& [container, sandbox] : node->sandboxes) {
      if (sandbox.given.empty() || !node->is_up) continue;
      const auto pod = std::ranges::find_if(pods_, [&](const auto& one) { return one.second->container == container; });
      if (pod == pods_.end()) continue;
      if (checker_.is_held(server_, sandbox.owner, sandbox.given)) {
        checker_.given(server_, sandbox.owner, sandbox.given, "", kUninformed);
      } else {
        restart_pod(pod->first);
      }
    }
  }
  schedule_.after(5s, [this] {
    is_stopped_ = false;
    goes_on_.notify_all();
    if (!controller_) restart_controller(0s);
  });
}

// ---------------------------------------------------------------- the end

void Cluster::end() {
  server_.troubles() = {};
  stale_until_ = empty_until_ = Span{0};
  for (const auto& node : nodes_) {
    node->way = {};
    node->muted_until = Span{0};
  }
  std::vector<std::string> names;
  for (const auto& [name, pod] : pods_) {
    if (!name.starts_with(kKept)) names.push_back(name);
  }
  for (const std::string& name : names) delete_pod(name);
  for (std::size_t i = 0; i < nodes_.size(); ++i) create_pod(fmt::format("{}{}", kKept, i + 1), i);
  // A controller that began after a node was lost never saw it: it waits for an operator's word.
  for (const auto& node : nodes_) remove_node(*node);
}

std::string Cluster::without_address() const {
  // A node that may not borrow needs a block of its own, beside those in which addresses still rest.
  const std::size_t blocks = setup_.strict ? 2 * nodes_.size() : 1;
  if (!checker_.has_room(net::Family::v4, blocks)) return {};
  if (setup_.dual_stack && !checker_.has_room(net::Family::v6, blocks)) return {};
  for (const auto& [name, pod] : pods_) {
    if (name.starts_with(kKept) && pod->container.empty()) return name;
  }
  return {};
}

bool Cluster::is_at_rest() const {
  const bool are_kept = std::ranges::all_of(pods_, [](const auto& pod) { return pod.first.starts_with(kKept); });
  return are_kept && checker_.is_clean() && without_address().empty();
}

void Cluster::expect_rest() {
  checker_.expect_clean();
  if (const std::string pod = without_address(); !pod.empty())
    checker_.violate("pod without an address at the end", pod);
}

}  // namespace croft::sim
