#include "cni/format/conflist.h"

#include <gtest/gtest.h>

namespace croft::wire::cni {

namespace {

NetworkList example(MainPlugin main) {
  NetworkList list;
  list.main = main;
  list.node = "oak";
  list.store = "kube:/etc/cni/net.d/croft-kubeconfig";
  list.calico_kubeconfig = "/etc/cni/net.d/calico-kubeconfig";
  return list;
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

TEST(NetworkList, IsCalledByItsNameAlone) {
  for (const auto& known : kMainPlugins) EXPECT_TRUE(network_as_called(example(known.plugin))) << known.text;
  const auto refusal = [](auto change, MainPlugin main = MainPlugin::bridge) {
    NetworkList list = example(main);
    change(list);
    const auto checked = network_as_called(list);
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
  for (const auto& known : kMainPlugins) {
    for (const std::string text : {"kube:/etc/\xff/croft-kubeconfig", "sqlite:/\xc3"}) {
      EXPECT_NE(refusal([&](auto& list) { list.store = text; }, known.plugin).find("is no UTF-8"), std::string::npos);
    }
    EXPECT_NE(refusal([](auto& list) { list.calico_kubeconfig = "/etc/\xff"; }, known.plugin).find("is no UTF-8"),
              std::string::npos);
  }
  EXPECT_EQ(refusal([](auto& list) { list.store = "kube:/etc/n\xc3\xa9t/croft-kubeconfig"; }), "");
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

}  // namespace

}  // namespace croft::wire::cni
