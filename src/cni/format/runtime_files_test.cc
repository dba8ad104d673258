#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "cni/format/cache.h"
#include "cni/format/conflist.h"

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

TEST(NetworkList, RefusesWhatFlannelWouldNotBeTold) {
  void (*const changes[])(NetworkList&) = {
      [](auto& list) { list.pools_v4 = {"a"}; }, [](auto& list) { list.pools_v6 = {"six"}; },
      [](auto& list) { list.assign_v6 = true; }, [](auto& list) { list.assign_v4 = false; },
      [](auto& list) { list.mtu = 1400; }};
  for (const auto change : changes) {
    NetworkList list = example(MainPlugin::flannel);
    EXPECT_TRUE(network_as_called(list));
    change(list);
    const auto checked = network_as_called(list);
    ASSERT_FALSE(checked);
    EXPECT_EQ(checked.error().code, ErrorCode::invalid_argument);
    EXPECT_NE(checked.error().message.find("from subnet.env"), std::string::npos) << checked.error().message;
    list.main = MainPlugin::bridge;
    EXPECT_TRUE(network_as_called(list)) << network_as_called(list).error().message;
  }
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

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CniCacheEntry, EverythingThatLibcniWrites) {
  const auto entry = read_whole_cache_entry(
      R"({"kind":"cniCacheV1","containerId":"c1","config":"eyJhIjoiPz4ifQ==","ifName":"eth0","networkName":"net",)"
      R"("netns":"/run/netns/x","cniArgs":[["IgnoreUnknown","1"],["K8S_POD_NAMESPACE","default"],)"
      R"(["K8S_POD_NAME","web"],["K8S_POD_UID","u-1"]],"capabilityArgs":{"ipRanges":[[{"subnet":"10.1.0.0/24"}]]},)"
      R"("result":{"ips":[{"address":"10.1.0.2/24"},{"address":"fd00::2/64"}]}})");
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->owner, (core::Owner{"net", "c1", "eth0"}));
  EXPECT_EQ(entry->netns, "/run/netns/x");
  EXPECT_EQ(entry->pod, (core::PodIdentity{"web", "default", "u-1"}));
  EXPECT_THAT(entry->addresses, ElementsAre(address("10.1.0.2"), address("fd00::2")));
  EXPECT_EQ(entry->config, R"({"a":"?>"})");
  EXPECT_EQ(entry->capability_args, R"({"ipRanges":[[{"subnet":"10.1.0.0/24"}]]})");
}

TEST(CniCacheEntry, ResultsBeforeVersion03) {
  const auto entry = read_whole_cache_entry(R"({"containerId":"c1","ifName":"eth0","networkName":"net",)"
                                            R"("result":{"ip4":{"ip":"10.1.0.2/24"},"ip6":{"ip":"fd00::2/64"}}})");
  EXPECT_THAT(entry->addresses, ElementsAre(address("10.1.0.2"), address("fd00::2")));
}

TEST(CniCacheEntry, WithoutNetnsTheSandboxOfTheResultCounts) {
  const auto netns = [](const std::string& members) {
    return read_whole_cache_entry(R"({"containerId":"c1","ifName":"eth0","networkName":"net",)" + members + "}")->netns;
  };
  const std::string result =
      R"("result":{"interfaces":[{"name":"br0"},7,{"name":"eth0","sandbox":"/a"},{"name":"eth1","sandbox":"/b"}]})";
  EXPECT_EQ(netns(result), "/a");
  EXPECT_EQ(netns(result + R"(,"netns":"/c")"), "/c");
  EXPECT_EQ(netns(R"("result":{"interfaces":null})"), "");
}

TEST(CniCacheEntry, WhatHasAnotherShapeStaysEmpty) {
  const auto entry = read_whole_cache_entry(
      R"({"containerId":"c1","ifName":"eth0","networkName":"net","netns":7,"cniArgs":[7,[],["K8S_POD_NAME"],)"
      R"(["K8S_POD_NAME",1]],"config":"*","capabilityArgs":[],"result":{"ips":[7,{"address":"x"}],"ip4":null}})");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->netns, "");
  EXPECT_EQ(entry->pod, core::PodIdentity());
  EXPECT_EQ(entry->config, "");
  EXPECT_EQ(entry->capability_args, "");
  EXPECT_THAT(entry->addresses, IsEmpty());
}

TEST(CniCacheEntry, ALaterMemberReplacesTheOneBeforeIt) {
  const auto read = [](const std::string& members) {
    const auto entry =
        read_whole_cache_entry(R"({"containerId":"c1","ifName":"eth0","networkName":"net",)" + members + "}");
    EXPECT_TRUE(entry) << members;
    return entry.value_or(CacheEntry{});
  };
  // A gone namespace before the one that lives: who believes the first calls a live pod gone.
  EXPECT_EQ(read(R"("result":{"interfaces":[{"sandbox":"/gone"}],"interfaces":[{"sandbox":"/lives"}]})").netns,
            "/lives");
  EXPECT_EQ(read(R"("result":{"interfaces":[{"sandbox":"/gone"}]},"result":{"ips":[]})").netns, "");
  EXPECT_EQ(read(R"("cniArgs":[["K8S_POD_NAME","a"],["K8S_POD_UID","u"]],"cniArgs":[["K8S_POD_NAME","b"]])").pod,
            (core::PodIdentity{"b", "", ""}));
  EXPECT_THAT(read(R"("result":{"ips":[{"address":"10.1.0.2/24","address":"10.1.0.3/24"}]})").addresses,
              ElementsAre(address("10.1.0.3")));
  EXPECT_THAT(read(R"("result":{"ip4":{"ip":"10.1.0.2/24"},"ip4":{"ip":"10.1.0.3/24"}})").addresses,
              ElementsAre(address("10.1.0.3")));
  EXPECT_EQ(read(R"("cniArgs":[["K8S_POD_NAME","a",7]])").pod.name, "a");
}

TEST(CniCacheEntry, ElementsWithoutAnAddressTakeNoRoom) {
  std::string ips;
  for (std::size_t i = 0; i < kCachedAddressesMax; ++i) ips += "{},";
  const auto entry =
      read_whole_cache_entry(R"({"containerId":"c1","ifName":"eth0","networkName":"net","result":{"ips":[)" + ips +
                             R"({"address":"10.1.0.2/24"}]}})");
  ASSERT_TRUE(entry);
  EXPECT_THAT(entry->addresses, ElementsAre(address("10.1.0.2")));
}

TEST(CniCacheEntry, EmptyCutOrOfAnotherKind) {
  for (const char* bytes :
       {"", "{\"containerId\":\"c1\",\"ifNa", "[]", "{}", "null", R"({"containerId":"c1","ifName":"eth0"})"}) {
    EXPECT_FALSE(read_whole_cache_entry(bytes)) << bytes;
  }
  EXPECT_FALSE(read_whole_cache_entry(std::string(100'000, '[')));
  EXPECT_THAT(read_whole_cache_entry("{}").error().message, HasSubstr("lacks networkName"));
}

}  // namespace

}  // namespace croft::wire::cni
