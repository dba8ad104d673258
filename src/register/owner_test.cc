#include "register/owner.h"

#include <array>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "register/node.h"
#include "register/records.h"

namespace croft::core {
namespace {

using Map = std::map<std::string, std::string>;

TEST(Owner, HandleIsCalicos) { EXPECT_EQ(handle_of({"net", "0f3c", "eth0"}), "net.0f3c"); }

TEST(Owner, MatchesInterfaceUnlessItIsNotRecorded) {
  const Owner owner{"net", "0f3c", "eth0"};
  EXPECT_TRUE(matches(owner, "net.0f3c", Map{{"ifname", "eth0"}}));
  EXPECT_TRUE(matches(owner, "net.0f3c", Map{}));
  EXPECT_FALSE(matches(owner, "net.0f3c", Map{{"ifname", "eth1"}}));
  EXPECT_FALSE(matches(owner, "net.0f3d", Map{{"ifname", "eth0"}}));
}

TEST(Owner, DotsInNamesDoNotMixUpOwners) {
  // Both have the handle "a.b.c".
  const Owner dotted_network{"a.b", "c", "eth0"};
  const Owner dotted_container{"a", "b.c", "eth0"};
  const Map of_network{{"ifname", "eth0"}, {"network", "a.b"}};
  const Map of_container{{"ifname", "eth0"}};
  EXPECT_TRUE(matches(dotted_network, "a.b.c", of_network));
  EXPECT_FALSE(matches(dotted_container, "a.b.c", of_network));
  EXPECT_TRUE(matches(dotted_container, "a.b.c", of_container));
  EXPECT_FALSE(matches(dotted_network, "a.b.c", of_container));
  // Calico writes neither attribute: its handle is all there is.
  EXPECT_TRUE(matches(dotted_network, "a.b.c", Map{{"node", "node-a"}}));
}

TEST(Owner, OtherHandlesHaveNoOwner) {
  EXPECT_FALSE(owner_of("vxlan-tunnel-addr-node-a", {}));
  EXPECT_FALSE(owner_of(".x", {}));
  EXPECT_FALSE(owner_of("x.", {}));
  EXPECT_FALSE(owner_of("a.b", Map{{"network", "longer.than"}}));
  EXPECT_EQ(owner_of("a.b", {}), (Owner{"a", "b", ""}));
}

TEST(Owner, AHandleOfOthersWithSeveralDotsIsNobodysForSure) {
  EXPECT_FALSE(owner_of("my.net.0f3d", {}));
  EXPECT_FALSE(owner_of("my.net.0f3d", Map{{"node", "node-a"}, {"pod", "web"}}));
  // Croft's own say which it is: by the network, or by the interface alone when the network has no dot.
  EXPECT_EQ(owner_of("my.net.0f3d", Map{{"network", "my.net"}}), (Owner{"my.net", "0f3d", ""}));
  EXPECT_EQ(owner_of("my.net.0f3d", Map{{"ifname", "eth0"}}), (Owner{"my", "net.0f3d", "eth0"}));
}

TEST(Affinity, OwnerTextIsCalicos) {
  EXPECT_EQ(to_string(AffinityOwner{AffinityOwner::Type::host, "node-a"}), "host:node-a");
  EXPECT_EQ(parse_affinity_owner("virtual:load-balancer").value(),
            (AffinityOwner{AffinityOwner::Type::virtual_owner, "load-balancer"}));
  EXPECT_FALSE(parse_affinity_owner("host:"));
  EXPECT_FALSE(parse_affinity_owner("node-a"));
}

TEST(Affinity, NodeNamesBecomeKeys) {
  for (const char* good : {"a", "node-1.example.com", "Node_1"}) EXPECT_TRUE(check_node_name(good)) << good;
  for (const std::string& bad : {std::string(), std::string("../x"), std::string("a/b"), std::string("a\n"),
                                 std::string("-a"), std::string(254, 'a'),
                                 std::string("n\xc3\xb6"
                                             "de")}) {
    EXPECT_FALSE(check_node_name(bad)) << bad;
  }
}

TEST(Keys, EndInTheCidr) {
  const AffinityOwner node{AffinityOwner::Type::host, "node-a"};
  for (const char* text : {"10.0.0.64/26", "fd00:10:244::1:40/122"}) {
    const auto cidr = net::Prefix::parse(text).value();
    for (const Key& key : std::initializer_list<Key>{block_key(cidr), affinity_key(node, cidr), vacancy_key(node, cidr),
                                                     high_water_mark_key(cidr)}) {
      EXPECT_EQ(cidr_of(key).value(), cidr) << key.name;
    }
    EXPECT_TRUE(vacancy_key(node, cidr).name.starts_with(owned_names_of(node, cidr.family())));
  }
  EXPECT_EQ(block_key(net::Prefix::parse("10.0.0.64/26").value()).name, "ipv4/10.0.0.64/26");
  EXPECT_FALSE(cidr_of({Kind::block, "nonsense"}));
  EXPECT_FALSE(cidr_of({Kind::block, "ipv4/10.0.0.65/26"}));
}

TEST(Node, LabelsThatKubernetesTakes) {
  const std::string longest(63, 'a');
  for (const std::string& key : {std::string("zone"), std::string("A"), std::string("a_b.c-9"), longest,
                                 std::string("topology.kubernetes.io/zone"), std::string("a-b.c--d.0/x"),
                                 std::string(253, 'd') + "/" + longest}) {
    EXPECT_TRUE(check_label(key, "")) << key;
  }
  for (const std::string& value : {std::string("a"), std::string("Eu_1.x-9"), longest}) {
    EXPECT_TRUE(check_label("zone", value)) << value;
  }
}

TEST(Node, LabelsThatKubernetesRefuses) {
  const std::string too_long(64, 'a');
  for (const std::string& key :
       {std::string(), std::string("-a"), std::string("a-"), std::string("a b"), std::string("ü"), too_long,
        std::string("/a"), std::string("a/"), std::string("a/b/c"), std::string("A.b/c"), std::string("a_b/c"),
        std::string("a..b/c"), std::string(".a/c"), std::string("a./c"), std::string("a.-b/c"), std::string("a-.b/c"),
        std::string("-a/c"), std::string("a-/c"), std::string(254, 'd') + "/a"}) {
    const auto checked = check_label(key, "v");
    ASSERT_FALSE(checked) << key;
    EXPECT_EQ(checked.error().code, ErrorCode::invalid_argument);
  }
  for (const std::string& value : {std::string("-a"), std::string("a/b"), std::string(" "), too_long}) {
    const auto checked = check_label("zone", value);
    ASSERT_FALSE(checked) << value;
    EXPECT_NE(checked.error().message.find("of label zone"), std::string::npos);
  }
}

TEST(Node, EachKindOfTunnelHasOneFamily) {
  EXPECT_EQ(family_of(TunnelKind::ipip), net::Family::v4);
  EXPECT_EQ(family_of(TunnelKind::vxlan_v4), net::Family::v4);
  EXPECT_EQ(family_of(TunnelKind::vxlan_v6), net::Family::v6);
  EXPECT_EQ(family_of(TunnelKind::wireguard_v4), net::Family::v4);
  EXPECT_EQ(family_of(TunnelKind::wireguard_v6), net::Family::v6);
}

}  // namespace
}  // namespace croft::core
