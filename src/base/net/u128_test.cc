#include "base/net/u128.h"

#include <algorithm>
#include <array>
#include <limits>
#include <type_traits>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/arbitrary.h"

namespace croft::net {
namespace {

constexpr std::uint64_t kOnes = std::numeric_limits<std::uint64_t>::max();

static_assert(std::is_trivially_copyable_v<U128> && sizeof(U128) == 16);
static_assert(U128{1, 0} > U128{0, kOnes}, "the high half decides");
static_assert(U128{0, kOnes} + 1 == U128{1, 0}, "the carry goes up");
static_assert(U128{1, 0} - 1 == U128{0, kOnes}, "the borrow comes down");
static_assert(U128::max() + 1 == U128{} && U128{} - 1 == U128::max(), "both ends wrap");
static_assert((U128{1} << 64) == U128{1, 0} && (U128{1, 0} >> 64) == U128{1});
static_assert((U128{1} << 127) == U128{std::uint64_t{1} << 63, 0} && (U128{1} << 128) == U128{});
static_assert((U128::max() >> 128) == U128{} && (U128::max() >> 0) == U128::max());
static_assert(U128::low_bits(0) == U128{} && U128::low_bits(64) == U128{kOnes} && U128::low_bits(128) == U128::max());
static_assert(U128{}.bit_width() == 0 && U128{1, 0}.bit_width() == 65 && U128::max().bit_width() == 128);

/// Schoolbook arithmetic on single bits, lowest first: slow, and plainly right.
using Bits = std::array<bool, 128>;

Bits bits_of(U128 v) {
  Bits bits{};
  for (std::size_t i = 0; i < 128; ++i) bits[i] = ((i < 64 ? v.lo >> i : v.hi >> (i - 64)) & 1U) != 0;
  return bits;
}

Bits sum(const Bits& a, const Bits& b) {
  Bits out{};
  bool carry = false;
  for (std::size_t i = 0; i < 128; ++i) {
    const int ones = int{a[i]} + int{b[i]} + int{carry};
    out[i] = ones % 2 == 1;
    carry = ones >= 2;
  }
  return out;
}

Bits moved_up(const Bits& a, std::size_t count) {
  Bits out{};
  for (std::size_t i = count; i < 128; ++i) out[i] = a[i - count];
  return out;
}

Bits moved_down(const Bits& a, std::size_t count) {
  Bits out{};
  for (std::size_t i = 0; i + count < 128; ++i) out[i] = a[i + count];
  return out;
}

RC_GTEST_PROP(U128Property, SumIsTheSchoolbookSum, (U128 a, U128 b)) {
  RC_ASSERT(bits_of(a + b) == sum(bits_of(a), bits_of(b)));
}

RC_GTEST_PROP(U128Property, DifferenceUndoesTheSum, (U128 a, U128 b)) {
  RC_ASSERT((a + b) - b == a);
  RC_ASSERT((a - b) + b == a);
  RC_ASSERT((a < b) == !(a >= b));
}

RC_GTEST_PROP(U128Property, ShiftsMoveBits, (U128 a)) {
  const auto count = *rc::gen::inRange(0, 128);
  RC_ASSERT(bits_of(a << count) == moved_up(bits_of(a), static_cast<std::size_t>(count)));
  RC_ASSERT(bits_of(a >> count) == moved_down(bits_of(a), static_cast<std::size_t>(count)));
}

RC_GTEST_PROP(U128Property, BitwiseOperatorsFollowDeMorgan, (U128 a, U128 b)) {
  RC_ASSERT(~(a & b) == (~a | ~b));
  RC_ASSERT((a & b) + (a | b) == a + b);
}

RC_GTEST_PROP(U128Property, OrderIsThatOfTheHighestDifferentBit, (U128 a, U128 b)) {
  const Bits x = bits_of(a);
  const Bits y = bits_of(b);
  RC_ASSERT((a < b) == std::lexicographical_compare(x.rbegin(), x.rend(), y.rbegin(), y.rend()));
}

TEST(U128, IncrementAndDecrementCrossTheHalves) {
  U128 v{0, kOnes};
  EXPECT_EQ(++v, (U128{1, 0}));
  EXPECT_EQ(--v, (U128{0, kOnes}));
}

TEST(U128, LowBitsHasThatWidth) {
  for (int count = 0; count <= 128; ++count) EXPECT_EQ(U128::low_bits(count).bit_width(), count);
}

}  // namespace
}  // namespace croft::net
