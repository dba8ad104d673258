// plan_ensure_block (assign.h) by itself: what a node has in the end, and whether that takes a commit.

#include <chrono>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/pool_changes.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {
namespace {

const char* const kFirst = "10.0.0.0/30";
const char* const kSecond = "10.0.0.4/30";  // where node-a begins to look

/// A pool of two blocks.
class World {
 public:
  World() {
    PoolSpec spec{
        "a", prefix("10.0.0.0/29"), 30, GatewayChoice{GatewayChoice::Kind::none, {}}, std::chrono::seconds(30), {}};
    EXPECT_TRUE(reg.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); }));
  }
  void claim(const char* by, const char* cidr) {
    EXPECT_EQ(reg.decide<ClaimOutcome>(
                     [&](const Snapshot& s) { return plan_claim_affinity(s, node(by), prefix(cidr), clock.now()); })
                  .value(),
              ClaimOutcome::claimed);
  }
  /// Pods of a node, one address each.
  void hold(const char* on, const char* first_address, std::size_t count = 1) {
    net::Address address = net::Address::parse(first_address).value();
    for (std::size_t i = 0; i < count; ++i, address = address.next().value_or(address)) {
      AssignRequest request;
      request.owner = {"net", address.to_string(), "eth0"};
      request.node = node(on);
      request.addresses = {address};
      const auto answer =
          reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, request, clock.now()); });
      ASSERT_TRUE(answer && std::holds_alternative<Assigned>(*answer));
    }
  }
  void configure(const std::function<void(IpamConfig&)>& change) {
    IpamConfig config;
    change(config);
    reg.put(ipam_config_key(), config);
  }
  void put_on_pool(const std::function<void(Pool&)>& change) {
    Pool pool = *reg.get(pool_key("a"));
    change(pool);
    reg.put(pool_key("a"), pool);
  }
  [[nodiscard]] Result<Plan<EnsureAnswer>> ensure() {
    AssignRequest request;
    request.node = node("node-a");
    return reg.plan<EnsureAnswer>(
        [&](const Snapshot& s) { return plan_ensure_block(s, request, net::Family::v4, clock.now()); });
  }

  TestRegister reg;
  ManualClock clock;
};

struct EnsureRow {
  const char* what;
  std::function<void(World&)> given;
  const char* block;    ///< null: refused
  bool writes = false;  ///< of an answer without a block: never
  RefusalCause cause = RefusalCause::other;
};

TEST(EnsureBlock, AnswersByWhatIsThere) {
  const auto others = [](World& w) {
    w.claim("node-b", kFirst);
    w.claim("node-c", kSecond);
  };
  const auto pass_a_minute = [](World& w) { w.clock.advance(std::chrono::seconds(61)); };
  const EnsureRow rows[] = {
      {"nobody has any", [](World&) {}, kSecond, true},
      {"it has one", [](World& w) { w.claim("node-a", kFirst); }, kFirst},
      {"it has one, and that is full",
       [](World& w) {
         w.claim("node-a", kFirst);
         w.hold("node-a", "10.0.0.1", 3);  // the first one is reserved
       },
       kFirst},
      {"another has the one where it begins", [](World& w) { w.claim("node-b", kSecond); }, kFirst, true},
      {"others have all", others, nullptr, false, RefusalCause::full},
      {"others left all empty",
       [&](World& w) {
         others(w);
         pass_a_minute(w);
       },
       kSecond, true},
      {"others left one empty",
       [&](World& w) {
         others(w);
         w.hold("node-c", "10.0.0.5");
         pass_a_minute(w);
       },
       kFirst, true},
      {"others have pods in all",
       [&](World& w) {
         others(w);
         w.hold("node-b", "10.0.0.1");
         w.hold("node-c", "10.0.0.5");
         pass_a_minute(w);
       },
       nullptr, false, RefusalCause::full},
      {"affinity is strict, and others have all",
       [&](World& w) {
         others(w);
         w.configure([](IpamConfig& c) { c.strict_affinity = true; });
       },
       nullptr, false, RefusalCause::full_and_strict},
      {"claiming is switched off",
       [](World& w) {
         w.configure([](IpamConfig& c) {
           c.strict_affinity = true;
           c.auto_allocate_blocks = false;
         });
       },
       nullptr, false, RefusalCause::no_block_to_claim},
      {"claiming is switched off, and it has one",
       [](World& w) {
         w.claim("node-a", kFirst);
         w.configure([](IpamConfig& c) {
           c.strict_affinity = true;
           c.auto_allocate_blocks = false;
         });
       },
       kFirst},
      {"as many as it may have",
       [](World& w) {
         w.claim("node-a", kFirst);
         w.configure([](IpamConfig& c) {
           c.strict_affinity = true;
           c.max_blocks_per_host = 1;
         });
       },
       kFirst},
      {"the pool is disabled", [](World& w) { w.put_on_pool([](Pool& p) { p.disabled = true; }); }, nullptr, false,
       RefusalCause::no_pool_enabled},
      {"the pool is for other nodes", [](World& w) { w.put_on_pool([](Pool& p) { p.node_selector = "zone == 'x'"; }); },
       nullptr, false, RefusalCause::no_pool_for_node},
  };
  for (const EnsureRow& row : rows) {
    World world;
    row.given(world);
    const auto plan = world.ensure();
    ASSERT_TRUE(plan) << row.what << ": " << plan.error().message;
    const auto* block = std::get_if<net::Prefix>(&plan->answer);
    EXPECT_EQ(block != nullptr ? block->to_string() : "", row.block != nullptr ? row.block : "") << row.what;
    EXPECT_EQ(!plan->writes.empty(), row.writes) << row.what;
    if (const auto* refusal = std::get_if<Refusal>(&plan->answer)) {
      EXPECT_EQ(static_cast<int>(refusal->cause), static_cast<int>(row.cause)) << row.what << ": " << refusal->summary;
    }
    if (block == nullptr) continue;
    // It is the node's now, and asking again changes nothing.
    world.reg.apply(plan->writes);
    EXPECT_EQ(world.reg.get(block_key(*block))->affinity, node("node-a")) << row.what;
    const auto again = world.ensure();
    ASSERT_TRUE(again) << row.what;
    EXPECT_EQ(std::get<net::Prefix>(again->answer), *block) << row.what;
    EXPECT_TRUE(again->writes.empty()) << row.what;
  }
}

/// It may hold addresses still, but none can be had of it: the node gets another.
TEST(EnsureBlock, ADamagedBlockIsNotTheNodes) {
  World world;
  world.claim("node-a", kSecond);
  world.reg.put(block_key(prefix(kSecond)),
                Damaged{Kind::block, Error{ErrorCode::corrupt, "block is damaged", {}}, {}});
  const auto plan = world.ensure();
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(std::get<net::Prefix>(plan->answer), prefix(kFirst));
}

}  // namespace
}  // namespace croft::core
