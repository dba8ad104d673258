// Decisions made on one snapshot, each as the ones before it leave it (Snapshot::set_planned): they come to what they
// come to one after the other on the register.

#include <rapidcheck.h>

#include <chrono>
#include <cstddef>
#include <string>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/claim_ahead.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {
namespace {

struct Call {
  enum class What { add, add_both, del, ahead } what = What::add;
  std::string container, node;
};

Call any_call() {
  return {*rc::gen::element(Call::What::add, Call::What::add, Call::What::add_both, Call::What::del, Call::What::ahead),
          "c" + std::to_string(*rc::gen::inRange(0, 30)), *rc::gen::element<std::string>("node-a", "node-b")};
}

/// The answer as text.
std::string decide_one(TestRegister& reg, const Call& call, const Instant& now) {
  const Owner owner{"net", call.container, "eth0"};
  if (call.what == Call::What::del) {
    const auto done = reg.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, owner, now); });
    if (!done) return done.error().message;
    std::string text = "released";
    for (const auto& address : done->addresses) text += " " + address.to_string();
    return text;
  }
  AssignRequest request;
  request.owner = owner;
  request.node = node(call.node.c_str());
  request.count.v6 = call.what == Call::What::add_both ? 1 : 0;
  if (call.what == Call::What::ahead) {
    const auto done = reg.decide<std::optional<ClaimedAhead>>(
        [&](const Snapshot& s) { return plan_claim_ahead(s, request, net::Family::v4, 3, now); });
    if (!done) return done.error().message;
    return *done ? "ahead " + (**done).block.to_string() : "not ahead";
  }
  const auto done = reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, request, now); });
  if (!done) return done.error().message;
  if (const auto* refusal = std::get_if<Refusal>(&*done)) return refusal->summary;
  std::string text = "assigned";
  for (const auto& one : std::get<Assigned>(*done).addresses) {
    text += " " + one.address.to_string() + (one.held_before ? " again" : "");
  }
  return text;
}

TEST(TogetherProperty, ComesToWhatItComesToOneAfterTheOther) {
  EXPECT_TRUE(rc::check([] {
    TestRegister one_by_one;
    one_by_one.foreign_writers = *rc::gen::arbitrary<bool>();
    one_by_one.knows_claimed = *rc::gen::arbitrary<bool>();
    const auto cooldown = std::chrono::seconds(*rc::gen::element(0, 10));
    const int length = *rc::gen::inRange(27, 32);
    for (const auto& [name, cidr, block] :
         {std::tuple{"a", prefix("10.0.0.0/26"), length}, std::tuple{"six", prefix("fd00::/121"), 124}}) {
      const PoolSpec spec{name, cidr, block, GatewayChoice{GatewayChoice::Kind::none, {}}, cooldown, {}};
      RC_ASSERT(
          one_by_one.decide<PoolCreated>([&](const Snapshot& s) { return plan_create_pool(s, spec); }).has_value());
    }
    TestRegister together = one_by_one;
    ManualClock clock;
    for (int batches = *rc::gen::inRange(1, 6); batches > 0; --batches) {
      together.begin_batch();
      for (int calls = *rc::gen::inRange(1, 20); calls > 0; --calls) {
        const Call call = any_call();
        const std::string expected = decide_one(one_by_one, call, clock.now());
        const std::string got = decide_one(together, call, clock.now());
        RC_ASSERT(got == expected);
      }
      together.end_batch();
      const bool same = together.records() == one_by_one.records();
      RC_ASSERT(same);
      clock.advance(std::chrono::seconds(*rc::gen::inRange(0, 15)));
    }
  }));
}

}  // namespace
}  // namespace croft::core
