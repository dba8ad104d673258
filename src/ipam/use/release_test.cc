#include "ipam/use/release.h"

#include <cstddef>

#include "ipam/use/test_world.h"
#include "store/forwarding_store.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

const core::Owner kMeddledOwner{"net", "c1", "eth0"};
const core::AffinityOwner kNode{core::AffinityOwner::Type::host, "node-a"};

/// An owner whose handle somebody deletes or edits by hand.
struct Meddled : World {
  explicit Meddled(const store::Capabilities& can) {
    store.set_capabilities(can);
    pool("a", "10.0.0.0/26", 28, 0);
    held = add("c1");
    clock.advance(1s);
  }
  [[nodiscard]] std::optional<core::Handle> handle() {
    const auto record = store.get(core::handle_key("net.c1"), Deadline{}).value();
    return record ? std::optional(std::get<core::Handle>(*record->value)) : std::nullopt;
  }
  void edit(std::map<std::string, std::uint32_t> blocks) {
    core::Handle edited = *handle();
    edited.blocks = std::move(blocks);
    put(core::handle_key("net.c1"), edited);
  }

  [[nodiscard]] std::string block() const { return net::Prefix::containing(ip(held.c_str()), 28).to_string(); }
  [[nodiscard]] std::string another_block() const { return block() == "10.0.0.0/28" ? "10.0.0.16/28" : "10.0.0.0/28"; }

  std::string held;
};

TEST(LostHandle, TheOwnerThatAsksAgainGetsItsAddressAgain) {
  for (const store::Capabilities& can : kKindsOfStores) {
    for (const bool is_deleted : {true, false}) {
      SCOPED_TRACE(testing::Message() << "atomic " << can.atomic_commit << " foreign " << can.foreign_writers
                                      << " deleted " << is_deleted);
      Meddled world(can);
      if (is_deleted) {
        world.put(core::handle_key("net.c1"), std::nullopt);
      } else {
        world.edit({{world.another_block(), 1}});
      }
      EXPECT_EQ(world.add("c1"), world.held);
      ASSERT_TRUE(world.handle());
      EXPECT_EQ(world.handle()->blocks[world.block()], 1U) << "the handle is mended";
      EXPECT_NE(world.add("c2"), world.held);
      EXPECT_EQ(world.del("c1"), 1U);
    }
  }
}

TEST(LostHandle, WhatAnotherOwnerHoldsIsNotTaken) {
  Meddled world(kKindsOfStores[0]);
  world.put(core::handle_key("net.c1"), std::nullopt);
  auto second = World::request("c1");
  second.owner.interface_name = "eth1";
  EXPECT_NE(world.add(second).front(), world.held) << "another interface of the container";
  EXPECT_NE(world.add("c"), world.held);
}

TEST(LostHandle, WhatTheNodesBlocksHoldIsFoundAndGivenBack) {
  for (const store::Capabilities& can : kKindsOfStores) {
    Meddled world(can);
    world.put(core::handle_key("net.c1"), std::nullopt);
    EXPECT_EQ(world.del("c1"), 0U);
    const auto released = release_on_node(world.context, world.context, kMeddledOwner, kNode.name);
    ASSERT_TRUE(released) << released.error().message;
    EXPECT_THAT(released->addresses, ElementsAre(World::ip(world.held.c_str())));
    EXPECT_THAT(release_on_node(world.context, world.context, kMeddledOwner, kNode.name)->addresses, IsEmpty());
  }
}

TEST(LostHandle, OneThatCountsOtherwiseThanItsBlockIsAtOdds) {
  Meddled world(kKindsOfStores[0]);
  EXPECT_FALSE(release_owner(world.context, kMeddledOwner)->at_odds);
  world.add("c1");
  world.edit({{world.block(), 2}});
  const auto released = release_owner(world.context, kMeddledOwner);
  EXPECT_THAT(released->addresses, SizeIs(1));
  EXPECT_TRUE(released->at_odds);
}

/// docs/promises.md#new-sandbox: that the old one is gone is not for an ADD to say.
TEST(Release, WhatASandboxHoldsStaysWhenAnotherOfThePodComes) {
  World world;
  world.pool("a", "10.0.0.0/26", 28, 0);
  auto first = World::request("c1"), second = World::request("c2");
  first.pod = second.pod = {"web-0", "shop", "5f0c4d0e"};
  const auto held = world.add(first);
  world.clock.advance(1h);
  EXPECT_NE(world.add(second), held);
  EXPECT_THAT(*held_addresses(world.context, first.owner), ElementsAre(World::ip(held.front().c_str())));
  EXPECT_THAT(release_owner(world.context, first.owner)->addresses, SizeIs(1)) << "its own DEL frees it";
  EXPECT_THAT(*held_addresses(world.context, second.owner), SizeIs(1));
}

/// Counts the records that are read and written.
class Counting final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    records += wanted.records.size();
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    records += writes.size();
    return ForwardingStore::commit(writes, token, deadline);
  }
  std::size_t records = 0;
};

std::size_t records_of_a_release(std::uint32_t blocks) {
  World world;
  core::PoolSpec spec = World::spec("a", "10.0.0.0/22", 32, 0);
  spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::none, {}};
  EXPECT_TRUE(create_pool(world.context, spec));
  auto wanted = World::request("c1");
  wanted.count.v4 = blocks;
  EXPECT_THAT(world.add(wanted), SizeIs(blocks));
  Counting counting(world.store);
  EXPECT_THAT(release_owner({counting, world.clock, world.random}, kMeddledOwner)->addresses, SizeIs(blocks));
  return counting.records;
}

TEST(Release, CostsInProportionToTheBlocksOfTheHandle) {
  const std::size_t few = records_of_a_release(64), many = records_of_a_release(512);
  EXPECT_LE(many, 9 * few) << few << " records for 64 blocks";
}

}  // namespace
}  // namespace croft::engine
