#include <functional>
#include <utility>

#include "ipam/use/test_stores.h"
#include "ipam/use/test_world.h"
#include "store/forwarding_store.h"

// A DEL that hangs, and goes on when its container has been set up again: it means what there was when it began.

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// Lets something happen right before the next read or commit reaches the store.
class Hanging final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    happens(before_read);
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    happens(before_commit);
    return ForwardingStore::commit(writes, token, deadline);
  }
  std::function<void()> before_read, before_commit;

 private:
  static void happens(std::function<void()>& what) {
    if (const auto now = std::exchange(what, {})) now();
  }
};

const core::Owner kOwner{"net", "c1", "eth0"};

/// One address beside network, gateway and broadcast: who gets one gets this.
struct OneAddress : World {
  explicit OneAddress(const store::Capabilities& can) {
    store.set_capabilities(can);
    pool("one", "10.0.0.0/30", 30, 0);
    EXPECT_EQ(add("c1"), "10.0.0.2");
    clock.advance(1s);
  }
  [[nodiscard]] std::size_t held() const { return held_addresses(context, kOwner)->size(); }

  Hanging hanging{store};
  Context slow{hanging, clock, random};
};

enum class Place { read, commit };
enum class Meanwhile { another_del_and_an_add, an_add_again };

TEST(LateRelease, LeavesWhatALaterAddOfTheOwnerGot) {
  for (const store::Capabilities& can : kKindsOfStores) {
    for (const Place place : {Place::read, Place::commit}) {
      for (const Meanwhile meanwhile : {Meanwhile::another_del_and_an_add, Meanwhile::an_add_again}) {
        for (const auto clock_is_set_by : {0h, 1h, -1h}) {
          SCOPED_TRACE(testing::Message() << "atomic " << can.atomic_commit << " late " << can.late_commits << " place "
                                          << static_cast<int>(place) << " meanwhile " << static_cast<int>(meanwhile)
                                          << " clock " << clock_is_set_by.count());
          OneAddress world(can);
          auto& moment = place == Place::read ? world.hanging.before_read : world.hanging.before_commit;
          moment = [&] {
            world.clock.advance(2s);
            if (meanwhile == Meanwhile::another_del_and_an_add) {
              EXPECT_EQ(world.del("c1"), 1U);
            }
            EXPECT_EQ(world.add("c1"), "10.0.0.2");
            world.clock.jump_wall(clock_is_set_by);
            world.clock.advance(2s);
          };
          const auto released = release_owner(world.slow, kOwner);
          ASSERT_TRUE(released) << released.error().message;
          EXPECT_THAT(released->addresses, IsEmpty());
          EXPECT_THAT(released->kept, ElementsAre(World::ip("10.0.0.2")));
          EXPECT_EQ(world.held(), 1U);
          EXPECT_EQ(world.del("c1"), 1U) << "the next one frees it";
        }
      }
    }
  }
}

TEST(LateRelease, MeansWhatThereWasWhenItBeganHoweverLateItLooks) {
  OneAddress world(kKindsOfStores[0]);
  const Instant began = world.clock.now();
  world.clock.advance(5s);
  EXPECT_EQ(world.add("c1"), "10.0.0.2") << "asked again";
  world.clock.advance(5s);
  EXPECT_THAT(release_owner(world.context, kOwner, began)->kept, ElementsAre(World::ip("10.0.0.2")));
  EXPECT_THAT(release_owner(world.context, kOwner)->addresses, ElementsAre(World::ip("10.0.0.2")));
}

/// The address seems to come from the future. Nobody may wait for that.
TEST(LateRelease, AClockThatWasSetBackKeepsNothingFromItsRelease) {
  for (const store::Capabilities& can : kKindsOfStores) {
    OneAddress world(can);
    world.clock.jump_wall(-1h);
    world.hanging.before_read = [&] { world.clock.advance(3s); };
    const auto released = release_owner(world.slow, kOwner);
    ASSERT_TRUE(released) << released.error().message;
    EXPECT_THAT(released->addresses, ElementsAre(World::ip("10.0.0.2")));
    EXPECT_THAT(released->kept, IsEmpty());
  }
}

TEST(LateRelease, ByMemoryNeitherTakesIt) {
  OneAddress world(kKindsOfStores[0]);
  const Instant began = world.clock.now();
  world.clock.advance(1s);
  EXPECT_EQ(world.add("c1"), "10.0.0.2");
  core::Released released;
  const ReleaseWanted wanted = kOwner;
  BatchedCall call = release_in_batch(wanted, began, Deadline{}, released);
  commit_together(world.context, world.store, {&call, 1});
  EXPECT_EQ(call.fate, BatchFate::alone);
  EXPECT_EQ(world.held(), 1U);
}

/// Another call of the same container may be of another interface.
TEST(LateRelease, WhoAsksAgainHoldsOnlyItsOwnAnew) {
  World world;
  world.pool("a", "10.0.0.0/28", 28, 0);
  world.add("c1");
  auto second = World::request("c1");
  second.owner.interface_name = "eth1";
  world.add(second);
  const auto block = [&] {
    return std::get<core::Block>(
        world.store.get(core::block_key(World::prefix("10.0.0.0/28")), Deadline{}).value()->value);
  };
  const core::Block before = block();
  world.clock.advance(1s);
  world.add("c1");
  const core::Block after = block();
  EXPECT_TRUE(core::check_block(after));
  EXPECT_GT(core::sequence_of(after, net::Ordinal(2)), core::sequence_of(before, net::Ordinal(2)));
  EXPECT_EQ(core::sequence_of(after, net::Ordinal(3)), core::sequence_of(before, net::Ordinal(3)));
  EXPECT_EQ(core::attribute_of(after, net::Ordinal(2))->secondary.at(core::kTimestampKey),
            "2026-01-15 10:00:01 +0000 UTC");
  EXPECT_EQ(core::attribute_of(after, net::Ordinal(3))->secondary.at(core::kTimestampKey),
            "2026-01-15 10:00:00 +0000 UTC");
}

}  // namespace
}  // namespace croft::engine
