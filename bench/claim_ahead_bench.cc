// What blocks claimed ahead cost in a large cluster: 5,000 nodes whose pods come and go for an hour, with agents that
// claim ahead and with agents that do not, on a store in memory and a clock that is moved on. Everything is counted:
// commits, ADDs that had to wait for a claim, the blocks that lay ahead at once, and how long the longest lay unused.
//
// claim_ahead_bench [NODES [MINUTES]]

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "agent/door/service.h"
#include "base/clock.h"
#include "ipam/use/pools.h"
#include "report.h"
#include "store/memory/memory_store.h"

namespace croft {
namespace {

namespace agent = wire::agent;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr int kPodsMax = 110;              // the kubelet's own default
constexpr std::uint64_t kFillsEvery = 60;  // on the average a node is filled or drained once an hour
constexpr seconds kStep{10};
constexpr minutes kHold{5};

void check(bool done, const char* what) {
  if (done) return;
  fmt::print("failed: {}\n", what);
  std::exit(1);
}

struct Figures {
  std::uint64_t adds = 0;
  std::uint64_t dels = 0;
  std::uint64_t commits = 0;
  std::uint64_t adds_that_claimed = 0;  ///< their pods waited for it
  std::uint64_t ahead = 0;
  std::uint64_t given_back = 0;
  std::size_t ahead_at_once = 0;
  seconds longest_unused{};  ///< of those that were given back
};

class Node {
 public:
  Node(store::MemoryStore& store, const Clock& clock, Random& random, int number, std::uint32_t below, Figures& figures)
      : world_{store,     store,
               clock,     random,
               "memory:", fmt::format("node-{}", number),
               {},        [this](const std::string& line) { note(line); },
               nullptr,   below,
               kHold},
        service_(world_),
        figures_(figures) {}
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  ~Node() = default;

  void add(store::MemoryStore& store) {
    const std::string pod = fmt::format("{}-{}", world_.node, ++made_);
    agent::AssignCall call{caller(), {}, {}};
    call.request.owner = {"net", pod, "eth0"};
    call.request.node = {core::AffinityOwner::Type::host, world_.node};
    const auto commits = store.counts().commit;
    const auto answer = serve(service_.take_assign(agent::encode(call), {}));
    const auto outcome = agent::decode_assign_outcome(answer);
    const auto* assigned = outcome ? std::get_if<core::Assigned>(&*outcome) : nullptr;
    check(assigned != nullptr, "an ADD");
    const net::Address& address = assigned->addresses.at(0).address;
    const net::Prefix block = net::Prefix::containing(address, 26);
    if (++held_[block] == 1) {
      // The first one of a block: it lay ahead, or was claimed by this ADD; or had been emptied before.
      if (ahead_.erase(block) == 0 && known_.insert(block).second) ++figures_.adds_that_claimed;
    }
    pods_.emplace_back(pod, block);
    ++figures_.adds;
    service_.claim_ahead();
    figures_.commits += store.counts().commit - commits;
  }
  void del(store::MemoryStore& store, std::uint64_t chance) {
    const auto place = pods_.begin() + static_cast<std::ptrdiff_t>(chance % pods_.size());
    const auto commits = store.counts().commit;
    const auto answer = serve(service_.take_release(
        agent::encode(agent::ReleaseCall{caller(), core::Owner{"net", place->first, "eth0"}}), {}));
    check(!answer.empty(), "a DEL");
    --held_[place->second];
    pods_.erase(place);
    ++figures_.dels;
    figures_.commits += store.counts().commit - commits;
  }
  void give_back(store::MemoryStore& store) {
    const auto commits = store.counts().commit;
    service_.give_back(false);
    figures_.commits += store.counts().commit - commits;
  }
  [[nodiscard]] std::size_t pods() const { return pods_.size(); }
  [[nodiscard]] std::size_t ahead() const { return ahead_.size(); }

 private:
  [[nodiscard]] agent::Caller caller() const {
    return {"memory:", world_.node, world_.clock.now().boot, Deadline::after(world_.clock.now(), seconds(20)), {}};
  }
  [[nodiscard]] std::string serve(Result<edge::AgentCall> taken) {
    check(taken.has_value(), "taking a call");
    std::vector<edge::AgentCall> calls;
    calls.push_back(*std::move(taken));
    auto served = service_.serve_together(std::move(calls));
    check(served.waiting.empty(), "a call alone");
    auto answer = served.answers.empty() ? service_.serve_alone(served.alone.at(0)) : std::move(served.answers.front());
    check(answer.message.has_value(), "an answer");
    return *std::move(answer.message);
  }
  /// What the agent writes to its log about blocks ahead.
  void note(const std::string& line) {
    const bool claimed = line.starts_with("claimed block=");
    if (!claimed && !line.starts_with("gave block=")) return;
    const auto begin = line.find('=') + 1;
    const auto block = net::Prefix::parse(line.substr(begin, line.find(' ', begin) - begin));
    check(block.has_value(), "a line about a block");
    const auto now = std::chrono::duration_cast<seconds>(world_.clock.now().since_boot);
    if (claimed) {
      ahead_[*block] = now;
      known_.insert(*block);
      ++figures_.ahead;
      return;
    }
    ++figures_.given_back;
    known_.erase(*block);
    const auto since = ahead_.find(*block);
    check(since != ahead_.end(), "giving back what was used");
    figures_.longest_unused = std::max(figures_.longest_unused, now - since->second);
    ahead_.erase(since);
  }

  edge::AgentWorld world_;
  edge::AgentService service_;
  Figures& figures_;
  std::vector<std::pair<std::string, net::Prefix>> pods_;
  std::map<net::Prefix, int> held_;
  std::map<net::Prefix, seconds> ahead_;  ///< not used yet, and since when
  std::set<net::Prefix> known_;           ///< every block that was ever this node's
  int made_ = 0;
};

/// An hour of a cluster. What happens to its pods is the same with and without claims ahead.
Figures hour(int nodes, int minutes_of_life, std::uint32_t below) {
  store::MemoryStore store;
  ManualClock clock;
  SeededRandom random(1);
  SeededRandom life(2);
  core::PoolSpec pool;
  pool.name = "a";
  pool.cidr = net::Prefix::parse("10.0.0.0/10").value();
  pool.block_length = 26;
  check(engine::create_pool({store, clock, random}, pool).has_value(), "the pool");

  Figures figures;
  std::vector<std::unique_ptr<Node>> cluster;
  for (int i = 0; i < nodes; ++i) cluster.push_back(std::make_unique<Node>(store, clock, random, i, below, figures));
  const auto each_for = [&](minutes span, auto&& change) {
    for (seconds passed{}; passed < span; passed += kStep) {
      std::size_t ahead = 0;
      for (const auto& node : cluster) {
        change(*node);
        node->give_back(store);
        ahead += node->ahead();
      }
      figures.ahead_at_once = std::max(figures.ahead_at_once, ahead);
      clock.advance(kStep);
    }
  };
  const auto begin = [&](Node& node) {
    if (node.pods() != 0) return;
    for (auto wanted = life.next() % kPodsMax + 1; wanted > 0; --wanted) node.add(store);
  };
  each_for(minutes(1), begin);
  const std::uint64_t steps_a_minute = minutes(1) / kStep;
  each_for(minutes(minutes_of_life), [&](Node& node) {
    if (life.next() % (kFillsEvery * steps_a_minute) == 0) {
      const bool drain = node.pods() > kPodsMax / 2;
      while (drain && node.pods() > 0) node.del(store, life.next());
      while (!drain && node.pods() < kPodsMax) node.add(store);
      return;
    }
    if (life.next() % steps_a_minute != 0) return;  // one change a minute
    if (life.next() % 2 == 0 && node.pods() < kPodsMax) {
      node.add(store);
    } else if (node.pods() > 0) {
      node.del(store, life.next());
    }
  });
  each_for(kHold + minutes(1), [](Node&) {});  // nothing happens any more
  for (const auto& node : cluster) check(node->ahead() == 0, "every block that lay ahead is used or given back");
  return figures;
}

int run(int argc, char** argv) {
  const int nodes = argc > 1 ? std::atoi(argv[1]) : 5000;
  const int minutes_of_life = argc > 2 ? std::atoi(argv[2]) : 60;
  if (nodes < 1 || nodes > 20'000 || minutes_of_life < 1 || minutes_of_life > 10'000) return 2;
  const auto print = [](const char* what, const Figures& f) {
    fmt::print(
        "{:<22} {} ADDs, {} DELs, {} commits; {} ADDs waited for a claim; {} blocks ahead ({} at once at most), {} "
        "given back, the longest unused for {} s\n",
        what, f.adds, f.dels, f.commits, f.adds_that_claimed, f.ahead, f.ahead_at_once, f.given_back,
        f.longest_unused.count());
    std::fflush(stdout);
  };
  const Figures without = hour(nodes, minutes_of_life, 0);
  print("without claims ahead", without);
  const Figures with = hour(nodes, minutes_of_life, 8);
  print("with claims ahead", with);
  const auto calls = static_cast<double>(with.adds + with.dels);
  const auto more = static_cast<double>(with.commits) - static_cast<double>(without.commits);
  const std::string note =
      fmt::format("{} nodes, {} minutes, {} ADDs and DELs", nodes, minutes_of_life, with.adds + with.dels);
  bench::report(fmt::format("commits more for each hundred calls: {:.2f}", 100 * more / calls),
                {.id = "ahead.commits",
                 .what = "claims ahead: commits more, for each hundred ADDs and DELs",
                 .value = 100 * more / calls,
                 .note = note});
  bench::report(
      fmt::format("ADDs that waited for a claim: {} instead of {}", with.adds_that_claimed, without.adds_that_claimed),
      {.id = "ahead.waited",
       .what = "claims ahead: ADDs that waited for a claim, of those without",
       .value = static_cast<double>(with.adds_that_claimed) / static_cast<double>(without.adds_that_claimed),
       .note = note});
  bench::report(fmt::format("blocks ahead at once: {}", with.ahead_at_once),
                {.id = "ahead.at_once",
                 .what = "claims ahead: blocks that lie ahead at once, for each node",
                 .value = static_cast<double>(with.ahead_at_once) / nodes,
                 .budget = bench::at_most(1),
                 .note = note});
  const double hold = std::chrono::duration<double>(kHold).count();
  bench::report(fmt::format("the longest unused: {} s", with.longest_unused.count()),
                {.id = "ahead.unused",
                 .what = "claims ahead: the longest time that a block lay unused",
                 .value = static_cast<double>(with.longest_unused.count()),
                 .unit = "s",
                 // It is looked at every ten seconds.
                 .budget = bench::at_most(hold + std::chrono::duration<double>(kStep).count()),
                 .note = note});
  return 0;
}

}  // namespace
}  // namespace croft

int main(int argc, char** argv) { return croft::run(argc, argv); }
