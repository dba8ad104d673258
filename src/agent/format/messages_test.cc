#include "agent/format/messages.h"

#include <croft/agent.pb.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::wire::agent {
namespace {

net::Address ip(const char* text) { return net::Address::parse(text).value(); }

AssignCall sample_call() {
  AssignCall call;
  call.caller.store = "sqlite:/var/lib/croft/croft.db";
  call.caller.node = "node-a";
  for (std::size_t i = 0; i < 16; ++i) call.caller.boot.bytes[i] = static_cast<std::uint8_t>(i * 17);
  call.caller.expires.at_since_boot = std::chrono::nanoseconds(123456789012345);
  call.caller.network_namespace = 4026531840;
  call.pools = {
      {"a", prefix("10.0.0.0/16"), 26, core::GatewayChoice{core::GatewayChoice::Kind::none, {}}, {}, true},
      {"b",
       prefix("fd00::/112"),
       {},
       core::GatewayChoice{core::GatewayChoice::Kind::given, ip("fd00::7")},
       std::chrono::seconds(5),
       {}},
      {"c", prefix("10.1.0.0/16"), {}, core::GatewayChoice{core::GatewayChoice::Kind::first_address, {}}, {}, {}},
      {"d", prefix("10.2.0.0/16"), {}, {}, std::chrono::seconds(0), false},
  };
  core::AssignRequest& request = call.request;
  request.owner = {"net", "0f3c", "eth0"};
  request.pod = {"pod", "default", "uid-1"};
  request.node = {core::AffinityOwner::Type::host, "node-a"};
  request.count.v4 = 1;
  request.count.v6 = 1;
  request.pools.v4 = {"a", core::asked_pool("10.1.0.0/16")};
  request.pools.v6 = {"b"};
  request.addresses = {ip("10.0.0.9"), ip("fd00::9")};
  request.reserved_addresses = true;
  request.cooling_addresses = true;
  request.use = core::PoolUse::tunnel;
  request.namespace_labels = {{"team", "x"}, {"", "empty"}};
  request.block_limit = 3;
  request.default_block_limit = 20;
  call.annotations = core::WishesWanted{{true, false}, false, true};
  return call;
}

core::Refusal sample_refusal() {
  return {ErrorCode::refused_by_configuration,
          "no IPv4 address is free",
          {{"a", prefix("10.0.0.0/16"), "disabled"}, {"b", prefix("fd00::/112"), "full"}},
          core::RefusalCause::full_and_strict};
}

TEST(AgentMessages, AssignCallSurvives) {
  const AssignCall call = sample_call();
  const auto read = decode_assign_call(encode(call));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->caller, call.caller);
  EXPECT_EQ(read->pools, call.pools);
  EXPECT_EQ(read->annotations, call.annotations);
  const core::AssignRequest& a = read->request;
  const core::AssignRequest& b = call.request;
  EXPECT_EQ(a.owner, b.owner);
  EXPECT_EQ(a.pod, b.pod);
  EXPECT_EQ(a.node, b.node);
  EXPECT_EQ(a.count.v4, b.count.v4);
  EXPECT_EQ(a.count.v6, b.count.v6);
  EXPECT_EQ(a.pools.v4, b.pools.v4);
  EXPECT_EQ(a.pools.v6, b.pools.v6);
  EXPECT_EQ(a.addresses, b.addresses);
  EXPECT_EQ(a.reserved_addresses, b.reserved_addresses);
  EXPECT_EQ(a.use, b.use);
  EXPECT_EQ(a.namespace_labels, b.namespace_labels);
  EXPECT_EQ(a.block_limit, b.block_limit);
  EXPECT_EQ(a.default_block_limit, b.default_block_limit);
  EXPECT_FALSE(a.cooling_addresses) << "the operator's alone: a node's call never ends a cooldown";
  EXPECT_FALSE(a.for_some_pod) << "STATUS asks the store itself";
  // A new member breaks this line: carry it in agent.proto and in members(), too.
  const auto& [m1, m2, m3, m4, m5, m6, m7, m8, m9, m10, m11, m12, m13, m14] = b;
  static_cast<void>(m1);
}

TEST(AgentMessages, ReleaseCallSurvives) {
  ReleaseCall call{sample_call().caller, core::Owner{"net", "0f3c", "eth0"}};
  EXPECT_EQ(decode_release_call(encode(call))->owner, call.owner);
  EXPECT_EQ(decode_release_call(encode(call))->caller, call.caller);
}

TEST(AgentMessages, OutcomesSurvive) {
  core::Assigned assigned;
  assigned.addresses = {
      {ip("10.0.0.9"), "a", prefix("10.0.0.0/16"), ip("10.0.0.1"), prefix("10.0.0.0/26"),
       core::SequenceNumber(~std::uint64_t{0}), true},
      {ip("fd00::9"), "", prefix("fd00::/122"), {}, prefix("fd00::/122"), core::SequenceNumber(0), false},
  };
  const auto read = decode_assign_outcome(encode(AssignOutcome(assigned)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<core::Assigned>(*read).addresses, assigned.addresses);
  EXPECT_EQ(std::get<core::Refusal>(*decode_assign_outcome(encode(AssignOutcome(sample_refusal())))), sample_refusal());
  core::Refusal by_living = sample_refusal();
  by_living.code = ErrorCode::unavailable;
  EXPECT_EQ(std::get<core::Refusal>(*decode_assign_outcome(encode(AssignOutcome(by_living)))), by_living);
  const Error error{ErrorCode::corrupt, "block 10.0.0.0/26 …", "a\nb"};
  EXPECT_EQ(std::get<Error>(*decode_assign_outcome(encode(AssignOutcome(error)))), error);
  EXPECT_EQ(std::get<Error>(*decode_release_outcome(encode(ReleaseOutcome(error)))), error);
  const std::vector<net::Address> released = {ip("10.0.0.9"), ip("fd00::9")};
  EXPECT_EQ(std::get<0>(*decode_release_outcome(encode(ReleaseOutcome(released)))), released);
  EXPECT_TRUE(std::get<0>(*decode_release_outcome(encode(ReleaseOutcome(std::vector<net::Address>())))).empty());
  const AgentStatus status{"0.1.0", "memory:", "node-a", true, 1, 2, 3, 4, 5};
  EXPECT_EQ(*decode_status(encode(status)), status);
}

/// The bytes are those of protobuf's own code by proto/croft/agent.proto: each field's number and type.
TEST(AgentMessages, AreThoseOfTheProtocol) {
  namespace pb = ::croft::agent::v1;
  AssignCall call = sample_call();
  call.caller.file = {7, 9};
  call.caller.ends = Deadline{std::chrono::nanoseconds(-1)};
  call.request.namespace_labels = {{"team", "x"}};
  pb::AssignRequest assign;
  pb::Caller& caller = *assign.mutable_caller();
  caller.set_store(call.caller.store);
  caller.set_node("node-a");
  caller.set_boot_id(std::string(call.caller.boot.bytes.begin(), call.caller.boot.bytes.end()));
  caller.set_expires_ns_since_boot(123456789012345);
  caller.set_store_device(7);
  caller.set_store_inode(9);
  caller.set_network_namespace(4026531840);
  caller.set_ends_ns_since_boot(-1);
  for (const char* name : {"a", "b", "c", "d"}) assign.add_pools()->set_name(name);
  const auto pool = [&](int i) -> pb::PoolSpec& { return *assign.mutable_pools(i); };
  pool(0).set_cidr("10.0.0.0/16");
  pool(0).set_block_length(26);
  pool(0).set_gateway_none(true);
  pool(0).set_disabled(true);
  pool(1).set_cidr("fd00::/112");
  pool(1).set_gateway_address("fd00::7");
  pool(1).set_cooldown_seconds(5);
  pool(2).set_cidr("10.1.0.0/16");
  pool(2).set_gateway_first_address(true);
  pool(3).set_cidr("10.2.0.0/16");
  pool(3).set_cooldown_seconds(0);
  pool(3).set_disabled(false);
  pb::Owner& owner = *assign.mutable_owner();
  owner.set_network("net");
  owner.set_container_id("0f3c");
  owner.set_interface_name("eth0");
  assign.mutable_pod()->set_name("pod");
  assign.mutable_pod()->set_namespace_name("default");
  assign.mutable_pod()->set_uid("uid-1");
  assign.set_ipv4(1);
  assign.set_ipv6(1);
  for (const char* name : {"a", "10.1.0.0/16"}) assign.add_ipv4_pools(name);
  assign.add_ipv6_pools("b");
  for (const char* address : {"10.0.0.9", "fd00::9"}) assign.add_addresses(address);
  assign.set_reserved_addresses(true);
  assign.set_use(pb::TUNNEL);
  (*assign.mutable_namespace_labels())["team"] = "x";
  assign.set_block_limit(3);
  assign.set_default_block_limit(20);
  assign.mutable_annotations()->set_ipv4_pools(true);
  assign.mutable_annotations()->set_families(true);
  EXPECT_EQ(encode(call), assign.SerializeAsString());

  pb::ReleaseRequest release;
  *release.mutable_caller() = caller;
  *release.mutable_owner() = owner;
  EXPECT_EQ(encode(ReleaseCall{call.caller, call.request.owner}), release.SerializeAsString());

  core::Assigned assigned;
  assigned.addresses = {{ip("10.0.0.9"), "a", prefix("10.0.0.0/16"), ip("10.0.0.1"), prefix("10.0.0.0/26"),
                         core::SequenceNumber(~std::uint64_t{0}), true}};
  pb::AssignAnswer answer;
  pb::AssignedAddress& one = *answer.mutable_assigned()->add_addresses();
  one.set_address("10.0.0.9");
  one.set_pool("a");
  one.set_pool_cidr("10.0.0.0/16");
  one.set_gateway("10.0.0.1");
  one.set_block("10.0.0.0/26");
  one.set_sequence_number(~std::uint64_t{0});
  one.set_held_before(true);
  EXPECT_EQ(encode(AssignOutcome(assigned)), answer.SerializeAsString());
  pb::Refusal& refusal = *answer.mutable_refusal();
  refusal.set_code("refused_by_configuration");
  refusal.set_summary("no IPv4 address is free");
  for (const auto& [name, cidr, reason] :
       {std::tuple("a", "10.0.0.0/16", "disabled"), std::tuple("b", "fd00::/112", "full")}) {
    pb::PoolVerdict& verdict = *refusal.add_considered();
    verdict.set_pool(name);
    verdict.set_cidr(cidr);
    verdict.set_reason(reason);
  }
  refusal.set_cause(pb::FULL_AND_STRICT);
  EXPECT_EQ(encode(AssignOutcome(sample_refusal())), answer.SerializeAsString());
  answer.mutable_taken();
  EXPECT_EQ(encode_sign_of_life(), answer.SerializeAsString());

  pb::ReleaseAnswer released;
  released.mutable_error()->set_code("corrupt");
  released.mutable_error()->set_message("x");
  released.mutable_error()->set_details("y");
  EXPECT_EQ(encode(ReleaseOutcome(Error{ErrorCode::corrupt, "x", "y"})), released.SerializeAsString());
  released.mutable_released()->add_addresses("fd00::9");
  EXPECT_EQ(encode(ReleaseOutcome(std::vector{ip("fd00::9")})), released.SerializeAsString());

  pb::StatusAnswer status;
  status.set_version("0.1.0");
  status.set_store("memory:");
  status.set_node("a");
  status.set_cache_in_use(true);
  status.set_own_blocks(1);
  status.set_known_affinities(2);
  status.set_served_from_cache(3);
  status.set_served_from_store(4);
  status.set_failed(5);
  status.set_commits(6);
  status.set_blocks_ahead(7);
  EXPECT_EQ(encode(AgentStatus{"0.1.0", "memory:", "a", true, 1, 2, 3, 4, 5, 6, 7}), status.SerializeAsString());
}

TEST(AgentMessages, SignsOfLife) {
  EXPECT_TRUE(is_sign_of_life(encode_sign_of_life()));
  EXPECT_FALSE(is_sign_of_life(encode(AssignOutcome(Error{ErrorCode::corrupt, "x", "y"}))));
  EXPECT_FALSE(is_sign_of_life("\x22"));
}

TEST(AgentMessages, EveryCauseAndCodeSurvives) {
  for (int i = 0; i <= static_cast<int>(core::RefusalCause::address_out_of_bounds); ++i) {
    core::Refusal refusal = sample_refusal();
    refusal.cause = static_cast<core::RefusalCause>(i);
    EXPECT_EQ(std::get<core::Refusal>(*decode_assign_outcome(encode(AssignOutcome(refusal)))), refusal) << i;
  }
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    const Error error{static_cast<ErrorCode>(i), "x", {}};
    EXPECT_EQ(std::get<Error>(*decode_assign_outcome(encode(AssignOutcome(error)))), error) << i;
  }
}

void expect_refused(const AssignCall& call, const std::string& member) {
  const auto read = decode_assign_call(encode(call));
  ASSERT_FALSE(read) << member;
  EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
  EXPECT_NE(read.error().message.find(member), std::string::npos) << read.error().message;
}

TEST(AgentMessages, BoundsAreKept) {
  AssignCall call = sample_call();
  call.request.count.v4 = kCountMax + 1;
  expect_refused(call, "ipv4");
  call = sample_call();
  call.request.owner.container_id.clear();
  expect_refused(call, "owner.container_id");
  call = sample_call();
  call.request.owner.network = std::string("a\0b", 3);
  expect_refused(call, "owner.network");
  call = sample_call();
  call.request.pod.uid.assign(kTextBytesMax + 1, 'x');
  expect_refused(call, "pod.uid");
  call = sample_call();
  call.request.addresses.assign(kAddressesMax + 1, ip("10.0.0.1"));
  expect_refused(call, "addresses");
  call = sample_call();
  call.pools.assign(kPoolSpecsMax + 1, call.pools.front());
  expect_refused(call, "pools");
  call = sample_call();
  call.request.pools.v6.assign(kAskedPoolsMax + 1, "a");
  expect_refused(call, "ipv6_pools");
  call = sample_call();
  for (std::size_t i = 0; i <= kLabelsMax; ++i) call.request.namespace_labels[std::to_string(i)] = "";
  expect_refused(call, "namespace_labels");
  call = sample_call();
  call.request.namespace_labels["x"].assign(kMessageBytesMax, 'x');
  expect_refused(call, "the whole");
}

TEST(AgentMessages, GarbageIsAnError) {
  const std::string good = encode(sample_call());
  for (std::size_t length = 0; length < good.size(); ++length) {
    static_cast<void>(decode_assign_call(good.substr(0, length)));  // must not crash; some prefixes are messages
  }
  EXPECT_FALSE(decode_assign_call(""));
  EXPECT_FALSE(decode_release_call(""));
  EXPECT_FALSE(decode_assign_outcome(""));
  EXPECT_FALSE(decode_release_outcome(""));
  EXPECT_FALSE(decode_assign_call("\xff\xff\xff\xff\xff"));
}

}  // namespace
}  // namespace croft::wire::agent
