// Another program changes the length of a pool's blocks, and makes blocks. The blocks of a pool have one length: those
// of another are out as a whole, and the pool goes on.

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {

/// A pool in a store with foreign writers. `length` is that of its blocks for now.
class OverlapWorld {
 public:
  explicit OverlapWorld(const std::string& cidr, int length, bool knows_claimed = false) {
    reg.foreign_writers = true;
    reg.knows_claimed = knows_claimed;
    pool_.name = "a";
    pool_.cidr = prefix(cidr);
    pool_.cooldown = std::chrono::seconds{0};
    set_length(length);
  }
  void set_length(int length) {
    pool_.block_length = length;
    reg.put(pool_key("a"), pool_);
  }
  [[nodiscard]] AssignRequest request(const std::string& container, const std::string& on) {
    AssignRequest request;
    request.owner = {"net", container, "eth0"};
    request.node = node(on);
    request.count.v4 = pool_.cidr.family() == net::Family::v4 ? 1 : 0;
    request.count.v6 = 1 - request.count.v4;
    return request;
  }
  [[nodiscard]] Result<AssignAnswer> decide(const AssignRequest& wanted) {
    return reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, wanted, clock.now()); });
  }
  std::optional<net::Address> add(const std::string& container, const std::string& on) {
    const auto answer = decide(request(container, on));
    if (!answer) return {};
    const auto* assigned = std::get_if<Assigned>(&*answer);
    return assigned != nullptr ? std::optional(assigned->addresses.front().address) : std::nullopt;
  }
  [[nodiscard]] std::vector<net::Prefix> blocks() const {
    std::vector<net::Prefix> result;
    for (const auto& [key, value] : reg.records()) {
      if (const auto* block = std::get_if<Block>(&value)) result.push_back(block->cidr);
    }
    return result;
  }
  [[nodiscard]] bool any_overlap() const {
    const auto all = blocks();
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (all[i].overlaps(all[k])) return true;
      }
    }
    return false;
  }
  void del(const std::string& container) {
    const Owner owner{"net", container, "eth0"};
    ASSERT_TRUE(reg.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, owner, clock.now()); }));
  }
  /// A block as another program makes it, for its own use.
  void make_as_another(const net::Prefix& cidr, const std::string& on) {
    reg.put(block_key(cidr), new_block(cidr, node(on), clock.now(), {}));
    reg.put(affinity_key(node(on), cidr), Affinity{node(on), cidr, AffinityState::confirmed, false});
  }
  ManualClock clock;
  TestRegister reg;

 private:
  Pool pool_;
};

namespace {

using net::Address;
using net::Prefix;
using testing::HasSubstr;

class AfterAChange : public testing::TestWithParam<std::tuple<int, int, bool>> {};

TEST_P(AfterAChange, TheOldBlocksAreOutAndTheRestServes) {
  const auto [before, after, knows_claimed] = GetParam();
  OverlapWorld world("10.79.0.0/25", before, knows_claimed);
  std::set<Address> held;
  for (int i = 0; i < 8; ++i) held.insert(world.add("c" + std::to_string(i), "node-a").value());
  const std::vector<Prefix> old = world.blocks();
  world.set_length(after);
  std::size_t count = 0;
  for (const char* on : {"node-b", "node-a"}) {
    for (int i = 0; i < 130; ++i) {
      const auto address = world.add(std::string("d") + on + std::to_string(i), on);
      if (!address) break;
      EXPECT_TRUE(held.insert(*address).second) << address->to_string() << " has a second holder";
      ++count;
    }
    EXPECT_FALSE(world.any_overlap());
  }
  // Of the pool what shares addresses with the old blocks is lost, until they are empty and gone.
  std::set<Prefix> lost;
  for (const Prefix& block : old) lost.insert(Prefix::containing(block.first(), std::min(before, after)));
  std::size_t expected = 128;
  for (const Prefix& block : lost) expected -= before == after ? 0 : block_size(block);
  EXPECT_EQ(count, before == after ? 128 - 8 : expected);
}

INSTANTIATE_TEST_SUITE_P(Lengths, AfterAChange,
                         testing::Combine(testing::Values(26, 29, 32), testing::Values(25, 26, 28, 30),
                                          testing::Bool()));

TEST(ForeignLengths, ARefusalSaysSo) {
  OverlapWorld world("10.79.0.0/26", 28);
  const Address held = world.add("c0", "node-a").value();
  const std::string old = Prefix::containing(held, 28).to_string();
  world.set_length(26);
  const auto answer = world.decide(world.request("c1", "node-b"));
  EXPECT_THAT(std::get<Refusal>(answer.value()).considered.front().reason,
              HasSubstr("block " + old + " is not of /26"));
  const auto own = world.decide(world.request("c1", "node-a"));
  EXPECT_THAT(std::get<Refusal>(own.value()).considered.front().reason, HasSubstr("block " + old + " is not of /26"));
  auto exact = world.request("c2", "node-b");
  exact.addresses = {Address::parse("10.79.0.1").value()};
  const auto refused = world.decide(exact);
  EXPECT_THAT(std::get<Refusal>(refused.value()).considered.front().reason, HasSubstr("block " + old + " is there"));
  const auto claimed = world.reg.decide<ClaimOutcome>([&](const Snapshot& s) {
    return plan_claim_affinity(s, node("node-b"), prefix("10.79.0.0/26"), world.clock.now());
  });
  EXPECT_THAT(claimed.error().message, HasSubstr("block " + old + " is there"));
  EXPECT_FALSE(world.any_overlap());
}

/// Both exist: another program has made one over the other. Nobody else takes from either.
TEST(ForeignLengths, NothingIsBorrowedFromBlocksThatOverlap) {
  for (const bool knows_claimed : {false, true}) {
    OverlapWorld world("10.79.0.0/26", 28, knows_claimed);
    world.make_as_another(prefix("10.79.0.0/26"), "node-a");
    for (std::uint64_t i = 0; i < 4; ++i) world.make_as_another(prefix("10.79.0.0/26").subprefix(i, 28), "node-c");
    world.clock.advance(std::chrono::minutes(2));
    EXPECT_FALSE(world.add("c0", "node-a")) << "its own";
    EXPECT_FALSE(world.add("c1", "node-b")) << "borrowed, or taken over";
  }
}

/// Keys in memory are of claimed blocks. One that is nobody's is met when it is looked up, and then the store is asked.
TEST(ForeignLengths, BlocksThatAreNobodysAreFoundInTheStore) {
  OverlapWorld world("10.79.0.0/24", 28, true);
  for (std::uint64_t i = 0; i < 16; ++i) {
    if (i == 11) continue;
    const Prefix cidr = prefix("10.79.0.0/24").subprefix(i, 28);
    world.reg.put(block_key(cidr), new_block(cidr, {}, world.clock.now(), {}));
  }
  const auto address = world.add("c", "node-a");
  ASSERT_TRUE(address);
  EXPECT_EQ(Prefix::containing(*address, 28), prefix("10.79.0.176/28"));
  EXPECT_LE(world.reg.rounds, 7) << "not one look for each block";
}

/// Of a damaged claim nobody knows what it says: its block is passed over, also where the node meets it as its own by
/// its place (where a commit writes one record), and the others serve.
TEST(DamagedClaim, ItsBlockIsPassedOverAndTheOthersServe) {
  OverlapWorld world("10.79.0.0/27", 29);
  world.reg.atomic_commit = false;
  ASSERT_TRUE(world.add("c", "node-a"));
  const Prefix own = world.blocks().front();
  const auto row = affinity_key(node("node-a"), own);
  world.reg.damage(row);
  for (int i = 0; i < 24; ++i) {
    const auto answer = world.decide(world.request("d" + std::to_string(i), "node-a"));
    ASSERT_TRUE(answer) << i << ": " << answer.error().message;
    ASSERT_TRUE(std::holds_alternative<Assigned>(*answer)) << i << ": " << std::get<Refusal>(*answer).summary;
    EXPECT_FALSE(own.contains(std::get<Assigned>(*answer).addresses.front().address)) << i;
  }
  EXPECT_TRUE(world.reg.unreadable().contains(row)) << "what can't be read is not written over";
  const auto answer = world.decide(world.request("e", "node-a"));
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_TRUE(std::holds_alternative<Refusal>(*answer)) << "the others are full";
  EXPECT_EQ(std::get<Refusal>(*answer).code, ErrorCode::corrupt);
  EXPECT_THAT(std::get<Refusal>(*answer).summary, HasSubstr(row.name));
}

/// The same of what another node left empty, where there is a claim of this node's too.
TEST(DamagedClaim, ABlockLeftEmptyIsNotTakenOverUnderIt) {
  for (const bool is_one_by_one : {false, true}) {
    OverlapWorld world("10.79.0.0/28", 29);
    world.reg.atomic_commit = !is_one_by_one;
    for (const char* one : {"10.79.0.0/29", "10.79.0.8/29"}) {
      world.make_as_another(prefix(one), "node-b");
    }
    world.clock.advance(std::chrono::minutes(2));
    const auto damage = [&](const char* one) { world.reg.damage(affinity_key(node("node-a"), prefix(one))); };
    damage("10.79.0.0/29");
    EXPECT_TRUE(prefix("10.79.0.8/29").contains(world.add("c", "node-a").value()));
    damage("10.79.0.8/29");
    world.reg.apply({to_delete(block_key(prefix("10.79.0.8/29")), Guard::none)});
    const auto answer = world.decide(world.request("d", "node-a"));
    ASSERT_TRUE(answer) << answer.error().message;
    ASSERT_TRUE(std::holds_alternative<Assigned>(*answer)) << "borrowed";
    EXPECT_EQ(world.reg.get(block_key(prefix("10.79.0.0/29")))->affinity, node("node-b"));
  }
}

/// Another program deleted a pool and made it with another length; of its old blocks one has holders and nobody's
/// claim.
TEST(ForeignLengths, ABlockThatIsNobodysKeepsItsAddressesOutOfWhatMemoryShows) {
  OverlapWorld world("10.79.0.0/24", 28, true);
  const Prefix old = prefix("10.79.0.64/26");
  Block block = new_block(old, {}, world.clock.now(), {});
  block = take_address(block, Address::parse("10.79.0.70").value(), Attribute{"net.c9", {}, {}, {}})->block;
  world.reg.put(block_key(old), block);
  for (int i = 0; i < 12 * 16; ++i) {
    const auto address = world.add("c" + std::to_string(i), "node-" + std::to_string(i % 3));
    ASSERT_TRUE(address) << i;
    EXPECT_FALSE(old.contains(*address)) << address->to_string();
  }
  EXPECT_FALSE(world.any_overlap());
  // An interrupted claim is not gone on with over it either.
  OverlapWorld other("10.79.0.0/26", 28, true);
  other.reg.put(block_key(prefix("10.79.0.0/26")), new_block(prefix("10.79.0.0/26"), {}, other.clock.now(), {}));
  const Affinity row{node("node-a"), prefix("10.79.0.16/28"), AffinityState::pending, false};
  other.reg.put(affinity_key(row.owner, row.cidr), row);
  EXPECT_FALSE(other.add("c", "node-a"));
}

}  // namespace

}  // namespace croft::core
