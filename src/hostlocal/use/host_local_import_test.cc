#include "hostlocal/use/host_local_import.h"

#include <algorithm>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hostlocal/use/test_reservations.h"
#include "ipam/use/pools.h"
#include "ipam/use/test_world.h"

namespace croft::engine {
namespace {

using namespace net::literals;
using core::host_local::Holder;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
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
