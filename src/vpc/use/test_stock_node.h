#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "store/memory/memory_store.h"
#include "vpc/use/stock_calls.h"
#include "vpc/use/stock_keeper.h"
#include "vpc/use/test_cloud.h"

// For tests: nodes of one cloud, each with the keeper of its stock, which can die and begin again.

namespace croft::engine {

inline net::Mac mac_of(int node) { return net::Mac::parse("52:54:00:00:00:0" + std::to_string(node)).value(); }

/// Asks the agents it is told of, and may lose their answers.
class TestPeers final : public PeerAgents {
 public:
  std::map<std::string, StockKeeper*> keepers;
  std::map<std::string, std::uint32_t> said;
  bool loses_replies = false;
  std::set<std::string> unclear;  ///< nodes whose agents answer nothing that anybody understands
  int asked = 0;
  [[nodiscard]] Result<std::vector<Peer>> peers(const std::string& subnet, Deadline) override {
    std::vector<Peer> all;
    for (const auto& [node, free] : said) all.push_back({node, node + ":7312", subnet, free});
    return all;
  }
  [[nodiscard]] Result<cloud::CloudAddress> borrow(const Peer& peer, const net::Mac& mac, const std::string& subnet,
                                                   const std::string& request, Deadline deadline) override {
    const core::warm::Lend lend{request, mac, subnet};
    ++asked;
    if (unclear.contains(peer.node)) return fail(ErrorCode::unknown_outcome, "it answered without an address");
    const auto keeper = keepers.find(peer.node);
    if (keeper == keepers.end()) return fail(ErrorCode::unavailable, peer.node + " does not answer");
    const auto lent = keeper->second->lend(lend, deadline);
    if (loses_replies) return fail(ErrorCode::unknown_outcome, "no reply");
    if (!lent) return fail(lent.error());
    cloud::CloudAddress address;
    address.address = lent->address;
    address.prefix_length = lent->prefix_length;
    address.mac = lend.to;
    address.vpc = lent->vpc;
    address.subnet = lent->subnet;
    return address;
  }
};

/// One node with its agent, which can die and begin again on what it wrote.
class Node {
 public:
  Node(TestCloud& cloud, ManualClock& clock, int number) : cloud_(cloud), clock_(clock), number_(number) {}
  void begin(std::int64_t calls = std::int64_t{1} << 60) {
    keeper.reset();
    life = std::make_unique<Life>();
    life->calls_left = calls;
    mortal_ = std::make_unique<MortalStore>(store, *life);
    provider_ = std::make_unique<TestProvider>(cloud_, mac(), *life);
    auto others = wire ? wire->others : std::map<net::Address, net::Mac>();
    wire = std::make_unique<TestWire>(*life);
    host.clock = &clock_;
    wire->others = std::move(others);
    options.node = "node-" + std::to_string(number_);
    options.process = ++process_;
    KeeperWorld world{*mortal_, clock_, random, *provider_};
    world.probe = probes ? wire.get() : nullptr;
    world.peers = liar != nullptr ? liar : &peers;
    world.host = &host;
    world.pods = &pods;
    world.fixed = other_claims != nullptr ? other_claims : &claims;
    world.log = [this](const std::string& line) { log.push_back(line); };
    world.conflicted = [this](const core::StockAddress& address) { conflicts.push_back(address); };
    keeper = std::make_unique<StockKeeper>(world, options);
  }
  [[nodiscard]] net::Mac mac() const { return mac_of(number_); }
  [[nodiscard]] bool may_give() const {
    return keeper->actor().ask([&] { return keeper->actor().may_give(); });
  }
  /// So many ADDs wait because the stock is empty.
  void wait(std::uint32_t adds) {
    keeper->actor().ask([&] { keeper->actor().state.waiting = adds; });
  }
  [[nodiscard]] Context context() { return {store, clock_, random}; }
  /// As its agent has it; a plugin's where there is none.
  [[nodiscard]] Writer writer() const { return keeper ? keeper->writer() : Writer{}; }
  [[nodiscard]] std::string add(const std::string& container) {
    core::warm::Request request;
    request.owner = {"net", container, "eth0"};
    request.pod = {container, "shop", ""};
    request.cooldown = options.cooldown;
    const auto answer = assign_from_stock(context(), request, writer());
    EXPECT_TRUE(answer) << answer.error().message;
    const auto* assigned = answer ? std::get_if<core::warm::Assigned>(&*answer) : nullptr;
    if (assigned == nullptr) return "";
    host.used.insert(assigned->address.address);
    if (!assigned->was_held) pods.all.push_back({{container, "shop", ""}, {assigned->address.address}, false});
    return assigned->address.address.to_string();
  }
  std::size_t del(const std::string& container) {
    core::warm::Release release;
    release.owner = {"net", container, "eth0"};
    release.pod = {container, "shop", ""};
    release.cooldown = options.cooldown;
    const auto let_go = release_to_stock(context(), release, writer());
    EXPECT_TRUE(let_go) << let_go.error().message;
    for (const auto& one : *let_go) host.used.erase(one.address);
    std::erase_if(pods.all, [&](const core::warm::LivePod& pod) { return pod.pod.name == container; });
    return let_go->size();
  }
  [[nodiscard]] StockView view() {
    auto view = view_stock(context());
    EXPECT_TRUE(view) << view.error().message;
    return view ? *std::move(view) : StockView{};
  }
  [[nodiscard]] core::warm::Counts counts() {
    core::warm::Counts counts;
    for (const auto& one : view().addresses) core::warm::count(counts, one, clock_.now());
    return counts;
  }
  /// What the records say lies on the interface.
  [[nodiscard]] std::set<net::Address> recorded() {
    std::set<net::Address> addresses;
    for (const auto& one : view().addresses) {
      if (one.state != core::StockAddressState::lent) addresses.insert(one.address);
    }
    return addresses;
  }
  /// As it is when a damaged store was set aside: all records are gone.
  void lose_records() {
    std::vector<store::Write> writes;
    for (const auto& one : view().addresses) {
      writes.push_back({core::warm_address_key(one.address), std::nullopt, store::Condition::always()});
    }
    for (const auto& one : view().intents) {
      writes.push_back({core::warm_intent_key(one.id), std::nullopt, store::Condition::always()});
    }
    writes.push_back({core::warm_node_key(), std::nullopt, store::Condition::always()});
    for (const store::Write& write : writes) {
      const auto gone = store.commit({&write, 1}, {}, Deadline::after(clock_.now(), std::chrono::seconds{30}));
      EXPECT_TRUE(gone) << gone.error().message;
    }
    const auto begun = begin_rebuild(context());
    EXPECT_TRUE(begun) << begun.error().message;
  }
  /// As it is when an older copy of the store's files was put back.
  void put_back(const StockView& then) {
    for (const auto& one : view().addresses) {
      const store::Write write{core::warm_address_key(one.address), std::nullopt, store::Condition::always()};
      EXPECT_TRUE(store.commit({&write, 1}, {}, Deadline::after(clock_.now(), std::chrono::seconds{30})));
    }
    for (const auto& one : view().intents) {
      const store::Write write{core::warm_intent_key(one.id), std::nullopt, store::Condition::always()};
      EXPECT_TRUE(store.commit({&write, 1}, {}, Deadline::after(clock_.now(), std::chrono::seconds{30})));
    }
    std::vector<store::Write> writes;
    for (const auto& one : then.addresses) {
      writes.push_back({core::warm_address_key(one.address), core::Value(one), store::Condition::always()});
    }
    for (const auto& one : then.intents) {
      writes.push_back({core::warm_intent_key(one.id), core::Value(one), store::Condition::always()});
    }
    for (const store::Write& write : writes) {
      EXPECT_TRUE(store.commit({&write, 1}, {}, Deadline::after(clock_.now(), std::chrono::seconds{30})));
    }
  }
  /// The same under an agent that runs on.
  void replace_files(const StockView& then) {
    put_back(then);
    store.begin_epoch();
  }
  [[nodiscard]] std::optional<core::StockAddress> find(const net::Address& address) {
    for (const auto& one : view().addresses) {
      if (one.address == address) return one;
    }
    return std::nullopt;
  }
  /// Rounds, with time between them, until whatever was left is settled.
  void settle(int rounds = 12) {
    for (int i = 0; i < rounds; ++i) {
      static_cast<void>(keeper->step());
      clock_.advance(std::chrono::seconds{31});
    }
  }

  store::MemoryStore store;
  SeededRandom random{7};
  KeeperOptions options;
  TestHost host;
  TestPods pods;
  TestClaims claims;
  TestPeers peers;
  PeerAgents* liar = nullptr;              ///< in the place of `peers`
  FixedAddresses* other_claims = nullptr;  ///< in the place of `claims`
  bool probes = true;
  std::unique_ptr<Life> life;
  std::unique_ptr<TestWire> wire;
  std::unique_ptr<StockKeeper> keeper;
  std::vector<std::string> log;
  std::vector<core::StockAddress> conflicts;

 private:
  TestCloud& cloud_;
  ManualClock& clock_;
  const int number_;
  std::uint32_t process_ = 0;
  std::unique_ptr<MortalStore> mortal_;
  std::unique_ptr<TestProvider> provider_;
};

class StockKeeperTest : public testing::Test {
 protected:
  StockKeeperTest() { node_.begin(); }
  ManualClock clock_;
  TestCloud cloud_{20};
  Node node_{cloud_, clock_, 1};
};

}  // namespace croft::engine
