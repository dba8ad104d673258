#include "cni/format/network_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::cni {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

NetworkList example(MainPlugin main) {
  NetworkList list;
  list.main = main;
  list.node = "oak";
  list.store = "kube:/etc/cni/net.d/croft-kubeconfig";
  list.calico_kubeconfig = "/etc/cni/net.d/calico-kubeconfig";
  return list;
}

TEST(NetworkCalls, AreThoseOfPluginsDelegatesAndIpam) {
  const auto calls = [](const char* text) {
    const auto read = read_network_calls(text);
    if (!read) return "refused: " + read.error().message;
    std::string all = read->name + ":";
    for (const std::string& type : read->types) all += " " + type;
    return all;
  };
  EXPECT_EQ(
      calls(
          R"({"name":"cbr0","plugins":[{"type":"flannel","delegate":{"isDefaultGateway":true}},{"type":"portmap"}]})"),
      "cbr0: flannel portmap");
  EXPECT_EQ(calls(R"({"name":"n","type":"bridge","ipam":{"type":"host-local"}})"), "n: bridge host-local");
  EXPECT_EQ(calls(R"({"plugins":[{"type":"flannel","delegate":{"type":"bridge","ipam":{"type":"croft-ipam"}}}]})"),
            ": flannel bridge croft-ipam");
  EXPECT_EQ(calls(R"({"name":7,"plugins":[7,{"type":[]}]})"), ":");
  for (const char* wrong : {"", "[]", "{", R"({"plugins":{}})"}) {
    EXPECT_FALSE(read_network_calls(wrong)) << wrong;
  }
}

/// As libcni and the plugins do, for the runtime goes by what they read.
TEST(NetworkCalls, AreReadAsGoReadsThem) {
  const auto name_with_flannel = [](const std::string& text) {
    const auto read = read_network_calls(text);
    if (!read) return "refused: " + read.error().message;
    return read->name_with("flannel").value_or("none");
  };
  EXPECT_EQ(name_with_flannel("{\"name\":\"netx\",\"plugins\":[{\"type\":\"flannel\"},{\"type\":\"port\xffmap\"}]}"),
            "netx");
  EXPECT_EQ(name_with_flannel(R"({"name":"netx","plugins":[{"type":"flannel"}],"x":"\ud800"})"), "netx");
  EXPECT_EQ(name_with_flannel(R"({"name":"first","name":"netx","plugins":[{"type":"flannel"}]})"), "netx");
  EXPECT_EQ(name_with_flannel(R"({"name":"netx","Name":"no","name":null,"plugins":[{"type":"flannel"}]})"), "netx");
  EXPECT_EQ(name_with_flannel(R"({"name":"first","NAME":"netx","type":"flannel"})"), "netx");
  EXPECT_EQ(name_with_flannel(R"({"name":"netx","plugins":[{"type":"ptp","Type":"flannel"}]})"), "netx");
  EXPECT_EQ(name_with_flannel(R"({"name":"netx","plugins":[{"type":"flannel","Type":"ptp"}]})"), "none");
  EXPECT_EQ(name_with_flannel("{\"name\":\"x\",\"type\":\"flannel\"}" + std::string(kStdinBytesMax, ' ')),
            "refused: it is larger than 2097152 bytes");
  EXPECT_EQ(name_with_flannel("\xff"), name_with_flannel("\xEF\xBF\xBD"));
}

TEST(NetworkCalls, ThoseOfDelegatesHaveTheirOwnName) {
  const auto of = [](const std::string& delegates) {
    return read_network_calls(R"({"name":"outer","type":"multus","delegates":)" + delegates + "}");
  };
  const auto list = of(R"([{"name":"a","type":"ptp"},{"name":"netx","plugins":[{"type":"flannel"}]}])").value();
  EXPECT_EQ(list.name_with("flannel"), "netx");
  EXPECT_EQ(list.name_with("multus"), "outer");
  EXPECT_FALSE(list.has("flannel"));
  EXPECT_EQ(of(R"([{"type":"flannel"}])")->name_with("flannel"), "outer");
  EXPECT_TRUE(of(R"([{"plugins":[{"type":"ptp","ipam":{"type":"croft-ipam"}}]}])")->is_of_croft());
  EXPECT_FALSE(list.is_of_croft());
  EXPECT_FALSE(list.names_another);
  EXPECT_TRUE(read_network_calls(R"({"type":"multus","clusterNetwork":"flannel"})")->names_another);
  EXPECT_EQ(read_network_calls(R"({"type":"multus","clusterNetwork":"flannel"})")->other, "flannel");
  std::string deep = R"({"type":"flannel"})";
  for (int i = 0; i < 8; ++i) deep = R"({"delegates":[)" + deep + "]}";
  EXPECT_TRUE(read_network_calls(deep)->name_with("flannel"));
  EXPECT_FALSE(read_network_calls(R"({"delegates":[)" + deep + "]}"));
}

TEST(NetworkCalls, OnlyATypeMakesOneOfCrofts) {
  EXPECT_TRUE(read_network_calls(R"({"plugins":[{"type":"ptp","ipam":{"type":"croft-ipam"}}]})")->is_of_croft());
  EXPECT_TRUE(read_network_calls(R"({"plugins":[{"type":"ptp","ipam":{"type":"croft-vpc"}}]})")->is_of_croft());
  EXPECT_FALSE(read_network_calls(R"({"plugins":[{"type":"bridge","nodename":"bancroft-3","bridge":"croft-0",
      "ipam":{"type":"host-local"}}]})")
                   ->is_of_croft());
}

/// "program network directory datastore ranges" of each.
TEST(NetworkCalls, AListHasMoreInItsFolder) {
  const auto only_inlined = [](const std::string& value) {
    return read_network_calls(R"({"name":"n","loadOnlyInlinedPlugins":)" + value + R"(,"plugins":[]})")->only_inlined;
  };
  EXPECT_TRUE(only_inlined("true"));
  EXPECT_TRUE(only_inlined(R"("True")"));
  for (const char* value : {"false", "null", R"("false")", "1", R"("yes")"}) EXPECT_FALSE(only_inlined(value)) << value;
  auto calls = read_network_calls(R"({"cniVersion":"1.1.0","name":"netx"})").value();
  EXPECT_TRUE(calls.types.empty());
  ASSERT_TRUE(add_plugin_of_folder(calls, R"({"type":"flannel"})"));
  ASSERT_TRUE(add_plugin_of_folder(calls, R"({"name":"other","type":"portmap"})"));
  EXPECT_EQ(calls.types, (std::vector<std::string>{"flannel", "portmap"}));
  ASSERT_EQ(calls.all_givers().size(), 1U);
  EXPECT_EQ(calls.all_givers()[0].program + calls.all_givers()[0].network, "host-localnetx");
  for (const char* text : {"", "[]", "{}", R"({"type":7})", "{"})
    EXPECT_FALSE(add_plugin_of_folder(calls, text)) << text;
  // Croft's own has no plugins elsewhere: the folder may be of a network whose place it takes.
  for (const auto& [text, plugin] : kMainPlugins) {
    NetworkList own;
    own.main = plugin;
    EXPECT_TRUE(read_network_calls(encode_network_list(own))->only_inlined) << text;
  }
}

std::string givers_in(const std::string& text) {
  const auto read = read_network_calls(text);
  if (!read) return "refused: " + read.error().message;
  std::string all;
  for (const AddressGiver& giver : read->all_givers()) {
    all += (all.empty() ? "" : "; ") + giver.program + " " + giver.network;
    for (const std::string& more : {giver.directory, giver.datastore, giver.store})
      all += more.empty() ? "" : " " + more;
    if (giver.is_unclear) all += " unclear";
    if (!giver.ranges) all += " ?";
    if (!giver.ranges) continue;
    for (const net::Prefix& range : *giver.ranges) all += " " + range.to_string();
  }
  return all;
}

/// Go merges what is there twice where it reads into a structure, and sorts names where a list is handed on.
TEST(NetworkGivers, AreNotClearWhereWhatDecidesIsThereTwice) {
  const std::string gives = R"({"type":"host-local","subnet":"10.9.0.0/24"})";
  const auto of = [](const std::string& members) { return givers_in(R"({"name":"n","type":"ptp",)" + members + "}"); };
  EXPECT_EQ(of(R"("ipam":)" + gives), "host-local n 10.9.0.0/24");
  EXPECT_EQ(of(R"("ipam":)" + gives + R"(,"ipam":{"routes":[]})"), "ptp n unclear ?");
  EXPECT_EQ(of(R"("IPAM":{"routes":[]},"ipam":)" + gives), "host-local n unclear ?");
  for (const char* ipam : {R"({"type":"host-local","subnet":"10.9.0.0/24","SUBNET":"10.8.0.0/24"})",
                           R"({"type":"host-local","ranges":[[{"subnet":"10.9.0.0/24","\u017fubnet":"10.8.0.0/24"}]]})",
                           R"({"Type":"host-local","type":"host-local","subnet":"10.9.0.0/24"})"}) {
    EXPECT_EQ(of(R"("ipam":)" + std::string(ipam)), "host-local n unclear ?") << ipam;
  }
  EXPECT_EQ(of(R"("capabilities":{},"Capabilities":{"ipRanges":true},"ipam":)" + gives), "host-local n unclear ?");
  EXPECT_EQ(of(R"("datastore_type":"etcdv3","Datastore_Type":"kubernetes","ipam":{"type":"calico-ipam"})"),
            "calico-ipam n kubernetes unclear ?");
  EXPECT_EQ(givers_in(R"({"name":"n","type":"bridge","plugins":[],"ipam":)" + gives + "}"), "host-local n 10.9.0.0/24")
      << "a .conf, to which its list is nothing";
}

TEST(NetworkGivers, AreIpamPluginsAndPluginsOfTheirOwn) {
  EXPECT_EQ(givers_in(R"({"name":"n","plugins":[{"type":"ptp","ipam":{"type":"croft-ipam"}},{"type":"portmap"}]})"),
            "croft-ipam n ?");
  EXPECT_EQ(givers_in(R"({"name":"n","type":"ptp","ipam":{"type":"calico-ipam","Store":"sqlite:/a"}})"),
            "calico-ipam n sqlite:/a ?");
  EXPECT_EQ(givers_in(R"({"name":"n","type":"ptp","ipam":{"type":"whereabouts","store":"x"}})"), "whereabouts n ?");
  EXPECT_EQ(givers_in(R"({"name":"c","plugins":[{"type":"calico","datastore_type":"kubernetes",
                                                   "ipam":{"type":"calico-ipam"}},{"type":"bandwidth"}]})"),
            "calico-ipam c kubernetes ?");
  EXPECT_EQ(givers_in(R"({"name":"c","type":"calico","etcd_endpoints":"http://e","ipam":{"type":"calico-ipam"}})"),
            "calico-ipam c etcdv3 ?");
  for (const char* etcd : {"etcd_discovery_srv", "etcd_authority", "Etcd_Scheme"}) {
    EXPECT_EQ(
        givers_in(R"({"name":"c","type":"calico","ipam":{"type":"calico-ipam"},")" + std::string(etcd) + R"(":"e"})"),
        "calico-ipam c etcdv3 ?");
  }
  EXPECT_EQ(givers_in(R"({"name":"c","type":"calico","ipam":{"type":"calico-ipam"},"etcd_ca_cert_file":"/c"})"),
            "calico-ipam c ?");
  EXPECT_EQ(givers_in(R"({"name":"c","type":"calico","ipam":{"type":"calico-ipam"},"etcd_authority":"e",
                          "datastore_type":"kubernetes"})"),
            "calico-ipam c kubernetes ?");
  EXPECT_EQ(givers_in(R"({"name":"cilium","plugins":[{"type":"cilium-cni"},{"type":"portmap"}]})"),
            "cilium-cni cilium ?");
  EXPECT_EQ(givers_in(R"({"name":"aws","plugins":[{"type":"aws-cni"},
                          {"type":"egress-cni","ipam":{"type":"host-local","ranges":[[{"subnet":"fd00::/118"}]]}}]})"),
            "aws-cni aws ?; host-local aws ?")
      << "whose plugin may make of it what it likes";
  for (const char* none :
       {R"({"name":"lo","type":"loopback"})", R"({"name":"lo","plugins":[{"type":"loopback"}]})",
        R"({"name":"l2","plugins":[{"type":"bridge","ipam":{}},{"type":"istio-cni"}]})",
        R"({"name":"m","type":"multus","clusterNetwork":"netx"})", R"({"name":"m","type":"multus-shim"})", "{}"}) {
    EXPECT_EQ(givers_in(none), "") << none;
  }
  EXPECT_TRUE(read_network_calls(R"({"name":"m","type":"multus-shim"})")->names_another);
}

TEST(NetworkGivers, OfHostLocalHaveTheirRanges) {
  const auto of = [](const std::string& ipam, const std::string& more = "") {
    return givers_in(R"({"name":"n","plugins":[{"type":"ptp",)" + more + R"("ipam":{"type":"host-local",)" + ipam +
                     "}}]}");
  };
  EXPECT_EQ(of(R"("ranges":[[{"subnet":"10.85.0.0/16"}],[{"subnet":"1100:200::/24"}]])"),
            "host-local n 10.85.0.0/16 1100:200::/24");
  EXPECT_EQ(of(R"("Subnet":"10.88.0.0/16","dataDir":"/run/state","Ranges":null)"),
            "host-local n /run/state 10.88.0.0/16");
  EXPECT_EQ(of(R"("routes":[])"), "host-local n") << "it gives none, and refuses";
  // What is said elsewhere.
  const std::string one = R"("subnet":"10.88.0.0/16")";
  EXPECT_EQ(of(R"("subnet":"usePodCidr")"), "host-local n ?");
  EXPECT_EQ(of(R"("ranges":[[{"subnet":"10.85.0.0/16"}],[{"subnet":"usePodCidr"}]])"), "host-local n ?");
  for (const char* strange : {R"("ranges":7)", R"("ranges":[{}])", R"("ranges":[[7]])", R"("subnet":7)"}) {
    EXPECT_EQ(of(strange), "host-local n ?") << strange;
  }
  EXPECT_EQ(of(one, R"("capabilities":{"ipRanges":true},)"), "host-local n ?") << "the runtime may say others";
  EXPECT_EQ(of(one, R"("capabilities":{"ipRanges":false},)"), "host-local n 10.88.0.0/16");
  EXPECT_EQ(of(one, R"("runtimeConfig":{},)"), "host-local n ?");
  EXPECT_EQ(givers_in(R"({"name":"a","type":"antrea","ipam":{"type":"host-local"}})"), "host-local a ?");
}

TEST(NetworkGivers, OfFlannelAndOfDelegates) {
  EXPECT_EQ(givers_in(R"({"name":"cbr0","plugins":[{"type":"flannel","delegate":{"hairpinMode":true}}]})"),
            "host-local cbr0 ?");
  EXPECT_EQ(givers_in(R"({"name":"cbr0","type":"flannel","ipam":{"dataDir":"/d","subnet":"10.0.0.0/8"}})"),
            "host-local cbr0 /d ?");
  EXPECT_EQ(givers_in(R"({"name":"cbr0","type":"flannel","ipam":{"type":"croft-ipam"}})"), "croft-ipam cbr0 ?");
  EXPECT_EQ(givers_in(R"({"name":"n","type":"x","delegate":{"type":"bridge","ipam":{"type":"dhcp"}}})"), "dhcp n ?");
  EXPECT_EQ(givers_in(R"({"name":"outer","type":"multus","delegates":[
                {"type":"flannel"},{"name":"b","type":"bridge","ipam":{"type":"host-local","subnet":"10.0.0.0/8"}}]})"),
            "host-local outer ?; host-local b 10.0.0.0/8");
}

TEST(NetworkList, OfPtp) {
  EXPECT_EQ(encode_network_list(example(MainPlugin::ptp)), R"({
    "cniVersion": "1.0.0",
    "name": "k8s-pod-network",
    "loadOnlyInlinedPlugins": true,
    "plugins": [
        {
            "type": "ptp",
            "ipMasq": true,
            "ipam": {
                "type": "croft-ipam",
                "store": "kube:/etc/cni/net.d/croft-kubeconfig",
                "nodename": "oak",
                "assign_ipv4": "true",
                "assign_ipv6": "false",
                "routes": [
                    {
                        "dst": "0.0.0.0/0"
                    }
                ]
            },
            "capabilities": {
                "io.kubernetes.cri.pod-annotations": true
            }
        },
        {
            "type": "portmap",
            "snat": true,
            "capabilities": {
                "portMappings": true
            }
        }
    ]
}
)");
}

/// Each of these was written once, and then no pod of the node had an address.
TEST(NetworkList, WhatThePluginWouldRefuseIsRefused) {
  for (const auto& known : kMainPlugins) EXPECT_TRUE(check_network_list(example(known.plugin))) << known.text;
  const auto refusal = [](auto change, MainPlugin main = MainPlugin::bridge) {
    NetworkList list = example(main);
    change(list);
    const auto checked = check_network_list(list);
    EXPECT_TRUE(checked || checked.error().code == ErrorCode::invalid_argument);
    return checked ? "" : checked.error().message;
  };
  const std::string begin = "Croft's plugin would refuse the network configuration: ";
  for (const auto& known : kMainPlugins) {
    EXPECT_EQ(refusal([](auto& list) { list.name = ""; }, known.plugin), begin + "missing network name");
    for (const char* name : {"../x", "a b", "x\x1b[31m"}) {
      const std::string text = refusal([&](auto& list) { list.name = name; }, known.plugin);
      EXPECT_EQ(text.find(begin + "invalid characters found in network name"), 0U) << text;
      EXPECT_EQ(text.find('\x1b'), text.npos);
    }
  }
  EXPECT_NE(refusal([](auto& list) { list.name = "\xff"; }), "");
  for (const char* pool : {"", "Nope!"}) {
    EXPECT_NE(refusal([&](auto& list) {
                list.pools_v4 = {"a", pool};
              }).find("ipam.ipv4_pools[1]: pool name"),
              std::string::npos);
    EXPECT_NE(refusal([&](auto& list) { list.pools_v6 = {pool}; }).find("ipam.ipv6_pools[0]: pool name"),
              std::string::npos);
  }
  for (const auto& known : kMainPlugins) {
    for (const std::string text : {"kube:/etc/\xff/croft-kubeconfig", "sqlite:/\xc3"}) {
      EXPECT_NE(refusal([&](auto& list) { list.store = text; }, known.plugin).find("is no UTF-8"), std::string::npos);
    }
    EXPECT_NE(refusal([](auto& list) { list.calico_kubeconfig = "/etc/\xff"; }, known.plugin).find("is no UTF-8"),
              std::string::npos);
  }
  EXPECT_EQ(refusal([](auto& list) { list.store = "kube:/etc/n\xc3\xa9t/croft-kubeconfig"; }), "");
  const std::string store = refusal([](auto& list) { list.store = "kube:/etc/\x1b[31m/croft-kubeconfig"; });
  EXPECT_NE(store.find("ipam.store"), std::string::npos) << store;
  EXPECT_EQ(store.find('\x1b'), store.npos);
}

TEST(NetworkList, SaysPoolsAndMtuWhereTheyAreSaid) {
  NetworkList list = example(MainPlugin::bridge);
  list.pools_v4 = {"a", "b"};
  list.pools_v6 = {"six"};
  list.assign_v6 = true;
  list.mtu = 1400;
  list.masquerades = false;
  const std::string text = encode_network_list(list);
  for (const char* part :
       {R"("mtu": 1400)", R"("ipMasq": false)", R"("isDefaultGateway": true)", R"("bridge": "cni0")",
        "\"ipv4_pools\": [\n                    \"a\",\n                    \"b\"\n                ]",
        R"("assign_ipv6": "true")"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << text;
  }
}

TEST(NetworkList, OfOthersMainPlugins) {
  const std::string calico = encode_network_list(example(MainPlugin::calico));
  for (const char* part : {R"("type": "calico")", R"("type": "croft-ipam")", R"("nodename": "oak")",
                           R"("kubeconfig": "/etc/cni/net.d/calico-kubeconfig")"}) {
    EXPECT_NE(calico.find(part), std::string::npos) << part;
  }
  const std::string flannel = encode_network_list(example(MainPlugin::flannel));
  EXPECT_NE(flannel.find(R"("type": "flannel")"), std::string::npos);
  EXPECT_EQ(flannel.find("ipam"), std::string::npos) << "flannel says itself what host-local is asked for";
  EXPECT_NE(flannel.find(R"("cniVersion": "0.3.1")"), std::string::npos) << "flannel's older releases speak no 1.0.0";
  EXPECT_EQ(ipam_name_of(MainPlugin::flannel), "host-local");
}

TEST(NetworkList, ComesBeforeTheMainPluginsOwn) {
  EXPECT_LT(network_file_of(MainPlugin::calico), "10-calico.conflist");
  EXPECT_LT(network_file_of(MainPlugin::flannel), "10-flannel.conflist");
  for (const MainPluginName& main : kMainPlugins) EXPECT_TRUE(network_file_of(main.plugin).ends_with(".conflist"));
}

TEST(NetworkList, WhatAnotherOneHasIsTold) {
  const std::string ours = encode_network_list(example(MainPlugin::calico));
  // As the operator of Calico writes it.
  constexpr const char* kCalicos = R"({"name": "k8s-pod-network", "cniVersion": "0.3.1", "plugins": [
    {"type": "calico", "datastore_type": "kubernetes", "mtu": 1430, "nodename_file_optional": false, "log_level": "Info",
     "ipam": {"type": "calico-ipam", "assign_ipv4": "true", "ipv4_pools": ["a"], "subnet": ""},
     "container_settings": {"allow_ip_forwarding": true}, "policy": {"type": "k8s"},
     "kubernetes": {"kubeconfig": "/x", "k8s_api_root": "https://10.96.0.1:443"}},
    {"type": "bandwidth", "capabilities": {"bandwidth": true}},
    {"type": "portmap", "snat": true, "capabilities": {"portMappings": true}}]})";
  EXPECT_THAT(members_lost(ours, kCalicos),
              ElementsAre("mtu 1430", "log_level", "ipam.ipv4_pools", "container_settings", "kubernetes.k8s_api_root",
                          "the plugin bandwidth"));
  NetworkList said = example(MainPlugin::calico);
  said.mtu = 1400;
  EXPECT_THAT(members_lost(encode_network_list(said), R"({"type": "calico", "mtu": 1430})"), IsEmpty());
  EXPECT_THAT(members_lost(ours, ours), IsEmpty());
  for (const char* none : {"", "[]", "{\"plugins\": {}}", "{\"plugins\": [1]}"}) {
    EXPECT_THAT(members_lost(ours, none), IsEmpty()) << none;
  }
}

TEST(NetworkList, WhichFilesARuntimeTakes) {
  for (const char* name : {"10-croft.conflist", "a.conf", ".json"}) EXPECT_TRUE(is_network_file(name)) << name;
  for (const char* name : {"croft-kubeconfig", "10-croft.conflist.7.tmp", "conf", "a.JSON"}) {
    EXPECT_FALSE(is_network_file(name)) << name;
  }
}

}  // namespace
}  // namespace croft::wire::cni
