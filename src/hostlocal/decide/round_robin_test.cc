#include "hostlocal/decide/round_robin.h"

#include <algorithm>
#include <ostream>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "hostlocal/decide/test_range_sets.h"

// Numbers in brackets are rows of docs/notes/host-local.md#cases.

namespace croft::core::host_local {

void showValue(const RangeSet& set, std::ostream& out) {
  for (const Range& range : set.ranges())
    out << range.addresses.to_string() << " gw " << range.gateway.to_string() << ", ";
}

namespace {

using net::Address;
using net::AddressRange;
using testing::ElementsAre;

using Texts = std::vector<std::string>;

/// The lowest address of a range that is not in `taken`.
[[nodiscard]] Result<std::optional<Address>> lowest_free(const AddressRange& range, const std::set<Address>& taken) {
  for (std::optional<AddressRange> rest = range; rest; rest = behind(*rest, rest->first())) {
    if (!taken.contains(rest->first())) return std::optional(rest->first());
  }
  return std::optional<Address>();
}

std::optional<Candidate> next_of(const RangeSet& set, const std::optional<Address>& cursor,
                                 const std::set<Address>& taken) {
  return find_free(set, cursor, [&](const AddressRange& range) { return lowest_free(range, taken); }).value();
}

/// All addresses in the order in which they are handed out, each staying taken.
Texts order(const RangeSet& set, std::string_view cursor = "") {
  const auto from = cursor.empty() ? std::nullopt : std::optional(address_or_none(cursor));
  std::set<Address> taken;
  Texts order;
  for (auto next = next_of(set, from, taken); next; next = next_of(set, from, taken)) {
    order.push_back(next->address.to_string());
    taken.insert(next->address);
  }
  return order;
}

/// The first address that is handed out; "none" when there is none.
std::string first(const std::vector<RangeSpec>& specs, const Texts& taken_texts, std::string_view cursor = "") {
  std::set<Address> taken;
  for (const std::string& text : taken_texts) taken.insert(address_or_none(text));
  const auto from = cursor.empty() ? std::nullopt : std::optional(address_or_none(cursor));
  const auto next = next_of(range_set(specs), from, taken);
  return next ? next->address.to_string() : "none";
}

Texts numbered(std::string_view prefix, std::initializer_list<int> numbers) {
  Texts texts;
  for (const int n : numbers) texts.push_back(std::string(prefix) + std::to_string(n));
  return texts;
}

// [18, 19, 20]
TEST(RoundRobin, BeginsBehindTheCursorAndEndsWithIt) {
  const RangeSet set = range_set({spec("192.168.1.0/29")});
  EXPECT_EQ(order(set), numbered("192.168.1.", {2, 3, 4, 5, 6}));
  EXPECT_EQ(order(set, "192.168.1.6"), numbered("192.168.1.", {2, 3, 4, 5, 6}));
  EXPECT_EQ(order(set, "192.168.1.3"), numbered("192.168.1.", {4, 5, 6, 2, 3}));
  EXPECT_EQ(order(set, "192.168.1.1"), numbered("192.168.1.", {2, 3, 4, 5, 6}));
}

// [21-29]
TEST(RoundRobin, GivesTheNextFreeAddress) {
  const std::vector<RangeSpec> eight = {spec("10.0.0.0/29")};
  EXPECT_EQ(first(eight, {}), "10.0.0.2");
  EXPECT_EQ(first({spec("2001:db8:1::0/64")}, {}), "2001:db8:1::2");
  EXPECT_EQ(first({spec("10.0.0.0/30")}, {}), "10.0.0.2");
  EXPECT_EQ(first(eight, {"10.0.0.2"}), "10.0.0.3");
  EXPECT_EQ(first(eight, {}, "10.0.0.5"), "10.0.0.6");
  EXPECT_EQ(first(eight, {"10.0.0.4", "10.0.0.5"}, "10.0.0.3"), "10.0.0.6");
  EXPECT_EQ(first(eight, {"10.0.0.6"}, "10.0.0.5"), "10.0.0.2");
  EXPECT_EQ(first(eight, {"10.0.0.2"}, "10.0.0.128"), "10.0.0.3");
  EXPECT_EQ(first(eight, numbered("10.0.0.", {2, 4, 5, 6}), "10.0.0.3"), "10.0.0.3");
}

// [30, 31, 32]
TEST(RoundRobin, GoesRoundOverAllRanges) {
  const std::vector<RangeSpec> three = {spec("10.0.0.0/30"), spec("10.0.1.0/30"), spec("10.0.2.0/30")};
  const std::vector<RangeSpec> two = {three[0], three[1]};
  EXPECT_EQ(first(two, {}), "10.0.0.2");
  EXPECT_EQ(first(two, {}, "10.0.0.2"), "10.0.1.2");
  EXPECT_EQ(first(three, {}, "10.0.2.2"), "10.0.0.2");
  EXPECT_EQ(order(range_set(three), "10.0.1.2"), (Texts{"10.0.2.2", "10.0.0.2", "10.0.1.2"}));
}

// [38, 39, 40, 95]
TEST(RoundRobin, EndsWhenAllAreTaken) {
  EXPECT_EQ(first({spec("10.0.0.0/30")}, {"10.0.0.2"}), "none");
  EXPECT_EQ(first({spec("10.0.0.0/29")}, numbered("10.0.0.", {2, 3, 4, 5, 6})), "none");
  EXPECT_EQ(first({spec("10.0.0.0/30"), spec("10.0.1.0/30")}, {"10.0.0.2", "10.0.1.2"}), "none");
  EXPECT_EQ(first({spec("10.1.2.0/24", "10.1.2.1", "10.1.2.1")}, {}), "none");
}

// [41, 42]
TEST(RoundRobin, NamedNetworkAndBroadcastAddressesAreInTheRing) {
  const std::vector<RangeSpec> specs = {spec("192.168.1.0/30", "192.168.1.0", "192.168.1.3"),
                                        spec("192.168.2.0/30", "192.168.2.0", "192.168.2.3")};
  EXPECT_EQ(first(specs, {"192.168.1.3"}, "192.168.1.3"), "192.168.2.0");
  EXPECT_EQ(first(specs, {}), "192.168.1.0");
  EXPECT_EQ(order(range_set(specs), "192.168.1.3"),
            (Texts{"192.168.2.0", "192.168.2.2", "192.168.2.3", "192.168.1.0", "192.168.1.2", "192.168.1.3"}));
}

// [96, 97, 109]
TEST(RoundRobin, OnlyTheGatewayOfTheRangeItselfIsPassedOver) {
  EXPECT_EQ(first({spec("10.1.2.0/24", "", "", "192.168.0.1")}, {}), "10.1.2.1");
  EXPECT_EQ(first({spec("10.1.2.0/24", "", "", "2001:db8::1")}, {}), "10.1.2.1");
  EXPECT_EQ(first({spec("10.1.2.0/24", "", "", "10.1.2.2")}, {}), "10.1.2.1");
  EXPECT_EQ(first({spec("10.1.2.0/24", "", "", "10.1.2.2")}, {}, "10.1.2.1"), "10.1.2.3");
  EXPECT_EQ(first({spec("10.1.2.0/24", "", "", "10.1.3.2"), spec("10.1.3.0/24")}, {}, "10.1.2.254"), "10.1.3.2");
  EXPECT_EQ(first({spec("10.1.2.0/24")}, {}, "10.1.2.7"), "10.1.2.8");
  EXPECT_EQ(first({spec("10.1.2.0/24")}, {}, "10.1.2.254"), "10.1.2.2");
  EXPECT_EQ(first({spec("10.1.2.0/24")}, {}, "10.1.2.255"), "10.1.2.2");
  EXPECT_EQ(first({spec("10.1.2.0/24")}, {}, "2001:db8::7"), "10.1.2.2");
}

// docs/notes/host-local.md#h16
TEST(RoundRobin, CarriesThroughAll128Bits) {
  EXPECT_EQ(first({spec("::100:0/120")}, {}), "::100:2");
  EXPECT_EQ(first({spec("::/64")}, {}, "::ff:ffff"), "::100:0");
  EXPECT_EQ(first({spec("2001:db8::/32")}, {}, "2001:db8::ffff:ffff:ffff:ffff"), "2001:db8:0:1::");
  EXPECT_EQ(first({spec("ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff0/124")}, {}, "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
            "ffff:ffff:ffff:ffff:ffff:ffff:ffff:fff2");
}

TEST(RoundRobin, TheRingIsCutAtTheCursor) {
  const RangeSet set = range_set({spec("10.0.0.0/29"), spec("10.0.1.0/29")});
  const auto range = [](std::string_view a, std::string_view b) {
    return AddressRange::make(address_or_none(a), address_or_none(b)).value();
  };
  EXPECT_THAT(ring_of(set, std::nullopt),
              ElementsAre(Stretch{0, set.ranges()[0].addresses}, Stretch{1, set.ranges()[1].addresses}));
  EXPECT_THAT(ring_of(set, address_or_none("10.0.1.3")),
              ElementsAre(Stretch{1, range("10.0.1.4", "10.0.1.6")}, Stretch{0, set.ranges()[0].addresses},
                          Stretch{1, range("10.0.1.1", "10.0.1.3")}));
  EXPECT_THAT(ring_of(set, address_or_none("10.0.0.6")),
              ElementsAre(Stretch{1, set.ranges()[1].addresses}, Stretch{0, set.ranges()[0].addresses}));
}

TEST(RoundRobin, AsksOnceMoreForAGatewayAndNoMore) {
  const RangeSet set = range_set({spec("10.0.0.0/29"), spec("10.0.1.0/29")});
  int questions = 0;
  const std::set<Address> none;
  const auto found = find_free(set, std::nullopt, [&](const AddressRange& range) {
    ++questions;
    return lowest_free(range, none);
  });
  EXPECT_EQ(found.value(), (Candidate{0, address_or_none("10.0.0.2")}));
  EXPECT_EQ(questions, 2);
}

TEST(RoundRobin, PassesAnErrorOn) {
  const Error error{ErrorCode::unavailable, "away", ""};
  const auto found = find_free(range_set({spec("10.0.0.0/29")}), std::nullopt,
                               [&](const AddressRange&) -> Result<std::optional<Address>> { return fail(error); });
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error(), error);
}

// ---- against the iterator of docs/notes/host-local.md#round-robin, one address at a time

class Iterator {
 public:
  Iterator(const RangeSet& set, const std::optional<Address>& cursor) : ranges_(set.ranges()) {
    const auto at = cursor ? set.find(*cursor) : std::nullopt;
    if (!at) return;
    index_ = *at;
    current_ = cursor;
  }

  std::optional<Candidate> next() {
    if (!current_) {
      start_ = current_ = ranges_[index_].addresses.first();
      if (*current_ != ranges_[index_].gateway) return Candidate{index_, *current_};
    }
    for (;;) {
      if (*current_ == ranges_[index_].addresses.last()) {
        index_ = (index_ + 1) % ranges_.size();
        current_ = ranges_[index_].addresses.first();
      } else {
        current_ = current_->next();
      }
      if (!start_) {
        start_ = current_;
      } else if (current_ == start_) {
        return std::nullopt;
      }
      if (*current_ != ranges_[index_].gateway) return Candidate{index_, *current_};
    }
  }

 private:
  const std::vector<Range>& ranges_;
  std::size_t index_ = 0;
  std::optional<Address> current_, start_;
};

/// Neighbouring subnets of 4 to 32 addresses, in any order, with ends and gateways that may be given or not.
struct World {
  static constexpr int kSubnetsMax = 4;
  Address base;

  [[nodiscard]] Address near(int offset) const { return *base.offset_by(net::U128{static_cast<unsigned>(offset)}); }
};

World any_world() {
  // The IPv6 bases are where the reference's arithmetic breaks: below 2^32, and with a carry out of the low half.
  const auto base =
      *rc::gen::element<std::string>("10.0.0.0", "255.255.255.0", "2001:db8::", "::100:0", "::fe:ff80",
                                     "2001:db8:0:0:ffff:ffff:ffff:ff80", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00");
  return {Address::parse(base).value()};
}

RangeSpec any_spec(const World& world, int place, int host_bits) {
  const int first = place * 32;
  const int last = first + (1 << host_bits) - 1;
  const int length = bit_length(world.base.family()) - host_bits;
  const int from = *rc::gen::inRange(first, last + 1);
  const int to = *rc::gen::inRange(from, last + 1);
  RangeSpec one{{world.near(first), length}, {}, {}, {}};
  if (*rc::gen::arbitrary<bool>()) {
    one.first = world.near(from);
    one.last = world.near(to);
  }
  if (*rc::gen::arbitrary<bool>()) one.gateway = world.near(*rc::gen::inRange(0, World::kSubnetsMax * 32));
  return one;
}

RangeSet any_set(const World& world) {
  std::vector<RangeSpec> specs;
  for (int place = 0; place < World::kSubnetsMax; ++place) {
    if (*rc::gen::inRange(0, 3) != 0) specs.push_back(any_spec(world, place, *rc::gen::inRange(2, 6)));
  }
  if (specs.empty()) specs.push_back(any_spec(world, 0, 3));
  if (*rc::gen::arbitrary<bool>()) std::reverse(specs.begin(), specs.end());
  return range_set(specs);
}

std::optional<Address> any_cursor(const World& world) {
  if (*rc::gen::inRange(0, 4) == 0) return std::nullopt;
  return world.near(*rc::gen::inRange(0, World::kSubnetsMax * 32));
}

RC_GTEST_PROP(RoundRobinProperty, TheOrderOfAllCandidatesIsTheIterators, ()) {
  const World world = any_world();
  const RangeSet set = any_set(world);
  const auto cursor = any_cursor(world);
  std::vector<Candidate> ring;
  for (const Stretch& stretch : ring_of(set, cursor)) {
    for (std::optional<AddressRange> rest = stretch.addresses; rest; rest = behind(*rest, rest->first())) {
      if (rest->first() != set.ranges()[stretch.range].gateway) ring.push_back({stretch.range, rest->first()});
    }
  }
  Iterator iterator(set, cursor);
  std::vector<Candidate> expected;
  for (auto next = iterator.next(); next; next = iterator.next()) expected.push_back(*next);
  RC_LOG() << rc::toString(set) << " cursor " << (cursor ? cursor->to_string() : "none") << "\n";
  RC_ASSERT(ring == expected);
}

RC_GTEST_PROP(RoundRobinProperty, TheFreeAddressIsTheIteratorsFirst, ()) {
  const World world = any_world();
  const RangeSet set = any_set(world);
  const auto cursor = any_cursor(world);
  // From nothing taken to all but a few.
  const int percent = *rc::gen::element(0, 50, 90, 98, 100);
  std::set<Address> taken;
  for (int i = 0; i < World::kSubnetsMax * 32; ++i) {
    if (*rc::gen::resize(100, rc::gen::inRange(0, 100)) < percent) taken.insert(world.near(i));
  }
  Iterator iterator(set, cursor);
  auto expected = iterator.next();
  while (expected && taken.contains(expected->address)) expected = iterator.next();
  RC_LOG() << rc::toString(set) << " cursor " << (cursor ? cursor->to_string() : "none") << "\n";
  RC_ASSERT(next_of(set, cursor, taken) == expected);
}

}  // namespace
}  // namespace croft::core::host_local
