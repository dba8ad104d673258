#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/manual_clock.h"
#include "services/decide/mapped_range.h"

// The names in brackets are the rows of docs/notes/service-ranges.md#cases.

namespace croft::core::service {
namespace {

struct Shape {
  std::uint32_t size;
  std::uint32_t band;
};

BitmapRange banded(Shape shape) { return BitmapRange::random_scan_with_band("x", shape.size, shape.band); }

std::vector<std::uint32_t> taken_of(const BitmapRange& range) {
  std::vector<std::uint32_t> taken;
  range.for_each_taken([&](Ordinal ordinal) { taken.push_back(ordinal.value); });
  return taken;
}

void take_all(BitmapRange& range, std::initializer_list<std::int64_t> offsets) {
  for (const std::int64_t offset : offsets) ASSERT_TRUE(range.take(offset));
}

void take_run(BitmapRange& range, std::uint32_t first, std::uint32_t end) {
  for (std::uint32_t i = first; i < end; ++i) ASSERT_TRUE(range.take(i));
}

std::string bytes(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += static_cast<char>(value);
  return out;
}

class BitmapRangeShapes : public testing::TestWithParam<Shape> {
 protected:
  BitmapRange range_ = banded(GetParam());
  const std::uint32_t size_ = GetParam().size;
  SeededRandom random_{1};
};

TEST_P(BitmapRangeShapes, FillsWithoutRepeating_B3) {
  std::set<std::uint32_t> seen;
  for (std::uint32_t i = 0; i < size_; ++i) {
    const auto next = range_.take_next(random_);
    ASSERT_TRUE(next);
    ASSERT_LT(next->value, size_);
    ASSERT_TRUE(seen.insert(next->value).second);
  }
  EXPECT_EQ(range_.take_next(random_), std::nullopt);
  EXPECT_EQ(range_.free_count(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Shapes, BitmapRangeShapes,
                         testing::Values(Shape{32, 0}, Shape{8, 0}, Shape{128, 16}, Shape{1024, 64}, Shape{65535, 256}),
                         [](const auto& shape) {
                           return std::to_string(shape.param.size) + "_" + std::to_string(shape.param.band);
                         });

TEST(BitmapRange, TheStaticBandComesLast_B7) {
  BitmapRange range = banded({128, 16});
  SeededRandom random(2);
  for (int i = 0; i < 112; ++i) {
    const auto next = range.take_next(random);
    ASSERT_TRUE(next);
    EXPECT_GE(next->value, 16U);
    EXPECT_LT(next->value, 128U);
  }
  const auto next = range.take_next(random);
  ASSERT_TRUE(next);
  EXPECT_LT(next->value, 16U);
}

TEST(BitmapRange, TheLastOfTheStaticBandIsFound_B8) {
  BitmapRange range = banded({128, 16});
  SeededRandom random(3);
  take_run(range, 0, 15);
  take_run(range, 16, 128);
  EXPECT_EQ(range.take_next(random), Ordinal{15});
  EXPECT_EQ(range.take_next(random), std::nullopt);
}

TEST(BitmapRange, AnUpperBitOfALongBitmap_B11) {
  BitmapRange range = BitmapRange::random_scan_with_band("x", 65534, 256);
  std::string data(8192, '\0');
  data[0] = 4;
  EXPECT_EQ(range.restore(data), 0U);
  EXPECT_EQ(taken_of(range), std::vector<std::uint32_t>{65530});
  EXPECT_EQ(range.snapshot().data, data);
}

TEST(BitmapRange, LeadingZerosAreReadAndNotWritten_B12) {
  BitmapRange range = banded({128, 16});
  EXPECT_EQ(range.restore(bytes({0, 0, 1})), 0U);
  EXPECT_EQ(taken_of(range), std::vector<std::uint32_t>{0});
  EXPECT_EQ(range.snapshot(), (RangeSnapshot{"x", bytes({1})}));
}

// ---------------------------------------------------------------- the way to find the next

/// Gives the numbers of a list, then zeros.
class Script final : public Random {
 public:
  explicit Script(std::vector<std::uint64_t> numbers) : numbers_(std::move(numbers)) {}
  [[nodiscard]] std::uint64_t next() override { return at_ < numbers_.size() ? numbers_[at_++] : 0; }
  [[nodiscard]] std::size_t drawn() const { return at_; }

 private:
  std::vector<std::uint64_t> numbers_;
  std::size_t at_ = 0;
};

/// The number from which a start `start` of `count` comes: count must be a power of two.
std::uint64_t drawing(std::uint64_t start, std::uint64_t count) {
  return (start * ((std::uint64_t{1} << 32) / count)) << 32;
}

TEST(BitmapRange, FirstFreeAtOrAfterTheStartAndRoundInsideTheBand) {
  // 64 in the dynamic band, 16 to 79; 16 in the static one.
  const auto shape = Shape{80, 16};
  BitmapRange range = banded(shape);
  Script random({drawing(63, 64), drawing(63, 64), drawing(62, 64), drawing(1, 64)});
  EXPECT_EQ(range.take_next(random), Ordinal{79});
  EXPECT_EQ(range.take_next(random), Ordinal{16}) << "round to the beginning of the dynamic band, not to 0";
  EXPECT_EQ(range.take_next(random), Ordinal{78});
  EXPECT_EQ(range.take_next(random), Ordinal{17});

  take_run(range, 18, 78);
  Script later({drawing(5, 64), drawing(15, 16), drawing(5, 64), drawing(15, 16)});
  EXPECT_EQ(range.take_next(later), Ordinal{15}) << "a start of its own";
  EXPECT_EQ(range.take_next(later), Ordinal{0}) << "round inside the static band";
  EXPECT_EQ(later.drawn(), 4U);
}

TEST(BitmapRange, AStuckGeneratorStillEnds) {
  BitmapRange range = banded({100, 7});
  Script zeros({});
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(range.take_next(zeros));
  EXPECT_EQ(range.take_next(zeros), std::nullopt);
}

/// The reference draws from nothing and panics for the first two, and takes what is not there for the last.
TEST(BitmapRange, ABandAsLargeAsTheRangeOrLarger) {
  for (const std::uint32_t band : {8U, 9U, 1000U}) {
    BitmapRange range = banded({8, band});
    SeededRandom random(6);
    for (int i = 0; i < 8; ++i) ASSERT_TRUE(range.take_next(random));
    EXPECT_EQ(range.take_next(random), std::nullopt);
  }
}

TEST(BitmapRange, ARangeOfNothing) {
  BitmapRange range = banded({0, 0});
  SeededRandom random(7);
  EXPECT_EQ(range.take_next(random), std::nullopt);
  EXPECT_FALSE(range.take(0));
  EXPECT_EQ(range.snapshot().data, "");
  EXPECT_EQ(range.restore(bytes({5})), 2U);
}

/// "First free at or after a uniform start": an ordinal behind a run of taken ones comes up as often as the run is
/// long, and one more. Seeded, so the counts are the same each time.
TEST(BitmapRange, HowOftenEachFreeOneComesUp) {
  constexpr int kTries = 200'000;
  BitmapRange range = banded({20, 0});
  // Free: 0, 10, 11 and 15. Runs before them: 16-19 (4), 1-9 (9), none, 12-14 (3).
  for (const int taken : {1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 13, 14, 16, 17, 18, 19}) ASSERT_TRUE(range.take(taken));
  std::array<int, 20> times{};
  SeededRandom random(8);
  for (int i = 0; i < kTries; ++i) {
    const auto next = range.take_next(random);
    ASSERT_TRUE(next);
    ++times[next->value];
    ASSERT_TRUE(range.give_back(next->value));
  }
  const auto expect_share = [&](std::size_t ordinal, int starts) {
    EXPECT_NEAR(times[ordinal], kTries * starts / 20.0, 1000) << ordinal;
  };
  expect_share(0, 5);
  expect_share(10, 10);
  expect_share(11, 1);
  expect_share(15, 4);
}

// ---------------------------------------------------------------- the bytes

TEST(RangeData, TheExamplesOfTheReference) {
  BitmapRange services = banded({1048574, 0});
  take_all(services, {0, 9});
  EXPECT_EQ(services.snapshot().data, bytes({0x02, 0x01}));
  take_all(services, {1048573});
  EXPECT_EQ(services.snapshot().data.size(), 131072U);
  EXPECT_EQ(services.snapshot().data.substr(0, 2), bytes({0x20, 0x00}));
  EXPECT_EQ(services.snapshot().data.substr(131070), bytes({0x02, 0x01}));

  BitmapRange ports = banded({2768, 0});
  take_all(ports, {80});
  EXPECT_EQ(ports.snapshot().data, bytes({1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  take_all(ports, {443, 2767});
  EXPECT_EQ(ports.snapshot().data.size(), 346U);
  EXPECT_EQ(ports.snapshot().data.substr(0, 1), bytes({0x80}));
}

TEST(RangeData, BitsOutsideAreCountedAndLeftOut) {
  // 130 ordinals: two words and two bits. Bits 129, 130 and 131, and 8 in a fourth word.
  BitmapRange range = banded({130, 0});
  std::string data(32, '\0');
  data[32 - 1 - 129 / 8] = static_cast<char>(1 << 129 % 8 | 1 << 130 % 8 | 1 << 131 % 8);
  data[0] = static_cast<char>(0xff);
  EXPECT_EQ(range.restore(data), 10U);
  EXPECT_EQ(taken_of(range), std::vector<std::uint32_t>{129});
  EXPECT_EQ(range.free_count(), 129U);
  EXPECT_EQ(range.snapshot().data.size(), 17U);
  EXPECT_EQ(range.restore(range.snapshot().data), 0U);
}

/// The integer of the bytes, bit by bit, and its bytes again: slow, and plainly right.
std::string model_bytes(const std::set<std::uint32_t>& taken) {
  if (taken.empty()) return {};
  std::string data(*taken.rbegin() / 8 + 1, '\0');
  for (const std::uint32_t o : taken) {
    char& byte = data[data.size() - 1 - o / 8];
    byte = static_cast<char>(static_cast<unsigned char>(byte) | 1U << o % 8);
  }
  return data;
}

RC_GTEST_PROP(BitmapRangeProperty, BehavesAsASetOfTakenOrdinals, ()) {
  const std::uint32_t size = *rc::gen::element<std::uint32_t>(1, 8, 63, 64, 65, 130, 1000, 4097);
  const std::uint32_t band = *rc::gen::element<std::uint32_t>(0, 1, 16, 64, 100);
  BitmapRange range = banded({size, band});
  const std::uint32_t border = std::min(band, size);
  std::set<std::uint32_t> taken;
  SeededRandom random(*rc::gen::arbitrary<std::uint64_t>());
  const int steps = *rc::gen::inRange(1, 80);
  for (int step = 0; step < steps; ++step) {
    const auto offset = *rc::gen::inRange<std::int64_t>(-2, std::int64_t{size} + 2);
    const bool inside = offset >= 0 && offset < size;
    const auto ordinal = static_cast<std::uint32_t>(offset);
    RC_ASSERT(range.has(offset) == (inside && taken.contains(ordinal)));
    switch (*rc::gen::inRange(0, 5)) {
      case 0: {
        RC_ASSERT(range.take(offset) == (inside && taken.insert(ordinal).second));
        break;
      }
      case 1:
        RC_ASSERT(range.give_back(offset) == (inside && taken.erase(ordinal) == 1));
        break;
      case 2: {
        BitmapRange copy = banded({size, band});
        RC_ASSERT(copy.restore(range.snapshot().data) == 0U);
        RC_ASSERT(taken_of(copy) == taken_of(range));
        break;
      }
      default: {
        const int times = *rc::gen::element(1, 3, 70, 5000);
        for (int i = 0; i < times; ++i) {
          const bool dynamic_is_full =
              static_cast<std::uint32_t>(std::distance(taken.lower_bound(border), taken.end())) == size - border;
          const auto next = range.take_next(random);
          RC_ASSERT(next.has_value() == (taken.size() < size));
          if (!next) break;
          RC_ASSERT(next->value < size);
          RC_ASSERT(dynamic_is_full == (next->value < border));
          RC_ASSERT(taken.insert(next->value).second);
        }
      }
    }
    RC_ASSERT(range.taken_count() == taken.size());
    RC_ASSERT(range.free_count() == size - taken.size());
  }
  RC_ASSERT(taken_of(range) == std::vector<std::uint32_t>(taken.begin(), taken.end()));
  RC_ASSERT(range.snapshot().data == model_bytes(taken));
}

RC_GTEST_PROP(RangeDataProperty, AnyBytesAreReadAsTheirNumber, (const std::string& data)) {
  const std::uint32_t size = *rc::gen::element<std::uint32_t>(0, 1, 63, 64, 65, 200, 5000);
  std::set<std::uint32_t> inside;
  std::uint64_t beyond = 0;
  for (std::uint32_t o = 0; o < data.size() * 8; ++o) {
    if ((static_cast<unsigned char>(data[data.size() - 1 - o / 8]) >> o % 8 & 1) == 0) continue;
    if (o < size) {
      inside.insert(o);
    } else {
      ++beyond;
    }
  }
  BitmapRange range = banded({size, 0});
  RC_ASSERT(range.restore(data) == beyond);
  RC_ASSERT(range.snapshot().data == model_bytes(inside));
  RC_ASSERT(range.taken_count() == inside.size());
}

}  // namespace
}  // namespace croft::core::service
