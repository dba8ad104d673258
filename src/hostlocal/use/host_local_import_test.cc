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
using Outcome = MovedHolder::Outcome;

class HostLocalImport : public testing::Test {
 protected:
  void SetUp() override {
    world_.pool("four", "10.1.0.0/24", 28, 0);
    world_.pool("six", "2001:db8::/120", 124, 0);
    data_.put("10.1.0.5"_ip, Holder{"a", "eth0"});
    data_.put("2001:db8::5"_ip, Holder{"a", "eth0"});
    data_.put("10.1.0.99"_ip, Holder{"b", "eth0"});
  }
  [[nodiscard]] std::map<std::string, MovedHolder> move_in(bool dry_run = false) {
    request_.dry_run = dry_run;
    return by_container(move_into_pools(world_.context, reservations_, request_));
  }
  [[nodiscard]] std::map<std::string, MovedHolder> move_out(bool dry_run = false) {
    request_.dry_run = dry_run;
    return by_container(move_out_of_pools(world_.context, reservations_, request_));
  }
  [[nodiscard]] static std::map<std::string, MovedHolder> by_container(const Result<std::vector<MovedHolder>>& all) {
    EXPECT_TRUE(all) << all.error().message;
    std::map<std::string, MovedHolder> result;
    for (const MovedHolder& moved : *all) result[moved.holder.container_id] = moved;
    return result;
  }
  void hold(const core::Owner& owner, const std::string& node, const net::Address& address) {
    core::AssignRequest wanted;
    wanted.owner = owner;
    wanted.node = {core::AffinityOwner::Type::host, node};
    wanted.count = {0, 0};
    wanted.addresses = {address};
    EXPECT_EQ(world_.add(wanted), std::vector{address.to_string()});
  }
  void disable(const std::string& pool) { EXPECT_TRUE(set_pool_disabled(world_.context, pool, true)); }
  [[nodiscard]] core::AddressState state_of(const net::Address& address) {
    return show_address(world_.context, address)->state;
  }

  World world_;
  ReservationsData data_;
  FakeReservations reservations_{data_};
  MoveRequest request_{"net", {core::AffinityOwner::Type::host, "node-a"}, {"four", "six"}, "", false};
};

TEST_F(HostLocalImport, GoesThereAndBack) {
  const auto before = data_.files;
  auto moved = move_in();
  EXPECT_EQ(moved["a"].outcome, Outcome::moved);
  EXPECT_EQ(moved["b"].outcome, Outcome::moved);
  EXPECT_THAT(data_.files, IsEmpty());
  const auto view = show_address(world_.context, "2001:db8::5"_ip).value();
  EXPECT_EQ(view.owner, (core::Owner{"net", "a", "eth0"}));
  EXPECT_EQ(view.node, "node-a");
  EXPECT_TRUE(audit(world_.context, {})->findings.empty());

  moved = move_out();
  EXPECT_EQ(moved["a"].outcome, Outcome::moved);
  EXPECT_EQ(data_.files, before);
  EXPECT_THAT(data_.cursors, IsEmpty());
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::free);
  EXPECT_TRUE(audit(world_.context, {})->findings.empty());
}

/// The gateway is the node's own bridge: a pod that got it would not be reached.
TEST_F(HostLocalImport, WhatHostLocalGivesToNobodyIsReserved) {
  world_.pool("all", "10.244.0.0/16", 24, 0);
  data_.put("10.244.3.2"_ip, Holder{"x", "eth0"});
  request_.pools = {"all"};
  request_.only_in = {net::Prefix::parse("10.244.3.0/24").value()};
  const auto moved = move_into_pools(world_.context, reservations_, request_).value();
  ASSERT_EQ(moved.front().outcome, Outcome::reserved);
  EXPECT_THAT(moved.front().addresses, ElementsAre("10.244.3.0"_ip, "10.244.3.1"_ip, "10.244.3.255"_ip));
  for (const auto& address : moved.front().addresses) EXPECT_EQ(state_of(address), core::AddressState::reserved);
  EXPECT_EQ(state_of("10.244.3.2"_ip), core::AddressState::held);
  const auto again = move_into_pools(world_.context, reservations_, request_).value();
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
  request_.only_in = {net::Prefix::parse("10.244.3.0/24").value(), net::Prefix::parse("10.244.9.0/24").value()};
  request_.given = {net::AddressRange::make("10.244.3.10"_ip, "10.244.3.100"_ip).value(),
                    net::AddressRange::make("10.244.3.101"_ip, "10.244.3.251"_ip).value()};
  const auto texts = [](const std::vector<MovedHolder>& rows) {
    std::vector<std::string> all;
    for (const MovedHolder& row : rows) {
      for (const net::Prefix& range : row.ranges) all.push_back(range.to_string());
    }
    return all;
  };
  request_.dry_run = true;
  const auto planned = move_into_pools(world_.context, reservations_, request_).value();
  EXPECT_THAT(texts(planned), ElementsAre("10.244.3.2/31", "10.244.3.5/32", "10.244.3.6/31", "10.244.3.8/31",
                                          "10.244.3.252/31", "10.244.3.254/32"));
  EXPECT_EQ(state_of("10.244.3.2"_ip), core::AddressState::free);
  request_.dry_run = false;
  const auto moved = move_into_pools(world_.context, reservations_, request_).value();
  EXPECT_EQ(moved, planned);
  for (const auto& address : {"10.244.3.2"_ip, "10.244.3.9"_ip, "10.244.3.252"_ip, "10.244.3.254"_ip}) {
    EXPECT_EQ(state_of(address), core::AddressState::reserved) << address.to_string();
  }
  for (const auto& address : {"10.244.3.11"_ip, "10.244.3.251"_ip, "10.244.9.2"_ip}) {
    EXPECT_EQ(state_of(address), core::AddressState::free) << address.to_string();
  }
  EXPECT_EQ(state_of("10.244.3.4"_ip), core::AddressState::held);
  EXPECT_THAT(move_into_pools(world_.context, reservations_, request_).value(), IsEmpty());
  EXPECT_TRUE(audit(world_.context, {})->findings.empty());
}

TEST_F(HostLocalImport, AGatewayThatIsHeldIsTold) {
  world_.pool("all", "10.244.0.0/16", 24, 0);
  request_.pools = {"all"};
  request_.only_in = {net::Prefix::parse("10.244.3.0/24").value()};
  request_.gateways = {"10.244.3.9"_ip};
  core::AssignRequest pod;
  pod.owner = {"net", "early", "eth0"};
  pod.node = request_.node;
  pod.count = {0, 0};
  pod.addresses = {"10.244.3.9"_ip};
  ASSERT_TRUE(std::holds_alternative<core::Assigned>(assign(world_.context, pod).value()));
  request_.dry_run = true;
  EXPECT_EQ(move_into_pools(world_.context, reservations_, request_).value().front().outcome, Outcome::reserved);
  EXPECT_EQ(state_of("10.244.3.0"_ip), core::AddressState::free) << "a dry run changes nothing";
  request_.dry_run = false;
  static_cast<void>(move_in());
  const auto all = move_into_pools(world_.context, reservations_, request_).value();
  EXPECT_EQ(all.front().outcome, Outcome::clashes);
  EXPECT_THAT(all.front().addresses, ElementsAre("10.244.3.9"_ip));
  EXPECT_THAT(all.front().reason, HasSubstr("early"));
  EXPECT_EQ(state_of("10.244.3.1"_ip), core::AddressState::free) << "another gateway was named";
}

TEST_F(HostLocalImport, AnAddressWithAFileIsItsHolders) {
  world_.pool("all", "10.244.0.0/16", 24, 0);
  data_.put("10.244.3.255"_ip, Holder{"odd", "eth0"});
  request_.pools = {"all"};
  request_.only_in = {net::Prefix::parse("10.244.3.0/24").value()};
  const auto rows = move_in();
  EXPECT_EQ(rows.at("odd").outcome, Outcome::moved) << rows.at("odd").reason;
  EXPECT_EQ(state_of("10.244.3.255"_ip), core::AddressState::held);
}

TEST_F(HostLocalImport, ADryRunSaysTheSameAndChangesNothing) {
  const auto before = data_.files;
  auto moved = move_in(true);
  EXPECT_EQ(moved["a"].outcome, Outcome::moved);
  EXPECT_EQ(data_.files, before);
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::free);
  static_cast<void>(move_in());
  EXPECT_EQ(move_out(true)["a"].outcome, Outcome::moved);
  EXPECT_THAT(data_.files, IsEmpty());
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::held);
}

TEST_F(HostLocalImport, WhatWasInterruptedGoesOn) {
  data_.release_error = Error{ErrorCode::read_only, "remove: read-only file system", {}};
  EXPECT_FALSE(move_into_pools(world_.context, reservations_, request_));
  EXPECT_EQ(data_.files.size(), 3U) << "both sides have it";
  data_.release_error.reset();
  EXPECT_EQ(move_in()["a"].outcome, Outcome::moved);
  EXPECT_THAT(data_.files, IsEmpty());

  data_.put("10.1.0.5"_ip, Holder{"a", "eth0"});  // died between the file and the release
  EXPECT_EQ(move_out()["a"].outcome, Outcome::moved);
  EXPECT_EQ(data_.files.size(), 3U);
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::free);
}

/// Files go one by one: what is left of a holder after a kill names fewer addresses than it holds.
TEST_F(HostLocalImport, WhatWasInterruptedBetweenTwoFilesGoesOn) {
  data_.put("10.1.0.6"_ip, Holder{"a", "eth0"});  // a second address of one family
  ASSERT_EQ(move_in()["a"].outcome, Outcome::moved);
  EXPECT_EQ(state_of("10.1.0.6"_ip), core::AddressState::held);
  for (const char* left : {"10.1.0.5", "10.1.0.6", "2001:db8::5"}) {
    data_.put(net::Address::parse(left).value(), Holder{"a", "eth0"});
    EXPECT_EQ(move_in(true)["a"].outcome, Outcome::moved) << left;
    EXPECT_EQ(move_in()["a"].outcome, Outcome::moved) << left;
    EXPECT_THAT(data_.files, IsEmpty());
  }
  EXPECT_TRUE(audit(world_.context, {})->findings.empty());
  // One that it does not hold is another matter, which the plan foresees.
  data_.put("10.1.0.5"_ip, Holder{"a", "eth0"});
  data_.put("10.1.0.7"_ip, Holder{"a", "eth0"});
  EXPECT_EQ(move_in(true)["a"].outcome, Outcome::clashes);
  EXPECT_EQ(move_in()["a"].outcome, Outcome::clashes);
  EXPECT_EQ(data_.files.size(), 2U);
}

TEST_F(HostLocalImport, AnAddressOfSomebodyElseClashesAndNothingOfThatHolderMoves) {
  MoveRequest other = request_;
  other.network = "other";
  ReservationsData theirs;
  theirs.put("2001:db8::5"_ip, Holder{"c", "eth0"});
  FakeReservations their_reservations(theirs);
  ASSERT_TRUE(move_into_pools(world_.context, their_reservations, other));
  for (const bool dry_run : {true, false}) {
    auto moved = move_in(dry_run);
    EXPECT_EQ(moved["a"].outcome, Outcome::clashes);
    EXPECT_THAT(moved["a"].reason, HasSubstr("2001:db8::5"));
    EXPECT_EQ(moved["b"].outcome, Outcome::moved);
  }
  EXPECT_EQ(data_.files.size(), 2U);
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::free);
}

TEST_F(HostLocalImport, AFileOfSomebodyElseClashesOnTheWayBack) {
  static_cast<void>(move_in());
  data_.put("10.1.0.5"_ip, Holder{"stranger", "eth0"});
  for (const bool dry_run : {true, false}) {
    auto moved = move_out(dry_run);
    EXPECT_EQ(moved["a"].outcome, Outcome::clashes);
    EXPECT_THAT(moved["a"].reason, HasSubstr("10.1.0.5 is reserved for container stranger"));
  }
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::held);
  EXPECT_EQ(state_of("10.1.0.99"_ip), core::AddressState::free);
}

TEST_F(HostLocalImport, LeavesWhatHasNoPlaceOrNoOwner) {
  data_.files.clear();
  data_.put("192.0.2.1"_ip, Holder{"outside", "eth0"});
  data_.put("10.1.0.7"_ip, Holder{"old", ""});
  data_.put("10.1.0.8"_ip, std::nullopt);
  auto moved = move_in();
  EXPECT_THAT(moved["outside"].reason, HasSubstr("192.0.2.1 is in none of the pools"));
  EXPECT_THAT(moved["old"].reason, HasSubstr("--interface"));
  EXPECT_THAT(moved[""].reason, HasSubstr("does not say who holds it"));
  EXPECT_EQ(data_.files.size(), 3U);
  request_.interface_name = "eth0";
  EXPECT_EQ(move_in()["old"].outcome, Outcome::moved);
  EXPECT_EQ(show_address(world_.context, "10.1.0.7"_ip)->owner, (core::Owner{"net", "old", "eth0"}));
}

TEST_F(HostLocalImport, AHolderThatTheRegisterCannotHaveIsLeftAndTheOthersMove) {
  const std::string long_id(2000, 'l');
  data_.put("10.1.0.20"_ip, Holder{long_id, "eth0"});
  data_.put("10.1.0.21"_ip, Holder{"B_1", "eth0"});
  // As a Kubernetes API answers for a name that no object can have.
  world_.store.damage(core::handle_key("net.B_1"), ErrorCode::invalid_argument);
  for (const bool dry_run : {true, false}) {
    auto moved = move_in(dry_run);
    EXPECT_EQ(moved["a"].outcome, Outcome::moved);
    EXPECT_EQ(moved["b"].outcome, Outcome::moved);
    for (const std::string& id : {long_id, std::string("B_1")}) {
      EXPECT_EQ(moved[id].outcome, Outcome::left);
      EXPECT_FALSE(moved[id].reason.empty());
      EXPECT_TRUE(moved[id].at_risk) << "a pool may give its address to others";
    }
  }
  EXPECT_EQ(data_.files.size(), 2U);
}

TEST_F(HostLocalImport, OnlyThisNodeAndThisNetworkComeBack) {
  static_cast<void>(move_in());
  MoveRequest other = request_;
  other.node.name = "node-b";
  EXPECT_THAT(move_out_of_pools(world_.context, reservations_, other).value(), IsEmpty());
  EXPECT_THAT(data_.files, IsEmpty());
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::held);
}

/// host-local knows the files of its directory alone, and gives again what the register has besides.
TEST_F(HostLocalImport, WhatStaysInTheRegisterInWhatHostLocalGivesIsAtRisk) {
  static_cast<void>(move_in());
  world_.pool("more", "10.2.0.0/24", 28, 0);
  hold({"other", "multus", "net1"}, "node-a", "10.1.0.6"_ip);
  hold({"net", "borrower", "eth0"}, "node-b", "10.1.0.7"_ip);
  hold({"net", "unnamed", "eth0"}, "node-a", "10.2.0.2"_ip);
  hold({"net", "elsewhere", "eth0"}, "node-b", "10.2.0.20"_ip);  // claims a block of its own
  for (const char* pool : {"four", "six", "more"}) disable(pool);
  for (const bool dry_run : {true, false}) {
    auto moved = move_out(dry_run);
    EXPECT_EQ(moved.size(), 5U);
    EXPECT_EQ(moved["a"].outcome, Outcome::moved);
    EXPECT_FALSE(moved["a"].at_risk);
    for (const char* id : {"multus", "borrower", "unnamed"}) {
      EXPECT_EQ(moved[id].outcome, Outcome::left) << id;
      EXPECT_TRUE(moved[id].at_risk) << id;
    }
    EXPECT_THAT(moved["multus"].reason, HasSubstr("10.1.0.6 is of network \"other\""));
    EXPECT_THAT(moved["multus"].reason, HasSubstr("--network"));
    EXPECT_THAT(moved["borrower"].reason, HasSubstr("10.1.0.7 is held by a pod of node \"node-b\""));
    EXPECT_THAT(moved["unnamed"].reason, HasSubstr("--pool more"));
  }
  EXPECT_EQ(state_of("10.1.0.6"_ip), core::AddressState::held);
  EXPECT_EQ(data_.files.size(), 3U);
  // The remedies: the other network moves too, the pool is named, and the pod of the other node goes.
  request_.more_networks = {"other"};
  request_.pools.emplace_back("more");
  EXPECT_EQ(world_.del("borrower"), 1U);
  const auto moved = move_out();
  EXPECT_EQ(moved.size(), 2U);
  for (const auto& [id, row] : moved) EXPECT_EQ(row.outcome, Outcome::moved) << id << row.reason;
  EXPECT_EQ(data_.files.at("10.1.0.6"_ip).holder, (Holder{"multus", "net1"}));
}

/// A podCIDR is what host-local gives, whoever has the blocks.
TEST_F(HostLocalImport, TheRangeSaysWhatIsAtRisk) {
  static_cast<void>(move_in());
  hold({"other", "inside", "eth0"}, "node-b", "10.1.0.33"_ip);
  hold({"other", "outside", "eth0"}, "node-a", "10.1.0.97"_ip);
  for (const char* pool : {"four", "six"}) disable(pool);
  request_.only_in = {world_.prefix("10.1.0.0/26"), world_.prefix("2001:db8::/120")};
  auto moved = move_out();
  EXPECT_EQ(moved.size(), 3U);
  EXPECT_EQ(moved["a"].outcome, Outcome::moved);
  EXPECT_TRUE(moved["inside"].at_risk);
  EXPECT_EQ(moved["b"].outcome, Outcome::left);
  EXPECT_FALSE(moved["b"].at_risk) << "host-local gives 10.1.0.99 to nobody";
  EXPECT_THAT(moved["b"].reason, HasSubstr("10.1.0.99 is not in the range of this node"));
  EXPECT_EQ(state_of("10.1.0.99"_ip), core::AddressState::held);
}

/// Of a holder all or nothing: a DEL by host-local would give back a part of it.
TEST_F(HostLocalImport, AHolderWithAnAddressThatStaysIsLeftWhole) {
  static_cast<void>(move_in());
  request_.pools = {"four"};
  for (const char* pool : {"four", "six"}) disable(pool);
  const auto moved = move_out();
  EXPECT_EQ(moved.at("a").outcome, Outcome::left);
  EXPECT_TRUE(moved.at("a").at_risk);
  EXPECT_THAT(moved.at("a").reason, HasSubstr("--pool six"));
  EXPECT_EQ(moved.at("b").outcome, Outcome::moved);
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::held);
}

/// That node's way back would find nothing in the register, and its host-local give the address again.
TEST_F(HostLocalImport, WhatLiesInABlockOfAnotherNodeStays) {
  data_.files.clear();
  hold({"net", "elms", "eth0"}, "node-b", "10.1.0.4"_ip);
  hold({"net", "borrower", "eth0"}, "node-a", "10.1.0.5"_ip);
  disable("four");
  const auto moved = move_out();
  EXPECT_EQ(moved.size(), 1U);
  EXPECT_EQ(moved.at("borrower").outcome, Outcome::left);
  EXPECT_FALSE(moved.at("borrower").at_risk);
  EXPECT_THAT(moved.at("borrower").reason, HasSubstr("in block 10.1.0.0/28 of node \"node-b\""));
  EXPECT_EQ(state_of("10.1.0.5"_ip), core::AddressState::held);
}

/// As Calico's tunnels.
TEST_F(HostLocalImport, WhatNoContainerHoldsIsAtRisk) {
  data_.files.clear();
  hold({"net", "a", "eth0"}, "node-a", "10.1.0.4"_ip);
  auto block = show_block(world_.context, world_.prefix("10.1.0.0/28")).value().block;
  const auto mark = [&](std::uint32_t ordinal, const core::Attribute& attribute) {
    block.allocations[ordinal] = static_cast<std::uint32_t>(block.attributes.size());
    block.attributes.push_back(attribute);
    EXPECT_TRUE(block.unallocated.take(net::Ordinal(ordinal)));
  };
  core::Attribute tunnel;
  tunnel.handle_id = "vxlan-tunnel-addr-node-a";
  mark(6, tunnel);
  world_.put(core::block_key(block.cidr), block);
  disable("four");
  const auto moved = move_out_of_pools(world_.context, reservations_, request_).value();
  ASSERT_EQ(moved.size(), 2U);
  std::map<net::Address, MovedHolder> by_address;
  for (const MovedHolder& row : moved) by_address[row.addresses.front()] = row;
  EXPECT_EQ(by_address["10.1.0.4"_ip].outcome, Outcome::moved);
  EXPECT_TRUE(by_address["10.1.0.6"_ip].at_risk);
  EXPECT_THAT(by_address["10.1.0.6"_ip].reason, HasSubstr("vxlan-tunnel-addr-node-a"));
}

TEST_F(HostLocalImport, APoolThatDoesNotExistIsAnError) {
  request_.pools = {"four", "nine"};
  const auto moved = move_into_pools(world_.context, reservations_, request_);
  ASSERT_FALSE(moved);
  EXPECT_THAT(moved.error().message, HasSubstr("no pool \"nine\""));
}

}  // namespace
}  // namespace croft::engine
