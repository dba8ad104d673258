#include "calico/conflist_switch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/format/config.h"

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
  const auto switched = switch_to_croft(kCalicos, "", "");
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
  const auto once = switch_to_croft(kCalicos, "kube:/etc/croft/kubeconfig", "");
  ASSERT_TRUE(once);
  const auto twice = switch_to_croft(once->text, "", "");
  ASSERT_TRUE(twice);
  EXPECT_EQ(twice->plugins, 0U);
  EXPECT_EQ(twice->text, once->text);
  EXPECT_THAT(twice->dropped, IsEmpty());
}

TEST(ConflistSwitch, KnowsAnEtcdWithoutFilesOnly) {
  const std::string plain =
      R"({"type":"calico","nodename":"n","etcd_endpoints":"http://10.0.0.1:2379,http://10.0.0.2:2379","ipam":{"type":"calico-ipam"}})";
  EXPECT_EQ(switch_to_croft(plain, "", "")->store, "etcd:http://10.0.0.1:2379,http://10.0.0.2:2379");
  const std::string secure =
      R"({"type":"calico","nodename":"n","etcd_endpoints":"https://10.0.0.1:2379","etcd_ca_cert_file":"/ca",
    "ipam":{"type":"calico-ipam"}})";
  EXPECT_THAT(switch_to_croft(secure, "", "").error().message, HasSubstr("--plugin-store"));
  EXPECT_EQ(switch_to_croft(secure, "etcd:https://10.0.0.1:2379?ca=/ca", "")->store,
            "etcd:https://10.0.0.1:2379?ca=/ca");
  EXPECT_THAT(
      switch_to_croft(R"({"type":"calico","nodename":"n","ipam":{"type":"calico-ipam"}})", "", "").error().message,
      HasSubstr("no kubeconfig"));
}

/// The tigera operator writes no nodename.
TEST(ConflistSwitch, TheNodeIsNamedWhereTheConfigurationDoesNot) {
  const auto plugin = [](const std::string& more) {
    return R"({"type":"calico","ipam":{"type":"calico-ipam"},"kubernetes":{"kubeconfig":"/k"})" + more + "}";
  };
  const std::string name = "ip-10-0-0-7.ec2.internal";
  for (const char* none : {R"(,"nodename_file_optional":false)", R"(,"nodename":"")"}) {
    EXPECT_THAT(switch_to_croft(plugin(none), "", name)->text, HasSubstr(R"("nodename": ")" + name + '"')) << none;
    EXPECT_THAT(switch_to_croft(plugin(none), "", "").error().message, HasSubstr("--node")) << none;
  }
  EXPECT_THAT(switch_to_croft(plugin(R"(,"nodename":"own")"), "", name)->text, Not(HasSubstr(name)));
}

TEST(ConflistSwitch, KeepsTheGroupOfTheKinds) {
  const auto store = [](const std::string& group) {
    return switch_to_croft(R"({"type":"calico","nodename":"n","calico_api_group":")" + group +
                               R"(","ipam":{"type":"calico-ipam"},"kubernetes":{"kubeconfig":"/k"}})",
                           "", "")
        .value()
        .store;
  };
  EXPECT_EQ(store("ProjectCalico.org/v3"), "kube:/k?group=projectcalico.org/v3");
  EXPECT_EQ(store("anything"), "kube:/k?group=crd.projectcalico.org/v1");
  EXPECT_EQ(store(""), "kube:/k");
}

TEST(ConflistSwitch, RefusesWhatIsNoConfiguration) {
  for (const char* wrong : {"", "[]", "{", R"({"plugins": {}})", "null"}) {
    EXPECT_FALSE(switch_to_croft(wrong, "kube:", "")) << wrong;
  }
}

/// With what the runtime hands to the plugin each pod would fail.
TEST(ConflistSwitch, IsReadAsThePluginWill) {
  const auto read = [](const std::string& list, const std::string& plugin, const std::string& ipam) {
    const auto switched =
        switch_to_croft("{" + list + R"("plugins":[{"type":"calico","kubernetes":{"kubeconfig":"/k"},)" + plugin +
                            R"("ipam":{"type":"calico-ipam")" + ipam + R"(}},{"type":"portmap"}]})",
                        "", "oak");
    EXPECT_TRUE(switched) << switched.error().message;
    return read_switched(switched->text);
  };
  const std::string named = R"("name":"net","cniVersion":"0.3.1",)";
  const auto good = read(named, "", R"(,"assign_ipv6":"true","ipv4_pools":["a","10.0.0.0/16"])");
  ASSERT_TRUE(good) << good.error().message;
  ASSERT_EQ(good->size(), 1U);
  EXPECT_EQ(good->front().name, "net");
  const auto config = decode_croft_ipam_config(good->front(), "", needs_of(Command::add));
  ASSERT_TRUE(config);
  EXPECT_EQ(config->nodename, "oak");
  EXPECT_EQ(config->ipam.store, "kube:/k");
  EXPECT_TRUE(config->ipam.assign_v6);
  EXPECT_EQ(config->ipam.asked_pools.v4.size(), 2U);
  std::string many;
  for (int i = 0; i < 65; ++i) many += (i == 0 ? "\"p" : ",\"p") + std::to_string(i) + "\"";
  const std::vector<std::vector<std::string>> wrong = {{"", "", "", "network name"},
                                                       {R"("name":"a b",)", "", "", "network name"},
                                                       {named, R"("args":{"cni":{"ips":5}},)", "", "args.cni.ips"},
                                                       {named, "", R"(,"ipv4_pools":[)" + many + "]", "ipv4_pools"},
                                                       {named, "", R"(,"assign_ipv4":5)", "assign_ipv4"}};
  for (const auto& one : wrong) {
    const auto refused = read(one[0], one[1], one[2]);
    ASSERT_FALSE(refused) << one[3];
    EXPECT_THAT(refused.error().message, HasSubstr("croft-ipam would refuse it: "));
    EXPECT_THAT(refused.error().message, HasSubstr(one[3]));
  }
}

/// As Calico's own plugins read it: etcd where anything leads to one, else Kubernetes.
TEST(ConflistSwitch, SaysWhereCalicoHasItsRecords) {
  const auto datastore = [](const std::string& members) {
    const auto switched =
        switch_to_croft(R"({"type":"calico","nodename":"n","ipam":{"type":"calico-ipam"},)" + members + "}",
                        "kube:/etc/croft/kubeconfig", "");
    EXPECT_TRUE(switched) << switched.error().message;
    EXPECT_EQ(switched->datastores.size(), 1U);
    return url_of(switched->datastores.at(0));
  };
  EXPECT_EQ(datastore(R"("kubernetes":{"kubeconfig":"/k"})"), "kube:/k");
  EXPECT_EQ(datastore(R"("datastore_type":"kubernetes","etcd_endpoints":"http://10.0.0.1:2379")"), "kube:");
  EXPECT_EQ(datastore(R"("etcd_endpoints":"https://10.0.0.1:2379")"), "etcd:https://10.0.0.1:2379");
  EXPECT_EQ(datastore(R"("Etcd_Authority":"10.0.0.1:2379")"), "etcd:http://10.0.0.1:2379");
  EXPECT_EQ(datastore(R"("etcd_discovery_srv":"example.org")"), "etcd:");
  EXPECT_EQ(datastore(R"("datastore_type":"etcdv3")"), "etcd:");
  const auto odd = switch_to_croft(
      R"({"type":"calico","nodename":"n","datastore_type":"files","ipam":{"type":"calico-ipam"}})", "kube:", "");
  ASSERT_FALSE(odd);
  EXPECT_THAT(odd.error().message, HasSubstr("datastore_type"));
}

}  // namespace
}  // namespace croft::wire::cni
