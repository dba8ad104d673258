#include "wire/cni/network_list.h"

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

TEST(NetworkList, WhichFilesARuntimeTakes) {
  for (const char* name : {"10-croft.conflist", "a.conf", ".json"}) EXPECT_TRUE(is_network_file(name)) << name;
  for (const char* name : {"croft-kubeconfig", "10-croft.conflist.7.tmp", "conf", "a.JSON"}) {
    EXPECT_FALSE(is_network_file(name)) << name;
  }
}

}  // namespace
}  // namespace croft::wire::cni
