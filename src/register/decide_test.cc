// The end of a decision (snapshot.h, decide): nothing leaves it that rests on what was not read.

#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "register/snapshot.h"
#include "register/test_register.h"

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

namespace {

using net::Prefix;

std::vector<Key> keys_of(const std::set<Prefix>& blocks) {
  std::vector<Key> keys;
  for (const Prefix& block : blocks) keys.push_back(block_key(block));
  std::ranges::sort(keys);
  return keys;
}

/// Whether it may be the answer, by looking at every block.
bool is_free(const FreeBlock& wanted, const std::set<Prefix>& blocks, const Prefix& block) {
  return block.length() == wanted.length && wanted.pool.contains(block) && !wanted.out.contains(block) &&
         !wanted.reserved->covers(block) &&
         std::ranges::none_of(blocks, [&](const Prefix& one) { return one.overlaps(block); });
}

RC_GTEST_PROP(FindFreeBlock, FindsTheFirstThatNobodyHas, ()) {
  const bool is_v4 = *rc::gen::arbitrary<bool>();
  const Prefix pool = is_v4 ? prefix("10.0.2.0/23") : prefix("fd00::fe00/119");
  const int shortest = pool.length() - 1;
  const auto any_block = [&](int from, int to) {
    const int length = *rc::gen::inRange(std::max(from, pool.length()), to + 1);
    const auto index = *rc::gen::inRange(std::uint64_t{0}, std::uint64_t{1} << (length - pool.length()));
    return pool.subprefix(index, length);
  };
  const int length = pool.length() + *rc::gen::inRange(0, 6);
  FreeBlock wanted{pool, length, any_block(length, length), {}, false, nullptr};
  std::set<Prefix> blocks;
  std::vector<Prefix> reserved;
  for (int i = *rc::gen::inRange(0, 40); i > 0; --i) blocks.insert(any_block(length, length));
  for (int i = *rc::gen::inRange(0, 3); i > 0; --i) blocks.insert(any_block(shortest, net::bit_length(pool.family())));
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) wanted.out.insert(any_block(length, length));
  for (int i = *rc::gen::inRange(0, 6); i > 0; --i) reserved.push_back(any_block(shortest, length + 2));
  wanted.reserved = std::make_shared<const net::Intervals>(reserved);
  wanted.step = *rc::gen::element<std::uint64_t>(1, 3, 0x9E3779B9);
  const FoundBlock found = find_free_block(wanted, keys_of(blocks));
  const std::uint64_t count = std::uint64_t{1} << (length - pool.length());
  const std::uint64_t start = pool.subprefix_index(wanted.start).lo;
  std::optional<Prefix> first;
  for (std::uint64_t i = 0; i < count && !first; ++i) {
    const Prefix block = pool.subprefix((start + i * wanted.step) % count, length);
    if (is_free(wanted, blocks, block)) first = block;
  }
  RC_ASSERT(found.block == first);
  if (found.block) return;
  RC_ASSERT(found.there == blocks.size());
  const bool has_other = std::ranges::any_of(blocks, [&](const Prefix& one) { return one.length() != length; });
  RC_ASSERT(found.other.has_value() == has_other);
}

/// What is not known to be a block of the pool's length keeps its addresses out, however large it is.
TEST(FindFreeBlock, ALargerBlockAroundThePoolKeepsAllOut) {
  const FreeBlock wanted{prefix("10.0.0.0/26"), 28, prefix("10.0.0.16/28"), {}, false, nullptr};
  const FoundBlock found = find_free_block(wanted, keys_of({prefix("10.0.0.0/20")}));
  EXPECT_FALSE(found.block);
  EXPECT_EQ(found.other, prefix("10.0.0.0/20"));
}

/// Those who begin at the same block, or whose next ones are taken, do not meet at the first free one behind.
TEST(FindFreeBlock, StepsLeadApart) {
  const Prefix pool = prefix("10.0.0.0/16");
  std::set<Prefix> blocks;
  for (std::uint64_t i = 0; i < 512; ++i) blocks.insert(pool.subprefix(i, 26));
  std::set<Prefix> found;
  for (std::uint64_t i = 0; i < 100; ++i) {
    const FreeBlock wanted{pool, 26, pool.subprefix(i / 2, 26), {}, false, nullptr, (i * 2654435761U) | 1U};
    found.insert(find_free_block(wanted, keys_of(blocks)).block.value());
  }
  EXPECT_GT(found.size(), 80U);
  const FreeBlock one{pool, 26, pool.subprefix(0, 26), {}, false, nullptr, 3};
  FreeBlock other = one;
  other.step = 5;
  EXPECT_NE(one, other) << "the answer to one is not the other's";
}

TEST(FindFreeBlock, WidePoolsAreNoWork) {
  for (const char* pool : {"::/0", "fd00::/64"}) {
    FreeBlock wanted{prefix(pool), 122, prefix(pool).subprefix(net::U128::low_bits(58), 122), {}, false, nullptr};
    EXPECT_EQ(find_free_block(wanted, {}).block, wanted.start);
    wanted.out.insert(wanted.start);
    EXPECT_TRUE(find_free_block(wanted, {}).block);
  }
}

}  // namespace

}  // namespace croft::core
