#include "register/address_claims.h"

#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/pool_changes.h"
#include "register/test_register.h"

namespace croft::core {
namespace {

using net::Prefix;
using testing::ElementsAre;
using testing::HasSubstr;

/// The claims of a register with a pool 10.1.0.0/24 and blocks in it and beside it.
class StrayBlocks : public testing::Test {
 protected:
  StrayBlocks() {
    Pool pool;
    pool.name = "a";
    pool.cidr = prefix("10.1.0.0/24");
    pool.block_length = 26;
    reg_.put(pool_key("a"), pool);
    for (const char* cidr : {"10.1.0.64/26", "10.79.0.192/26", "fd00:79::40/122"}) {
      reg_.put(block_key(prefix(cidr)), new_block(prefix(cidr), std::nullopt, ManualClock().now(), {}));
    }
  }
  template <class Ask>
  auto ask(Ask question) {
    using Answer = decltype(question(std::declval<const AddressClaims&>()));
    const auto plan = reg_.plan<Answer>([&](const Snapshot& s) -> Step<Answer> {
      Reader reader(s);
      const AddressClaims claims(reader);
      if (!reader.complete()) return reader.missing();
      return Plan<Answer>{question(claims), {}};
    });
    return plan->answer;
  }
  TestRegister reg_;
};

TEST_F(StrayBlocks, ClaimTheirAddressesAgainstNodeRangesAndServices) {
  const auto cluster = ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.79.0.0/22")); });
  EXPECT_THAT(cluster.value_or(""), HasSubstr("block 10.79.0.192/26 of a pool that is gone"));
  EXPECT_EQ(ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.80.0.0/22")); }), std::nullopt);
  const auto services = ask([](const AddressClaims& c) { return c.against_services(prefix("10.79.0.192/27")); });
  EXPECT_THAT(services.value_or(""), HasSubstr("block 10.79.0.192/26"));
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_services(prefix("fd00:79::/112")); }));
}

/// A node range configured before the pool went keeps off them too; what lies in a pool is the pool's.
TEST_F(StrayBlocks, AreNotForNodes) {
  EXPECT_THAT(ask([](const AddressClaims& c) { return c.not_for_nodes(); }),
              ElementsAre(prefix("10.1.0.0/24"), prefix("10.79.0.192/26"), prefix("fd00:79::40/122")));
}

/// Whatever its length, and whatever lies under its name.
TEST_F(StrayBlocks, ABlockOfAnyLengthIsTakenWhole) {
  for (const char* cidr : {"10.0.0.0/8", "::/0"}) reg_.put(block_key(prefix(cidr)), Block{});
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_cluster_cidr(prefix("10.80.0.0/22")); }));
  EXPECT_TRUE(ask([](const AddressClaims& c) { return c.against_services(prefix("fd00:80::/112")); }));
  PoolSpec spec;
  spec.name = "b";
  spec.cidr = prefix("10.90.0.0/24");
  const auto created = reg_.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); });
  ASSERT_FALSE(created);
  EXPECT_THAT(created.error().message, HasSubstr("block 10.0.0.0/8"));
}

}  // namespace
}  // namespace croft::core
