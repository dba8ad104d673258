#include <rapidcheck.h>

#include "ipam/use/test_ledger.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;

TEST(EngineProperty, NoAddressHasTwoHoldersUnderAnyHistoryWithFaults) {
  EXPECT_TRUE(rc::check([] {
    World world;
    const int block_length = *rc::gen::inRange(28, 33);
    const int cooldown = *rc::gen::element(0, 10);
    world.pool("a", "10.1.0.0/28", block_length, cooldown);
    const bool dual = *rc::gen::arbitrary<bool>();
    if (dual) world.pool("six", "fd00::/124", 126, cooldown);
    Ledger ledger;
    const int steps = *rc::gen::inRange(1, 60);
    for (int i = 0; i < steps; ++i) {
      const std::string container = "c" + std::to_string(*rc::gen::inRange(0, 20));
      const std::string node = *rc::gen::element<std::string>("node-a", "node-b", "node-c");
      if (*rc::gen::inRange(0, 4) == 0) {
        world.store.set_faults(store::FaultScript().on_commit(world.store.counts().commit + 1, any_fault()));
      }
      switch (*rc::gen::inRange(0, 5)) {
        case 0:
        case 1: {
          auto request = World::request(container, node);
          request.count.v6 = dual;
          const auto answer = assign(world.context, request);
          // A failed ADD may have left the address with its owner; then the owner's own retry finds it.
          if (!answer) break;
          if (const auto* assigned = std::get_if<core::Assigned>(&*answer)) {
            RC_ASSERT(assigned->addresses.size() == (dual ? 2U : 1U));
          }
          ledger.took(*answer, container, world.clock.now());
          break;
        }
        case 2: {
          const auto released = release_owner(world.context, {"net", container, "eth0"});
          if (!released) break;
          ledger.let_go(container, world.clock.now().since_boot + std::chrono::seconds(cooldown));
          break;
        }
        case 3:
          world.clock.advance(std::chrono::milliseconds(*rc::gen::inRange(1, 6000)));
          break;
        default:
          world.clock.jump_wall(std::chrono::hours(*rc::gen::inRange(-100000, 100000)));
      }
      world.store.set_faults({});
      const auto found = world.findings();
      RC_ASSERT(found == std::vector<std::string>());
      ledger.expect_recorded(world.context);
    }
    // When faults stop, everything can be given back.
    for (int i = 0; i < 20; ++i)
      RC_ASSERT(release_owner(world.context, {"net", "c" + std::to_string(i), "eth0"}).has_value());
    world.clock.advance(11s);
    const auto overview = read_overview(world.context).value();
    for (const PoolView& pool : overview.pools) RC_ASSERT(pool.usage.held + pool.usage.cooling == 0U);
  }));
}

}  // namespace
}  // namespace croft::engine
