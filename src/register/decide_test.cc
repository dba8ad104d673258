// The end of a decision (snapshot.h, decide): nothing leaves it that rests on what was not read.

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "register/snapshot.h"
#include "register/test_values.h"

namespace croft::core {
namespace {

using IntFlow = Flow<Plan<int>>;
using Ask = std::function<void(Reader&)>;

const KeyOf<Pool> kKey = pool_key("web");
const Listing kListing{Kind::pool, ""};
const FreeBlock kFreeBlock{prefix("10.0.0.0/26"), 28, prefix("10.0.0.0/28"), {}, false, nullptr};

/// What a decision would write that forgot to look whether it has been told everything.
Plan<int> careless() { return {7, {to_delete(kKey)}}; }

/// Every way to ask.
std::vector<std::pair<std::string, Ask>> asks() {
  return {
      {"get", [](Reader& r) { static_cast<void>(r.get(kKey)); }},
      {"sound", [](Reader& r) { static_cast<void>(r.sound(kKey)); }},
      {"ask", [](Reader& r) { r.ask(kKey); }},
      {"list", [](Reader& r) { static_cast<void>(r.list(kListing)); }},
      {"sound list", [](Reader& r) { static_cast<void>(r.sound(kListing)); }},
      {"keys", [](Reader& r) { static_cast<void>(r.keys(kListing)); }},
      {"free block", [](Reader& r) { static_cast<void>(r.free_block(kFreeBlock)); }},
  };
}

/// All of it read, with nothing there.
Snapshot full() {
  Snapshot snapshot;
  snapshot.set(kKey, std::nullopt);
  snapshot.set_list(kListing, {});
  snapshot.set_keys(kListing, std::vector<Key>());
  snapshot.set_free_block(kFreeBlock, {});
  return snapshot;
}

TEST(Decide, NothingIsPlannedBeforeAllThatWasAskedForIsRead) {
  for (const auto& [name, ask] : asks()) {
    const auto forgets = [&ask = ask](Reader& reader) -> IntFlow {
      ask(reader);
      return careless();
    };
    const Step<int> before = decide(Snapshot(), forgets);
    ASSERT_TRUE(std::holds_alternative<Missing>(before)) << name;
    EXPECT_TRUE(std::get<Missing>(before).unread()) << name;
    const Step<int> after = decide(full(), forgets);
    ASSERT_TRUE(std::holds_alternative<Plan<int>>(after)) << name;
    EXPECT_EQ(std::get<Plan<int>>(after).writes.size(), 1U) << name;
  }
}

TEST(Decide, NothingIsSaidToBeWrongBeforeAllIsRead) {
  for (const auto& [name, ask] : asks()) {
    const auto hasty = [&ask = ask](Reader& reader) -> IntFlow {
      ask(reader);
      return fail(ErrorCode::not_found, "there is no pool web");
    };
    EXPECT_TRUE(std::holds_alternative<Missing>(decide(Snapshot(), hasty))) << name;
    const Step<int> after = decide(full(), hasty);
    ASSERT_TRUE(std::holds_alternative<Error>(after)) << name;
    EXPECT_EQ(std::get<Error>(after).code, ErrorCode::not_found) << name;
  }
}

TEST(Decide, NothingIsPlannedOnADamagedRecordThatItRestsOn) {
  Snapshot snapshot = full();
  snapshot.set_unreadable(kKey, {ErrorCode::corrupt, "pool web is damaged", {}});
  const auto plans_after = [&](const Ask& ask) {
    return decide(snapshot, [&](Reader& reader) -> IntFlow {
      ask(reader);
      return careless();
    });
  };
  for (const auto& [name, ask] : asks()) {
    const Step<int> step = plans_after(ask);
    if (name != "get" && name != "list") {
      EXPECT_TRUE(std::holds_alternative<Plan<int>>(step)) << name;  // who can do without it
      continue;
    }
    ASSERT_TRUE(std::holds_alternative<Missing>(step)) << name;
    const auto& missing = std::get<Missing>(step);
    EXPECT_FALSE(missing.unread()) << name;
    ASSERT_TRUE(missing.damaged.has_value()) << name;
    EXPECT_EQ(missing.damaged->message, "pool web is damaged") << name;
  }
}

TEST(Decide, WhatIsAskedForBeforeAStepEndsIsReadTogether) {
  const Key other = pool_key("mail");
  const Step<int> step = decide(Snapshot(), [&](Reader& reader) -> IntFlow {
    reader.ask(kKey);
    reader.ask(other);
    TRY_VOID(reader.ready());
    reader.ask(reservation_key("late"));
    return careless();
  });
  ASSERT_TRUE(std::holds_alternative<Missing>(step));
  EXPECT_EQ(std::get<Missing>(step).records, (std::set<Key>{kKey, other}));
}

struct Refused {
  std::string why;
};

TEST(Stop, IsHandedOnWithItsReason) {
  const Snapshot snapshot;
  Reader reader(snapshot);
  const auto inner = [&](int which) -> Flow<int> {
    if (which == 0) TRY_VOID(reader.ready());
    if (which == 1) return fail(ErrorCode::corrupt, "damaged");
    return which;
  };
  const auto outer = [&](int which) -> Flow<void, Refused> {
    TRY(const int got, inner(which));
    if (got == 2) return fail(Stop<Refused>(Refused{"no"}));
    return {};
  };
  EXPECT_TRUE(outer(0).has_value());  // nothing was asked for
  EXPECT_TRUE(outer(3).has_value());
  auto fault = outer(1);
  ASSERT_FALSE(fault.has_value());
  ASSERT_NE(fault.error().error(), nullptr);
  EXPECT_EQ(fault.error().error()->message, "damaged");
  auto refusal = outer(2);
  ASSERT_FALSE(refusal.has_value());
  ASSERT_NE(refusal.error().refusal(), nullptr);
  EXPECT_EQ(refusal.error().refusal()->why, "no");
  reader.ask(kKey);
  auto stopped = outer(0);
  ASSERT_FALSE(stopped.has_value());
  EXPECT_NE(stopped.error().not_read(), nullptr);
  EXPECT_EQ(stopped.error().error(), nullptr);
  EXPECT_EQ(stopped.error().refusal(), nullptr);
}

}  // namespace
}  // namespace croft::core
