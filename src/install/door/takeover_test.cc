#include "install/door/takeover.h"

#include <gtest/gtest.h>

namespace croft::edge {
namespace {

using wire::cni::AddressGiver;

TEST(Takeover, TheRegisterKnowsWhatItGave) {
  const NextGiver next{true, "k8s-pod-network", "kubernetes"};
  EXPECT_TRUE(knows(next, {"croft-ipam", "another"})) << "whatever the network's name";
  EXPECT_TRUE(knows(next, {"calico-ipam", "k8s-pod-network"}));
  EXPECT_TRUE(knows(next, {"calico-ipam", "k8s-pod-network", "", "kubernetes"}));
  EXPECT_FALSE(knows(next, {"calico-ipam", "k8s-pod-network", "", "etcdv3"})) << "other records";
  EXPECT_FALSE(knows({true, "k8s-pod-network"}, {"calico-ipam", "k8s-pod-network"})) << "a file of Croft's alone";
  for (const char* program : {"host-local", "croft-vpc", "cilium-cni", "whereabouts", "dhcp"}) {
    EXPECT_FALSE(knows(next, {program, "k8s-pod-network"})) << program;
  }
}

TEST(Takeover, WhatIsNotClearNobodyKnows) {
  AddressGiver unclear{"croft-ipam", "n"};
  EXPECT_TRUE(knows({true, "n"}, unclear));
  unclear.is_unclear = true;
  EXPECT_FALSE(knows({true, "n"}, unclear));
}

TEST(Takeover, MultusNamesTheFileByItsPath) {
  NextGiver ours{true, "n"};
  ours.directory = "/net.d";
  const auto calls = [&](const std::string& other) {
    wire::cni::NetworkCalls multus;
    multus.names_another = true;
    multus.other = other;
    return calls_only(ours, "10-croft.conflist", multus);
  };
  EXPECT_TRUE(calls("n"));
  EXPECT_TRUE(calls("/host/etc/cni/net.d/10-croft.conflist"));
  EXPECT_FALSE(calls("/elsewhere/10-croft.conflist"));
  EXPECT_FALSE(calls("/etc/cni/net.d/20-other.conflist"));
}

TEST(Takeover, ARegisterKnowsNothingOfAnothers) {
  const auto is_known = [](const char* next, const char* before, const char* program = "croft-ipam") {
    return knows({true, "n", "kubernetes", next}, {program, "n", "", "", before});
  };
  EXPECT_TRUE(is_known("sqlite:/a", "sqlite://a"));
  EXPECT_FALSE(is_known("sqlite:/a", "sqlite:/b"));
  EXPECT_FALSE(is_known("kube:/k", "sqlite:/b"));
  EXPECT_FALSE(is_known("kube:/k", "sqlite:/b", "calico-ipam")) << "Croft's under this name";
  EXPECT_TRUE(is_known("sqlite:/a", "sqlite:/a", "calico-ipam"));
  EXPECT_TRUE(is_known("kube:/k", "")) << "an older record";
  EXPECT_TRUE(is_known("", "sqlite:/b"));
  EXPECT_TRUE(is_known("kube:/k", "kube:/other?group=projectcalico.org/v3")) << "nobody can tell";
  EXPECT_FALSE(knows({false, "n"}, {"croft-ipam", "n", "", "", "sqlite:/a"}));
}

TEST(Takeover, HostLocalKnowsItsDirectory) {
  const NextGiver next{false, "cbr0"};
  EXPECT_TRUE(knows(next, {"host-local", "cbr0"}));
  EXPECT_TRUE(knows(next, {"host-local", "cbr0", "/var/lib/cni/networks/"}));
  EXPECT_FALSE(knows(next, {"host-local", "netx"}));
  EXPECT_FALSE(knows(next, {"host-local", "cbr0", "/run/cni-ipam-state"}));
  EXPECT_FALSE(knows(next, {"croft-ipam", "cbr0"}));
  EXPECT_FALSE(knows({false, "cbr0", "kubernetes"}, {"calico-ipam", "cbr0"}));
}

TEST(Takeover, WhatIsBeforeOursMayCallOurs) {
  const auto calls = [](const NextGiver& ours, const std::string& text) {
    return calls_only(ours, "10-croft.conflist", wire::cni::read_network_calls(text).value());
  };
  const NextGiver of_register{true, "pods", "kubernetes", "sqlite:/a"}, of_flannel{false, "cbr0"};
  const auto multus = [](const std::string& more) { return R"({"name":"m","type":"multus",)" + more + "}"; };
  const std::string croft = R"({"type":"ptp","ipam":{"type":"croft-ipam","store":"sqlite:/a"}})";
  const std::string flannel = R"({"name":"cbr0","plugins":[{"type":"flannel"},{"type":"portmap"}]})";
  EXPECT_TRUE(calls(of_register, multus(R"("clusterNetwork":"/host/etc/cni/net.d/10-croft.conflist")")));
  EXPECT_TRUE(calls(of_register, multus(R"("clusterNetwork":"pods")")));
  EXPECT_TRUE(calls(of_register, multus(R"("delegates":[{"name":"pods","plugins":[)" + croft + "]}]")));
  EXPECT_TRUE(calls(of_register, R"({"name":"x","plugins":[)" + croft + "]}"));
  EXPECT_TRUE(calls(of_flannel, multus(R"("clusterNetwork":"cbr0")")));
  EXPECT_TRUE(calls(of_flannel, multus(R"("delegates":[)" + flannel + "]")));

  EXPECT_FALSE(calls(of_register, multus(R"("clusterNetwork":"/host/etc/cni/net.d/20-kindnet.conflist")")));
  EXPECT_FALSE(calls(of_register, multus(R"("clusterNetwork":"/x10-croft.conflist")")));
  EXPECT_FALSE(calls(of_register, R"({"name":"m","type":"multus-shim"})")) << "its daemon knows which";
  EXPECT_FALSE(calls(of_register, multus(R"("delegates":[)" + flannel + "]")));
  EXPECT_FALSE(
      calls(of_register, multus(R"("delegates":[{"name":"pods","plugins":[)" + croft + "]}," + flannel + "]")));
  EXPECT_FALSE(calls({true, "pods", "", "sqlite:/b"}, R"({"name":"x","plugins":[)" + croft + "]}"))
      << "another register";
  EXPECT_FALSE(calls(of_register, R"({"name":"lo","type":"loopback"})"));
  EXPECT_FALSE(calls(of_flannel, flannel)) << "of flannel itself";
  EXPECT_FALSE(calls(of_flannel, multus(R"("delegates":[{"name":"netx","plugins":[{"type":"flannel"}]}])")));
}

TEST(Takeover, RangesThatAreApart) {
  const auto ranges = [](std::initializer_list<const char*> texts) {
    std::vector<net::Prefix> all;
    for (const char* text : texts) all.push_back(net::Prefix::parse(text).value());
    return all;
  };
  EXPECT_FALSE(common_range(ranges({"10.85.0.0/16", "1100:200::/24"}), ranges({"10.244.0.0/16", "fd00::/48"})));
  const auto common = common_range(ranges({"10.85.0.0/16", "10.244.3.0/24"}), ranges({"fd00::/48", "10.244.0.0/16"}));
  ASSERT_TRUE(common);
  EXPECT_EQ(common->before.to_string() + " " + common->next.to_string(), "10.244.3.0/24 10.244.0.0/16");
}

TEST(Takeover, RangesOfOtherNodes) {
  const auto ranges = [](std::initializer_list<const char*> texts) {
    std::vector<net::Prefix> all;
    for (const char* text : texts) all.push_back(net::Prefix::parse(text).value());
    return all;
  };
  const std::vector<NodeCidrs> nodes{
      {"a", ranges({"10.244.0.0/24", "fd00::/64"})}, {"b", ranges({"10.244.3.0/24"})}, {"c", {}}};
  const auto found = [&](std::initializer_list<const char*> before, const char* own,
                         std::initializer_list<const char*> next) -> std::string {
    const auto common = common_range_of_others(ranges(before), nodes, own, ranges(next));
    if (!common) return "none";
    return common->node + " " + common->common.before.to_string() + " " + common->common.next.to_string();
  };
  EXPECT_EQ(found({"10.244.0.0/24"}, "a", {"10.99.0.0/16", "10.244.0.0/16"}), "b 10.244.3.0/24 10.244.0.0/16");
  EXPECT_EQ(found({"10.244.0.128/25"}, "a", {"10.244.3.0/24"}), "b 10.244.3.0/24 10.244.3.0/24");
  EXPECT_EQ(found({"10.244.0.0/24"}, "a", {"10.99.0.0/16", "10.244.0.0/24"}), "none") << "its own is looked at apart";
  EXPECT_EQ(found({"10.244.0.0/24"}, "c", {"fd00::/48"}), "a fd00::/64 fd00::/48") << "of what another node had";
  EXPECT_EQ(found({"10.85.0.0/16"}, "a", {"10.244.0.0/16"}), "none") << "a runtime's example is of one node";
}

}  // namespace
}  // namespace croft::edge
