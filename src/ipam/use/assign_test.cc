#include "ipam/use/assign.h"

#include <map>
#include <string>
#include <vector>

#include "ipam/use/nodes.h"
#include "ipam/use/test_world.h"

// What a cluster asks of the allocator (docs/notes/calico-ipam.md#algorithms).
namespace croft::engine {
namespace {

using core::AffinityOutcome;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using namespace std::chrono_literals;

const core::AffinityOwner kNodeA{core::AffinityOwner::Type::host, "node-a"};
const core::AffinityOwner kNodeB{core::AffinityOwner::Type::host, "node-b"};

class Cluster : public testing::Test, public World {
 protected:
  void TearDown() override { EXPECT_THAT(findings(), IsEmpty()); }

  /// A pool without gateway, reservation or cooldown: every address counts.
  void bare_pool(const std::string& name, const char* cidr, int block_length, std::chrono::seconds cooldown = 0s) {
    core::Pool bare;
    bare.name = name;
    bare.cidr = prefix(cidr);
    bare.block_length = block_length;
    bare.cooldown = cooldown;
    put(core::pool_key(name), bare);
    bare_ = true;
  }
  std::vector<std::string> findings() {
    std::vector<std::string> all = World::findings();
    // The bare pools of these tests lack the reservations that a pool is made with.
    if (bare_) std::erase_if(all, [](const std::string& f) { return f.starts_with("reservation_missing"); });
    return all;
  }

  std::vector<std::string> add_many(const std::string& container, std::uint32_t count) {
    auto wanted = request(container, "node-a");
    wanted.count.v4 = count;
    return add(wanted);
  }

  std::vector<std::string> blocks_of(const core::AffinityOwner& owner) {
    std::vector<std::string> result;
    EXPECT_TRUE(for_each_block(context, [&](const core::Block& block) {
      if (block.affinity == owner) result.push_back(block.cidr.to_string());
    }));
    return result;
  }
  core::Block block(const char* cidr) {
    const auto record = store.get(core::block_key(prefix(cidr)), Deadline{}).value();
    EXPECT_TRUE(record) << cidr;
    return record ? std::get<core::Block>(*record->value) : core::Block();
  }
  bool exists(const core::Key& key) { return store.get(key, Deadline{}).value().has_value(); }

 private:
  bool bare_ = false;
};

TEST_F(Cluster, AStoreThatHasNamespacesSaysWhatTheirLabelsAre) {
  bare_pool("prod", "10.1.0.0/28", 30);
  put(core::namespace_key("shop"), core::Namespace{"shop", {{"tier", "prod"}}});
  auto wanted = request("c1");
  wanted.pod = {"web-0", "shop", ""};
  change_pool("prod", [](core::Pool& p) { p.namespace_selector = "tier == 'prod'"; });
  EXPECT_THAT(add(wanted).front(), HasSubstr("does not select the namespace")) << "a store that has none";
  store::Capabilities can = store.capabilities();
  can.lacks = {};
  store.set_capabilities(can);
  EXPECT_THAT(add(wanted).front(), StartsWith("10.1."));
  auto other = request("c2");
  other.pod = {"web-1", "nowhere", ""};
  EXPECT_THAT(add(other).front(), HasSubstr("does not select the namespace")) << "one that is not there has no labels";
  other.pod = {};
  EXPECT_THAT(add(other).front(), HasSubstr("does not select the namespace"));
  put(core::namespace_key("shop"), core::Namespace{"shop", {{"tier", "test"}}});
  other.pod = {"web-1", "shop", ""};
  EXPECT_THAT(add(other).front(), HasSubstr("does not select the namespace"));
}

TEST_F(Cluster, ClaimsOfAffinityAreExact) {
  bare_pool("a", "10.1.0.0/28", 30);
  const auto claimed = claim_affinity(context, kNodeA, prefix("10.1.0.0/28"));
  ASSERT_TRUE(claimed) << claimed.error().message;
  EXPECT_EQ(claimed->claimed.size(), 4U);
  EXPECT_EQ(claim_affinity(context, kNodeB, prefix("10.1.0.0/28"))->others.size(), 4U);
  EXPECT_THAT(claim_affinity(context, kNodeA, prefix("10.1.0.0/31")).error().message, HasSubstr("smaller than the"));
  EXPECT_THAT(claim_affinity(context, kNodeA, prefix("10.9.0.0/28")).error().message, HasSubstr("not within any"));
  EXPECT_EQ(release_affinity(context, {kNodeB, prefix("10.1.0.0/30"), true, {}}).value(), AffinityOutcome::not_there);
  EXPECT_EQ(release_affinity(context, {kNodeA, prefix("10.1.0.0/30"), true, core::SequenceNumber(7)}).value(),
            AffinityOutcome::changed);
  EXPECT_EQ(release_affinity(context, {kNodeA, prefix("10.1.0.0/30"), true, {}}).value(), AffinityOutcome::released);
  EXPECT_EQ(blocks_of(kNodeA).size(), 3U);
}

TEST_F(Cluster, ANodeThatGoesLeavesItsAddressesHeld) {
  bare_pool("a", "10.1.0.0/28", 30);
  ASSERT_TRUE(claim_affinity(context, kNodeA, prefix("10.1.0.0/29")));
  const std::string held = add("c1");
  auto kept = release_host_affinities(context, kNodeA, true);
  ASSERT_TRUE(kept);
  EXPECT_EQ(kept->released.size(), 1U);
  EXPECT_EQ(kept->not_empty.size(), 1U);
  ASSERT_TRUE(release_host_affinities(context, kNodeA, false));
  EXPECT_THAT(blocks_of(kNodeA), IsEmpty());
  EXPECT_EQ(held_addresses(context, {"net", "c1", "eth0"}).value().size(), 1U);
  EXPECT_EQ(release_owner(context, {"net", "c1", "eth0"})->addresses.size(), 1U);
}

// Beside Calico, which keeps no vacancies.
class BesideCalico : public Cluster {
 protected:
  BesideCalico() { store.set_capabilities({.atomic_commit = true, .foreign_writers = true}); }

  /// A block as Calico makes one, with the first addresses held.
  void foreign_block(const core::AffinityOwner& owner, const char* cidr, std::uint32_t held,
                     core::AffinityState state = core::AffinityState::confirmed) {
    core::Block block = core::new_block(prefix(cidr), owner, clock.now(), {});
    for (std::uint32_t i = 0; i < held; ++i) {
      core::Attribute attribute;
      attribute.handle_id = "k8s-pod-network." + std::to_string(i) + cidr;
      attribute.secondary["node"] = owner.name;
      block = core::with_next_sequence_number(
          core::take_next(block, attribute, [](const net::Address&) { return false; })->block);
      put(core::handle_key(*attribute.handle_id), core::Handle{*attribute.handle_id, {{cidr, 1}}, false});
    }
    put(core::block_key(block.cidr), block);
    put(core::affinity_key(owner, block.cidr), core::Affinity{owner, block.cidr, state, false});
  }
  core::AffinityState state_of_row(const core::AffinityOwner& owner, const char* cidr) {
    return std::get<core::Affinity>(*store.get(core::affinity_key(owner, prefix(cidr)), Deadline{}).value()->value)
        .state;
  }
};

TEST_F(BesideCalico, ItsBlocksAreFoundWithoutVacancies) {
  bare_pool("a", "10.1.0.0/28", 30);
  foreign_block(kNodeA, "10.1.0.4/30", 4);
  foreign_block(kNodeA, "10.1.0.8/30", 2);
  EXPECT_EQ(add("c1"), "10.1.0.10");
  EXPECT_EQ(add("c2"), "10.1.0.11");
  EXPECT_EQ(blocks_of(kNodeA).size(), 2U);
}

TEST_F(BesideCalico, AClaimLeftPendingIsTakenUp) {
  bare_pool("a", "10.1.0.0/28", 30);
  put(core::affinity_key(kNodeA, prefix("10.1.0.8/30")),
      core::Affinity{kNodeA, prefix("10.1.0.8/30"), core::AffinityState::pending, false});
  EXPECT_EQ(add("c1"), "10.1.0.8");
  EXPECT_EQ(state_of_row(kNodeA, "10.1.0.8/30"), core::AffinityState::confirmed);
}

TEST_F(BesideCalico, AnInterruptedReleaseIsTakenBack) {
  bare_pool("a", "10.1.0.0/28", 30);
  foreign_block(kNodeA, "10.1.0.8/30", 1, core::AffinityState::pending_deletion);
  EXPECT_EQ(add("c1"), "10.1.0.9");
  EXPECT_EQ(state_of_row(kNodeA, "10.1.0.8/30"), core::AffinityState::confirmed);
}

TEST_F(BesideCalico, AStaleClaimGoes) {
  bare_pool("a", "10.1.0.0/28", 30);
  foreign_block(kNodeB, "10.1.0.8/30", 1);
  put(core::affinity_key(kNodeA, prefix("10.1.0.8/30")),
      core::Affinity{kNodeA, prefix("10.1.0.8/30"), core::AffinityState::confirmed, false});
  EXPECT_THAT(add("c1"), StartsWith("10.1.0."));
  EXPECT_FALSE(exists(core::affinity_key(kNodeA, prefix("10.1.0.8/30"))));
  EXPECT_EQ(block("10.1.0.8/30").affinity, kNodeB);
}

TEST_F(BesideCalico, BorrowingSeesItsBlocks) {
  bare_pool("a", "10.1.0.0/29", 30);
  foreign_block(kNodeA, "10.1.0.0/30", 4);
  foreign_block(kNodeB, "10.1.0.4/30", 3);
  EXPECT_EQ(add("c1", "node-c"), "10.1.0.7");
  EXPECT_THAT(add("c2", "node-c"), StartsWith("exhausted"));
}

// Among thousands of blocks, all of them somebody's, one ADD must not read them all before it borrows.
TEST_F(BesideCalico, AClusterWithoutAFreeBlockIsNotSearchedWholeBeforeBorrowing) {
  bare_pool("wide", "10.8.0.0/18", 29);
  for (std::uint64_t i = 0; i < 2048; ++i) {
    foreign_block(kNodeB, prefix("10.8.0.0/18").subprefix(i, 29).to_string().c_str(), 7);
  }
  auto wanted = request("c1");
  wanted.pools.v4 = {"wide"};
  const auto reads_before = store.counts().read;
  EXPECT_THAT(add(wanted), ElementsAre(StartsWith("10.8.")));
  EXPECT_LE(store.counts().read - reads_before, 10U);
  EXPECT_EQ(blocks_of(kNodeA), std::vector<std::string>());
}

TEST_F(BesideCalico, TheLimitCountsItsBlocks) {
  bare_pool("a", "10.1.0.0/28", 30);
  foreign_block(kNodeA, "10.1.0.0/30", 4);
  foreign_block(kNodeA, "10.1.0.4/30", 4);
  auto wanted = request("c1");
  wanted.default_block_limit = 2;
  EXPECT_THAT(add(wanted).front(), HasSubstr("no more than 2"));
}

/// ADDs of one node on a register in memory, and a kernel that leads to some addresses.
class LivingTest : public testing::Test, public World {
 protected:
  void SetUp() override {
    for (core::PoolSpec one : {spec("four", "10.1.0.0/27", 27, 0), spec("six", "fd00::/123", 123, 0)}) {
      one.gateway = core::GatewayChoice{core::GatewayChoice::Kind::none, {}};
      ASSERT_TRUE(create_pool(context, one));
    }
    living.device_of = [this](const net::Address& address) -> Result<std::optional<std::string>> {
      ++questions;
      if (deaf) return fail(*deaf);
      const auto found = routes.find(address.to_string());
      return found == routes.end() ? std::optional<std::string>() : std::optional(found->second);
    };
    living.warn = [this](const std::string& line) { warnings.push_back(line); };
  }
  core::AssignRequest wanted_by(const std::string& container) {
    core::AssignRequest asked = request(container, "node-a");
    asked.count = wanted.empty() ? count : net::PerFamily<std::uint32_t>{0, 0};
    asked.addresses = wanted;
    return asked;
  }
  core::AssignAnswer answer_of(const std::string& container) {
    const auto answer = assign(context, wanted_by(container), {}, &living);
    EXPECT_TRUE(answer) << answer.error().message;
    return *answer;
  }
  /// The addresses, or the refusal's text.
  std::vector<std::string> add_past(const std::string& container) {
    const core::AssignAnswer answer = answer_of(container);
    if (const auto* refusal = std::get_if<core::Refusal>(&answer)) return {core::to_error(*refusal).message};
    std::vector<std::string> texts;
    for (const auto& one : std::get<core::Assigned>(answer).addresses) {
      texts.push_back(one.address.to_string() + (one.held_before ? " again" : ""));
    }
    return texts;
  }
  std::vector<std::string> taken() {
    std::vector<std::string> texts;
    const auto all = list_addresses(context);
    EXPECT_TRUE(all);
    for (const auto& one : *all) {
      if (one.state == core::AddressState::held) texts.push_back(one.address.to_string());
    }
    return texts;
  }

  Living living;
  std::map<std::string, std::string> routes;
  std::optional<Error> deaf;
  net::PerFamily<std::uint32_t> count{1, 0};
  std::vector<net::Address> wanted;
  std::vector<std::string> warnings;
  int questions = 0;
};

TEST_F(LivingTest, ItCostsOneQuestionAnAddress) {
  count = {1, 1};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1", "fd00::1"));
  EXPECT_EQ(questions, 2);
  EXPECT_THAT(warnings, IsEmpty());
  // Asked again by the same owner: it may be its own route.
  routes = {{"10.1.0.1", "own"}, {"fd00::1", "own"}};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1 again", "fd00::1 again"));
  EXPECT_EQ(questions, 2);
}

TEST_F(LivingTest, AnAddressThatLivesIsPassedOverAndNothingIsWrittenForIt) {
  routes = {{"10.1.0.1", "veth1"}, {"10.1.0.2", "veth2"}, {"10.1.0.4", "veth3"}};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.3"));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.3"));
  EXPECT_THAT(warnings, ElementsAre(AllOf(HasSubstr("10.1.0.1 (device veth1) and 1 more"), HasSubstr("as free"))));
  EXPECT_THAT(add_past("c2"), ElementsAre("10.1.0.5"));
  // Once nobody lives with it, it is given.
  routes.clear();
  EXPECT_THAT(add_past("c3"), ElementsAre("10.1.0.1"));
}

TEST_F(LivingTest, OfTwoFamiliesTheOtherStays) {
  count = {1, 1};
  routes = {{"fd00::1", "veth1"}};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1", "fd00::2"));
  EXPECT_THAT(taken(), ElementsAre("10.1.0.1", "fd00::2"));
}

TEST_F(LivingTest, AFixedAddressThatLivesIsRefused) {
  wanted = {ip("10.1.0.8")};
  routes = {{"10.1.0.8", "cali1"}};
  const core::AssignAnswer answer = answer_of("c1");
  const auto& refusal = std::get<core::Refusal>(answer);
  EXPECT_EQ(refusal.code, ErrorCode::unavailable);
  EXPECT_THAT(refusal.summary,
              AllOf(HasSubstr("requested address 10.1.0.8"), HasSubstr("device cali1"),
                    HasSubstr("somebody on this node lives with"), HasSubstr("restore-kubernetes-api.md")));
  EXPECT_THAT(taken(), IsEmpty());
}

TEST_F(LivingTest, WhereNoOtherAddressIsLeftTheRefusalSaysWhatLives) {
  for (int i = 1; i <= 3; ++i) routes["10.1.0." + std::to_string(i)] = "veth1";
  for (int i = 4; i <= 30; ++i) ASSERT_EQ(add_past("c" + std::to_string(i)).size(), 1U);
  const std::vector<std::string> refused = add_past("c1");
  EXPECT_THAT(refused, ElementsAre(AllOf(HasSubstr("every usable pool is full"),
                                         HasSubstr("lives with 10.1.0.1 (device veth1) and 2 more, which"))));
  // Nothing of two families stays when one is refused.
  count = {1, 1};
  const std::size_t before = taken().size();
  EXPECT_EQ(add_past("c2").size(), 1U);
  EXPECT_EQ(taken().size(), before);
}

TEST_F(LivingTest, WithoutAKernelToAskItGoesOnAndSaysSoOnce) {
  count = {1, 1};
  deaf = Error{ErrorCode::permission_denied, "no netlink here", {}};
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1", "fd00::1"));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("no netlink here")));
  EXPECT_EQ(questions, 1);
  living.device_of = nullptr;
  EXPECT_THAT(add_past("c2"), ElementsAre("10.1.0.2", "fd00::2"));
}

/// The block stays one with room: an address that lived is given as soon as nobody lives with it.
TEST_F(LivingTest, TheHintOfRoomCountsAddressesThatLive) {
  for (int i = 1; i <= 2; ++i) routes["10.1.0." + std::to_string(i)] = "veth1";
  for (int i = 3; i <= 30; ++i) ASSERT_EQ(add_past("c" + std::to_string(i)).size(), 1U);
  routes.clear();
  EXPECT_THAT(add_past("c1"), ElementsAre("10.1.0.1"));
}

TEST_F(LivingTest, ABatchPassesThemOverToo) {
  routes = {{"10.1.0.1", "veth1"}};
  const core::AssignRequest asked = wanted_by("c1");
  const std::vector<core::PoolSpec> pools;
  core::Assigned assigned;
  BatchedCall call = assign_in_batch(asked, pools, {}, assigned, &living);
  commit_together(context, store, {&call, 1});
  ASSERT_EQ(call.fate, BatchFate::done);
  EXPECT_EQ(assigned.addresses.front().address, ip("10.1.0.2"));
  // What is refused goes alone.
  wanted = {ip("10.1.0.1")};
  const core::AssignRequest fixed = wanted_by("c2");
  BatchedCall refused = assign_in_batch(fixed, pools, {}, assigned, &living);
  commit_together(context, store, {&refused, 1});
  EXPECT_EQ(refused.fate, BatchFate::alone);
  EXPECT_THAT(taken(), ElementsAre("10.1.0.2"));
}

}  // namespace

}  // namespace croft::engine
