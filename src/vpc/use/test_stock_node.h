#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"
#include "vpc/provider.h"
#include "vpc/use/stock_calls.h"
#include "vpc/use/stock_keeper.h"
#include "vpc/use/stock_sources.h"

namespace croft::engine {

// For tests: a cloud, a wire and pods that are what the test says, and nodes with the keepers of their stocks, which
// can die between any two of their calls and begin again.

/// A process that ends after so many calls to the outside: from then on none of them does anything.
struct Life {
  std::int64_t calls_left = std::int64_t{1} << 60;
  bool is_over = false;
  std::int64_t calls = 0;
  [[nodiscard]] bool use() {
    ++calls;
    if (is_over || --calls_left < 0) is_over = true;
    return !is_over;
  }
};

/// The store as that process sees it.
class MortalStore final : public store::ForwardingStore {
 public:
  MortalStore(store::Store& beneath, Life& life) : ForwardingStore(beneath), life_(life) {}
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    if (life_.is_over) return fail(ErrorCode::unavailable, "the process is dead");
    return beneath().read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    if (!life_.use()) return fail(ErrorCode::unavailable, "the process is dead");
    return beneath().commit(writes, token, deadline);
  }

 private:
  Life& life_;
};

/// What becomes of one call of the cloud.
enum class CallFate : std::uint8_t {
  done,
  reply_lost,    ///< it was done, and nobody is told
  request_lost,  ///< it was not, and nobody is told
  late,          ///< nobody is told, and it is done at some time after that (TestCloud::catch_up)
  throttled,
  away,
};

/// One subnet of a cloud, and who has its addresses.
class TestCloud {
 public:
  explicit TestCloud(std::uint32_t size) {
    for (std::uint32_t i = 0; i < size; ++i) {
      addresses_[net::Address::parse("10.9." + std::to_string(i / 200) + "." + std::to_string(10 + i % 200)).value()];
    }
  }
  /// What becomes of the next call; set by the test.
  std::function<CallFate()> fate = [] { return CallFate::done; };
  std::string words = "the cloud does not answer";  ///< of one that is away
  std::function<void()> after_look = [] {};         ///< runs when describe() has its answer, and before it is heard
  std::set<net::Address> unlisted;                  ///< describe() leaves them out
  std::set<net::Address> denied;                    ///< asked for by name the cloud says that nobody has them
  std::map<net::Mac, net::Mac> replaced;            ///< interfaces, by those of before
  bool is_metadata_away = false;
  int allocations = 0;  ///< calls that wanted some
  int releases = 0;     ///< calls that wanted one released
  int names = 0;        ///< calls that asked for one by name
  std::vector<std::function<void()>> pending;
  /// Does what is late.
  void catch_up() {
    for (const auto& act : std::exchange(pending, {})) act();
  }

  [[nodiscard]] std::set<net::Address> of(const net::Mac& mac) const {
    std::set<net::Address> found;
    for (const auto& [address, owner] : addresses_) {
      if (owner == mac) found.insert(address);
    }
    return found;
  }
  [[nodiscard]] std::optional<net::Mac> owner_of(const net::Address& address) const {
    const auto found = addresses_.find(address);
    return found == addresses_.end() ? std::nullopt : found->second;
  }
  void set_owner(const net::Address& address, std::optional<net::Mac> mac) { addresses_.at(address) = mac; }
  [[nodiscard]] std::vector<net::Address> unowned() const {
    std::vector<net::Address> found;
    for (const auto& [address, owner] : addresses_) {
      if (!owner) found.push_back(address);
    }
    return found;
  }

 private:
  std::map<net::Address, std::optional<net::Mac>> addresses_;
};

/// A node's way to it.
class TestProvider final : public cloud::Provider {
 public:
  TestProvider(TestCloud& cloud, const net::Mac& mac, Life& life) : cloud_(cloud), life_(life) {
    interface_.mac = mac;
    interface_.vpc = "uvnet-1";
    interface_.subnet = "subnet-1";
  }
  [[nodiscard]] Result<cloud::Interface> interface(Deadline) override {
    if (life_.is_over) return fail(dead());
    if (cloud_.is_metadata_away) return fail(ErrorCode::unavailable, "the metadata do not answer");
    cloud::Interface now = interface_;
    if (const auto other = cloud_.replaced.find(now.mac); other != cloud_.replaced.end()) now.mac = other->second;
    return now;
  }
  [[nodiscard]] Result<std::vector<cloud::CloudAddress>> allocate(const cloud::Interface& to, const std::string&,
                                                                  std::uint32_t count, Deadline) override {
    ++cloud_.allocations;
    return write<std::vector<cloud::CloudAddress>>(
        [&cloud = cloud_, to, count]() -> Result<std::vector<cloud::CloudAddress>> {
          std::vector<cloud::CloudAddress> given;
          for (const net::Address& address : cloud.unowned()) {
            if (given.size() >= count) break;
            cloud.set_owner(address, to.mac);
            given.push_back(address_of(address, to.mac));
          }
          if (given.empty()) return fail(ErrorCode::exhausted, "subnet-1 has no addresses left");
          return given;
        });
  }
  [[nodiscard]] Result<cloud::CloudAddress> allocate_address(const cloud::Interface& to, const std::string&,
                                                             const net::Address& address, Deadline) override {
    return write<cloud::CloudAddress>([&cloud = cloud_, to, address]() -> Result<cloud::CloudAddress> {
      if (cloud.owner_of(address)) return fail(ErrorCode::already_exists, "somebody has it");
      cloud.set_owner(address, to.mac);
      return address_of(address, to.mac);
    });
  }
  [[nodiscard]] Result<void> release(const cloud::CloudAddress& address, Deadline) override {
    ++cloud_.releases;
    return write<void>([&cloud = cloud_, address]() -> Result<void> {
      if (cloud.owner_of(address.address) == address.mac) cloud.set_owner(address.address, std::nullopt);
      return {};
    });
  }
  [[nodiscard]] Result<void> move(const cloud::CloudAddress& address, const net::Mac& to, Deadline) override {
    return write<void>([&cloud = cloud_, address, to]() -> Result<void> {
      if (cloud.owner_of(address.address) != address.mac)
        return fail(ErrorCode::not_found, "the interface does not have it");
      cloud.set_owner(address.address, to);
      return {};
    });
  }
  [[nodiscard]] Result<std::vector<cloud::CloudAddress>> describe(const cloud::Interface& of, const std::string&,
                                                                  Deadline) override {
    TRY_VOID(read());
    std::vector<cloud::CloudAddress> all;
    for (const net::Address& address : cloud_.of(of.mac)) {
      if (!cloud_.unlisted.contains(address)) all.push_back(address_of(address, of.mac));
    }
    cloud_.after_look();
    return all;
  }
  [[nodiscard]] Result<std::optional<cloud::CloudAddress>> describe_address(const std::string&, const std::string&,
                                                                            const net::Address& address,
                                                                            Deadline) override {
    ++cloud_.names;
    TRY_VOID(read());
    const auto owner = cloud_.owner_of(address);
    if (cloud_.denied.contains(address)) return std::nullopt;
    return owner ? std::optional(address_of(address, *owner)) : std::nullopt;
  }
  [[nodiscard]] Result<cloud::SubnetState> subnet(const std::string&, const std::string& subnet, Deadline) override {
    TRY_VOID(read());
    return cloud::SubnetState{subnet, cloud_.unowned().size(), net::Prefix::parse("10.9.0.0/16").value(), std::nullopt};
  }
  void on_call(std::function<void(const Call&)>) override {}

 private:
  [[nodiscard]] static Error dead() { return {ErrorCode::unavailable, "the process is dead", {}}; }
  [[nodiscard]] static cloud::CloudAddress address_of(const net::Address& address, const net::Mac& mac) {
    cloud::CloudAddress found;
    found.address = address;
    found.prefix_length = 16;
    found.mac = mac;
    found.vpc = "uvnet-1";
    found.subnet = "subnet-1";
    return found;
  }
  [[nodiscard]] Result<void> read() {
    if (!life_.use()) return fail(dead());
    const CallFate fate = cloud_.fate();
    if (fate != CallFate::done) return fail(ErrorCode::unavailable, "the cloud does not answer");
    return {};
  }
  template <class Answer, class Do>
  [[nodiscard]] Result<Answer> write(Do act) {
    if (!life_.use()) return fail(dead());
    switch (cloud_.fate()) {
      case CallFate::throttled:
        return fail(ErrorCode::unavailable, "too many requests");
      case CallFate::away:
        return fail(ErrorCode::unavailable, cloud_.words);
      case CallFate::late:
        cloud_.pending.push_back([act] { static_cast<void>(act()); });
        return fail(ErrorCode::unknown_outcome, "no reply");
      case CallFate::request_lost:
        return fail(ErrorCode::unknown_outcome, "no reply");
      case CallFate::reply_lost: {
        const auto done = act();
        return fail(ErrorCode::unknown_outcome, "no reply");
      }
      case CallFate::done:
        break;
    }
    auto done = act();
    // It may die before it hears of it.
    if (!life_.use()) return fail(ErrorCode::unknown_outcome, "the process is dead");
    return done;
  }

  TestCloud& cloud_;
  Life& life_;
  cloud::Interface interface_;
};

/// What answers on the wire.
class TestWire final : public AddressProbe {
 public:
  explicit TestWire(Life& life) : life_(life) {}
  std::map<net::Address, net::Mac> others;
  int windows = 0;
  bool is_away = false;
  [[nodiscard]] Result<std::vector<core::warm::Probed>> probe(const std::vector<net::Address>& addresses,
                                                              Deadline) override {
    if (!life_.use()) return fail(ErrorCode::unavailable, "the process is dead");
    if (is_away) return fail(ErrorCode::unavailable, "the interface eth9 is not there");
    ++windows;
    std::vector<core::warm::Probed> answers;
    for (const net::Address& address : addresses) {
      const auto other = others.find(address);
      answers.push_back({address, other == others.end() ? std::nullopt : std::optional(other->second)});
    }
    return answers;
  }
  void announce(const std::vector<net::Address>&) override {}

 private:
  Life& life_;
};

struct TestHost {
  std::set<net::Address> used;
  bool is_away = false;
  std::string words = "the host cannot be looked at";  ///< where it is away
  const Clock* clock = nullptr;
  std::vector<std::vector<net::Address>> namespaces;  ///< beside `used`
  [[nodiscard]] Result<HostUse> use(Deadline deadline) const {
    if (clock != nullptr && deadline.passed(clock->now())) {
      return fail(ErrorCode::deadline_exceeded, "the host was not looked at in time");
    }
    if (is_away) return fail(ErrorCode::unavailable, words);
    return HostUse{{used.begin(), used.end()}, namespaces};
  }
};

struct TestPods {
  std::vector<core::warm::LivePod> all;
  bool is_away = false;
  [[nodiscard]] Result<std::vector<core::warm::LivePod>> pods() const {
    if (is_away) return fail(ErrorCode::unavailable, "the API server does not answer");
    return all;
  }
};

/// What is promised; who keeps which address the tests say themselves.
class TestClaims final : public FixedAddresses {
 public:
  std::vector<net::Address> all;
  bool is_away = false;
  int asked = 0;
  [[nodiscard]] Result<std::vector<net::Address>> all_fixed(Deadline) override {
    ++asked;
    if (is_away) return fail(ErrorCode::unavailable, "the API server does not answer");
    return all;
  }
  std::vector<core::PodIdentity> living;  ///< with whatever address
  [[nodiscard]] Result<std::vector<core::PodIdentity>> living_with(const net::Address&, Deadline) override {
    if (is_away) return fail(ErrorCode::unavailable, "the API server does not answer");
    return living;
  }
  [[nodiscard]] Result<Wish> wish_of(const core::PodIdentity&, Deadline) override { return Wish{}; }
  [[nodiscard]] Result<std::optional<Promise>> promise_to(const core::PodIdentity&, Deadline) override {
    return std::optional<Promise>();
  }
  [[nodiscard]] Result<void> attach(const core::StockAddress&, const Wish&, Deadline) override { return {}; }
};

inline net::Mac mac_of(int node) { return net::Mac::parse("52:54:00:00:00:0" + std::to_string(node)).value(); }

/// Asks the agents it is told of, and may lose their answers.
struct TestPeers {
  std::map<std::string, StockKeeper*> keepers;
  std::map<std::string, std::uint32_t> said;
  std::map<std::string, Result<cloud::CloudAddress>> bad;  ///< what nodes say that do not lend as they should
  std::vector<std::string> asked;                          ///< nodes
  [[nodiscard]] std::vector<Peer> peers() const {
    std::vector<Peer> all;
    for (const auto& [node, free] : said) all.push_back({node, node + ":7312", free});
    return all;
  }
  [[nodiscard]] Result<cloud::CloudAddress> borrow(const Peer& peer, const net::Mac& mac, const std::string& subnet,
                                                   const std::string& request, Deadline deadline) {
    const core::warm::Lend lend{request, mac, subnet};
    asked.push_back(peer.node);
    if (const auto wrong = bad.find(peer.node); wrong != bad.end()) return wrong->second;
    const auto keeper = keepers.find(peer.node);
    if (keeper == keepers.end()) return fail(ErrorCode::unavailable, peer.node + " does not answer");
    const auto lent = keeper->second->lend(lend, deadline);
    if (!lent) return fail(lent.error());
    cloud::CloudAddress address = core::warm::cloud_address_of(*lent);
    address.mac = lend.to;
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
    KeeperWorld world{*mortal_, clock_, random, *provider_};
    world.probe = wire.get();
    world.peers.list = [this](const std::string&, Deadline) { return peers.peers(); };
    world.peers.borrow = [this](const Peer& peer, const net::Mac& to, const std::string& subnet,
                                const std::string& request,
                                Deadline deadline) { return peers.borrow(peer, to, subnet, request, deadline); };
    world.host = [this](Deadline deadline) { return host.use(deadline); };
    world.pods = [this](Deadline) { return pods.pods(); };
    world.fixed = &claims;
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
  [[nodiscard]] Writer writer() const { return keeper ? keeper->actor().writer() : Writer{}; }
  [[nodiscard]] std::string add(const std::string& container) {
    core::warm::Request request;
    request.owner = {"net", container, "eth0"};
    request.pod = {container, "shop", ""};
    request.cooldown = options.reconcile.cooldown;
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
    release.cooldown = options.reconcile.cooldown;
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
  [[nodiscard]] core::warm::Counts counts() { return core::warm::counts_of(view().addresses, clock_.now()); }
  /// What the records say lies on the interface.
  [[nodiscard]] std::set<net::Address> recorded() {
    std::set<net::Address> addresses;
    for (const auto& one : view().addresses) {
      if (one.state != core::StockAddressState::lent) addresses.insert(one.address);
    }
    return addresses;
  }
  void put(core::Key key, std::optional<core::Value> value) {
    const store::Write write{std::move(key), std::move(value), store::Condition::always()};
    EXPECT_TRUE(store.commit({&write, 1}, {}, Deadline::after(clock_.now(), std::chrono::seconds{30})));
  }
  /// As it is when a damaged store was set aside: all records are gone.
  void lose_records() {
    put_back({});
    put(core::warm_node_key(), std::nullopt);
  }
  /// As it is when an older copy of the store's files was put back.
  void put_back(const StockView& then) {
    for (const auto& one : view().addresses) put(core::warm_address_key(one.address), std::nullopt);
    for (const auto& one : view().intents) put(core::warm_intent_key(one.id), std::nullopt);
    for (const auto& one : then.addresses) put(core::warm_address_key(one.address), one);
    for (const auto& one : then.intents) put(core::warm_intent_key(one.id), one);
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
  std::unique_ptr<Life> life;
  std::unique_ptr<TestWire> wire;
  std::unique_ptr<StockKeeper> keeper;
  std::vector<std::string> log;
  std::vector<core::StockAddress> conflicts;

 private:
  TestCloud& cloud_;
  ManualClock& clock_;
  const int number_;
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
