#include "collector/use/holder_life.h"

#include "ipam/decide/affinity_changes.h"
#include "ipam/use/nodes.h"
#include "ipam/use/test_world.h"

namespace croft::engine {
namespace {

using testing::HasSubstr;
using State = HolderLife::State;
using core::RuntimeAttachment;
using namespace std::chrono_literals;

class Holders : public testing::Test, public World {
 protected:
  Holders() {
    pool("a", "10.1.0.0/24", 28);
    core::AssignRequest wanted = request("c1");
    wanted.pod = {"web-0", "shop", "u1"};
    address_ = ip(add(wanted).front().c_str());
    clock.advance(10min);
  }

  HolderLife life(const LifeKnown& known) {
    const auto asked = life_of_holder(context, show_address(context, address_).value(), known);
    EXPECT_TRUE(asked) << asked.error().message;
    return asked.value_or(HolderLife{});
  }
  State state(const LifeKnown& known) { return life(known).state; }

  /// A cluster that has one pod of the name, or none.
  static LifeKnown cluster(const Result<std::optional<core::collect::PodFact>>& pod) {
    LifeKnown known;
    known.find_pod = [pod](const std::string& /*namespace_name*/, const std::string& /*name*/) { return pod; };
    return known;
  }
  static core::collect::PodFact fact(const std::string& uid, std::vector<net::Address> addresses) {
    core::collect::PodFact pod;
    pod.namespace_name = "shop";
    pod.name = "web-0";
    pod.uid = uid;
    pod.node = "node-a";
    pod.phase = "Running";
    pod.addresses = std::move(addresses);
    return pod;
  }
  static LifeKnown cache(core::audit::LiveAttachments live, const std::string& node = "") {
    LifeKnown known;
    known.runtime.live = std::move(live);
    known.runtime.node = node;
    return known;
  }

  net::Address address_;
};

TEST_F(Holders, NothingIsProvenByTheRegisterAlone) { EXPECT_EQ(state({}), State::unknown); }

TEST_F(Holders, AClusterProvesByThePodsName) {
  EXPECT_EQ(state(cluster({})), State::gone);
  EXPECT_EQ(state(cluster(fact("u1", {address_}))), State::lives);
  EXPECT_EQ(state(cluster(fact("u1", {}))), State::lives);
  // Its second interface may have it.
  EXPECT_EQ(state(cluster(fact("u1", {ip("10.1.0.77")}))), State::unknown);
  EXPECT_EQ(state(cluster(fact("u2", {ip("10.1.0.77")}))), State::gone);
  EXPECT_EQ(state(cluster(fact("u2", {address_}))), State::lives) << "it reports the address";
}

TEST_F(Holders, AClusterThatCannotBeAskedIsAnError) {
  const LifeKnown away = cluster(fail(ErrorCode::unavailable, "away"));
  EXPECT_FALSE(life_of_holder(context, show_address(context, address_).value(), away));
  EXPECT_EQ(state(cluster(fail(ErrorCode::permission_denied, "no right"))), State::unknown);
}

TEST_F(Holders, ANodeThatTheClusterDoesNotHaveHasNoPodWithTheAddress) {
  LifeKnown known = cluster(fact("u1", {ip("10.1.0.77")}));
  EXPECT_EQ(state(known), State::unknown);
  known.nodes.emplace();
  known.nodes->add_node({"node-b", {}, {}});
  EXPECT_EQ(state(known), State::gone);
  known.nodes->add_node({"node-a", {}, {}});
  EXPECT_EQ(state(known), State::unknown);
}

TEST_F(Holders, ATunnelsAddressLivesAsLongAsItsNode) {
  AddressView tunnel = show_address(context, address_).value();
  tunnel.handle_id = "ipip-tunnel-addr-node-a";
  tunnel.attributes = {{"type", "ipipTunnelAddress"}, {"node", "node-a"}};
  const auto life_of = [&](const LifeKnown& known) { return life_of_holder(context, tunnel, known).value().state; };
  LifeKnown known = cluster({});
  EXPECT_EQ(life_of(known), State::unknown);
  known.nodes.emplace();
  known.nodes->add_node({"node-b", {}, {}});
  EXPECT_EQ(life_of(known), State::gone);
  known.nodes->add_node({"node-c", {}, {address_}});
  EXPECT_EQ(life_of(known), State::lives) << "another node's tunnel has it by now";
  known.nodes.emplace();
  known.nodes->add_node({"node-a", {}, {}});
  EXPECT_EQ(life_of(known), State::lives);
}

TEST_F(Holders, ARuntimeProvesByItsContainers) {
  EXPECT_EQ(state(cache(runtime({{"net", "c1", "eth0"}}))), State::lives);
  EXPECT_EQ(state(cache(runtime({{"net", "other", "eth0"}}))), State::gone);
  EXPECT_EQ(state(cache(runtime({}))), State::unknown) << "an empty cache proves nothing";
  core::audit::LiveAttachments ended = runtime({{"net", "c1", "eth0"}});
  ended.entries[0].netns = RuntimeAttachment::Netns::gone;
  EXPECT_EQ(state(cache(ended)), State::gone);
  EXPECT_EQ(state(cache(ended, "node-a")), State::gone);
  EXPECT_EQ(state(cache(ended, "node-b")), State::unknown) << "another node's cache";
  // A pod that was deleted by force may run on: its node's runtime outweighs the cluster.
  LifeKnown both = cluster({});
  both.runtime.live = runtime({{"net", "c1", "eth0"}});
  EXPECT_EQ(state(both), State::lives);
}

TEST_F(Holders, WhoUsesTheAddressLives) {
  LifeKnown known = cache(runtime({{"net", "other", "eth0"}}));
  known.configured[address_] = "eth0 in /run/netns/a";
  EXPECT_EQ(state(known), State::lives);
  EXPECT_THAT(life(known).why, HasSubstr("eth0 in /run/netns/a"));
  known.configured.clear();
  // What the holder's own pod reports may be of a container before; its runtime knows better.
  known.runtime.pods = {{{"web-0", "shop", "u1"}, "node-a", {address_}}};
  EXPECT_EQ(state(known), State::gone);
  known.runtime.pods[0].pod.name = "web-1";
  EXPECT_EQ(state(known), State::lives);
  known.runtime = {};
  known.runtime.pods = {{{"web-0", "shop", "u1"}, "node-a", {address_}}};
  EXPECT_EQ(state(known), State::lives);
  EXPECT_THAT(life(known).why, HasSubstr("is reported by pod shop/web-0 on node node-a"));
}

TEST_F(Holders, ARemovedNodeHasNobodyOfThen) {
  const AddressView held = show_address(context, address_).value();
  ASSERT_TRUE(remove_node(context, {"node-a", true, false}));
  EXPECT_EQ(state({}), State::gone);
  EXPECT_EQ(state(cache(runtime({{"net", "c1", "eth0"}}))), State::lives) << "it was removed by mistake";
  EXPECT_EQ(state(cache(runtime({{"net", "other", "eth0"}}))), State::gone);
  LifeKnown reported;
  reported.runtime.pods = {{{"web-0", "shop", "u1"}, "node-a", {address_}}};
  EXPECT_EQ(state(reported), State::lives);
  const auto removed = store.get(core::removed_node_key("node-a"), Deadline{}).value();
  auto before = std::get<core::RemovedNode>(*removed->value);
  before.held.begin()->second = core::SequenceNumber(held.sequence_number.value - 1);
  put(core::removed_node_key("node-a"), before);
  EXPECT_EQ(state({}), State::unknown) << "it came back, and gave the address then";
  put(core::removed_node_key("node-a"), std::get<core::RemovedNode>(*removed->value));
  add("c2");
  EXPECT_EQ(state({}), State::unknown) << "it came back, maybe with its containers";
}

}  // namespace
}  // namespace croft::engine
