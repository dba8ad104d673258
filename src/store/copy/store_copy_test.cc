#include "store/copy/store_copy.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ipam/use/test_world.h"
#include "store/kube/fake_api_fixture.h"
#include "store/kube/kube_store.h"
#include "store/pause.h"

namespace croft::core {
namespace {

using testing::HasSubstr;
using Phase = Pause::Phase;
using What = Due::What;

std::optional<Pause> pause(Phase phase) { return Pause{phase, "etcd:other", {}}; }

TEST(CopyStepTest, GoesOnWhereThePausesSayItIs) {
  const auto copying = pause(Phase::copying), moved = pause(Phase::moved), filling = pause(Phase::filling);
  const std::optional<Pause> none;
  const auto step = [](const std::optional<Pause>& source, const std::optional<Pause>& target) {
    return next_copy_step({source, target, true, true});
  };
  EXPECT_EQ(step(none, none), CopyStep::begin);
  EXPECT_EQ(step(none, filling), CopyStep::copy);
  EXPECT_EQ(step(none, moved), CopyStep::copy) << "the way back";
  EXPECT_EQ(step(copying, filling), CopyStep::copy);
  EXPECT_EQ(step(moved, filling), CopyStep::open);
  EXPECT_EQ(step(moved, none), CopyStep::done);
  EXPECT_THAT(step(copying, none).error().message, HasSubstr("somebody else opened it"));
  EXPECT_THAT(step(none, copying).error().message, HasSubstr("the other way"));
  EXPECT_THAT(step(moved, moved).error().message, HasSubstr("both stores"));
  EXPECT_THAT(step(copying, moved).error().message, HasSubstr("croft store resume"));
  for (const auto& target : {none, copying, moved, filling}) {
    EXPECT_THAT(step(filling, target).error().message, HasSubstr("no whole register"));
  }
  for (const auto& one : {copying, moved, filling}) {
    EXPECT_THAT(next_copy_step({one, none, false, false}).error().message, HasSubstr("FROM is paused"));
    EXPECT_THAT(next_copy_step({none, one, false, false}).error().message, HasSubstr("TO is paused"));
  }
}

What what(Kind kind, const std::optional<Value>& here, const std::optional<Value>& there) {
  const auto found = change_due(kind, here ? &*here : nullptr, there ? &*there : nullptr);
  EXPECT_TRUE(found) << found.error().message;
  return found ? found->what : What::nothing;
}

TEST(DueTest, NumbersNeverGoBack) {
  const auto mark = [](std::uint64_t n) { return std::optional<Value>(HighWaterMark{SequenceNumber(n)}); };
  EXPECT_EQ(what(Kind::high_water_mark, mark(5), mark(7)), What::nothing);
  EXPECT_EQ(what(Kind::high_water_mark, mark(7), mark(5)), What::write);
  EXPECT_EQ(what(Kind::high_water_mark, std::nullopt, mark(5)), What::nothing);
  const auto set = [](std::uint64_t n) { return std::optional<Value>(PoolSet{n}); };
  EXPECT_EQ(what(Kind::pool_set, set(1), set(2)), What::nothing);
  const std::optional<Value> pool = Value(Pool{});
  EXPECT_EQ(what(Kind::pool, pool, std::nullopt), What::write);
  EXPECT_EQ(what(Kind::pool, std::nullopt, pool), What::remove);
  EXPECT_EQ(what(Kind::pool, pool, pool), What::nothing);
}

TEST(DueTest, ABlockIsTheSameInEveryFormat) {
  const Instant now{WallTime(std::chrono::milliseconds(1800000000750)), {}, {}};
  Block block =
      new_block(net::Prefix::parse("10.0.0.0/28").value(), AffinityOwner{AffinityOwner::Type::host, "a"}, now, {});
  block.affinity_claim_time = now.wall;
  const auto nobody = [](const net::Address&) { return false; };
  Attribute one, two;
  one.handle_id = "net.one";
  two.handle_id = "net.two";
  block = take_next(std::move(block), one, nobody)->block;
  block = take_next(std::move(block), two, nobody)->block;
  Block other = block;
  std::swap(other.attributes[0], other.attributes[1]);
  std::swap(other.allocations[0], other.allocations[1]);
  other.affinity_claim_time.reset();  // definitions before Calico v3.32 drop it
  EXPECT_NE(Value(block), Value(other));
  EXPECT_EQ(what(Kind::block, block, other), What::nothing);
  Block later = block;
  later.sequence_number.value += 1;
  EXPECT_EQ(what(Kind::block, later, other), What::write);
  const Value here = block, there = later;
  EXPECT_THAT(change_due(Kind::block, &here, &there).error().message,
              HasSubstr("another program wrote block 10.0.0.0/28"));
  Block nobodys = other;
  nobodys.affinity.reset();
  EXPECT_EQ(what(Kind::block, block, nobodys), What::write);
  Block swapped = block;
  std::swap(swapped.allocations[0], swapped.allocations[1]);
  EXPECT_EQ(what(Kind::block, block, swapped), What::write) << "another holder";
}

TEST(DueTest, EveryKindIsCopiedOrIsKnownToStay) {
  for (const KindTraits& traits : kKinds) {
    const bool goes = std::ranges::count(kCopiedKinds, traits.kind) == 1;
    const bool stays = std::ranges::count(kStayingKinds, traits.kind) == 1;
    const bool is_kubernetes = traits.system == System::kubernetes;
    const bool is_of_a_stock = traits.kind == Kind::warm_intent || traits.kind == Kind::warm_node;
    EXPECT_EQ(int{goes} + int{stays} + int{is_kubernetes} + int{is_of_a_stock}, 1) << traits.name;
  }
  EXPECT_EQ(kCopiedKinds.back(), Kind::pool) << "a register without pools gives nothing";
}

}  // namespace
}  // namespace croft::core

namespace croft::engine {
namespace {

using core::Kind;
using core::Pause;
using store::Fault;
using store::FaultScript;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr store::Capabilities kCluster{.atomic_commit = true, .foreign_writers = true};
/// As a Kubernetes API: one record a commit, no hints, nodes of its own.
constexpr store::Capabilities kApi{.foreign_writers = true, .lacks = {core::Kind::vacancy}};

/// Two stores and pods that come and go; the newer store is in use as soon as the older one refuses.
class StoreCopy : public testing::Test {
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

  /// By clients of their own, as the pause does not stop the one that copies.
  [[nodiscard]] CopyContext context(World& from, World& to) {
    copier_.emplace(to.store.data());
    copier_->set_capabilities(to.store.capabilities());
    copier_->set_faults(std::exchange(faults_, {}));
    return context({from.store, from.store, "etcd:http://" + name_of(from)},
                   {*copier_, *copier_, "etcd:http://" + name_of(to)});
  }
  [[nodiscard]] CopyContext context(CopyEnd from, CopyEnd to) {
    return {std::move(from), std::move(to), clock_, random_, [](std::chrono::seconds) {}, [](const std::string&) {}};
  }
  [[nodiscard]] std::string name_of(const World& world) const { return &world == &from_ ? "a:1" : "b:1"; }
  [[nodiscard]] Result<CopyReport> copy() { return copy_store(context(from_, to_), {}); }

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
  /// The open store says what was told.
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
  std::optional<store::MemoryStore> copier_;
  FaultScript faults_;  ///< of the next copier
};

TEST_F(StoreCopy, ADryRunChangesNothing) {
  const auto before = from_.store.counts().commit;
  const auto looked = copy_store(context(from_, to_), {.dry_run = true});
  ASSERT_TRUE(looked) << looked.error().message;
  EXPECT_GT(looked->written, 20U);
  EXPECT_EQ(from_.store.counts().commit, before);
  EXPECT_EQ(to_.store.counts().commit, 0U);
}

TEST_F(StoreCopy, CarriesEverythingAndPausesTheSourceForGood) {
  const auto resting = addresses_in(from_);
  const auto copied = copy();
  ASSERT_TRUE(copied) << copied.error().message;
  EXPECT_GT(copied->equal, 20U);
  expect_ledger_in(to_);
  EXPECT_EQ(addresses_in(to_), resting);  // what cools, too, and until when
  const auto mark = to_.store.get(core::high_water_mark_key(World::prefix("10.1.0.240/28")), {}).value();
  ASSERT_TRUE(mark);
  EXPECT_EQ(std::get<core::HighWaterMark>(*mark->value).sequence_number, core::SequenceNumber(9));
  EXPECT_FALSE(add(from_, "late"));
  EXPECT_FALSE(del(from_, "first-9"));
  EXPECT_TRUE(add(to_, "late"));
  EXPECT_THAT(from_.add("later"), HasSubstr("was moved to \"etcd:http://b:1\"")) << "a node left on the old URL";
  const auto again = copy();
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->was_done);
  EXPECT_EQ(resume_store(from_.store, {}).error().code, ErrorCode::refused_for_safety);
}

TEST_F(StoreCopy, IntoAStoreThatWritesOneRecordAtATime) {
  to_.store.set_capabilities(kApi);
  to_.node("node-a", {});
  ASSERT_TRUE(copy());
  expect_ledger_in(to_);
  EXPECT_TRUE(to_.store.list({Kind::vacancy, ""}, {}).value().empty());
}

TEST_F(StoreCopy, GoesOnAfterItWasKilledAnywhere) {
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
      from.store.set_faults(FaultScript().from_commit(from.store.counts().commit + 1 + nth / 3, fault));
      store::MemoryStore copier(to.store.data());
      copier.set_capabilities(to.store.capabilities());
      copier.set_faults(FaultScript().from_commit(nth, fault));
      CopyContext killed =
          context(CopyEnd{from.store, from.store, "etcd:http://a:1"}, CopyEnd{copier, copier, "etcd:http://b:1"});
      killed.time_limit = std::chrono::nanoseconds(0);
      static_cast<void>(copy_store(killed, {}));
      from.store.set_faults({});
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
    store::MemoryStore copier(to.store.data());
    copier.set_capabilities(to.store.capabilities());
    const CopyContext whole =
        context(CopyEnd{from.store, from.store, "etcd:http://a:1"}, CopyEnd{copier, copier, "etcd:http://b:1"});
    const auto copied = copy_store(whole, {});
    ASSERT_TRUE(copied) << copied.error().message;
    expect_ledger_in(to);
    ASSERT_FALSE(net::Address::parse(from.add("too-late"))) << "both stores are open";
  }
}

TEST_F(StoreCopy, RefusesATargetWithARegisterOfItsOwn) {
  to_.pool("own", "10.9.0.0/24", 28);
  const auto copied = copy();
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::refused_for_safety);
  EXPECT_THAT(copied.error().message, HasSubstr("pool \"own\""));
  EXPECT_TRUE(add(from_, "as-before"));
  EXPECT_FALSE(to_.store.pause({}).value());
}

TEST_F(StoreCopy, RefusesWhatCannotBeReadAndWhatWouldStay) {
  from_.store.damage({Kind::warm_address, "ipv4/10.0.0.7"});
  EXPECT_THAT(copy().error().message, HasSubstr("--leave-behind"));
  EXPECT_TRUE(copy_store(context(from_, to_), {.dry_run = true, .leave_behind = true}));
  from_.store.damage(core::block_key(World::prefix("10.1.0.0/28")));
  EXPECT_THAT(copy().error().message, HasSubstr("damaged-records.md"));
  EXPECT_FALSE(from_.store.pause({}).value());
}

TEST_F(StoreCopy, IsGivenUpAndBegunAgain) {
  // Killed once both are paused.
  faults_ = FaultScript().from_commit(5, Fault::unavailable);
  ASSERT_FALSE(copy());
  EXPECT_FALSE(add(from_, "paused"));
  ASSERT_TRUE(resume_store(from_.store, {}));
  EXPECT_EQ(resume_store(from_.store, {}).error().code, ErrorCode::not_found);
  EXPECT_EQ(resume_store(to_.store, {}).error().code, ErrorCode::refused_for_safety);
  EXPECT_TRUE(add(from_, "open-again"));
  EXPECT_TRUE(del(from_, "first-9"));
  EXPECT_THAT(to_.add("never"), HasSubstr("no pool")) << "pools are copied last";
  ASSERT_TRUE(copy());
  expect_ledger_in(to_);
}

TEST_F(StoreCopy, ThereAndBack) {
  ASSERT_TRUE(copy());
  for (int i = 10; i < 15; ++i) EXPECT_TRUE(del(to_, fmt::format("first-{}", i)));
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(add(to_, fmt::format("second-{}", i), "node-c"));
  const auto back = copy_store(context(to_, from_), {});
  ASSERT_TRUE(back) << back.error().message;
  expect_ledger_in(from_);
  EXPECT_TRUE(add(from_, "home"));
  EXPECT_FALSE(add(to_, "away"));
}

TEST_F(StoreCopy, AWriteThatComesAfterTheWaitCostsAPassMore) {
  class Late final : public store::MemoryStore {
   public:
    std::function<void()> late;
    [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                                 Deadline deadline) override {
      if (const auto call = std::exchange(late, nullptr)) call();
      return MemoryStore::commit(writes, token, deadline);
    }
    using MemoryStore::MemoryStore;
  } target(to_.store.data());
  target.set_capabilities(kCluster);
  // It looked before the pause, and is applied in the middle of the first pass.
  from_.store.fill();
  target.late = [&] { EXPECT_TRUE(add(from_, "held", "node-a")); };
  const auto copied =
      copy_store(context({from_.store, from_.store, "etcd:http://a:1"}, {target, target, "etcd:http://b:1"}), {});
  ASSERT_TRUE(copied) << copied.error().message;
  expect_ledger_in(to_);
}

/// Calico's library writes whatever a pause says.
TEST_F(StoreCopy, WhatAnotherProgramWroteIntoTheTargetIsNotOverwritten) {
  faults_ = FaultScript().from_commit(9, Fault::unavailable);
  ASSERT_FALSE(copy());
  const auto blocks = to_.store.list({Kind::block, ""}, {}).value();
  ASSERT_FALSE(blocks.empty());
  auto block = std::get<core::Block>(*blocks.front().value);
  block.sequence_number.value += 2;
  to_.store.fill();
  to_.put(core::block_key(block.cidr), block);
  const auto copied = copy();
  ASSERT_FALSE(copied);
  EXPECT_THAT(copied.error().message, HasSubstr("another program wrote block " + block.cidr.to_string()));
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

TEST_F(StoreCopy, CopiesNothingThatTheTargetHasNoNameFor) {
  StoreOfSmallNames target;
  target.set_capabilities(kApi);
  const CopyContext how = context({from_.store, from_.store, "etcd:http://a:1"}, {target, target, "kube:/k"});
  ASSERT_TRUE(add(from_, "under_score"));
  const auto copied = copy_store(how, {});
  ASSERT_FALSE(copied);
  EXPECT_EQ(copied.error().code, ErrorCode::refused_for_safety);
  EXPECT_THAT(copied.error().message,
              testing::AllOf(HasSubstr("handle \"net.under_score\""), HasSubstr("another name")));
  EXPECT_FALSE(target.pause({}).value()) << "the target was paused for nothing";
  EXPECT_TRUE(add(from_, "as-before"));
}

TEST_F(StoreCopy, NotIntoAStoreOfOneMachine) {
  to_.store.set_capabilities({.atomic_commit = true});
  EXPECT_EQ(copy().error().code, ErrorCode::refused_for_safety);
}

/// An API that holds the first PUT or POST of a handle, as a slow server does.
class SlowApi final : public store::kube::FakeApi {
 public:
  SlowApi(std::shared_ptr<store::kube::FakeCluster> cluster, const Clock& clock)
      : FakeApi(cluster, clock), cluster_(std::move(cluster)) {}
  std::function<void(std::function<void()> apply)> hold;

  [[nodiscard]] store::kube::Answer call(const store::kube::Request& request, Deadline deadline) override {
    if (request.is_read() || request.path.find("ipamhandles") == std::string::npos || !hold) {
      return FakeApi::call(request, deadline);
    }
    std::exchange(hold,
                  nullptr)([&] { static_cast<void>(cluster_->serve(request.method, request.path, request.body)); });
    store::kube::Answer lost;
    lost.error = {ErrorCode::unknown_outcome, "the reply was lost", {}};
    return lost;
  }

 private:
  std::shared_ptr<store::kube::FakeCluster> cluster_;
};

TEST_F(StoreCopy, AWriterHeldForAMinuteBetweenItsLookAndItsPut) {
  const auto cluster = std::make_shared<store::kube::FakeCluster>();
  const wire::calico::Digests digests{wire::kube::fake_digest, wire::kube::fake_digest};
  const store::KubeStoreOptions options{.group = wire::calico::ApiGroup::crd_v1};
  auto api = std::make_unique<SlowApi>(cluster, clock_);
  SlowApi& slow = *api;
  const auto writer = store::make_kube_store(std::move(api), digests, clock_, options);
  const auto source =
      store::make_kube_store(std::make_unique<store::kube::FakeApi>(cluster, clock_), digests, clock_, options);
  auto& pausable = dynamic_cast<store::Pausable&>(*source);
  EXPECT_EQ(pausable.settling(), std::chrono::seconds(75));
  const auto in_time = [this] { return Deadline::after(clock_.now(), std::chrono::hours(1)); };
  const auto write = [&](const std::string& id) {
    core::Handle handle;
    handle.id = id;
    const store::Write one{core::handle_key(id), handle, store::Condition::if_absent()};
    return writer->commit({&one, 1}, store::WriteToken{{7}}, in_time());
  };
  bool is_copied = false;
  slow.hold = [&](const std::function<void()>& apply) {
    CopyContext how = context({*source, pausable, "kube:/a"}, {to_.store, to_.store, "etcd:http://b:1"});
    how.wait = [&](std::chrono::seconds span) {
      clock_.advance(std::chrono::seconds(60));
      EXPECT_EQ(write("after-the-look").error().code, ErrorCode::unavailable) << "its look is older than the pause";
      apply();
      clock_.advance(span - std::chrono::seconds(60));
    };
    const auto copied = copy_store(how, {});
    EXPECT_TRUE(copied) << copied.error().message;
    is_copied = copied.has_value();
  };
  static_cast<void>(write("held"));
  ASSERT_TRUE(is_copied);
  EXPECT_TRUE(to_.store.get(core::handle_key("held"), in_time()).value()) << "acknowledged, and lost";
}

}  // namespace
}  // namespace croft::engine
