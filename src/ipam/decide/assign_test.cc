#include "ipam/decide/assign.h"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/claim_choice.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"

namespace croft::core {

namespace {

class Claim : public testing::Test {
 protected:
  Claim() {
    PoolSpec spec;
    spec.name = "a";
    spec.cidr = prefix("10.1.0.0/26");
    spec.block_length = 29;
    pool_ = make_pool(spec).value();
    snapshot_.set_list({Kind::pool, ""}, {{pool_key("a"), pool_}});
    snapshot_.set_list({Kind::reservation, ""}, {});
    snapshot_.set(ipam_config_key(), std::nullopt);
    snapshot_.set_keys({Kind::affinity, owned_names_of(kNode, net::Family::v4)}, std::vector<Key>());
  }
  [[nodiscard]] net::Prefix at(std::uint64_t index) const { return pool_.cidr.subprefix(index, 29); }
  void knows(const net::Prefix& cidr, const AffinityOwner* owner = nullptr) {
    snapshot_.set(block_key(cidr), owner != nullptr
                                       ? std::optional<Value>(new_block(cidr, *owner, clock_.now(), std::nullopt))
                                       : std::nullopt);
    snapshot_.set(high_water_mark_key(cidr), std::nullopt);
    snapshot_.set(affinity_key(kNode, cidr), std::nullopt);
  }
  /// The choice, or nothing when more must be read; `missing_` says what.
  std::optional<ClaimChoice> choose(const std::map<net::Prefix, const Affinity*>* own = nullptr) {
    Reader reader(snapshot_);
    const PoolTable pools(reader);
    auto choice = choose_block_to_claim(reader, pools, pool_, kNode, {}, own);
    missing_ = reader.missing();
    return choice ? std::optional(*std::move(choice)) : std::nullopt;
  }
  /// What the store was asked for, which answers so.
  FreeBlock answer(std::optional<net::Prefix> found, std::uint64_t there = 0) {
    EXPECT_EQ(missing_.free_blocks.size(), 1U);
    FreeBlock asked = *missing_.free_blocks.begin();
    snapshot_.set_free_block(asked, {found, false, {}, there, {}});
    return asked;
  }

  const AffinityOwner other_{AffinityOwner::Type::host, "other"};
  ManualClock clock_;
  Pool pool_;
  Snapshot snapshot_;
  Missing missing_;
};

TEST_F(Claim, WhatIsMostLikelyFreeIsLookedUpAlong) {
  EXPECT_FALSE(choose());
  const net::Prefix start = missing_.free_blocks.begin()->start;
  EXPECT_TRUE(missing_.records.contains(block_key(start)));
  EXPECT_TRUE(missing_.records.contains(high_water_mark_key(start)));
  EXPECT_TRUE(missing_.records.contains(affinity_key(kNode, start)));
  answer(start);
  knows(start);
  EXPECT_EQ(choose()->block, start) << "one round of reading";
}

TEST_F(Claim, ABlockMadeSinceIsPassedOver) {
  EXPECT_FALSE(choose());
  const net::Prefix start = missing_.free_blocks.begin()->start;
  knows(start, &other_);
  answer(at(2));
  EXPECT_FALSE(choose()) << "the candidate itself has not been read";
  EXPECT_TRUE(missing_.records.contains(block_key(at(2))));
  knows(at(2), &other_);  // another node was quicker
  EXPECT_FALSE(choose());
  const FreeBlock again = answer(at(5));
  EXPECT_TRUE(again.out.contains(at(2)));
  EXPECT_TRUE(again.as_stored) << "a memory that was wrong once is not asked again";
  EXPECT_FALSE(choose());
  knows(at(5));
  EXPECT_EQ(choose()->block, at(5));
}

TEST_F(Claim, WhatIsDamagedKeepsOnlyItsOwnBlockOut) {
  EXPECT_FALSE(choose());
  const net::Prefix start = missing_.free_blocks.begin()->start;
  knows(start);
  snapshot_.set_unreadable(affinity_key(kNode, start), {ErrorCode::corrupt, "damaged", {}});
  answer(start);
  EXPECT_FALSE(choose());
  EXPECT_FALSE(missing_.free_blocks.begin()->as_stored);
  answer(at(2) == start ? at(3) : at(2));
  EXPECT_FALSE(choose());
  knows(at(2) == start ? at(3) : at(2));
  EXPECT_TRUE(choose()->block);
}

TEST_F(Claim, NoneLeftSaysWhoHasThem) {
  EXPECT_FALSE(choose());
  knows(missing_.free_blocks.begin()->start, &other_);
  answer(std::nullopt, 8);
  const auto choice = choose();
  ASSERT_TRUE(choice);
  EXPECT_FALSE(choice->block);
  EXPECT_TRUE(choice->others);
  EXPECT_EQ(choice->reason, "all 8 blocks are claimed: 0 by this node and without a free address, 8 by other nodes");
}

/// Where lists may lag, a claim of moments ago is met at the place where the search begins.
TEST_F(Claim, AnUnknownOwnBlockIsMet) {
  const std::map<net::Prefix, const Affinity*> none;
  EXPECT_FALSE(choose(&none));
  const net::Prefix start = missing_.free_blocks.begin()->start;
  knows(start, &kNode);
  answer(at(2));
  EXPECT_FALSE(choose(&none)) << "the candidate is read along";
  knows(at(2));
  EXPECT_EQ(choose(&none)->own, start);
  const std::map<net::Prefix, const Affinity*> known{{start, nullptr}};
  EXPECT_EQ(choose(&known)->block, at(2));
}

constexpr std::uint32_t kLeastFree = 8;

/// A pool of 64 blocks of sixteen addresses, and node-a, which knows all keys of blocks.
class ClaimAhead : public testing::Test {
 protected:
  void SetUp() override {
    reg.knows_claimed = true;
    PoolSpec spec{"a", prefix("10.0.0.0/22"), 28, GatewayChoice{GatewayChoice::Kind::none, {}}, std::chrono::seconds(0),
                  {}};
    ASSERT_TRUE(reg.decided(plan_create_pool, spec));
  }
  static AssignRequest like(const char* by = "node-a") {
    AssignRequest request;
    request.node = node(by);
    return request;
  }
  void add(int pods, const char* by = "node-a") {
    for (int i = 0; i < pods; ++i) {
      AssignRequest request = like(by);
      request.owner = {"net", by + std::to_string(++pods_), "eth0"};
      const auto answer = reg.decided(plan_assign, request, clock.now());
      ASSERT_TRUE(answer && std::holds_alternative<Assigned>(*answer));
    }
  }
  /// The block, and then it is claimed.
  std::optional<ClaimedAhead> claim(const AssignRequest& request) {
    const auto decided = reg.decided(plan_claim_ahead, request, net::Family::v4, kLeastFree, clock.now());
    EXPECT_TRUE(decided) << decided.error().message;
    return decided ? *decided : std::nullopt;
  }

  TestRegister reg;
  ManualClock clock;

 private:
  int pods_ = 0;
};

TEST_F(ClaimAhead, OnlyWhenFewAreFree) {
  EXPECT_FALSE(claim(like())) << "it has none yet";
  add(8);
  EXPECT_FALSE(claim(like())) << "eight are free";
  add(1);
  const auto ahead = claim(like());
  ASSERT_TRUE(ahead);
  const Block* block = reg.get(block_key(ahead->block));
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(block->affinity, node("node-a"));
  EXPECT_EQ(block->sequence_number, ahead->sequence_number);
  EXPECT_FALSE(claim(like())) << "one ahead";
}

TEST_F(ClaimAhead, ItIsUsedWhenTheOthersAreFull) {
  add(9);
  const auto ahead = claim(like());
  ASSERT_TRUE(ahead);
  add(8);
  EXPECT_NE(reg.get(block_key(ahead->block))->sequence_number, ahead->sequence_number);
  const auto kept =
      reg.decided(plan_release_affinity, {node("node-a"), ahead->block, true, ahead->sequence_number}, clock.now());
  EXPECT_EQ(*kept, AffinityOutcome::changed) << "what was used is not given back";
}

TEST_F(ClaimAhead, NotUnderLimits) {
  add(9);
  AssignRequest limited = like();
  limited.block_limit = 20;
  EXPECT_FALSE(claim(limited));
  AssignRequest at_default = like();
  at_default.default_block_limit = 1;
  EXPECT_FALSE(claim(at_default));
  for (const bool is_limit : {true, false}) {
    IpamConfig config;
    config.max_blocks_per_host = is_limit ? 20 : 0;
    config.auto_allocate_blocks = is_limit;
    config.strict_affinity = !is_limit;
    reg.put(ipam_config_key(), config);
    EXPECT_FALSE(claim(like()));
  }
  reg.put(ipam_config_key(), IpamConfig{});
  EXPECT_TRUE(claim(like()));
}

TEST_F(ClaimAhead, TheLastBlocksAreForNodesWithoutOne) {
  for (int i = 0; i < 46; ++i) add(1, ("other-" + std::to_string(i)).c_str());
  add(9);
  EXPECT_TRUE(claim(like())) << "17 of 64 were left";
  add(9, "node-b");
  EXPECT_FALSE(claim(like("node-b"))) << "less than sixteen would be";
}

TEST_F(ClaimAhead, NeverMoreThanOneHoweverSmallTheBlocksAndInAPoolOfFewNone) {
  for (const auto& [name, cidr, length] :
       {std::tuple("tiny", "10.9.0.0/24", 30), std::tuple("few", "10.8.0.0/26", 29)}) {
    const PoolSpec spec{name, prefix(cidr), length, GatewayChoice{GatewayChoice::Kind::none, {}}, {}, {}};
    ASSERT_TRUE(reg.decided(plan_create_pool, spec));
    AssignRequest request = like();
    request.pools.v4 = {AskedPool(name)};
    request.owner = {"net", name, "eth0"};
    ASSERT_TRUE(reg.decided(plan_assign, request, clock.now()));
    EXPECT_EQ(claim(request).has_value(), length == 30) << name;
    EXPECT_FALSE(claim(request)) << name;
  }
}

using testing::ElementsAre;

net::Address ip(const char* text) { return net::Address::parse(text).value(); }

/// As a configuration asks: pool a of IPv4, an address.
AssignRequest configured() {
  AssignRequest request;
  request.count = {1, 0};
  request.pools.v4 = {asked_pool("a")};
  request.addresses = {ip("10.0.0.9")};
  return request;
}

TEST(HeedWishes, NothingSaidChangesNothing) {
  AssignRequest request = configured();
  ASSERT_TRUE(apply_wishes({}, {}, request));
  EXPECT_EQ(request.pools.v4, configured().pools.v4);
  EXPECT_EQ(request.count.v4, 1U);
  EXPECT_EQ(request.count.v6, 0U);
  EXPECT_EQ(request.addresses, configured().addresses);
}

TEST(HeedWishes, ThePodCountsBeforeItsNamespaceAndThatBeforeTheConfiguration) {
  AnnotatedWishes said;
  said.name_space.pools = {{{asked_pool("of-namespace")}}, {{asked_pool("six-of-namespace")}}};
  said.name_space.families = net::PerFamily<bool>{true, true};
  AssignRequest request = configured();
  ASSERT_TRUE(apply_wishes(said, {}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("of-namespace")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("six-of-namespace")));
  EXPECT_EQ(request.count.v6, 1U);
  said.pod.pools.v4 = {asked_pool("of-pod")};
  said.pod.families = net::PerFamily<bool>{false, true};
  said.pod.addresses = {ip("fd00::9"), ip("10.0.0.9")};
  request = configured();
  ASSERT_TRUE(apply_wishes(said, {}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("of-pod")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("six-of-namespace")));
  EXPECT_EQ(request.count.v4, 0U);
  EXPECT_EQ(request.count.v6, 1U);
  EXPECT_THAT(request.addresses, ElementsAre(ip("10.0.0.9"), ip("fd00::9")));
}

TEST(HeedWishes, WhatTheRuntimeHandedOverStays) {
  AnnotatedWishes said;
  said.pod.pools = {{{asked_pool("x")}}, {{asked_pool("y")}}};
  said.name_space = said.pod;
  said.pod.addresses = {ip("10.0.0.10")};
  said.pod.families = net::PerFamily<bool>{false, true};
  AssignRequest request = configured();
  ASSERT_TRUE(apply_wishes(said, {{false, true}, false, false}, request));
  EXPECT_THAT(request.pools.v4, ElementsAre(asked_pool("a")));
  EXPECT_THAT(request.pools.v6, ElementsAre(asked_pool("y")));
  EXPECT_EQ(request.count.v4, 1U);
  EXPECT_THAT(request.addresses, ElementsAre(ip("10.0.0.9")));
}

TEST(HeedWishes, AddressesAreBounded) {
  AnnotatedWishes said;
  for (std::uint8_t i = 0; i < kWishedAddressesMax; ++i) {
    said.pod.addresses.push_back(ip(("10.0.1." + std::to_string(i)).c_str()));
  }
  AssignRequest request = configured();
  const auto heeded = apply_wishes(said, {}, request);
  ASSERT_FALSE(heeded);
  EXPECT_EQ(heeded.error().code, ErrorCode::invalid_argument);
}

TEST(HeedWishes, SomethingHasToBeAsked) {
  AssignRequest request;
  request.count = {0, 0};
  EXPECT_FALSE(check_something_is_asked(request));
  request.addresses = {ip("10.0.0.9")};
  EXPECT_TRUE(check_something_is_asked(request));
}

// --- Another program changes the length of a pool's blocks, and makes blocks. The blocks of a pool have one length:
// those of another are out as a whole, and the pool goes on.

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
    return reg.decided(plan_assign, wanted, clock.now());
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
    ASSERT_TRUE(reg.decided(plan_release_owner, owner, clock.now()));
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
  const auto claimed =
      world.reg.decided(plan_claim_affinity, node("node-b"), prefix("10.79.0.0/26"), world.clock.now());
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
