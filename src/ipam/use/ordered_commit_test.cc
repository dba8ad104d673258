#include <functional>
#include <mutex>
#include <thread>
#include <utility>

#include "ipam/use/nodes.h"
#include "ipam/use/pools.h"
#include "ipam/use/test_world.h"
#include "ipam/use/transact.h"
#include "store/forwarding_store.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;

constexpr store::Capabilities kOneByOne{.atomic_commit = false, .foreign_writers = true};
constexpr store::Capabilities kAtomic{.atomic_commit = true, .foreign_writers = true};

/// A world on a store that commits one write at a time (or, to compare, all at once).
struct OrderedWorld : World {
  explicit OrderedWorld(store::Capabilities capabilities = kOneByOne) {
    store.set_capabilities(capabilities);
    pool("four", "10.1.0.0/27", 29, 0);
    pool("six", "fd00::/123", 125, 0);
  }

  static core::AssignRequest both(const std::string& container, const std::string& node = "node-a") {
    auto wanted = request(container, node);
    wanted.count.v6 = true;
    return wanted;
  }

  template <class T>
  std::vector<T> all(core::Kind kind) {
    core::Missing wanted;
    wanted.lists = {{kind, ""}};
    const auto answer = store.read(wanted, Deadline{});
    std::vector<T> values;
    for (const store::Record& record : answer->lists.front()) values.push_back(std::get<T>(*record.value));
    return values;
  }

  /// The register as text: who owns which block, who holds what, claims and counts; without times and sequence numbers.
  std::vector<std::string> register_text() {
    std::vector<std::string> lines;
    for (const auto& block : all<core::Block>(core::Kind::block)) {
      lines.push_back("block " + block.cidr.to_string() + " of " +
                      (block.affinity ? to_string(*block.affinity) : "nobody"));
      for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
        const auto* holder = core::attribute_of(block, net::Ordinal(i));
        if (holder != nullptr && holder->handle_id)
          lines.push_back(std::to_string(i) + " held by " + *holder->handle_id);
      }
    }
    for (const auto& row : all<core::Affinity>(core::Kind::affinity)) {
      lines.push_back("row " + to_string(row.owner) + " " + row.cidr.to_string() + " " +
                      std::to_string(static_cast<int>(row.state)));
    }
    for (const auto& handle : all<core::Handle>(core::Kind::handle)) {
      for (const auto& [block, count] : handle.blocks)
        lines.push_back(handle.id + " " + block + " " + std::to_string(count));
    }
    for (const auto& pool : all<core::Pool>(core::Kind::pool))
      lines.push_back("pool " + pool.name + (pool.disabled ? " off" : ""));
    return lines;
  }

  /// A claim left pending on a block that is the owner's is confirmed by the next assignment from the block; an owner
  /// that asks again is answered without a write. Here all of them at once, after a look that they are right.
  void confirm_claims() {
    for (auto row : all<core::Affinity>(core::Kind::affinity)) {
      const auto block = store.get(core::block_key(row.cidr), Deadline{}).value();
      const bool is_owners = block && std::get<core::Block>(*block->value).affinity == row.owner;
      if (!is_owners || row.state != core::AffinityState::pending) continue;
      row.state = core::AffinityState::confirmed;
      put(core::affinity_key(row.owner, row.cidr), row);
    }
  }

  void drop_rows_of_others() {
    for (const auto& row : all<core::Affinity>(core::Kind::affinity)) {
      const auto block = store.get(core::block_key(row.cidr), Deadline{}).value();
      if (block && std::get<core::Block>(*block->value).affinity == row.owner) continue;
      put(core::affinity_key(row.owner, row.cidr), std::nullopt);
    }
  }

  /// What must be true after any crash: see ordered_commit.cc.
  void expect_safe(const std::string& when) {
    std::map<std::string, std::map<std::string, std::uint32_t>> held;
    const auto rows = all<core::Affinity>(core::Kind::affinity);
    for (const auto& block : all<core::Block>(core::Kind::block)) {
      EXPECT_TRUE(core::check_block(block)) << when;
      for (const auto& index : block.allocations) {
        if (index && block.attributes[*index].handle_id)
          ++held[*block.attributes[*index].handle_id][block.cidr.to_string()];
      }
      if (!block.affinity) continue;
      EXPECT_TRUE(std::any_of(
          rows.begin(), rows.end(),
          [&](const core::Affinity& row) { return row.owner == *block.affinity && row.cidr == block.cidr; }))
          << when << ": block " << block.cidr.to_string() << " without its owner's row";
      EXPECT_FALSE(std::any_of(rows.begin(), rows.end(),
                               [&](const core::Affinity& row) {
                                 return row.cidr == block.cidr && row.owner != *block.affinity &&
                                        row.state == core::AffinityState::confirmed;
                               }))
          << when << ": block " << block.cidr.to_string() << " is confirmed to another node, which advertises it";
    }
    std::map<std::string, core::Handle> handles;
    for (const auto& handle : all<core::Handle>(core::Kind::handle)) handles[handle.id] = handle;
    for (const auto& [id, blocks] : held) {
      for (const auto& [block, count] : blocks) {
        EXPECT_GE(handles[id].blocks[block], count) << when << ": handle " << id << " counts too few in " << block;
      }
    }
  }
};

using Operation = std::function<void(World&)>;

/// What is tried: what comes before, and the operation.
struct Case {
  const char* name;
  Operation before;
  Operation operation;
  /// Rows of blocks that are gone, or another's, may stay: whoever claims the block next, or gives up its claims, takes
  /// them up.
  bool may_leave_rows = false;
};

std::vector<Case> cases() {
  const core::AffinityOwner node{core::AffinityOwner::Type::host, "node-a"};
  const Operation nothing = [](World&) {};
  const Operation del = [](World& w) { static_cast<void>(release_owner(w.context, {"net", "c1", "eth0"})); };
  const Operation give_up = [=](World& w) { static_cast<void>(release_host_affinities(w.context, node, false)); };
  const Operation one = [](World& w) { w.add("c1"); };
  const Operation two = [](World& w) { w.add(OrderedWorld::both("c1")); };
  const auto full = [](World& w) {
    for (int i = 0; i < 6; ++i) w.add("c" + std::to_string(i));
  };
  return {
      {"assign with a new block", nothing, one},
      {"assign in a block with room", one, [](World& w) { w.add("c2"); }},
      {"assign with a further block", full, [](World& w) { w.add("new"); }},
      {"assign in both families", nothing, two},
      {"assign in both families, with room", two, [](World& w) { w.add(OrderedWorld::both("c2")); }},
      {"take an empty block of another node, in both families",
       [=](World& w) {
         const core::AffinityOwner other{core::AffinityOwner::Type::host, "node-b"};
         static_cast<void>(claim_affinity(w.context, other, w.prefix("10.1.0.0/27")));
         w.clock.advance(24h);
       },
       two, true},
      {"a second interface of a container", one,
       [](World& w) {
         auto second = w.request("c1");
         second.owner.interface_name = "eth1";
         w.add(second);
       }},
      {"a given address", nothing,
       [](World& w) {
         auto wanted = w.request("c1");
         wanted.addresses = {w.ip("10.1.0.11")};
         w.add(wanted);
       }},
      {"release", one, del},
      {"release in both families", two, del},
      {"claim", nothing,
       [=](World& w) { static_cast<void>(claim_affinity(w.context, node, w.prefix("10.1.0.0/28"))); }},
      {"give up an empty block",
       [=](World& w) { static_cast<void>(claim_affinity(w.context, node, w.prefix("10.1.0.0/29"))); }, give_up},
      {"give up a block that is used", two, give_up},
      {"the last release of a block that is nobody's",
       [=](World& w) {
         w.add("c1");
         give_up(w);
       },
       del},
      {"delete a pool", [=](World& w) { static_cast<void>(claim_affinity(w.context, node, w.prefix("10.1.0.0/28"))); },
       [](World& w) { static_cast<void>(delete_pool(w.context, "four")); }, true},
  };
}

class OrderedCommit : public testing::Test {
 protected:
  static std::vector<std::string> result_of(const Case& c, store::Capabilities capabilities) {
    OrderedWorld world(capabilities);
    c.before(world);
    c.operation(world);
    return world.register_text();
  }
  /// Each operation meets this trouble at each of its writes, and is repeated without.
  static void expect_repeatable(const std::string& trouble,
                                const std::function<store::FaultScript(std::uint64_t commit)>& faults) {
    for (const Case& c : cases()) {
      const auto good = result_of(c, kAtomic);
      for (std::uint64_t nth = 1;; ++nth) {
        const std::string when = std::string(c.name) + ", " + trouble + " at write " + std::to_string(nth);
        OrderedWorld world;
        c.before(world);
        const auto commit = world.store.counts().commit + nth;
        world.store.set_faults(faults(commit));
        c.operation(world);
        const bool finished = world.store.counts().commit < commit;
        world.store.set_faults({});
        world.expect_safe(when);
        c.operation(world);
        world.expect_safe(when + ", repeated");
        world.confirm_claims();
        if (c.may_leave_rows) world.drop_rows_of_others();
        EXPECT_EQ(world.register_text(), good) << when;
        if (finished) break;
        ASSERT_LT(nth, 60U);
      }
    }
  }
};

TEST_F(OrderedCommit, GivesTheSameRegisterAsAnAtomicCommit) {
  for (const Case& c : cases()) EXPECT_EQ(result_of(c, kOneByOne), result_of(c, kAtomic)) << c.name;
}

TEST_F(OrderedCommit, ACrashBeforeAnyWriteIsSafeAndTheOperationCanBeRepeated) {
  expect_repeatable("crash", [](std::uint64_t commit) {
    return store::FaultScript().from_commit(commit, store::Fault::unavailable);
  });
}

TEST_F(OrderedCommit, AFailureAtAnyWriteIsSafeAndTheOperationCanBeRepeated) {
  for (const store::Fault fault :
       {store::Fault::conflict, store::Fault::unavailable, store::Fault::storage_full, store::Fault::lose_reply,
        store::Fault::lose_request, store::Fault::repeat_request}) {
    expect_repeatable("fault " + std::to_string(static_cast<int>(fault)),
                      [&](std::uint64_t commit) { return store::FaultScript().on_commit(commit, fault); });
  }
}

/// A process whose write of a block is still on its way when it is killed; what it wrote before is there.
class Killed final : public store::ForwardingStore {
 public:
  Killed(store::Store& beneath, core::Kind kind, std::size_t nth) : ForwardingStore(beneath), kind_(kind), nth_(nth) {}
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    if (on_its_way) return fail(ErrorCode::unavailable, "killed");
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    if (!on_its_way && writes.front().key.kind == kind_ && ++seen_ == nth_) on_its_way = writes.front();
    if (on_its_way) return fail(ErrorCode::unavailable, "killed");
    return ForwardingStore::commit(writes, token, deadline);
  }
  /// Whether the store takes it.
  [[nodiscard]] bool arrives() { return beneath().commit({&*on_its_way, 1}, {}, Deadline{}).has_value(); }

  std::optional<store::Write> on_its_way;

 private:
  const core::Kind kind_;
  const std::size_t nth_;
  std::size_t seen_ = 0;
};

TEST_F(OrderedCommit, ABlockOfAKilledAddThatComesAfterItsDelLeavesNoAddressWithoutAHandle) {
  enum class Before { nothing, a_block, another_interface };
  for (const Before before : {Before::nothing, Before::a_block, Before::another_interface}) {
    SCOPED_TRACE(static_cast<int>(before));
    OrderedWorld world;
    auto second = World::request("c1");
    second.owner.interface_name = "eth1";
    if (before == Before::a_block) world.add("before");
    if (before == Before::another_interface) world.add(second);
    Killed killed(world.store, core::Kind::block, before == Before::nothing ? 2 : 1);
    EXPECT_FALSE(assign({killed, world.clock, world.random}, World::request("c1")));
    ASSERT_TRUE(killed.on_its_way);
    ASSERT_TRUE(world.store.get(core::handle_key("net.c1"), Deadline{}).value()) << "it counts already";
    EXPECT_EQ(world.del("c1"), 0U);
    const bool is_held = before == Before::another_interface;
    EXPECT_EQ(world.store.get(core::handle_key("net.c1"), Deadline{}).value().has_value(), is_held);
    EXPECT_FALSE(killed.arrives()) << "the DEL has written the block anew";
    world.expect_safe("after the write came");
    EXPECT_EQ(held_addresses(world.context, {"net", "c1", "eth0"})->size(), 0U);
    EXPECT_EQ(world.del("c1", "eth1"), is_held ? 1U : 0U);
    EXPECT_TRUE(world.all<core::Handle>(core::Kind::handle).size() == (before == Before::a_block ? 1U : 0U));
  }
}

/// The other way round: the DEL is killed with the deletion of the handle on its way, and the container gets another
/// address, in a block in which the handle counts one already.
TEST_F(OrderedCommit, AHandlesDeletionOfAKilledDelThatComesAfterAnAddTakesNoHandleFromIt) {
  OrderedWorld world;
  world.add("c1");
  Killed killed(world.store, core::Kind::handle, 1);
  EXPECT_TRUE(release_owner({killed, world.clock, world.random}, {"net", "c1", "eth0"})) << "the address is free";
  ASSERT_TRUE(killed.on_its_way);
  auto second = World::request("c1");
  second.owner.interface_name = "eth1";
  EXPECT_EQ(world.add(second).size(), 1U);
  EXPECT_FALSE(killed.arrives());
  world.expect_safe("after the deletion came");
  EXPECT_EQ(world.del("c1", "eth1"), 1U);
  EXPECT_TRUE(world.all<core::Handle>(core::Kind::handle).empty());
}

TEST_F(OrderedCommit, AThousandFailedAddsLeaveNoHandles) {
  OrderedWorld world;
  world.add("before");
  const std::size_t kept = 1;
  for (int i = 0; i < 1000; ++i) {
    // The handle, then the block; the DEL that follows lowers what is left.
    const std::string container = "f" + std::to_string(i);
    const auto next = world.store.counts().commit + 1 + static_cast<std::uint64_t>(i % 2);
    const bool stays_away = i % 3 == 0;
    const auto fault = i % 5 == 0 ? store::Fault::storage_full : store::Fault::unavailable;
    world.store.set_faults(stays_away ? store::FaultScript().from_commit(next, store::Fault::unavailable)
                                      : store::FaultScript().on_commit(next, fault));
    EXPECT_FALSE(assign(world.context, World::request(container))) << i;
    world.store.set_faults({});
    EXPECT_EQ(world.del(container), 0U);
  }
  EXPECT_EQ(world.all<core::Handle>(core::Kind::handle).size(), kept);
  EXPECT_TRUE(world.findings().empty());
}

/// A taker of another node's empty block: something happens once the block's claim is announced as leaving. Its writes
/// of blocks may be on their way when it hears that nobody knows of them.
class Taker final : public store::ForwardingStore {
 public:
  Taker(store::Store& beneath, std::function<void(const net::Prefix&)> then, bool is_slow = false)
      : ForwardingStore(beneath), then_(std::move(then)), is_slow_(is_slow) {}
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    const store::Write& write = writes.front();
    if (is_slow_ && left && write.key == core::block_key(*left)) {
      on_its_way = write;
      return fail(ErrorCode::unknown_outcome, "no answer came");
    }
    auto done = ForwardingStore::commit(writes, token, deadline);
    const auto* row = write.value ? std::get_if<core::Affinity>(&*write.value) : nullptr;
    if (done && row != nullptr && row->state == core::AffinityState::pending_deletion && !left) {
      left = row->cidr;
      then_(*left);
    }
    return done;
  }
  [[nodiscard]] Result<store::Fate> fate_of(std::span<const store::Write> writes, const store::WriteToken& token,
                                            Deadline deadline) override {
    if (on_its_way) return fail(ErrorCode::unavailable, "no answer came");
    return ForwardingStore::fate_of(writes, token, deadline);
  }

  std::optional<net::Prefix> left;
  std::optional<store::Write> on_its_way;

 private:
  const std::function<void(const net::Prefix&)> then_;
  const bool is_slow_;
};

struct TakenBlock : OrderedWorld {
  TakenBlock() {
    EXPECT_TRUE(claim_affinity(context, owner, prefix("10.1.0.0/27")));
    clock.advance(24h);
  }
  [[nodiscard]] core::AffinityState claim_on(const net::Prefix& cidr) {
    return std::get<core::Affinity>(*store.get(core::affinity_key(owner, cidr), Deadline{}).value()->value).state;
  }
  const core::AffinityOwner owner{core::AffinityOwner::Type::host, "node-b"};
};

/// An agent assigns from memory, where the claim is confirmed still, and does not write it.
TEST(OrderedTaking, AClaimWhoseOwnerWasFasterIsConfirmedAgain) {
  TakenBlock world;
  Taker taker(world.store, [&](const net::Prefix& cidr) {
    core::Block block = std::get<core::Block>(*world.store.get(core::block_key(cidr), Deadline{}).value()->value);
    auto taken = core::take_next(block, {"net.rival", {}, {}, {}}, [](const net::Address&) { return false; });
    world.put(core::block_key(cidr), taken->block);
  });
  EXPECT_TRUE(assign({taker, world.clock, world.random}, World::request("c1")));
  ASSERT_TRUE(taker.left);
  EXPECT_EQ(world.claim_on(*taker.left), core::AffinityState::confirmed) << "or nobody advertises it";
}

TEST(OrderedTaking, AClaimIsNotConfirmedAgainWhileTheBlocksWriteMayCome) {
  TakenBlock world;
  Taker taker(
      world.store, [](const net::Prefix&) {}, true);
  EXPECT_FALSE(assign({taker, world.clock, world.random}, World::request("c1")));
  ASSERT_TRUE(taker.on_its_way);
  ASSERT_TRUE(world.store.commit({&*taker.on_its_way, 1}, {}, Deadline{})) << "it comes after all";
  EXPECT_NE(world.claim_on(*taker.left), core::AffinityState::confirmed);
}

/// Two clients of one store, in threads, on the same containers: every kind of conflict.
TEST_F(OrderedCommit, WritersAtOnceNeverShareAnAddressAndHandlesNeverCountTooFew) {
  OrderedWorld world;
  std::vector<std::thread> threads;
  std::mutex mutex;
  std::vector<std::string> troubles;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      store::MemoryStore client(world.store.data());
      client.set_capabilities(kOneByOne);
      SeededRandom random(t + 1);
      const Context own{client, world.clock, random};
      for (int i = 0; i < 60; ++i) {
        auto wanted = OrderedWorld::both("c" + std::to_string(random.next() % 3), t % 2 == 0 ? "node-a" : "node-b");
        wanted.owner.interface_name = "eth" + std::to_string(random.next() % 2);
        std::optional<Error> error;
        if (random.next() % 2 == 0) {
          const auto assigned = assign(own, wanted);
          if (!assigned) error = assigned.error();
        } else {
          const auto released = release_owner(own, wanted.owner);
          if (!released) error = released.error();
        }
        if (!error || error->code == ErrorCode::unavailable) continue;  // 100 conflicts in a row
        const std::lock_guard lock(mutex);
        troubles.push_back(error->message);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(troubles, std::vector<std::string>());
  world.expect_safe("after the race");
  // Each owner holds at most one address of a family.
  std::map<std::string, int> held;
  for (const auto& block : world.all<core::Block>(core::Kind::block)) {
    for (const auto& index : block.allocations) {
      if (!index || !block.attributes[*index].handle_id) continue;
      const auto& holder = block.attributes[*index];
      ++held[*holder.handle_id + " " + holder.secondary.at(core::kInterfaceKey) + " " +
             std::string(net::name_of(block.cidr.family()))];
    }
  }
  for (const auto& [owner, count] : held) EXPECT_LE(count, 1) << owner;
  for (int c = 0; c < 3; ++c) {
    for (int interface = 0; interface < 2; ++interface) {
      ASSERT_TRUE(release_owner(world.context, {"net", "c" + std::to_string(c), "eth" + std::to_string(interface)}));
    }
  }
  EXPECT_TRUE(world.all<core::Handle>(core::Kind::handle).empty()) << "all can be given back, and no count is left";
}

/// Calls something once, right after a record of a kind was made.
class AfterMaking final : public store::ForwardingStore {
 public:
  AfterMaking(store::Store& beneath, core::Kind kind, std::function<void()> call)
      : ForwardingStore(beneath), kind_(kind), call_(std::move(call)) {}
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    auto done = ForwardingStore::commit(writes, token, deadline);
    const store::Write& write = writes.front();
    if (!done || write.key.kind != kind_ || write.condition.kind != store::Condition::Kind::absent) return done;
    if (const auto call = std::exchange(call_, nullptr)) call();
    return done;
  }

 private:
  const core::Kind kind_;
  std::function<void()> call_;
};

/// A pool that is deleted and made anew with blocks of another length while a node claims a block of it.
struct AnewWorld : World {
  AnewWorld() {
    store.set_capabilities(kOneByOne);
    pool("p", "10.79.0.0/26", 28);
  }
  void make_pool_anew() {
    ASSERT_TRUE(set_pool_disabled(context, "p", true));
    const auto deleted = delete_pool(context, "p");
    ASSERT_TRUE(deleted) << deleted.error().message;
    pool("p", "10.79.0.0/26", 26);
  }
  std::size_t blocks() {
    core::Missing wanted;
    wanted.keys = {{core::Kind::block, ""}};
    return store.read(wanted, Deadline{})->keys.front()->size();
  }
};

TEST(OrderedClaim, ThatIsOvertakenByAPoolMadeAnewFails) {
  for (const core::Kind announced : {core::Kind::affinity, core::Kind::block}) {
    AnewWorld world;
    std::string of_elm;
    AfterMaking slow(world.store, announced, [&] {
      world.make_pool_anew();
      of_elm = world.add("b", "elm");
    });
    const auto of_oak = assign({slow, world.clock, world.random}, World::request("a", "oak"));
    EXPECT_EQ(of_elm.substr(0, 6), "10.79.");
    ASSERT_TRUE(of_oak) << of_oak.error().message;
    EXPECT_NE(std::get<core::Assigned>(*of_oak).addresses.front().address.to_string(), of_elm) << "two holders";
    EXPECT_EQ(world.blocks(), 1U) << "what oak made was removed";
  }
}

/// A block that is claimed ahead, empty, is looked around as well; and by who takes from it before its claim is
/// confirmed.
TEST(OrderedClaim, AnEmptyBlockOfAnOvertakenClaimIsNotUsed) {
  AnewWorld world;
  std::string of_elm;
  AfterMaking slow(world.store, core::Kind::affinity, [&] {
    world.make_pool_anew();
    of_elm = world.add("b", "elm");
  });
  const Context late{slow, world.clock, world.random};
  const auto claimed = claim_affinity(late, {core::AffinityOwner::Type::host, "oak"}, world.prefix("10.79.0.0/28"));
  EXPECT_FALSE(claimed);
  EXPECT_EQ(world.blocks(), 1U) << "elm's";
}

/// An intermediary repeats one write of a block, and the answer to the second is told: it is done, and said to be a
/// conflict. Another may have written in between.
class ToldAsConflict final : public store::ForwardingStore {
 public:
  ToldAsConflict(store::Store& beneath, std::size_t nth, std::function<void(const core::Key&)> between)
      : ForwardingStore(beneath), nth_(nth), between_(std::move(between)) {}
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    auto done = beneath().commit(writes, token, deadline);
    const core::Key& key = writes.front().key;
    if (!done || key.kind != core::Kind::block || ++seen_ != nth_) return done;
    between_(key);
    return fail(ErrorCode::conflict, "the second of both finds what the first has written");
  }
  [[nodiscard]] bool has_told() const { return seen_ >= nth_; }

 private:
  const std::size_t nth_;
  const std::function<void(const core::Key&)> between_;
  std::size_t seen_ = 0;
};

/// Writes a block once more as it is, as somebody who took another address of it.
void write_again(World& world, const core::Key& key) {
  const auto record = world.store.get(key, Deadline{}).value();
  if (!record || !std::holds_alternative<core::Block>(*record->value)) return;
  world.put(key, core::with_next_sequence_number(std::get<core::Block>(*record->value)));
}

/// An address is eaten by none of these, and a DEL leaves none.
TEST(OrderedCommitTwice, AnAddGetsOneAddressAndADelLeavesNone) {
  for (const bool is_written_again : {false, true}) {
    for (std::size_t nth = 1; nth <= 3; ++nth) {
      SCOPED_TRACE(nth);
      OrderedWorld world;
      world.add("before");
      ToldAsConflict proxy(world.store, nth, [&](const core::Key& key) {
        if (is_written_again) write_again(world, key);
      });
      const Context context{proxy, world.clock, world.random};
      const auto assigned = assign(context, OrderedWorld::both("c1"));
      ASSERT_TRUE(assigned) << assigned.error().message;
      ASSERT_TRUE(proxy.has_told());
      const auto held = held_addresses(world.context, {"net", "c1", "eth0"});
      ASSERT_TRUE(held);
      EXPECT_EQ(held->size(), 2U);
      world.confirm_claims();
      EXPECT_EQ(world.findings(), std::vector<std::string>());
      EXPECT_EQ(world.del("c1"), 2U);
      const auto text = world.register_text();
      EXPECT_TRUE(std::ranges::none_of(text, [](const std::string& line) { return line.find("net.c1") != line.npos; }));
    }
  }
}

/// The request that made a block came a second time, long after, when the block
/// had been used and deleted.
TEST(LateBlock, StartsAboveTheMarkOfItsSuccessor) {
  for (const char* node : {"oak", "elm"}) {
    World world;
    world.store.set_capabilities(kOneByOne);
    world.pool("p", "10.79.0.0/26", 26);
    const core::AffinityOwner oak{core::AffinityOwner::Type::host, "oak"};
    const auto cidr = world.prefix("10.79.0.0/26");
    const core::Block late = core::new_block(cidr, oak, world.clock.now(), {});
    world.put(core::block_key(cidr), late);
    const core::HighWaterMark mark{core::SequenceNumber(late.sequence_number.value + 9)};
    world.put(core::high_water_mark_key(cidr), mark);
    EXPECT_EQ(world.add("a", node).substr(0, 6), "10.79.");
    const auto block = world.store.get(core::block_key(cidr), Deadline{}).value();
    ASSERT_TRUE(block);
    const auto& now = std::get<core::Block>(*block->value);
    EXPECT_GT(now.sequence_number, mark.sequence_number) << node;
    for (const auto& [ordinal, number] : now.sequence_number_for_allocation) {
      EXPECT_GT(core::SequenceNumber(number), mark.sequence_number) << node;
    }
    if (node == std::string("oak")) {
      EXPECT_TRUE(world.store.get(core::affinity_key(oak, cidr), Deadline{}).value()) << "its row";
    }
  }
}

/// Lets no pool be enabled, as an account that may make pools and not change them.
class NoPoolEnabled final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    for (const store::Write& write : writes) {
      const auto* pool = write.value ? std::get_if<core::Pool>(&*write.value) : nullptr;
      const bool changes = write.condition.kind == store::Condition::Kind::revision;
      if (pool != nullptr && changes) return fail(ErrorCode::permission_denied, "may not update pools");
    }
    return beneath().commit(writes, token, deadline);
  }
};

TEST(OrderedCommitOfAPool, ThatCouldNotBeEnabledIsNoSuccess) {
  OrderedWorld world;
  NoPoolEnabled refusing(world.store);
  const Context context{refusing, world.clock, world.random};
  core::PoolSpec spec;
  spec.name = "new";
  spec.cidr = world.prefix("10.9.0.0/24");
  const auto created = create_pool(context, spec);
  ASSERT_FALSE(created);
  EXPECT_EQ(created.error().code, ErrorCode::permission_denied);
  EXPECT_NE(created.error().message.find("croft pool enable new"), std::string::npos) << created.error().message;
  EXPECT_TRUE(set_pool_disabled(world.context, "new", false)) << "the remedy";
}

}  // namespace
}  // namespace croft::engine
