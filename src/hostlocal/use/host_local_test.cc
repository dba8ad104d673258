#include "hostlocal/use/host_local.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hostlocal/decide/test_range_sets.h"
#include "hostlocal/use/test_reservations.h"

namespace croft::engine {
namespace {

using namespace net::literals;
using namespace std::chrono_literals;
using core::host_local::range_set;
using core::host_local::RangeSet;
using core::host_local::spec;
using net::Address;
using store::Holder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

const Holder kDummy{"dummy", "eth0"};

class HostLocalUse : public testing::Test {
 protected:
  [[nodiscard]] Result<std::vector<Address>> assign(const Holder& holder, const std::vector<RangeSet>& sets,
                                                    const std::vector<Address>& requested = {}) {
    TRY(const auto picks, assign_from_ranges(reservations_, holder, sets, requested,
                                             [this](const std::string& line) { warnings_.push_back(line); }));
    std::vector<Address> addresses;
    for (const auto& pick : picks) addresses.push_back(pick.address.address);
    return addresses;
  }
  [[nodiscard]] std::vector<Address> taken() const {
    std::vector<Address> addresses;
    for (const auto& [address, file] : data_.files) addresses.push_back(address);
    return addresses;
  }
  [[nodiscard]] static Instant at(std::chrono::seconds wall) { return {WallTime(wall), wall, {}}; }

  ReservationsData data_;
  FakeReservations reservations_{data_};
  std::vector<std::string> warnings_;
  std::vector<RangeSet> one_{range_set({spec("10.1.2.0/29")})};
  std::vector<RangeSet> two_{range_set({spec("10.1.2.0/29")}), range_set({spec("2001:db8::/125")})};
};

TEST_F(HostLocalUse, GivesAnAddressOfEachSetAndMovesBothCursors) {
  EXPECT_THAT(assign(kDummy, two_).value(), ElementsAre("10.1.2.2"_ip, "2001:db8::2"_ip));
  EXPECT_EQ(data_.cursors.at(0), "10.1.2.2"_ip);
  EXPECT_EQ(data_.cursors.at(1), "2001:db8::2"_ip);
  EXPECT_EQ(data_.files.at("10.1.2.2"_ip).holder, kDummy);
}

// docs/notes/host-local.md#cases, row 113, and #h6: what was given out before stays, what this call took does not
// come into being.
TEST_F(HostLocalUse, ARefusalReservesNothingAndMovesTheCursorsOfTheSetsBefore) {
  for (std::uint64_t i = 2; i <= 7; ++i) data_.put(Address::v6({0x20010db800000000, i}), Holder{"other", "eth0"});
  const auto before = data_.files;
  const auto refused = assign(kDummy, two_);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message,
            "failed to allocate for range 1: no IP addresses available in range set: 2001:db8::1-2001:db8::7");
  EXPECT_EQ(data_.files, before);
  EXPECT_EQ(data_.cursors.at(0), "10.1.2.2"_ip);
  EXPECT_FALSE(data_.cursors.contains(1));
}

TEST_F(HostLocalUse, ASecondAddIsRefusedAndHarmsNothing) {
  ASSERT_TRUE(assign(kDummy, two_));
  const auto before = data_.files;
  const auto refused = assign(kDummy, two_, {"10.1.2.4"_ip});
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, HasSubstr("2001:db8::2 has been allocated to dummy, duplicate allocation is"));
  EXPECT_EQ(data_.files, before);
}

TEST_F(HostLocalUse, DecidesAgainWhenSomebodyTookTheAddressWithoutTheLock) {
  data_.taken_behind_our_back = {"10.1.2.2"_ip, "10.1.2.3"_ip};
  EXPECT_THAT(assign(kDummy, one_).value(), ElementsAre("10.1.2.4"_ip));
}

TEST_F(HostLocalUse, GivesUpWhenThatNeverEnds) {
  std::vector<RangeSet> large{range_set({spec("10.1.0.0/16")})};
  for (std::uint32_t i = 0; i < 100; ++i) data_.taken_behind_our_back.insert(Address::v4(0x0a010000 + i));
  const auto refused = assign(kDummy, large);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::conflict);
}

TEST_F(HostLocalUse, ACursorThatCannotBeReadIsAWarning) {
  data_.cursor_error = Error{ErrorCode::internal, "read /x/last_reserved_ip.0: input/output error", {}};
  EXPECT_THAT(assign(kDummy, one_).value(), ElementsAre("10.1.2.2"_ip));
  EXPECT_THAT(warnings_,
              ElementsAre("Error retrieving last reserved ip: read /x/last_reserved_ip.0: input/output error"));
}

TEST_F(HostLocalUse, ErrorsOfTheDirectoryArePassedOn) {
  data_.reserve_error = Error{ErrorCode::storage_full, "write /x: no space left on device", {}};
  EXPECT_EQ(assign(kDummy, one_).error(), *data_.reserve_error);
  data_.put("10.1.2.3"_ip, kDummy);
  data_.release_error = Error{ErrorCode::read_only, "remove /x: read-only file system", {}};
  EXPECT_EQ(release_from_ranges(reservations_, kDummy, 1).error(), *data_.release_error);
}

// Rows 111 and 112.
TEST_F(HostLocalUse, ReleasesExactFilesFirstAndOldOnesWhenThereAreNoneOrMoreSets) {
  const auto fill = [&] {
    data_.files.clear();
    data_.put("10.1.2.2"_ip, Holder{"dummy", ""});
    data_.put("10.1.2.3"_ip, kDummy);
    data_.put("10.1.2.4"_ip, Holder{"dummy", "eth1"});
    data_.put("10.1.2.5"_ip, std::nullopt);
  };
  fill();
  EXPECT_THAT(release_from_ranges(reservations_, kDummy, 1).value(), ElementsAre("10.1.2.3"_ip));
  EXPECT_THAT(release_from_ranges(reservations_, kDummy, 1).value(), ElementsAre("10.1.2.2"_ip));
  EXPECT_THAT(release_from_ranges(reservations_, kDummy, 1).value(), IsEmpty());
  EXPECT_EQ(data_.settled, 1);
  fill();
  EXPECT_THAT(release_from_ranges(reservations_, kDummy, 2).value(), ElementsAre("10.1.2.3"_ip, "10.1.2.2"_ip));
  EXPECT_THAT(taken(), ElementsAre("10.1.2.4"_ip, "10.1.2.5"_ip));
}

TEST_F(HostLocalUse, AFileThatCannotBeReadMayBeTheHolders) {
  data_.put("10.1.2.3"_ip, kDummy);
  data_.unreadable = Error{ErrorCode::internal, "read /d/10.1.2.9: input/output error", {}};
  EXPECT_EQ(release_from_ranges(reservations_, kDummy, 2).error(), *data_.unreadable);
  EXPECT_THAT(taken(), IsEmpty()) << "what was found is released";
  EXPECT_EQ(release_from_ranges(reservations_, kDummy, 1).error(), *data_.unreadable);
  data_.put("10.1.2.3"_ip, kDummy);
  EXPECT_TRUE(release_from_ranges(reservations_, kDummy, 1)) << "everything of it was found";
  data_.put("10.1.2.3"_ip, kDummy);
  EXPECT_EQ(collect_from_ranges(reservations_, {}, at(1000s)).error(), *data_.unreadable);
  EXPECT_THAT(taken(), IsEmpty());
}

// Row 89 and what CHECK adds to it.
TEST_F(HostLocalUse, CheckComparesFilesRangesAndThePreviousResult) {
  EXPECT_EQ(check_ranges(reservations_, kDummy, one_, {}).error().message,
            "host-local: Failed to find address added by container dummy");
  data_.put("10.1.2.3"_ip, kDummy);
  data_.put("10.1.2.4"_ip, Holder{"other", "eth0"});
  EXPECT_TRUE(check_ranges(reservations_, kDummy, one_, {}));
  EXPECT_TRUE(check_ranges(reservations_, kDummy, one_, {"10.1.2.3"_ip}));
  EXPECT_TRUE(check_ranges(reservations_, kDummy, one_, {"10.1.2.3"_ip, "192.0.2.1"_ip}))
      << "an address of another plugin of the chain";
  EXPECT_THAT(check_ranges(reservations_, kDummy, one_, {"10.1.2.3"_ip, "10.1.2.4"_ip}).error().message,
              HasSubstr("10.1.2.4 of prevResult is reserved for container other"));
  EXPECT_THAT(check_ranges(reservations_, kDummy, one_, {"10.1.2.3"_ip, "10.1.2.6"_ip}).error().message,
              HasSubstr("10.1.2.6 of prevResult is not reserved"));
  EXPECT_THAT(check_ranges(reservations_, kDummy, one_, {"192.0.2.1"_ip}).error().message,
              HasSubstr("10.1.2.3, reserved for container dummy, is not in prevResult"));
  data_.put("10.9.9.9"_ip, kDummy);
  EXPECT_THAT(check_ranges(reservations_, kDummy, one_, {"10.1.2.3"_ip, "10.9.9.9"_ip}).error().message,
              HasSubstr("10.9.9.9, reserved for container dummy, lies in no range"));
}

TEST_F(HostLocalUse, CollectsTheDeadAndKeepsTheYoungTheOldFormsLivingAndWhatNobodyKnows) {
  const WallTime old(0s);
  data_.put("10.1.2.2"_ip, Holder{"alive", "eth0"}, old);
  data_.put("10.1.2.3"_ip, Holder{"alive", "eth9"}, old);
  data_.put("10.1.2.4"_ip, Holder{"alive", ""}, old);
  data_.put("10.1.2.5"_ip, Holder{"dead", ""}, old);
  data_.put("10.1.2.6"_ip, Holder{"dead", "eth0"}, WallTime(41s));
  data_.put("10.1.2.7"_ip, Holder{"dead", "eth0"}, WallTime(200s));  // dated after now
  data_.put("10.1.2.8"_ip, std::nullopt, old);
  data_.put("10.1.2.9"_ip, std::nullopt, old);
  data_.files["10.1.2.9"_ip].empty = true;
  const auto collected = collect_from_ranges(reservations_, {{"alive", "eth0"}}, at(100s)).value();
  EXPECT_THAT(collected.released, ElementsAre("10.1.2.3"_ip, "10.1.2.5"_ip, "10.1.2.9"_ip));
  EXPECT_EQ(collected.kept_young, 2U);
  EXPECT_THAT(taken(), SizeIs(5));
}

TEST_F(HostLocalUse, AnEmptyListMeansThatNothingLives) {
  data_.put("10.1.2.2"_ip, Holder{"a", "eth0"});
  data_.put("10.1.2.3"_ip, Holder{"b", ""});
  EXPECT_THAT(collect_from_ranges(reservations_, {}, at(1000s)).value().released, SizeIs(2));
  EXPECT_THAT(taken(), IsEmpty());
}

TEST_F(HostLocalUse, SaysWhichSetIsFull) {
  EXPECT_TRUE(check_not_full(reservations_, two_));
  for (std::uint64_t i = 2; i <= 7; ++i) data_.put(Address::v6({0x20010db800000000, i}), Holder{"x", "eth0"});
  const auto full = check_not_full(reservations_, two_);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, ErrorCode::exhausted);
  EXPECT_THAT(full.error().message, HasSubstr("range 1: no IP addresses available in range set: 2001:db8::1"));
}

}  // namespace
}  // namespace croft::engine
