#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include <fmt/format.h>

#include "collector/use/sweep.h"
#include "ipam/use/assign.h"
#include "ipam/use/batch.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "sim/plan.h"
#include "sim/server.h"
#include "store/cached/cached_store.h"
#include "store/forwarding_store.h"

// The cluster of a plan, and what a run of it measures.

namespace croft::sim {
namespace {

using namespace std::chrono_literals;

/// News come in bundles.
constexpr Span kBundle = 10ms;

/// The name of the block that a claim, a vacancy or a mark is of: "ipv4/10.0.0.64/26".
std::string_view block_in(std::string_view name) {
  const std::size_t at = name.rfind("/ipv");
  return at == name.npos ? name : name.substr(at + 1);
}

/// The keys of all claimed blocks, one list for all nodes of a plan, as old as news of a watch are.
class ClaimedKeys {
 public:
  ClaimedKeys(Schedule& schedule, Span lag) : schedule_(schedule), lag_(lag) {}

  /// To be told of each commit.
  void committed(const std::vector<Changed>& changes) {
    const bool is_first = waiting_.empty();
    for (const Changed& changed : changes) {
      if (changed.key.kind == core::Kind::affinity) waiting_.emplace_back(changed.key, changed.after.has_value());
    }
    if (!is_first || waiting_.empty()) return;
    schedule_.after(lag_ + kBundle, [this] {
      for (const auto& [key, is_there] : std::exchange(waiting_, {})) apply(key, is_there);
    });
  }
  /// Takes in a claim that was there before.
  void put(const core::Key& affinity) { apply(affinity, true); }

  [[nodiscard]] core::KeyList list(net::Family family) { return keys_[family == net::Family::v4 ? 0 : 1].list(); }
  /// The number of claims.
  [[nodiscard]] std::size_t count() const { return affinities_.size(); }
  [[nodiscard]] bool contains(const core::Key& block) const { return claims_.contains(block.name); }

 private:
  void apply(const core::Key& affinity, bool is_there) {
    if (is_there ? !affinities_.insert(affinity.name).second : affinities_.erase(affinity.name) == 0) return;
    const core::Key block{core::Kind::block, std::string(block_in(affinity.name))};
    store::SharedKeys& keys = keys_[block.name.starts_with("ipv4") ? 0 : 1];
    std::size_t& count = claims_[block.name];
    count = is_there ? count + 1 : count - 1;
    if (is_there && count == 1) keys.insert(block);
    if (count > 0) return;
    keys.erase(block);
    claims_.erase(block.name);
  }

  Schedule& schedule_;
  const Span lag_;
  std::vector<std::pair<core::Key, bool>> waiting_;
  std::unordered_set<std::string> affinities_;
  std::unordered_map<std::string, std::size_t> claims_;  ///< of a block, by its name
  std::array<store::SharedKeys, 2> keys_;
};

/// A node's way to the register without memory. A look for a block to claim lists claims and blocks by label in a real
/// Kubernetes API, and the measured server goes through all of them. `claimed` is null for an agent, whose memory has
/// them.
class NodeStore final : public store::ForwardingStore {
 public:
  NodeStore(Client& client, Server& server, const ClaimedKeys* claimed)
      : ForwardingStore(client), server_(server), claimed_(claimed) {}
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    if (server_.manners().can.atomic_commit) return beneath().read(wanted, deadline);
    const auto looks = std::ranges::count_if(
        wanted.lists, [](const auto& one) { return one.kind == core::Kind::affinity && one.as_stored; });
    const Manners::Work& work = server_.manners().work;
    if (claimed_ != nullptr) {
      server_.serve((2 * work.an_item + work.a_block) * looks * static_cast<std::int64_t>(claimed_->count()));
    }
    return beneath().read(wanted, deadline);
  }
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override {
    return beneath().commit_each(writes, token, deadline);
  }

 private:
  Server& server_;
  const ClaimedKeys* claimed_;
};

/// The answers of the memory of a node's agent (store/cached), for thousands of nodes in one process. Its own records
/// are those of the server at that moment, and take no time. Records that an agent does not know are asked for beneath.
class NodeMemory final : public store::ForwardingStore {
 public:
  NodeMemory(store::Store& direct, Server& server, ClaimedKeys& claimed, const core::AffinityOwner& node)
      : ForwardingStore(direct), server_(server), claimed_(claimed), own_names_(core::owned_names_of(node)) {}
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    if (!knows_lists(wanted)) return beneath().read(wanted, deadline);
    core::Missing truth;
    for (const core::Key& key : wanted.records) {
      const Known known = knows(key);
      if (known == Known::no) return beneath().read(wanted, deadline);
      if (known == Known::yes) truth.records.insert(key);
    }
    truth.lists = wanted.lists;
    for (const core::Listing& listing : wanted.keys) {
      if (listing.kind != core::Kind::block) truth.keys.insert(listing);
    }
    TRY(store::ReadAnswer found, server_.records().read(truth, deadline));
    store::ReadAnswer answer;
    answer.lists = std::move(found.lists);
    auto next = found.records.begin();
    for (const core::Key& key : wanted.records) {
      answer.records.push_back(truth.records.contains(key) ? std::move(*next++) : std::nullopt);
    }
    for (const core::FreeBlock& block : wanted.free_blocks) {
      answer.free_blocks.push_back(core::find_free_block(block, *claimed_.list(block.pool.family())));
      answer.free_blocks.back().is_from_memory = true;
    }
    auto next_keys = found.keys.begin();
    for (const core::Listing& listing : wanted.keys) {
      if (listing.kind != core::Kind::block) {
        answer.keys.push_back(std::move(*next_keys++));
      } else {
        answer.keys.push_back(
            claimed_.list(listing.name_prefix.starts_with("ipv4") ? net::Family::v4 : net::Family::v6));
      }
    }
    return answer;
  }
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override {
    return beneath().commit_each(writes, token, deadline);
  }

 private:
  enum class Known : std::uint8_t { yes, absent, no };
  [[nodiscard]] Known knows(const core::Key& key) {
    switch (key.kind) {
      case core::Kind::block: {
        if (server_.records().contains({core::Kind::affinity, own_names_ + key.name})) return Known::yes;
        return claimed_.contains(key) ? Known::no : Known::absent;
      }
      case core::Kind::high_water_mark:
        return claimed_.contains({core::Kind::block, key.name}) ? Known::no : Known::absent;
      case core::Kind::vacancy:
      case core::Kind::affinity:
        return key.name.starts_with(own_names_) ? Known::yes : Known::no;
      case core::Kind::pool:
      case core::Kind::reservation:
      case core::Kind::ipam_config:
      case core::Kind::node:
      case core::Kind::handle:
        return Known::yes;
      default:
        return Known::no;
    }
  }
  [[nodiscard]] bool knows_lists(const core::Missing& wanted) const {
    if (std::ranges::any_of(wanted.free_blocks, &core::FreeBlock::as_stored)) return false;
    for (const core::Listing& listing : wanted.lists) {
      const bool is_small = listing.kind == core::Kind::pool || listing.kind == core::Kind::reservation;
      if (!is_small && !listing.name_prefix.starts_with(own_names_)) return false;
    }
    return std::ranges::all_of(wanted.keys, [&](const core::Listing& listing) {
      return !listing.as_stored && (listing.kind == core::Kind::block || listing.name_prefix.starts_with(own_names_));
    });
  }

  Server& server_;
  ClaimedKeys& claimed_;
  const std::string own_names_;
};

constexpr const char* kNetwork = "k8s-pod-network";
constexpr std::uint32_t kClaimAheadBelow = 8;
constexpr Span kAheadHold = 5min, kRetry = 10s, kRetryMax = 5min;
/// Kubernetes takes a node's pods elsewhere after this.
constexpr Span kNodeIsGone = 5min;
constexpr int kPassesMax = 20;
constexpr Span kStartMax = 6h;
constexpr unsigned kRefusedTriesMax = 3;
/// Rounds of growth; in each a part of what is free is asked for.
constexpr int kGrowthRoundsMax = 2000, kGrowthParts = 50;

double size_of(const net::Prefix& prefix) { return std::exp2(net::bit_length(prefix.family()) - prefix.length()); }

double seconds_of(Span span) { return std::chrono::duration<double>(span).count(); }

Latency latency_of(std::vector<float> milliseconds) {
  if (milliseconds.empty()) return {};
  std::ranges::sort(milliseconds);
  const auto at = [&](double share) {
    return static_cast<double>(
        milliseconds[static_cast<std::size_t>(share * static_cast<double>(milliseconds.size() - 1))]);
  };
  return {at(0.5), at(0.9), at(0.99)};
}

/// A pod that has an address, or is to get one.
struct Pod {
  std::uint64_t number = 0;
  std::uint32_t node = 0;
  net::Address address{};
  const PodOfToday* today = nullptr;  ///< of one that was there before
  std::uint32_t tries = 0;
};

core::Owner owner_of(const Pod& pod) {
  return pod.today != nullptr ? pod.today->owner : core::Owner{kNetwork, fmt::format("c{}", pod.number), "eth0"};
}
core::PodIdentity identity_of(const Pod& pod) {
  if (pod.today != nullptr) return pod.today->of;
  return {fmt::format("pod-{}", pod.number), "default", fmt::format("uid-{}", pod.number)};
}

/// The cluster of a plan.
class Fleet {
 public:
  /// `grows`: behind its life pods are added until the pool is full.
  Fleet(const Plan& plan, bool grows)
      : plan_(plan),
        grows_(grows),
        server_(schedule_, measured_manners(plan.datastore, plan.cores), plan.seed),
        claimed_(schedule_, server_.manners().watch.second),
        chance_(plan.seed * 77),
        control_clock_(schedule_, 0, beginning()),
        control_(schedule_) {
    server_.records().keep_no_history();
    server_.on_commit([this](const std::vector<Changed>& changes) { claimed_.committed(changes); });
  }
  ~Fleet() {
    control_.kill();
    for (const auto& node : nodes_) node->process.kill();
  }
  Fleet(const Fleet&) = delete;
  Fleet& operator=(const Fleet&) = delete;

  [[nodiscard]] Result<Measured> run() {
    TRY_VOID(begin());
    start_all();
    live();
    measured_.pool = pools_.front().cidr;
    measured_.block_length = pools_.front().block_length;
    measured_.nodes = nodes_.size();
    measured_.pods = pods_.size();
    measured_.without = numbers_ - pods_.size() - gone_;
    measured_.blocks_a_node = static_cast<double>(measured_.space.blocks) / static_cast<double>(nodes_.size());
    if (grows_) grow_until_full();
    return std::move(measured_);
  }

 private:
  struct Call {
    bool is_add = true;
    Pod pod;
    Span asked{0};
  };
  struct Node {
    Node(Fleet& fleet, const std::string& name, std::uint16_t number)
        : owner{core::AffinityOwner::Type::host, name},
          clock(fleet.schedule_, number, fleet.beginning()),
          random(fleet.plan_.seed * 1000 + number),
          client(fleet.server_, clock),
          direct(client, fleet.server_, fleet.plan_.way == Plan::Way::alone ? &fleet.claimed_ : nullptr),
          memory(direct, fleet.server_, fleet.claimed_, owner),
          process(fleet.schedule_) {}

    core::AffinityOwner owner;
    MachineClock clock;
    SeededRandom random;
    Client client;
    NodeStore direct;
    NodeMemory memory;
    std::deque<Pod> to_start;
    std::uint32_t starting = 0, pods = 0;
    std::deque<Call> waiting;
    bool is_at_work = false, is_ready = false, is_up = true, is_listed = true;
    Process process;
  };
  /// The API's lists.
  class Facts final : public engine::FactSource {
   public:
    explicit Facts(const Fleet& fleet) : fleet_(fleet) {}
    [[nodiscard]] Result<core::collect::Facts> facts() override {
      core::collect::Facts facts;
      facts.taken_at = fleet_.control_clock_.now();
      for (const auto& node : fleet_.nodes_) {
        if (node->is_listed) facts.add_node({node->owner.name, {}, {}});
      }
      facts.set_pods_known();
      for (const Pod& pod : fleet_.pods_) {
        const core::PodIdentity of = identity_of(pod);
        facts.add_pod(
            {of.namespace_name, of.name, of.uid, fleet_.nodes_[pod.node]->owner.name, "Running", "", {pod.address}});
      }
      facts.complete = true;
      facts.freeze();
      return facts;
    }

   private:
    const Fleet& fleet_;
  };

  [[nodiscard]] WallTime beginning() const { return plan_.today ? plan_.today->read_at : kBeginning; }
  [[nodiscard]] Result<void> begin() {
    const engine::Context context{server_.records(), control_clock_, chance_};
    if (plan_.today) {
      take_over_today();
    } else {
      const net::Prefix pool = plan_.pool.value_or(pool_for(plan_, net::Family::v4));
      const int length = block_length_of(plan_, pool.family());
      TRY(const auto made, engine::create_pool(context, {"pods", pool, length, {}, plan_.cooldown, {}}));
      pools_.push_back(made.pool);
    }
    family_ = pools_.front().cidr.family();
    core::IpamConfig config = plan_.today ? plan_.today->config : core::IpamConfig();
    if (std::exchange(config.strict_affinity, plan_.strict) != plan_.strict) {
      const store::Write write{core::ipam_config_key(), config, store::Condition::always()};
      TRY_VOID(server_.records().commit({&write, 1}, {}, {}));
    }
    for (std::size_t i = nodes_.size(); i < plan_.nodes; ++i) add_node(fmt::format("node-{}", i + 1));
    return {};
  }
  /// The records as they are, and a pod for each that holds an address.
  void take_over_today() {
    std::map<std::string, std::uint32_t> numbers;
    const auto node_of = [&](const std::string& name) {
      const auto [at, is_new] = numbers.try_emplace(name, static_cast<std::uint32_t>(nodes_.size()));
      if (is_new) add_node(name);
      return at->second;
    };
    for (const store::Record& record : plan_.today->records) {
      const store::Write write{record.key, *record.value, store::Condition::always()};
      (void)server_.records().commit({&write, 1}, {}, {});
      if (const auto* node = record.get_if<core::Node>()) node_of(node->name);
      if (record.key.kind == core::Kind::affinity) claimed_.put(record.key);
    }
    for (const PodOfToday& held : plan_.today->pods) {
      const std::uint32_t node = node_of(held.node);
      pods_.push_back({++numbers_, node, held.address, &held});
      ++nodes_[node]->pods;
    }
    pools_ = plan_.today->pools;
  }
  void add_node(const std::string& name) {
    const auto number = static_cast<std::uint16_t>(nodes_.size() + 1);
    nodes_.push_back(std::make_unique<Node>(*this, name, number));
    const store::Write write{core::node_key(name), core::Node{name, {}, {}, {}}, store::Condition::if_absent()};
    (void)server_.records().commit({&write, 1}, {}, {});
    server_.set_watchers(plan_.way == Plan::Way::agents ? nodes_.size() : 0);
  }
  [[nodiscard]] engine::Context context_of(Node& node, store::Store& store) {
    engine::Context context{store, node.clock, node.random};
    context.wait_by = [](std::chrono::nanoseconds span) { sleep(span); };
    return context;
  }
  [[nodiscard]] core::AssignRequest request_of(const Node& node, const Pod& pod) const {
    core::AssignRequest request;
    request.owner = owner_of(pod);
    request.pod = identity_of(pod);
    request.node = node.owner;
    request.count = {family_ == net::Family::v4 ? 1U : 0U, family_ == net::Family::v6 ? 1U : 0U};
    return request;
  }

  void start_pod(std::uint32_t number) {
    Node& node = *nodes_[number];
    ++node.pods;
    node.to_start.push_back({++numbers_, number});
    wait_for_start(node);
  }
  /// Starts what may start: nodes take turns, each with as many pods as it starts at once.
  void wait_for_start(Node& node) {
    // Without an agent the calls of a node take turns by a lock file.
    const std::uint32_t most = plan_.way == Plan::Way::agents ? plan_.at_once : 1;
    if (node.is_up && !node.to_start.empty() && node.starting < most && !std::exchange(node.is_ready, true)) {
      ready_.push_back(&node);
    }
    while (in_flight_ < plan_.in_flight && !ready_.empty()) {
      Node& next = *ready_.front();
      if (!next.is_up || next.to_start.empty() || next.starting >= most) {
        next.is_ready = false;
        ready_.pop_front();
        continue;
      }
      ++next.starting;
      ++in_flight_;
      Pod pod = std::move(next.to_start.front());
      next.to_start.pop_front();
      submit(next, {true, std::move(pod), schedule_.now()});
    }
  }
  void submit(Node& node, Call call) {
    if (plan_.way != Plan::Way::agents) {
      schedule_.spawn(node.process, [this, &node, call = std::move(call)] { serve_alone(node, call); });
      return;
    }
    node.waiting.push_back(std::move(call));
    if (std::exchange(node.is_at_work, true)) return;
    schedule_.spawn(node.process, [this, &node] { work(node); });
  }
  /// The agent's turn: what waits is one commit (agent/door/service.h).
  void work(Node& node) {
    struct Kept {
      Call call;
      core::AssignRequest request{};
      core::Owner wanted{};
      core::Assigned assigned{};
      core::Released released{};
    };
    static const std::vector<core::PoolSpec> kNoPools;
    while (!node.waiting.empty()) {
      std::deque<Kept> kept;
      std::vector<engine::BatchedCall> batch;
      for (Call& call : std::exchange(node.waiting, {})) {
        Kept& one = kept.emplace_back(Kept{std::move(call)});
        if (one.call.is_add) {
          one.request = request_of(node, one.call.pod);
          batch.push_back(engine::assign_in_batch(one.request, kNoPools, {}, one.assigned));
        } else {
          one.wanted = owner_of(one.call.pod);
          batch.push_back(engine::release_in_batch(one.wanted, {}, one.released));
        }
      }
      const engine::Context direct = context_of(node, node.direct);
      engine::commit_together(direct, node.memory, batch);
      std::optional<core::AssignRequest> like;
      std::deque<Call> still;
      for (std::size_t i = 0; i < batch.size(); ++i) {
        Kept& one = kept[i];
        switch (batch[i].fate) {
          case engine::BatchFate::waits:
            still.push_back(std::move(one.call));
            break;
          case engine::BatchFate::alone:
            schedule_.spawn(node.process, [this, &node, call = std::move(one.call)] { serve_alone(node, call); });
            break;
          case engine::BatchFate::failed:
            if (one.call.is_add) added(node, one.call, fail(*batch[i].error));
            break;
          case engine::BatchFate::done:
            if (one.call.is_add) {
              like = one.request;
              added(node, one.call, core::AssignAnswer(std::move(one.assigned)));
            } else {
              ++releases_;
            }
            break;
        }
      }
      node.waiting.insert(node.waiting.begin(), std::make_move_iterator(still.begin()),
                          std::make_move_iterator(still.end()));
      if (node.waiting.empty() && like) claim_ahead(node, *like);
    }
    node.is_at_work = false;
  }
  void claim_ahead(Node& node, const core::AssignRequest& like) {
    const auto claimed =
        engine::claim_ahead(context_of(node, node.direct), node.memory, like, family_, kClaimAheadBelow);
    if (!claimed) return;
    schedule_.after(kAheadHold, [this, &node, ahead = *claimed] {
      schedule_.spawn(node.process, [this, &node, ahead] {
        (void)engine::give_back_ahead(context_of(node, node.direct), node.owner, ahead);
      });
    });
  }
  void serve_alone(Node& node, const Call& call) {
    const engine::Context context = context_of(node, node.direct);
    if (call.is_add) return added(node, call, engine::assign(context, request_of(node, call.pod)));
    ++releases_;
    (void)engine::release_owner(context, owner_of(call.pod));
  }
  void added(Node& node, const Call& call, const Result<core::AssignAnswer>& answer) {
    --node.starting;
    --in_flight_;
    const auto* assigned = answer ? std::get_if<core::Assigned>(&*answer) : nullptr;
    Pod pod = call.pod;
    if (assigned != nullptr && !assigned->addresses.empty()) {
      ++adds_;
      latencies_.push_back(static_cast<float>(seconds_of(schedule_.now() - call.asked) * 1000));
      done_at_.push_back(schedule_.now());
      pod.address = assigned->addresses.front().address;
      pods_.push_back(std::move(pod));
    } else {
      ++(answer ? measured_.refused : measured_.failed);
      // The kubelet tries again, and waits longer each time. A pool that is full stays full: what more tries would cost
      // is no property of the plan.
      const Span wait = std::min(kRetryMax, kRetry * (std::int64_t{1} << std::min(pod.tries++, 5U)));
      if (answer && pod.tries >= kRefusedTriesMax) {
        ++given_up_;
      } else {
        schedule_.after(wait, [this, &node, pod = std::move(pod)]() mutable {
          node.to_start.push_back(std::move(pod));
          wait_for_start(node);
        });
      }
    }
    wait_for_start(node);
  }

  void start_all() {
    std::uint64_t wanted = 0;
    for (std::uint32_t i = 0; i < nodes_.size(); ++i) {
      const std::uint32_t there = nodes_[i]->pods;
      if (there >= plan_.pods) continue;
      wanted += plan_.pods - there;
      for (std::uint32_t k = there; k < plan_.pods; ++k) start_pod(i);
    }
    while (adds_ + given_up_ < wanted && schedule_.now() < kStartMax) schedule_.run_until(schedule_.now() + 100ms);
    if (done_at_.empty()) return;
    const Traffic& traffic = server_.traffic();
    const auto tries = static_cast<double>(adds_ + measured_.refused + measured_.failed);
    measured_.requests_an_add = static_cast<double>(traffic.requests) / tries;
    measured_.conflicts_an_add = static_cast<double>(traffic.conflicts) / tries;
    std::ranges::sort(done_at_);
    const std::size_t most = done_at_.size() - 1 - done_at_.size() / 100;
    measured_.adds_a_second = static_cast<double>(most + 1) / seconds_of(done_at_[most]);
    if (adds_ == wanted) measured_.start_seconds = seconds_of(done_at_[most]);
    measured_.start = latency_of(std::exchange(latencies_, {}));
  }
  void live() {
    // Blocks that were claimed ahead while all pods started are given back before anything is counted.
    schedule_.run_until(schedule_.now() + kAheadHold + 1min);
    latencies_.clear();
    const Span began = schedule_.now(), ends = began + plan_.life;
    const std::uint64_t before = server_.traffic().requests, calls = adds_ + releases_,
                        lost = static_cast<std::uint64_t>(
                            plan_.failures > 0 && nodes_.size() > 1
                                ? std::max(1.0, std::round(plan_.failures * seconds_of(plan_.life) / 86400))
                                : 0);
    const double a_second = plan_.churn * static_cast<double>(nodes_.size()) / 3600;
    const auto until_next = [&] {
      const double drawn = (static_cast<double>(chance_.next() >> 11) + 1) / 9007199254740993.0;
      return Span(static_cast<std::int64_t>(-std::log(drawn) / a_second * 1e9));
    };
    std::function<void()> next = [&] {
      replace_some_pod();
      if (const Span at = schedule_.now() + until_next(); at < ends) schedule_.at(at, next);
    };
    if (a_second > 0) schedule_.after(until_next(), next);
    if (lost > 0) pass_of_collector();
    for (std::uint64_t i = 0; i < lost && i + 1 < nodes_.size(); ++i) {
      schedule_.at(
          began + plan_.life / 6 + plan_.life / 2 * static_cast<std::int64_t>(i) / static_cast<std::int64_t>(lost),
          [this] { lose_node(some_node()); });
    }
    schedule_.run_until(ends);
    measured_.space = space();
    const auto done = static_cast<double>(adds_ + releases_ - calls);
    if (done > 0) measured_.requests_a_pod = 2 * static_cast<double>(server_.traffic().requests - before) / done;
    measured_.steady = latency_of(std::exchange(latencies_, {}));
  }
  void replace_some_pod() {
    if (pods_.empty()) return;
    const std::size_t place = static_cast<std::size_t>(chance_.next() % pods_.size());
    Pod pod = std::exchange(pods_[place], std::move(pods_.back()));
    pods_.pop_back();
    ++gone_;
    Node& node = *nodes_[pod.node];
    --node.pods;
    if (node.is_up) submit(node, {false, std::move(pod), schedule_.now()});
    start_pod(some_node());
  }
  /// The machine is lost; Kubernetes makes its pods elsewhere, and the collector frees what they held.
  void lose_node(std::uint32_t number) {
    Node& node = *nodes_[number];
    node.process.kill();
    node.is_up = false;
    in_flight_ -= std::exchange(node.starting, 0);
    Lost& lost = lost_[node.owner.name] = {schedule_.now(), 0};
    std::erase_if(pods_, [&](const Pod& pod) { return pod.node == number && ++lost.held > 0; });
    schedule_.after(kNodeIsGone, [this, &node, pods = node.pods] {
      node.is_listed = false;
      gone_ += pods;
      for (std::uint32_t i = 0; i < pods; ++i) start_pod(some_node());
      pass_of_collector();
      // Its passes are half a grace apart.
      const Span grace = core::collect::Settings{}.grace;
      for (int i = 1; i <= kPassesMax; ++i) {
        schedule_.after(grace / 2 * i + 1s, [this] {
          if (!lost_.empty()) pass_of_collector();
        });
      }
    });
  }
  /// In no time: what it costs the store is not counted.
  void pass_of_collector() {
    Facts facts(*this);
    const engine::Context context{server_.records(), control_clock_, chance_};
    const auto report = engine::sweep(context, facts, collected_, {});
    if (!report) return;
    for (const core::collect::Evidence& evidence : report->released) {
      const auto lost = lost_.find(evidence.node);
      if (evidence.what != core::collect::Evidence::What::address || lost == lost_.end()) continue;
      if (--lost->second.held > 0) continue;
      const double minutes = seconds_of(schedule_.now() - lost->second.at) / 60;
      measured_.recovered_minutes = std::max(measured_.recovered_minutes.value_or(0), minutes);
      lost_.erase(lost);
    }
  }
  /// Pods are added, each on some node, until one gets no address.
  void grow_until_full() {
    const std::uint64_t refused = measured_.refused;
    for (int round = 0; round < kGrowthRoundsMax && measured_.refused == refused; ++round) {
      const Space now = space();
      const double more = (now.size - static_cast<double>(now.held + now.cooling)) / kGrowthParts;
      for (int i = 0; i < std::max(1, static_cast<int>(std::min(more, 4096.0))); ++i) start_pod(some_node());
      schedule_.run_until(schedule_.now() + 1s);
    }
    if (measured_.refused == refused) return;
    const Space full = space();
    measured_.full_share = static_cast<double>(full.held) / full.size;
  }
  [[nodiscard]] std::uint32_t some_node() {
    const auto drawn = [&] {
      for (;;) {
        const auto number = static_cast<std::uint32_t>(chance_.next() % nodes_.size());
        if (nodes_[number]->is_up) return number;
      }
    };
    // A scheduler keeps nodes alike.
    const std::uint32_t one = drawn(), other = drawn();
    return nodes_[one]->pods <= nodes_[other]->pods ? one : other;
  }
  [[nodiscard]] Space space() {
    Space space;
    for (const core::Pool& pool : pools_) space.size += size_of(pool.cidr);
    const Instant now = control_clock_.now();
    server_.records().look_at(core::Kind::block, [&](const core::Key& /*key*/, const core::Value& value) {
      const auto* block = std::get_if<core::Block>(&value);
      if (block == nullptr || block->deleted) return;
      std::uint64_t taken = 0;
      const auto pool =
          std::ranges::find_if(pools_, [&](const core::Pool& one) { return one.cidr.contains(block->cidr); });
      if (pool == pools_.end()) return;
      const core::Cooldowns cooldowns(pool->cooldown);
      for (std::uint32_t i = 0; i < block->allocations.size(); ++i) {
        const core::Attribute* attribute = core::attribute_of(*block, net::Ordinal(i));
        if (attribute == nullptr) continue;
        if (attribute->cooling) {
          if (core::cooldown_ended(*attribute->cooling, cooldowns.of(*attribute->cooling), now)) continue;
          ++space.cooling;
        } else {
          ++space.held;
          space.borrowed += block->affinity && core::is_borrowed(*block, *attribute) ? 1 : 0;
        }
        ++taken;
      }
      if (!block->affinity) return;
      ++space.blocks;
      space.spare += block->allocations.size() - taken;
    });
    return space;
  }

  const Plan plan_;
  const bool grows_;
  Schedule schedule_;
  Server server_;
  ClaimedKeys claimed_;
  SeededRandom chance_;
  MachineClock control_clock_;
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<core::Pool> pools_;
  net::Family family_ = net::Family::v4;
  std::vector<Pod> pods_;
  std::deque<Node*> ready_;  ///< nodes with pods to start
  std::uint32_t in_flight_ = 0;
  std::uint64_t numbers_ = 0, adds_ = 0, releases_ = 0;
  std::uint64_t gone_ = 0;      ///< pods that were replaced, or lost with their node and made again
  std::uint64_t given_up_ = 0;  ///< pods for which there was no address, several times
  std::vector<float> latencies_;
  std::vector<Span> done_at_;
  core::collect::Memory collected_;
  /// Nodes that were lost and hold addresses still, by name.
  struct Lost {
    Span at{0};
    std::uint64_t held = 0;
  };
  std::map<std::string, Lost> lost_;
  Measured measured_;
  Process control_;  ///< first to go
};

constexpr std::uint64_t kGrowMax = 1 << 10;  ///< addresses of the pool that is filled

[[nodiscard]] Result<void> check(const Plan& plan) {
  const auto refuse = [](std::string why) { return fail(ErrorCode::invalid_argument, std::move(why)); };
  if (!manners_of(plan.datastore)) return refuse(fmt::format("there is no datastore {}", plan.datastore));
  if (plan.nodes < 1 || plan.nodes > 60000) return refuse("a plan has 1 to 60000 nodes");
  if (plan.pods < 1 || plan.pods > 1000) return refuse("a node has 1 to 1000 pods");
  if (plan.datastore == "sqlite" && plan.nodes > 1) {
    return refuse("a SQLite file serves one node; plan with one node, or with another datastore");
  }
  if (plan.today && plan.nodes < plan.today->nodes) {
    return refuse(fmt::format("the register of --from has {} nodes. Plan with at least so many.", plan.today->nodes));
  }
  if (!plan.pool) return {};
  const int length = block_length_of(plan, plan.pool->family());
  if (length < plan.pool->length() || length > net::bit_length(plan.pool->family())) {
    return refuse(fmt::format("a block of /{} does not fit into the pool {}. Name another with --block-size.", length,
                              plan.pool->to_string()));
  }
  return {};
}

}  // namespace

Result<Measured> run(const Plan& plan) {
  TRY_VOID(check(plan));
  TRY(Measured measured, Fleet(plan, false).run());
  if (plan.growth <= 0) return measured;
  Plan like = plan;
  like.pool = measured.pool;
  like.block_length = measured.block_length;
  Plan part = part_of(like, kPartNodes);
  while (size_of(*part.pool) > static_cast<double>(kGrowMax) && part.nodes > 1) part = part_of(part, part.nodes / 2);
  // A piece of a pool that is large for its nodes fills up as the whole does.
  const int most = net::bit_length(part.pool->family()) - std::countr_zero(kGrowMax);
  part.pool =
      net::Prefix::containing(part.pool->first(), std::min(std::max(part.pool->length(), most), *part.block_length));
  TRY(const Measured full, Fleet(part, true).run());
  measured.full_share = full.full_share;
  if (!full.full_share) return measured;
  const double more = *full.full_share * measured.space.size - static_cast<double>(measured.space.held);
  measured.days_to_full = measured.refused > 0 ? 0 : std::max(0.0, more / plan.growth);
  return measured;
}

}  // namespace croft::sim
