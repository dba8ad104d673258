#include "store/move/store_move.h"

#include <set>

#include <fmt/format.h>

#include "ipam/use/test_world.h"
#include "store/forwarding_store.h"
#include "store/naming.h"

namespace croft::engine {
namespace {

using core::Kind;
using core::Seal;
using core::audit::MoveStep;
using store::Fault;
using store::FaultScript;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr store::Capabilities kCluster{.atomic_commit = true, .foreign_writers = true};
/// As a Kubernetes API: one record a commit, no hints, nodes of its own.
constexpr store::Capabilities kApi{.foreign_writers = true, .lacks = {core::Kind::vacancy}};

/// Two stores and pods that come and go; the newer store is in use as soon as the older one refuses.
class StoreMove : public testing::Test {
 protected:
  void SetUp() override {
    from_.store.set_capabilities(kCluster);
    to_.store.set_capabilities(kCluster);
    from_.pool("four", "10.1.0.0/24", 28);
    from_.pool("six", "2001:db8::/120", 124);
    from_.node("node-a", {{"zone", "a"}});
    for (int i = 0; i < 20; ++i) add(from_, fmt::format("first-{}", i), i % 2 == 0 ? "node-a" : "node-b");
    for (int i = 0; i < 5; ++i) del(from_, fmt::format("first-{}", i));
    from_.put(core::high_water_mark_key(World::prefix("10.1.0.240/28")), core::HighWaterMark{core::SequenceNumber(9)});
  }

  [[nodiscard]] MoveContext context(World& from, World& to) {
    return context({from.store, from.store, "etcd:http://" + name_of(from)},
                   {to.store, to.store, "etcd:http://" + name_of(to)});
  }
  [[nodiscard]] MoveContext context(MoveEnd from, MoveEnd to) {
    return {std::move(from),
            std::move(to),
            clock_,
            random_,
            [this](std::chrono::seconds span) -> Result<void> {
              waited_ += span;
              return {};
            },
            [](const std::string&) {}};
  }
  [[nodiscard]] std::string name_of(const World& world) const { return &world == &from_ ? "a:1" : "b:1"; }
  [[nodiscard]] Result<MoveReport> move() { return move_store(context(from_, to_), {}); }

  /// An ADD. What is told is in the ledger, and nobody else may be told it.
  bool add(World& world, const std::string& container, const std::string& node = "node-a") {
    const std::string answer = world.add(container, node);
    if (!net::Address::parse(answer)) {
      EXPECT_THAT(answer, HasSubstr("unavailable"));
      return false;
    }
    const auto holder = std::ranges::find_if(ledger_, [&](const auto& held) { return held.second == answer; });
    EXPECT_TRUE(holder == ledger_.end() || holder->first == container) << answer << " was given twice";
    ledger_[container] = answer;
    return true;
  }
  bool del(World& world, const std::string& container) {
    const auto released = release_owner(world.context, {"net", container, "eth0"});
    if (released) ledger_.erase(container);
    return released.has_value();
  }
  /// What nodes do that name either store: what one refuses nobody gets there.
  void churn(const std::string& name) {
    for (World* world : {&from_, &to_}) {
      const std::string container = name + "-" + name_of(*world);
      if (world == &to_ && !is_open(to_)) {
        EXPECT_FALSE(add(*world, container)) << "the copy gave an address before it was whole";
        continue;
      }
      if (world == &to_ || is_open(from_)) add(*world, container);
    }
    World& open = is_open(to_) ? to_ : from_;
    if (is_open(open) && !ledger_.empty()) del(open, ledger_.begin()->first);
  }
  /// A target nobody has ever prepared has no pools: it counts as closed, too.
  [[nodiscard]] bool is_open(World& world) {
    if (world.store.seal({}).value()) return false;
    return !list_pools(world.context).value().empty();
  }
  /// Every address that is not free, in what state and until when.
  [[nodiscard]] static std::vector<std::string> addresses_in(World& world) {
    std::vector<std::string> texts;
    const auto views = list_addresses(world.context);
    EXPECT_TRUE(views);
    for (const AddressView& view : *views) {
      texts.push_back(fmt::format("{} {} {} {} {}", view.address.to_string(), core::name_of(view.state), view.handle_id,
                                  view.until, view.sequence_number.value));
    }
    return texts;
  }
  /// What the open store says is what was told.
  void expect_ledger_in(World& world) {
    std::map<std::string, std::string> held;
    const auto views = list_addresses(world.context);
    ASSERT_TRUE(views) << views.error().message;
    for (const AddressView& view : *views) {
      if (view.state != core::AddressState::held || !view.owner) continue;
      EXPECT_TRUE(held.emplace(view.owner->container_id, view.address.to_string()).second);
    }
    EXPECT_EQ(held, ledger_);
    EXPECT_THAT(world.findings(), IsEmpty());
  }

  ManualClock clock_;
  SeededRandom random_{7};
  World from_, to_;
  std::map<std::string, std::string> ledger_;
  std::chrono::seconds waited_{0};
};

TEST_F(StoreMove, PlansWithoutChangingAnything) {
  const auto before = from_.store.counts().commit;
  const auto plan = plan_store_move(context(from_, to_), {});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->step, MoveStep::begin);
  EXPECT_THAT(plan->obstacles, IsEmpty());
  const auto blocks = std::ranges::find(plan->kinds, Kind::block, &KindDifference::kind);
  ASSERT_NE(blocks, plan->kinds.end());
  EXPECT_GT(blocks->to_write, 1U);
  EXPECT_EQ(from_.store.counts().commit, before);
  EXPECT_EQ(to_.store.counts().commit, 0U);
}

TEST_F(StoreMove, CarriesEverythingAndClosesTheSource) {
  const auto resting = addresses_in(from_);
  const auto moved = move();
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_GT(moved->compared, 20U);
  expect_ledger_in(to_);
  EXPECT_EQ(addresses_in(to_), resting);  // what cools, too, and until when
  const auto mark = to_.store.get(core::high_water_mark_key(World::prefix("10.1.0.240/28")), {}).value();
  ASSERT_TRUE(mark);
  EXPECT_EQ(std::get<core::HighWaterMark>(mark->value).sequence_number, core::SequenceNumber(9));
  EXPECT_FALSE(add(from_, "late"));
  EXPECT_FALSE(del(from_, "first-9"));
  EXPECT_TRUE(add(to_, "late"));
  EXPECT_THAT(from_.add("later"), HasSubstr("was moved to \"etcd:http://b:1\""));
  const auto again = move();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->was_done);
}

/// Anybody who may write handles may write thousands of megabytes of them.
TEST_F(StoreMove, HoldsFewOfTheRecordsThatAreLarge) {
  constexpr int kLarge = 12;
  constexpr int kParts = 20'000;
  for (World* world : {&from_, &to_}) {
    for (int i = 0; i < kLarge; ++i) {
      core::Handle handle;
      handle.id = fmt::format("large-{}", i);
      for (int j = 0; j < kParts; ++j) handle.blocks[fmt::format("10.9.{}.{}/32", j / 256, j % 256)] = 1;
      world->put(core::handle_key(handle.id), handle);
    }
  }
  struct Counting final : store::ForwardingStore {
    using ForwardingStore::ForwardingStore;
    [[nodiscard]] Result<store::Page> list(const store::ListRequest& request, Deadline deadline) override {
      TRY(store::Page page, ForwardingStore::list(request, deadline));
      std::size_t parts = 0;
      for (const store::Record& record : page.records) {
        if (const auto* handle = std::get_if<core::Handle>(&record.value)) parts += handle->blocks.size();
      }
      most = std::max(most, parts);
      return page;
    }
    std::size_t most = 0;
  };
  Counting from(from_.store), to(to_.store);
  static_cast<void>(
      move_store(context({from, from_.store, "etcd:http://a:1"}, {to, to_.store, "etcd:http://b:1"}), {}));
  EXPECT_GT(from.most, 0U);
  EXPECT_LE(from.most, std::size_t{4} * kParts);
  EXPECT_LE(to.most, std::size_t{4} * kParts);
}

TEST_F(StoreMove, IntoAStoreThatWritesOneRecordAtATime) {
  to_.store.set_capabilities(kApi);
  to_.node("node-a", {});
  const auto plan = plan_store_move(context(from_, to_), {});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->obstacles, IsEmpty());
  ASSERT_TRUE(move());
  expect_ledger_in(to_);
  EXPECT_TRUE(to_.store.list({Kind::vacancy, "", ""}, {}).value().records.empty());
}

TEST_F(StoreMove, GoesOnAfterItWasKilledAnywhere) {
  // The n-th write of the two stores together fails and so do all after it, as when the program is killed there.
  for (std::uint64_t nth = 1; nth < 200; ++nth) {
    SCOPED_TRACE(nth);
    World from, to;
    ledger_.clear();
    from.store.set_capabilities(kCluster);
    to.store.set_capabilities(nth % 2 == 0 ? kCluster : kApi);
    from.pool("four", "10.1.0.0/25", 28);
    for (int i = 0; i < 12; ++i) ledger_[fmt::format("first-{}", i)] = from.add(fmt::format("first-{}", i));
    for (const Fault fault : {Fault::unavailable, Fault::lose_reply}) {
      const auto begin_from = from.store.counts().commit, begin_to = to.store.counts().commit;
      from.store.set_faults(FaultScript().from_commit(begin_from + 1 + nth / 3, fault));
      to.store.set_faults(FaultScript().from_commit(begin_to + nth, fault));
      MoveContext killed =
          context(MoveEnd{from.store, from.store, "etcd:http://a:1"}, MoveEnd{to.store, to.store, "etcd:http://b:1"});
      killed.time_limit = std::chrono::nanoseconds(0);
      static_cast<void>(move_store(killed, {}));
      from.store.set_faults({});
      to.store.set_faults({});
      // Pods come and go on both, wherever they may.
      for (World* world : {&from, &to}) {
        const std::string container = fmt::format("{}-{}-{}", nth, static_cast<int>(fault), world == &from ? "a" : "b");
        const std::string answer = world->add(container);
        if (!net::Address::parse(answer)) continue;
        for (const auto& [other, held] : ledger_) EXPECT_NE(held, answer) << other << " and " << container;
        ledger_[container] = answer;
        const std::string gone = ledger_.begin()->first;
        const auto released = release_owner(world->context, {"net", gone, "eth0"});
        if (released) ledger_.erase(gone);
      }
    }
    MoveContext whole =
        context(MoveEnd{from.store, from.store, "etcd:http://a:1"}, MoveEnd{to.store, to.store, "etcd:http://b:1"});
    const auto moved = move_store(whole, {});
    ASSERT_TRUE(moved) << moved.error().message;
    expect_ledger_in(to);
    ASSERT_FALSE(net::Address::parse(from.add("too-late"))) << "both stores are open";
  }
}

TEST_F(StoreMove, RefusesATargetWithARegisterOfItsOwn) {
  to_.pool("own", "10.9.0.0/24", 28);
  const auto moved = move();
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, ErrorCode::refused_for_safety);
  EXPECT_THAT(moved.error().message, HasSubstr("pool \"own\""));
  EXPECT_TRUE(add(from_, "as-before"));
  EXPECT_FALSE(to_.store.seal({}).value());
}

/// Somebody makes a pool in the target after the plan, before it is closed.
class LateWriter final : public store::MemoryStore {
 public:
  [[nodiscard]] Result<void> put_seal(const std::optional<store::StoredSeal>& there, const Seal& seal,
                                      Deadline deadline) override {
    if (!there) {
      const store::Write write{core::node_key("intruder"), core::Node{"intruder", {}, {}, {}},
                               store::Condition::always()};
      TRY_VOID(commit({&write, 1}, {}, deadline));
    }
    return MemoryStore::put_seal(there, seal, deadline);
  }
};

TEST_F(StoreMove, LooksAtTheTargetAgainOnceItIsClosed) {
  LateWriter target;
  target.set_capabilities(kCluster);
  const MoveContext how = context({from_.store, from_.store, "etcd:http://a:1"}, {target, target, "etcd:http://b:1"});
  const auto moved = move_store(how, {});
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message, HasSubstr("node \"intruder\""));
  EXPECT_TRUE(add(from_, "as-before"));
  EXPECT_TRUE(give_up_store_move(how).value());
  EXPECT_FALSE(target.seal({}).value()) << "nothing was copied, so it is open again";
}

TEST_F(StoreMove, RefusesWhatCannotBeReadAndWhatWouldStay) {
  from_.store.damage(core::block_key(World::prefix("10.1.0.0/28")));
  const auto moved = move();
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message, HasSubstr("damaged-records.md"));
  from_.store.damage({Kind::warm_address, "ipv4/10.0.0.7"});
  const auto plan = plan_store_move(context(from_, to_), {});
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_THAT(plan->obstacles, SizeIs(2));
  const auto leaving = plan_store_move(context(from_, to_), {.leave_behind = true});
  EXPECT_THAT(leaving->obstacles, SizeIs(1));
  EXPECT_THAT(leaving->notes, SizeIs(1));
}

TEST_F(StoreMove, IsGivenUpAndBegunAgain) {
  // Killed when the source is closed and nothing compared.
  from_.store.set_faults(FaultScript().from_commit(from_.store.counts().commit + 2, Fault::unavailable));
  ASSERT_FALSE(move());
  from_.store.set_faults({});
  EXPECT_FALSE(add(from_, "closed"));
  ASSERT_TRUE(give_up_store_move(context(from_, to_)).value());
  EXPECT_FALSE(give_up_store_move(context(from_, to_)).value()) << "nothing is left to do";
  EXPECT_TRUE(add(from_, "open-again"));
  EXPECT_TRUE(del(from_, "first-9"));
  EXPECT_THAT(to_.add("never"), HasSubstr("was given up"));
  ASSERT_TRUE(move());
  expect_ledger_in(to_);
  EXPECT_FALSE(give_up_store_move(context(from_, to_)));
}

TEST_F(StoreMove, ThereAndBack) {
  ASSERT_TRUE(move());
  for (int i = 10; i < 15; ++i) EXPECT_TRUE(del(to_, fmt::format("first-{}", i)));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(add(to_, fmt::format("second-{}", i), "node-c"));
  const auto back = move_store(context(to_, from_), {});
  ASSERT_TRUE(back) << back.error().message;
  expect_ledger_in(from_);
  EXPECT_TRUE(add(from_, "home"));
  EXPECT_FALSE(add(to_, "away"));
}

/// A store into which another program, which heeds no seal, writes after so many commits.
class StoreWithAnother final : public store::MemoryStore {
 public:
  std::uint64_t at = 0;
  std::function<void(StoreWithAnother&)> write;

  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    auto done = MemoryStore::commit(writes, token, deadline);
    if (write && static_cast<std::uint64_t>(counts().commit) >= at) std::exchange(write, {})(*this);
    return done;
  }
  /// Calico's library gives an address of the first block that has a free one.
  void give_an_address() {
    const store::Page page = list({Kind::block, "", ""}, {}).value();
    for (const store::Record& record : page.records) {
      auto block = std::get<core::Block>(record.value);
      for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
        if (block.allocations[i]) continue;
        core::Attribute attribute;
        attribute.handle_id = "k8s-pod-network.foreign";
        attribute.secondary =
            std::map<std::string, std::string>{{"node", "node-a"}, {"pod", "zoe"}, {"namespace", "default"}};
        block.attributes.push_back(attribute);
        block.allocations[i] = static_cast<std::uint32_t>(block.attributes.size() - 1);
        block.sequence_number.value += 1;
        given = net::address_at(block.cidr, net::Ordinal(i)).to_string();
        const store::Write done{record.key, block, store::Condition::always()};
        EXPECT_TRUE(MemoryStore::commit({&done, 1}, {}, {}));
        return;
      }
    }
    FAIL() << "no block has a free address";
  }
  std::string given;
};

TEST_F(StoreMove, OverwritesNobodysAddressInTheClosedTarget) {
  for (const bool takes_over : {false, true}) {
    for (const bool source_goes_on : {false, true}) {
      SCOPED_TRACE(fmt::format("take over {}, source goes on {}", takes_over, source_goes_on));
      World from;
      from.store.set_capabilities(kCluster);
      from.pool("four", "10.1.0.0/25", 28);
      for (int i = 0; i < 12; ++i) from.add(fmt::format("first-{}", i));
      StoreWithAnother to;
      to.set_capabilities(kApi);
      const MoveContext how = context({from.store, from.store, "etcd:http://a:1"}, {to, to, "etcd:http://b:1"});
      if (takes_over) {
        // Of a copy that was given up pods have gone since.
        from.store.set_faults(FaultScript().from_commit(from.store.counts().commit + 2, Fault::unavailable));
        ASSERT_FALSE(move_store(how, {}));
        from.store.set_faults({});
        ASSERT_TRUE(give_up_store_move(how).value());
        for (int i = 0; i < 3; ++i) from.del(fmt::format("first-{}", i));
      }
      // When the handles are written the blocks are there.
      to.at = to.counts().commit + (takes_over ? 4 : 10);
      to.write = [&](StoreWithAnother& store) {
        store.work_under(store.seal({}).value()->seal.move);
        store.give_an_address();
        if (source_goes_on) {
          for (int i = 5; i < 9; ++i) from.del(fmt::format("first-{}", i));
        }
      };
      const auto moved = move_store(how, {});
      ASSERT_FALSE(to.given.empty()) << "the other program did not write";
      ASSERT_FALSE(moved);
      EXPECT_EQ(moved.error().code, ErrorCode::refused_for_safety);
      EXPECT_THAT(moved.error().message, HasSubstr(to.given + " (handle \"k8s-pod-network.foreign\", pod "
                                                              "\"default/zoe\", node \"node-a\")"));
      EXPECT_TRUE(to.seal({}).value()) << "the target is open";
      // Another program goes on with it: it knows nothing of what this one wrote.
      if (!(takes_over && source_goes_on)) {
        const auto plan = plan_store_move(how, {});
        ASSERT_TRUE(plan);
        EXPECT_THAT(plan->obstacles, ElementsAre(HasSubstr(to.given)));
        EXPECT_THAT(move_store(how, {}).error().message, HasSubstr(to.given));
      }
      const auto decided = move_store(how, {.overwrite = true});
      ASSERT_TRUE(decided) << decided.error().message;
      EXPECT_FALSE(to.seal({}).value());
    }
  }
}

/// As a Kubernetes API: names are of small letters.
class StoreOfSmallNames final : public store::MemoryStore, public store::Naming {
 public:
  [[nodiscard]] Result<std::string> place_of(const core::Key& key, Deadline) override {
    std::string place(core::name_of(key.kind));
    place += '/';
    for (const char c : key.name) {
      if (c == '_') return fail(ErrorCode::invalid_argument, "no name has \"_\"");
      if (c >= 'A' && c <= 'Z' && key.kind != Kind::handle) return fail(ErrorCode::invalid_argument, "it is large");
      place += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    }
    return place;
  }
};

TEST_F(StoreMove, PlansNothingThatTheTargetHasNoNameFor) {
  StoreOfSmallNames target;
  target.set_capabilities(kApi);
  const MoveContext how = context({from_.store, from_.store, "etcd:http://a:1"}, {target, target, "kube:/k"});
  ASSERT_TRUE(add(from_, "CONTAINER"));
  EXPECT_THAT(plan_store_move(how, {})->obstacles, IsEmpty()) << "nobody else has its name";
  ASSERT_TRUE(add(from_, "container"));
  ASSERT_TRUE(add(from_, "under_score"));
  ASSERT_TRUE(add(from_, "of-oak", "Oak-Upper"));
  const auto plan = plan_store_move(how, {});
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_THAT(plan->obstacles, SizeIs(2));
  EXPECT_THAT(plan->obstacles[0],
              testing::AllOf(HasSubstr("affinity \"host/Oak-Upper/ipv4/"), HasSubstr("handle \"net.under_score\""),
                             HasSubstr("it is large"), HasSubstr("another name")));
  EXPECT_THAT(plan->obstacles[1], HasSubstr("handle \"net.container\" beside \"net.CONTAINER\""));
  const auto moved = move_store(how, {});
  ASSERT_FALSE(moved);
  EXPECT_EQ(moved.error().code, ErrorCode::refused_for_safety);
  EXPECT_FALSE(target.seal({}).value()) << "the target was closed for nothing";
  EXPECT_TRUE(add(from_, "as-before"));
}

TEST_F(StoreMove, TellsItsOwnOlderCopiesFromWhatOthersWrote) {
  // Killed at the n-th write, the source going on: what was copied is no longer what the source has.
  for (std::uint64_t nth = 3; nth < 40; ++nth) {
    SCOPED_TRACE(nth);
    World from, to;
    from.store.set_capabilities(kCluster);
    to.store.set_capabilities(kApi);
    from.pool("four", "10.1.0.0/25", 28);
    for (int i = 0; i < 20; ++i) from.add(fmt::format("first-{}", i));
    const MoveContext how =
        context(MoveEnd{from.store, from.store, "etcd:http://a:1"}, MoveEnd{to.store, to.store, "etcd:http://b:1"});
    to.store.set_faults(FaultScript().from_commit(to.store.counts().commit + nth, Fault::unavailable));
    MoveContext killed = how;
    killed.time_limit = std::chrono::nanoseconds(0);
    static_cast<void>(move_store(killed, {}));
    to.store.set_faults({});
    if (!from.store.seal({}).value()) {
      for (int i = 0; i < 18; ++i) from.del(fmt::format("first-{}", i));
      for (int i = 0; i < 5; ++i) from.add(fmt::format("second-{}", i), "node-b");
    }
    const auto moved = move_store(how, {});
    ASSERT_TRUE(moved) << moved.error().message;
  }
}

TEST_F(StoreMove, WritesOfAMoveThatIsOverAreRefused) {
  ASSERT_TRUE(move());
  to_.store.work_under("0123456789abcdef0123456789abcdef");
  const store::Write write{core::pool_set_key(), core::PoolSet{99}, store::Condition::always()};
  const auto late = to_.store.commit({&write, 1}, {}, {});
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, ErrorCode::conflict);
}

TEST_F(StoreMove, NotIntoAStoreOfOneMachine) {
  to_.store.set_capabilities({.atomic_commit = true});
  EXPECT_THAT(plan_store_move(context(from_, to_), {})->obstacles, SizeIs(1));
  EXPECT_EQ(move().error().code, ErrorCode::refused_for_safety);
}

}  // namespace
}  // namespace croft::engine
