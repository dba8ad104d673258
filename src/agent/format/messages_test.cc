#include "agent/format/messages.h"

#include <gtest/gtest.h>

#include "base/hex.h"
#include "base/net/test_values.h"

namespace croft::wire::agent {
namespace {

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
       core::GatewayChoice{core::GatewayChoice::Kind::given, address("fd00::7")},
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
  request.addresses = {address("10.0.0.9"), address("fd00::9")};
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

core::AssignedAddress sample_address() {
  return {address("10.0.0.9"),
          "a",
          prefix("10.0.0.0/16"),
          address("10.0.0.1"),
          prefix("10.0.0.0/26"),
          core::SequenceNumber(~std::uint64_t{0}),
          true};
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
      sample_address(),
      {address("fd00::9"), "", prefix("fd00::/122"), {}, prefix("fd00::/122"), core::SequenceNumber(0), false},
  };
  const auto read = decode_assign_outcome(encode(AssignOutcome(assigned)));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<core::Assigned>(*read).addresses, assigned.addresses);
  EXPECT_EQ(std::get<core::Refusal>(*decode_assign_outcome(encode(AssignOutcome(sample_refusal())))), sample_refusal());
  core::Refusal by_living = sample_refusal();
  by_living.code = ErrorCode::unavailable;
  EXPECT_EQ(std::get<core::Refusal>(*decode_assign_outcome(encode(AssignOutcome(by_living)))), by_living);
  core::Refusal of_many = sample_refusal();
  while (of_many.considered.size() < 3000) of_many.considered.push_back(of_many.considered.front());
  const std::string long_one = encode(AssignOutcome(of_many));
  EXPECT_GT(long_one.size(), kMessageBytesMax) << "more than a call may have";
  EXPECT_EQ(std::get<core::Refusal>(*decode_assign_outcome(long_one)), of_many);
  const Error error{ErrorCode::corrupt, "block 10.0.0.0/26 …", "a\nb"};
  EXPECT_EQ(std::get<Error>(*decode_assign_outcome(encode(AssignOutcome(error)))), error);
  EXPECT_EQ(std::get<Error>(*decode_release_outcome(encode(ReleaseOutcome(error)))), error);
  const std::vector<net::Address> released = {address("10.0.0.9"), address("fd00::9")};
  EXPECT_EQ(std::get<0>(*decode_release_outcome(encode(ReleaseOutcome(released)))), released);
  EXPECT_TRUE(std::get<0>(*decode_release_outcome(encode(ReleaseOutcome(std::vector<net::Address>())))).empty());
  const AgentStatus status{"0.1.0", "memory:", "node-a", true, 1, 2, 3, 4, 5};
  EXPECT_EQ(*decode_status(encode(status)), status);
}

/// As protobuf's own code wrote these by proto/croft/agent.proto: plugins and agents of other versions read them.
TEST(AgentMessages, GoldenBytes) {
  AssignCall call = sample_call();
  call.caller.file = {7, 9};
  call.caller.ends = Deadline{std::chrono::nanoseconds(-1)};
  call.request.namespace_labels = {{"team", "x"}};
  const std::string caller =
      "0a570a1e73716c6974653a2f7661722f6c69622f63726f66742f63726f66742e646212066e6f64652d611a1000112233"
      "445566778899aabbccddeeff20f9beb7b088891c2807300938808080800f40ffffffffffffffffff01";
  EXPECT_EQ(hex_of(encode(call)),
            caller +
                "12160a0161120b31302e302e302e302f3136181a28014001121a0a0162120a666430303a3a2f3131323207666430303a"
                "3a37380512120a0163120b31302e312e302e302f3136200112140a0164120b31302e322e302e302f3136380040001a11"
                "0a036e65741204306633631a046574683022150a03706f64120764656661756c741a057569642d31280130013a01613a"
                "0b31302e312e302e302f31364201624a0831302e302e302e394a07666430303a3a395001580162090a047465616d1201"
                "786803701482010408012001");
  EXPECT_EQ(hex_of(encode(ReleaseCall{call.caller, call.request.owner})),
            caller + "12110a036e65741204306633631a0465746830");
  EXPECT_EQ(hex_of(encode(AssignOutcome(core::Assigned{{sample_address()}}))),
            "0a400a3e0a0831302e302e302e391201611a0b31302e302e302e302f3136220831302e302e302e312a0b31302e302e30"
            "2e302f323630ffffffffffffffffff013801");
  EXPECT_EQ(hex_of(encode(AssignOutcome(sample_refusal()))),
            "12680a18726566757365645f62795f636f6e66696775726174696f6e12176e6f20495076342061646472657373206973"
            "20667265651a1a0a0161120b31302e302e302e302f31361a0864697361626c65641a150a0162120a666430303a3a2f31"
            "31321a0466756c6c2005");
  EXPECT_EQ(hex_of(encode_sign_of_life()), "2200");
  EXPECT_EQ(hex_of(encode(ReleaseOutcome(Error{ErrorCode::corrupt, "x", "y"}))), "120f0a07636f72727570741201781a0179");
  EXPECT_EQ(hex_of(encode(ReleaseOutcome(std::vector{address("fd00::9")}))), "0a090a07666430303a3a39");
  EXPECT_EQ(hex_of(encode(AgentStatus{"0.1.0", "memory:", "a", true, 1, 2, 3, 4, 5, 6, 7})),
            "0a05302e312e3012076d656d6f72793a1a016120012801300238034004480550065807");
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

TEST(AgentMessages, BoundsAreKept) {
  const auto expect_refused = [](const std::string& member, void (*change)(AssignCall&)) {
    AssignCall call = sample_call();
    change(call);
    const auto read = decode_assign_call(encode(call));
    ASSERT_FALSE(read) << member;
    EXPECT_EQ(read.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(read.error().message.find(member), std::string::npos) << read.error().message;
  };
  expect_refused("ipv4", [](AssignCall& call) { call.request.count.v4 = kCountMax + 1; });
  expect_refused("owner.container_id", [](AssignCall& call) { call.request.owner.container_id.clear(); });
  expect_refused("owner.network", [](AssignCall& call) { call.request.owner.network = std::string("a\0b", 3); });
  expect_refused("pod.uid", [](AssignCall& call) { call.request.pod.uid.assign(kTextBytesMax + 1, 'x'); });
  expect_refused("addresses",
                 [](AssignCall& call) { call.request.addresses.assign(kAddressesMax + 1, address("10.0.0.1")); });
  expect_refused("pools", [](AssignCall& call) { call.pools.assign(kPoolSpecsMax + 1, call.pools.front()); });
  expect_refused("ipv6_pools", [](AssignCall& call) { call.request.pools.v6.assign(kAskedPoolsMax + 1, "a"); });
  expect_refused("namespace_labels", [](AssignCall& call) {
    for (std::size_t i = 0; i <= kLabelsMax; ++i) call.request.namespace_labels[std::to_string(i)] = "";
  });
  expect_refused("the whole",
                 [](AssignCall& call) { call.request.namespace_labels["x"].assign(kMessageBytesMax, 'x'); });
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
