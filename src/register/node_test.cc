#include "register/node.h"

#include <string>

#include <gtest/gtest.h>

namespace croft::core {
namespace {

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
