#include "engine/test_world.h"

namespace croft::engine {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

/// A sound register that each test spoils in one way, past all guards.
class AuditTest : public testing::Test, public World {
 protected:
  void SetUp() override {
    pool("a", "10.1.0.0/28", 29);
    add("c1");
    add("c2");
    ASSERT_THAT(findings(), IsEmpty());
    block_ = look(context)->pools[0].blocks[0].block;
  }
  const core::AffinityOwner node_{core::AffinityOwner::Type::host, "node-a"};
  core::Block block_;
};

TEST_F(AuditTest, BlockThatContradictsItself) {
  block_.allocations[7] = 0;
  put(core::block_key(block_.cidr), block_);
  EXPECT_THAT(findings(), Contains(HasSubstr("block_corrupt")));
}

TEST_F(AuditTest, BlockUnderAnothersName) {
  put(core::block_key(prefix("10.9.0.0/29")), block_);
  EXPECT_THAT(findings(), Contains(HasSubstr("stored under the name ipv4/10.9.0.0/29")));
}

TEST_F(AuditTest, BlockWithoutPoolAndOverlap) {
  put(core::block_key(prefix("10.9.0.0/29")), core::new_block(prefix("10.9.0.0/29"), {}, clock.now(), {}));
  put(core::block_key(prefix("10.9.0.4/30")), core::new_block(prefix("10.9.0.4/30"), {}, clock.now(), {}));
  EXPECT_THAT(findings(), Contains(HasSubstr("block_without_pool block 10.9.0.0/29")));
  EXPECT_THAT(findings(), Contains(HasSubstr("block_overlap block 10.9.0.4/30: it overlaps block 10.9.0.0/29")));
}

TEST_F(AuditTest, ClaimsAndHints) {
  put(core::affinity_key(node_, block_.cidr), std::nullopt);
  put(core::vacancy_key(node_, block_.cidr), std::nullopt);
  put(core::affinity_key(node_, prefix("10.1.0.24/29")), core::Affinity{node_, prefix("10.1.0.24/29"), {}, false});
  put(core::vacancy_key(core::AffinityOwner{core::AffinityOwner::Type::host, "node-b"}, block_.cidr), core::Vacancy{});
  const auto found = findings();
  for (const char* kind : {"affinity_missing", "vacancy_missing", "affinity_stale", "vacancy_stale"}) {
    EXPECT_THAT(found, Contains(HasSubstr(kind)));
  }
}

TEST_F(AuditTest, Handles) {
  put(core::handle_key("net.c1"), std::nullopt);
  put(core::handle_key("net.c2"), core::Handle{"net.c2", {{block_.cidr.to_string(), 5}}, false});
  put(core::handle_key("net.c3"), core::Handle{"net.c3", {{block_.cidr.to_string(), 1}}, false});
  const auto found = findings();
  EXPECT_THAT(found, Contains(HasSubstr("handle_missing handle net.c1")));
  EXPECT_THAT(found, Contains(HasSubstr("handle_miscount handle net.c2")));
  EXPECT_THAT(found, Contains(HasSubstr("handle_miscount handle net.c3")));
}

TEST_F(AuditTest, PoolsReservationsAndSequences) {
  put(core::pool_key("b"), core::make_pool(spec("b", "10.1.0.0/24", 26)).value());
  put(core::reservation_key("pool-a"), std::nullopt);
  put(core::high_water_mark_key(block_.cidr), core::HighWaterMark{core::stamped(block_).sequence_number});
  const auto found = findings();
  EXPECT_THAT(found, Contains(HasSubstr("pool_overlap pool a: 10.1.0.0/28 overlaps pool b")));
  EXPECT_THAT(found, Contains(HasSubstr("reservation_missing pool a: 10.1.0.0 is not")));
  EXPECT_THAT(found, Contains(HasSubstr("sequence_behind block")));
}

TEST_F(AuditTest, ReservedButHeld) {
  put(core::reservation_key("more"), core::Reservation{"more", {prefix("10.1.0.0/28")}});
  EXPECT_THAT(findings(), Contains(HasSubstr("reserved_held")));
}

TEST_F(AuditTest, WhatTheRuntimeDoesNotKnowIsNamedWithItsRemedy) {
  const LiveAttachments live{{"net", "c1", "eth0"}};
  EXPECT_THAT(findings(live), IsEmpty()) << "younger than a minute";
  clock.advance(60s);
  const auto report = audit(context, live).value();
  ASSERT_EQ(report.findings.size(), 1U);
  EXPECT_THAT(report.findings[0].what, HasSubstr("container c2"));
  EXPECT_THAT(report.findings[0].remedy, HasSubstr("--handle net.c2 --sequence "));
  EXPECT_EQ(report.held, 2U);
}

}  // namespace
}  // namespace croft::engine
