#include "hostlocal/use/host_local.h"

#include <algorithm>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hostlocal/decide/test_range_sets.h"
#include "hostlocal/use/host_local_import.h"
#include "hostlocal/use/test_reservations.h"
#include "ipam/use/pools.h"
#include "ipam/use/test_world.h"

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

using Outcome = ImportedHolder::Outcome;

class HostLocalImport : public testing::Test {
 protected:
  void SetUp() override {
    world_.pool("four", "10.1.0.0/24", 28, 0);
    world_.pool("six", "2001:db8::/120", 124, 0);
    data_.put("10.1.0.5"_ip, Holder{"a", "eth0"});
    data_.put("2001:db8::5"_ip, Holder{"a", "eth0"});
    data_.put("10.1.0.99"_ip, Holder{"b", "eth0"});
  }
  [[nodiscard]] std::map<std::string, ImportedHolder> import(bool dry_run = false) {
    request_.dry_run = dry_run;
    return by_container(import_reservations(world_.context, reservations_, request_));
  }
  [[nodiscard]] static std::map<std::string, ImportedHolder> by_container(
      const Result<std::vector<ImportedHolder>>& all) {
    EXPECT_TRUE(all) << all.error().message;
    std::map<std::string, ImportedHolder> result;
    for (const ImportedHolder& moved : *all) result[moved.holder.container_id] = moved;
    return result;
  }
  [[nodiscard]] core::AddressState state_of(const net::Address& address) {
    return show_address(world_.context, address)->state;
  }

  World world_;
  ReservationsData data_;
  FakeReservations reservations_{data_};
  ImportRequest request_{"net",
                         {core::AffinityOwner::Type::host, "node-a"},
                         {"four", "six"},
                         {World::prefix("10.1.0.0/24"), World::prefix("2001:db8::/120")},
                         "",
                         false};
};

TEST_F(HostLocalImport, BecomesAddressesOfThePools) {
  auto imported = import();
  EXPECT_EQ(imported["a"].outcome, Outcome::imported);
  EXPECT_EQ(imported["b"].outcome, Outcome::imported);
  EXPECT_THAT(data_.files, IsEmpty());
  const auto view = show_address(world_.context, "2001:db8::5"_ip).value();
  EXPECT_EQ(view.owner, (core::Owner{"net", "a", "eth0"}));
  EXPECT_EQ(view.node, "node-a");
  EXPECT_TRUE(audit(world_.context, {})->findings.empty());
}

/// The gateway is the node's own bridge: a pod that got it would not be reached.
TEST_F(HostLocalImport, WhatHostLocalGivesToNobodyIsReserved) {
  world_.pool("all", "10.244.0.0/16", 24, 0);
  data_.put("10.244.3.2"_ip, Holder{"x", "eth0"});
  request_.pools = {"all"};
  request_.ranges = {net::Prefix::parse("10.244.3.0/24").value()};
  const auto moved = import_reservations(world_.context, reservations_, request_).value();
  ASSERT_EQ(moved.front().outcome, Outcome::reserved);
  for (const auto& address : {"10.244.3.0"_ip, "10.244.3.1"_ip, "10.244.3.255"_ip}) {
    EXPECT_EQ(state_of(address), core::AddressState::reserved) << address.to_string();
  }
  EXPECT_EQ(moved.front().ranges.size(), 3U);
  EXPECT_EQ(state_of("10.244.3.2"_ip), core::AddressState::held);
  const auto again = import_reservations(world_.context, reservations_, request_).value();
  EXPECT_TRUE(std::ranges::none_of(again, [](const auto& row) { return row.outcome == Outcome::reserved; }));
  EXPECT_TRUE(audit(world_.context, {})->findings.empty());
}

/// rangeStart and rangeEnd: what lies outside is of routers and of hosts with fixed addresses.
TEST_F(HostLocalImport, WhatTheConfigurationKeepsOutIsReserved) {
  world_.pool("all", "10.244.0.0/16", 24, 0);
  data_.files.clear();
  data_.put("10.244.3.4"_ip, Holder{"c", "eth0"});  // the range was larger once
  data_.put("10.244.3.10"_ip, Holder{"d", "eth0"});
  request_.pools = {"all"};
  request_.ranges = {net::Prefix::parse("10.244.3.0/24").value(), net::Prefix::parse("10.244.9.0/24").value()};
  request_.given = {net::AddressRange::make("10.244.3.10"_ip, "10.244.3.100"_ip).value(),
                    net::AddressRange::make("10.244.3.101"_ip, "10.244.3.251"_ip).value()};
  const auto texts = [](const std::vector<ImportedHolder>& rows) {
    std::vector<std::string> all;
    for (const ImportedHolder& row : rows) {
      for (const net::Prefix& range : row.ranges) all.push_back(range.to_string());
    }
    return all;
  };
  request_.dry_run = true;
  const auto planned = import_reservations(world_.context, reservations_, request_).value();
  EXPECT_THAT(texts(planned), ElementsAre("10.244.3.0/32", "10.244.3.1/32", "10.244.3.255/32", "10.244.3.2/31",
                                          "10.244.3.5/32", "10.244.3.6/31", "10.244.3.8/31", "10.244.3.252/31",
                                          "10.244.3.254/32", "10.244.9.0/32", "10.244.9.1/32", "10.244.9.255/32"));
  EXPECT_EQ(state_of("10.244.3.2"_ip), core::AddressState::free);
  request_.dry_run = false;
  const auto moved = import_reservations(world_.context, reservations_, request_).value();
  EXPECT_EQ(moved, planned);
  for (const auto& address : {"10.244.3.2"_ip, "10.244.3.9"_ip, "10.244.3.252"_ip, "10.244.3.254"_ip}) {
    EXPECT_EQ(state_of(address), core::AddressState::reserved) << address.to_string();
  }
  for (const auto& address : {"10.244.3.11"_ip, "10.244.3.251"_ip, "10.244.9.2"_ip}) {
    EXPECT_EQ(state_of(address), core::AddressState::free) << address.to_string();
  }
  EXPECT_EQ(state_of("10.244.3.4"_ip), core::AddressState::held);
  EXPECT_THAT(import_reservations(world_.context, reservations_, request_).value(), IsEmpty());
  EXPECT_TRUE(audit(world_.context, {})->findings.empty());
}

TEST_F(HostLocalImport, AGatewayThatIsHeldIsTold) {
  world_.pool("all", "10.244.0.0/16", 24, 0);
  request_.pools = {"all"};
  request_.ranges = {net::Prefix::parse("10.244.3.0/24").value()};
  request_.gateways = {"10.244.3.9"_ip};
  core::AssignRequest pod;
  pod.owner = {"net", "early", "eth0"};
  pod.node = request_.node;
  pod.count = {0, 0};
  pod.addresses = {"10.244.3.9"_ip};
  ASSERT_TRUE(std::holds_alternative<core::Assigned>(assign(world_.context, pod).value()));
  request_.dry_run = true;
  EXPECT_EQ(import_reservations(world_.context, reservations_, request_).value().at(1).outcome, Outcome::reserved);
  EXPECT_EQ(state_of("10.244.3.0"_ip), core::AddressState::free) << "a dry run changes nothing";
  request_.dry_run = false;
  static_cast<void>(import());
  const auto all = import_reservations(world_.context, reservations_, request_).value();
  EXPECT_EQ(all.front().outcome, Outcome::clashes);
  EXPECT_THAT(all.front().addresses, ElementsAre("10.244.3.9"_ip));
  EXPECT_THAT(all.front().reason, HasSubstr("early"));
  EXPECT_EQ(state_of("10.244.3.1"_ip), core::AddressState::free) << "another gateway was named";
}

TEST_F(HostLocalImport, AnAddressWithAFileIsItsHolders) {
  world_.pool("all", "10.244.0.0/16", 24, 0);
  data_.put("10.244.3.255"_ip, Holder{"odd", "eth0"});
  request_.pools = {"all"};
  request_.ranges = {net::Prefix::parse("10.244.3.0/24").value()};
  const auto rows = import();
  EXPECT_EQ(rows.at("odd").outcome, Outcome::imported) << rows.at("odd").reason;
  EXPECT_EQ(state_of("10.244.3.255"_ip), core::AddressState::held);
}

TEST_F(HostLocalImport, ADryRunSaysTheSameAndChangesNothing) {
  const auto before = data_.files;
  auto moved = import(true);
  EXPECT_EQ(moved["a"].outcome, Outcome::imported);
  EXPECT_EQ(data_.files, before);
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::free);
}

TEST_F(HostLocalImport, WhatWasInterruptedGoesOn) {
  data_.release_error = Error{ErrorCode::read_only, "remove: read-only file system", {}};
  EXPECT_FALSE(import_reservations(world_.context, reservations_, request_));
  EXPECT_EQ(data_.files.size(), 3U) << "both sides have it";
  data_.release_error.reset();
  EXPECT_EQ(import()["a"].outcome, Outcome::imported);
  EXPECT_THAT(data_.files, IsEmpty());
}

/// Files go one by one: what is left of a holder after a kill names fewer addresses than it holds.
TEST_F(HostLocalImport, WhatWasInterruptedBetweenTwoFilesGoesOn) {
  data_.put("10.1.0.6"_ip, Holder{"a", "eth0"});  // a second address of one family
  ASSERT_EQ(import()["a"].outcome, Outcome::imported);
  EXPECT_EQ(state_of("10.1.0.6"_ip), core::AddressState::held);
  for (const char* left : {"10.1.0.5", "10.1.0.6", "2001:db8::5"}) {
    data_.put(net::Address::parse(left).value(), Holder{"a", "eth0"});
    EXPECT_EQ(import(true)["a"].outcome, Outcome::imported) << left;
    EXPECT_EQ(import()["a"].outcome, Outcome::imported) << left;
    EXPECT_THAT(data_.files, IsEmpty());
  }
  EXPECT_TRUE(audit(world_.context, {})->findings.empty());
  // One that it does not hold is another matter, which the plan foresees.
  data_.put("10.1.0.5"_ip, Holder{"a", "eth0"});
  data_.put("10.1.0.7"_ip, Holder{"a", "eth0"});
  EXPECT_EQ(import(true)["a"].outcome, Outcome::clashes);
  EXPECT_EQ(import()["a"].outcome, Outcome::clashes);
  EXPECT_EQ(data_.files.size(), 2U);
}

TEST_F(HostLocalImport, AnAddressOfSomebodyElseClashesAndNothingOfThatHolderMoves) {
  ImportRequest other = request_;
  other.network = "other";
  ReservationsData theirs;
  theirs.put("2001:db8::5"_ip, Holder{"c", "eth0"});
  FakeReservations their_reservations(theirs);
  ASSERT_TRUE(import_reservations(world_.context, their_reservations, other));
  for (const bool dry_run : {true, false}) {
    auto moved = import(dry_run);
    EXPECT_EQ(moved["a"].outcome, Outcome::clashes);
    EXPECT_THAT(moved["a"].reason, HasSubstr("2001:db8::5"));
    EXPECT_EQ(moved["b"].outcome, Outcome::imported);
  }
  EXPECT_EQ(data_.files.size(), 2U);
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::free);
}

TEST_F(HostLocalImport, LeavesWhatHasNoPlaceOrNoOwner) {
  data_.files.clear();
  data_.put("192.0.2.1"_ip, Holder{"outside", "eth0"});
  data_.put("10.1.0.7"_ip, Holder{"old", ""});
  data_.put("10.1.0.8"_ip, std::nullopt);
  auto moved = import();
  EXPECT_THAT(moved["outside"].reason, HasSubstr("192.0.2.1 is not in the range of this node"));
  EXPECT_THAT(moved["old"].reason, HasSubstr("--interface"));
  EXPECT_THAT(moved[""].reason, HasSubstr("does not say who holds it"));
  EXPECT_EQ(data_.files.size(), 3U);
  request_.interface_name = "eth0";
  EXPECT_EQ(import()["old"].outcome, Outcome::imported);
  EXPECT_EQ(show_address(world_.context, "10.1.0.7"_ip)->owner, (core::Owner{"net", "old", "eth0"}));
}

TEST_F(HostLocalImport, AHolderThatTheRegisterCannotHaveClashesAndTheOthersAreImported) {
  const std::string long_id(2000, 'l');
  data_.put("10.1.0.20"_ip, Holder{long_id, "eth0"});
  data_.put("10.1.0.21"_ip, Holder{"B_1", "eth0"});
  // As a Kubernetes API answers for a name that no object can have.
  world_.store.damage(core::handle_key("net.B_1"), ErrorCode::invalid_argument);
  auto moved = import();
  EXPECT_EQ(moved["a"].outcome, Outcome::imported);
  EXPECT_EQ(moved["b"].outcome, Outcome::imported);
  for (const std::string& id : {long_id, std::string("B_1")}) {
    EXPECT_EQ(moved[id].outcome, Outcome::clashes);
    EXPECT_FALSE(moved[id].reason.empty());
    EXPECT_TRUE(moved[id].at_risk) << "a pool may give its address to others";
  }
  EXPECT_EQ(data_.files.size(), 2U);
}

TEST_F(HostLocalImport, APoolThatDoesNotExistIsAnError) {
  request_.pools = {"four", "nine"};
  const auto moved = import_reservations(world_.context, reservations_, request_);
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message, HasSubstr("no pool \"nine\""));
}

}  // namespace
}  // namespace croft::engine
