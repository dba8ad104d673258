#include "register/free_block.h"

#include <rapidcheck.h>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "register/test_values.h"

namespace croft::core {
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
