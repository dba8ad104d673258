#include "wire/calico/conflist_switch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::cni {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kCalicos = R"({
  "name": "k8s-pod-network", "cniVersion": "0.3.1",
  "plugins": [
    {"type": "calico", "datastore_type": "kubernetes", "mtu": 0, "nodename": "node-a",
     "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "ipv4_pools": ["10.1.0.0/16"], "odd": {"a": [1, "b"]}},
     "policy": {"type": "k8s"}, "kubernetes": {"kubeconfig": "/etc/cni/net.d/calico-kubeconfig"}},
    {"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}
  ]
})";

TEST(ConflistSwitch, ChangesTheIpamAndNothingElse) {
  const auto switched = switch_to_croft(kCalicos, "");
  ASSERT_TRUE(switched) << switched.error().message;
  EXPECT_EQ(switched->plugins, 1U);
  EXPECT_EQ(switched->store, "kube:/etc/cni/net.d/calico-kubeconfig");
  EXPECT_THAT(switched->dropped, ElementsAre("odd"));
  EXPECT_THAT(switched->text, HasSubstr(R"("type": "croft-ipam")"));
  EXPECT_THAT(switched->text, HasSubstr(R"("store": "kube:/etc/cni/net.d/calico-kubeconfig")"));
  for (const char* kept : {R"("ipv4_pools")", R"("policy")", R"("portMappings": true)", R"("mtu": 0)", R"("0.3.1")"}) {
    EXPECT_THAT(switched->text, HasSubstr(kept));
  }
  EXPECT_THAT(switched->text, Not(HasSubstr("calico-ipam")));
  EXPECT_THAT(switched->text, Not(HasSubstr("odd")));
}

TEST(ConflistSwitch, TwiceIsOnce) {
  const auto once = switch_to_croft(kCalicos, "kube:/etc/croft/kubeconfig");
  ASSERT_TRUE(once);
  const auto twice = switch_to_croft(once->text, "");
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->plugins, 0U);
  EXPECT_EQ(twice->text, once->text);
  EXPECT_THAT(twice->dropped, IsEmpty());
}

TEST(ConflistSwitch, KnowsAnEtcdWithoutFilesOnly) {
  const std::string plain =
      R"({"type":"calico","etcd_endpoints":"http://10.0.0.1:2379,http://10.0.0.2:2379","ipam":{"type":"calico-ipam"}})";
  EXPECT_EQ(switch_to_croft(plain, "")->store, "etcd:http://10.0.0.1:2379,http://10.0.0.2:2379");
  const std::string secure = R"({"type":"calico","etcd_endpoints":"https://10.0.0.1:2379","etcd_ca_cert_file":"/ca",
    "ipam":{"type":"calico-ipam"}})";
  EXPECT_THAT(switch_to_croft(secure, "").error().message, HasSubstr("--plugin-store"));
  EXPECT_EQ(switch_to_croft(secure, "etcd:https://10.0.0.1:2379?ca=/ca")->store, "etcd:https://10.0.0.1:2379?ca=/ca");
  EXPECT_THAT(switch_to_croft(R"({"type":"calico","ipam":{"type":"calico-ipam"}})", "").error().message,
              HasSubstr("no kubeconfig"));
}

TEST(ConflistSwitch, RefusesWhatIsNoConfiguration) {
  for (const char* wrong : {"", "[]", "{", R"({"plugins": {}})", "null"}) {
    EXPECT_FALSE(switch_to_croft(wrong, "kube:")) << wrong;
  }
}

}  // namespace
}  // namespace croft::wire::cni
