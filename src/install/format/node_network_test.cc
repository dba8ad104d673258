#include "install/format/node_network.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::core {
namespace {

const std::string kOurs =
    R"({"name":"k8s-pod-network","loadOnlyInlinedPlugins":true,"plugins":[{"type":"ptp","ipam":{"type":"croft-ipam",)"
    R"("store":"sqlite:/a.db","nodename":"oak"}}]})";

/// A list of one plugin.
std::string list(const std::string& name, const std::string& plugin) {
  return R"({"name":")" + name + R"(","plugins":[)" + plugin + "]}";
}
std::string bridge(const std::string& ipam) { return R"({"type":"bridge","ipam":)" + ipam + "}"; }
const std::string kHostLocal = R"({"type":"host-local","subnet":"10.9.0.0/24"})";

using Files = std::vector<std::pair<std::string, std::string>>;

std::vector<NodeNetwork> read(const Files& files) {
  std::vector<NodeNetwork> all;
  for (const auto& [file, text] : files) all.push_back(wire::read_node_network(file, text, kOurs));
  return all;
}

/// "fine", "aside FILE", "told TEXT" or "refused TEXT".
std::string verdict(const Files& files, const std::string& replaced = "", bool is_written = false) {
  WantedNetwork own{.file = "10-croft.conflist",
                    .name = "k8s-pod-network",
                    .node = "oak",
                    .giver = {"croft-ipam", "sqlite:/a.db"},
                    .replaced = replaced};
  if (is_written) own.written = {"10-croft.conflist"};
  const auto judged = judge_networks(read(files), own);
  if (!judged) {
    EXPECT_EQ(judged.error().code, ErrorCode::refused_for_safety);
    return "refused " + judged.error().message;
  }
  for (const std::string& file : judged->set_aside) return "aside " + file;
  return judged->told.empty() ? "fine" : "told " + judged->told.front();
}

void expect_begins(const std::string& text, const std::string& begin) {
  EXPECT_EQ(text.substr(0, begin.size()), begin) << text;
}

TEST(NodeNetwork, TheGiverIsTheIpamPluginWithItsRecords) {
  const auto giver = [](const std::string& text) {
    const NetworkGiver found = wire::read_node_network("x", text).giver;
    return found.program + " " + found.records;
  };
  EXPECT_EQ(giver(kOurs), "croft-ipam sqlite:/a.db");
  EXPECT_EQ(giver(list("n", bridge(R"({"type":"croft-ipam"})"))), "croft-ipam sqlite:/var/lib/croft/croft.db");
  EXPECT_EQ(giver(list("n", bridge(kHostLocal))), "host-local n");
  EXPECT_EQ(giver(list("n", bridge(R"({"type":"host-local","dataDir":"/run/x"})"))), "host-local /run/x/n");
  EXPECT_EQ(giver(list("cbr0", R"({"type":"flannel","delegate":{"isDefaultGateway":true}})")), "host-local cbr0");
  EXPECT_EQ(giver(list("n", R"({"type":"flannel","delegate":{"ipam":{"type":"dhcp"}}})")), "dhcp ");
  EXPECT_EQ(giver(list("n", R"({"type":"calico","ipam":{"type":"calico-ipam"}})")), "calico-ipam kube:");
  EXPECT_EQ(giver(list("n", R"({"type":"calico","etcd_authority":"a:1","ipam":{"type":"calico-ipam"}})")),
            "calico-ipam etcd:");
  EXPECT_EQ(giver(list("n", R"({"type":"cilium-cni"})")), "cilium-cni ");
  EXPECT_EQ(giver(list("n", R"({"type":"loopback"})")), " ");
  EXPECT_EQ(giver(R"({"name":"n","type":"bridge","ipam":{"type":"host-local"}})"), "host-local n");
  for (const char* text : {"", "[]", "{", "{}", R"({"plugins":{}})", R"({"name":"x"})"}) {
    EXPECT_NE(wire::read_node_network("x", text).trouble, "") << text;
  }
}

TEST(NodeNetwork, GoesByTheSameRecordsAsFarAsTheyAreSaid) {
  const auto is_same = [](const NetworkGiver& a, const NetworkGiver& b) { return is_same_giver(a, b); };
  EXPECT_TRUE(is_same({"croft-ipam", "sqlite:/a.db"}, {"croft-ipam", "sqlite:/a.db"}));
  EXPECT_FALSE(is_same({"croft-ipam", "sqlite:/a.db"}, {"croft-ipam", "sqlite:/b.db"}));
  EXPECT_TRUE(is_same({"croft-ipam", "kube:/etc/croft"}, {"calico-ipam", "kube:"}));
  EXPECT_FALSE(is_same({"croft-ipam", "kube:/etc/croft"}, {"calico-ipam", "etcd:"}));
  EXPECT_TRUE(is_same({"croft-ipam", "etcd:http://a:1"}, {"croft-ipam", "etcd:http://b:1"})) << "members change";
  EXPECT_FALSE(is_same({"host-local", "cbr0"}, {"host-local", "net"}));
}

TEST(NodeNetwork, AnotherOneIsRefusedAtAFirstInstallation) {
  EXPECT_EQ(verdict({}), "fine");
  expect_begins(verdict({}, "other"), "told --replace \"other\": no network");
  const std::string kindnet = list("kindnet", bridge(kHostLocal));
  expect_begins(verdict({{"20-kindnet.conflist", kindnet}}),
                "refused a node has one network, and this one has \"20-kindnet.conflist\", the network \"kindnet\", "
                "whose addresses come from \"host-local\"");
  for (const char* name : {"kindnet", "20-kindnet.conflist"}) {
    EXPECT_EQ(verdict({{"20-kindnet.conflist", kindnet}}, name), "aside 20-kindnet.conflist");
  }
  expect_begins(verdict({{"20-kindnet.conflist", kindnet}}, "other"), "refused ");
  expect_begins(verdict({{"20-x.conflist", "{"}}), "refused ");
  EXPECT_EQ(verdict({{"20-x.conflist", "{"}}, "20-x.conflist"), "aside 20-x.conflist");
  for (const char* file : {"100-crio-bridge.conflist", "87-podman.conflist", "87-podman-bridge.conflist"}) {
    EXPECT_EQ(verdict({{file, kindnet}}), "fine") << file;
  }
  EXPECT_EQ(verdict({{"20-x.conflist", list("x", R"({"type":"loopback"})")}}), "fine") << "it gives no addresses";
  EXPECT_EQ(verdict({{"20-own.conflist", kOurs}}), "fine") << "the same register";
  expect_begins(verdict({{"10-croft.conflist", kindnet}}), "refused ");
  expect_begins(verdict({{"10-croft.conflist", kindnet}}, "kindnet"), "told ");
}

TEST(NodeNetwork, OneBeforeOursIsRefusedAlways) {
  for (const char* file : {"05-x.conflist", "00-loopback.conf", "05-own.conflist"}) {
    for (const bool is_written : {false, true}) {
      expect_begins(
          verdict({{file, list("x", R"({"type":"loopback"})")}, {"10-croft.conflist", kOurs}}, "", is_written),
          "refused ");
    }
  }
}

TEST(NodeNetwork, OneBehindOursIsAWarningOverARunningCroft) {
  expect_begins(
      verdict({{"10-croft.conflist", kOurs}, {"20-kindnet.conflist", list("kindnet", bridge(kHostLocal))}}, "", true),
      "told this node has \"20-kindnet.conflist\"");
  EXPECT_EQ(verdict({{"10-croft.conflist", kOurs}, {"87-podman.conflist", list("p", bridge(kHostLocal))}}, "", true),
            "fine");
}

TEST(NodeNetwork, CroftsOwnIsAnotherOneWithAnotherGiver) {
  const std::string other = list("n", bridge(R"({"type":"croft-ipam","store":"sqlite:/b.db"})"));
  expect_begins(verdict({{"10-croft.conflist", other}}, "", true), "refused ");
  expect_begins(verdict({{"10-croft.conflist", other}}, "n", true), "told ");
  EXPECT_EQ(verdict({{"10-croft.conflist", ""}}, "", true), "fine") << "an emptied one is written anew";
}

TEST(NodeNetwork, MultusThatDelegatesToOursIsOurs) {
  const auto multus = [](const std::string& members) {
    return Files{{"00-multus.conf", R"({"name":"m","type":"multus",)" + members + "}"}, {"10-croft.conflist", kOurs}};
  };
  EXPECT_EQ(verdict(multus(R"("clusterNetwork":"k8s-pod-network")"), "", true), "fine");
  EXPECT_EQ(verdict(multus(R"("clusterNetwork":"/host/etc/cni/net.d/10-croft.conflist")"), "", true), "fine");
  EXPECT_EQ(verdict(multus(R"("delegates":[)" + kOurs + "]"), "", true), "fine");
  const auto changed = [](std::string text, const std::string& from, const std::string& to) {
    return text.replace(text.find(from), from.size(), to);
  };
  expect_begins(verdict(multus(R"("delegates":[)" + changed(kOurs, R"("ptp")", R"("ptp","mtu":1400)") + "]"), "", true),
                "told \"00-multus.conf\" comes first and has a copy");
  const std::string of_elm = verdict(multus(R"("delegates":[)" + changed(kOurs, "oak", "elm") + "]"), "", true);
  expect_begins(of_elm, "refused \"00-multus.conf\"");
  EXPECT_NE(of_elm.find("nodename \"elm\""), of_elm.npos);
  for (const std::string& members :
       {std::string(R"("logLevel":"verbose")"), std::string(R"("clusterNetwork":"kindnet")"),
        R"("delegates":[)" + kOurs + "," + list("kindnet", bridge(kHostLocal)) + "]"}) {
    expect_begins(verdict(multus(members), "", true), "refused ");
  }
}

TEST(NodeNetwork, ANameInUseStays) {
  const Files flannels{{"10-flannel.conflist", list("cbr1", R"({"type":"flannel"})")}};
  EXPECT_EQ(name_of_network(read(flannels), "recorded", "flannel"), "recorded");
  EXPECT_EQ(name_of_network(read(flannels), "", "flannel"), "cbr1");
  EXPECT_EQ(name_of_network(read(flannels), "", "ptp"), "k8s-pod-network");
  EXPECT_EQ(name_of_network({}, "", "flannel"), "cbr0");
  EXPECT_EQ(name_of_network(read({{"x", list("mine", bridge(R"({"type":"croft-ipam"})"))}}), "", "ptp"), "mine");
}

TEST(NodeNetwork, TakingBackLooksAtNamesAlone) {
  const std::set<std::string> written{"10-croft.conflist"};
  EXPECT_TRUE(judge_uninstall({"10-croft.conflist", "87-podman.conflist", "notes.txt"}, written, "ptp"));
  EXPECT_TRUE(judge_uninstall({"10-calico.conflist"}, written, "calico"));
  EXPECT_TRUE(judge_uninstall({"10-calico.conflist"}, {}, "")) << "no network of Croft's goes";
  EXPECT_FALSE(judge_uninstall({"20-kindnet.conflist"}, written, "ptp"));
  EXPECT_FALSE(judge_uninstall({"20-bridge.conflist"}, written, "bridge")) << "bridge brings no network";
  EXPECT_TRUE(judge_uninstall({"20-kindnet.conflist.before-croft"}, written, "ptp")) << "set aside by --replace";
  const auto switched = judge_uninstall({"10-calico.conflist", "10-calico.conflist.before-croft"}, {}, "");
  ASSERT_FALSE(switched);
  EXPECT_NE(switched.error().message.find("mv "), std::string::npos);
}

TEST(InstallRecord, IsALineOfJson) {
  wire::InstallRecord record;
  record.programs = {"croft-ipam", "host-local"};
  record.kubeconfig = true;
  record.networks = {"10-croft.conflist"};
  record.network = "net";
  record.main = "ptp";
  EXPECT_EQ(wire::decode_install_record(encode(record)), record);
  EXPECT_EQ(encode(wire::InstallRecord{.programs = {"croft-ipam"}}),
            "{\"files\":[{\"kind\":\"program\",\"name\":\"croft-ipam\"}],\"mainPlugin\":\"\",\"network\":\"\","
            "\"version\":1}\n");
  const char* const older =
      R"({"version":1,"files":[{"kind":"network","name":"a.conflist","sha256":"00"}],"store":"x"})";
  EXPECT_EQ(wire::decode_install_record(older)->networks, std::set<std::string>{"a.conflist"});
  for (const char* text : {"", "{", "[]", "{}", R"({"version":1,"files":[{"kind":"program","name":"../x"}]})",
                           R"({"version":1,"files":[{"kind":"other","name":"x"}]})", R"({"version":1,"files":[7]})"}) {
    const auto read = wire::decode_install_record(text);
    EXPECT_TRUE(!read && read.error().code == ErrorCode::corrupt) << text;
  }
  EXPECT_EQ(wire::decode_install_record(R"({"version":2})").error().code, ErrorCode::newer_version);
}

}  // namespace
}  // namespace croft::core

namespace croft::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A configuration with this `networking`, each line of it indented as kubeadm writes it.
std::string with(const std::string& networking) {
  return "apiServer: {}\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n" + networking +
         "scheduler: {}\n";
}
/// Why it is not taken.
std::string refusal(const std::string& text) {
  const auto said = parse_kubeadm_config(text);
  return said ? std::string("it was taken") : said.error().message;
}
std::string times(std::size_t count, const std::string& piece) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += piece;
  return text;
}

TEST(KubeadmConfig, SaysWhatPodsAndServicesHave) {
  const auto both = parse_kubeadm_config(
      with("  dnsDomain: cluster.local\n  podSubnet: 10.244.0.0/16, fd00:10::/48\n  serviceSubnet: 10.96.0.0/12\n"));
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_THAT(both->pod_subnets, ElementsAre(prefix("10.244.0.0/16"), prefix("fd00:10::/48")));
  EXPECT_THAT(both->service_subnets, ElementsAre(prefix("10.96.0.0/12")));
}

TEST(KubeadmConfig, WhatIsNotSaidIsEmpty) {
  for (const std::string& text : {with("  dnsDomain: cluster.local\n"), with("  podSubnet: \"\"\n"), std::string()}) {
    const auto said = parse_kubeadm_config(text);
    ASSERT_TRUE(said) << text << ": " << said.error().message;
    EXPECT_THAT(said->pod_subnets, IsEmpty()) << text;
  }
}

TEST(KubeadmConfig, NonsenseNamesItsMember) {
  EXPECT_THAT(refusal(with("  podSubnet: 10.244.0.0\n")), HasSubstr("networking.podSubnet"));
  EXPECT_THAT(refusal(with("  podSubnet: [10.244.0.0/16]\n")), HasSubstr("networking.podSubnet"));
  EXPECT_THAT(refusal(with("  podSubnet: 10.0.0.0/16,10.1.0.0/16\n")), HasSubstr("two subnets of one family"));
  EXPECT_THAT(refusal(with("  serviceSubnet: 10.96.0.0/33\n")), HasSubstr("networking.serviceSubnet"));
  EXPECT_THAT(refusal("networking: 7"), HasSubstr("networking"));
}

TEST(KubeadmConfig, OfSeveralDocumentsTheClustersOwnCounts) {
  const std::string own = "kind: ClusterConfiguration\nnetworking: {podSubnet: 10.244.0.0/16}\n";
  for (const std::string& text :
       {own + "---\nkind: Other\nnetworking: {podSubnet: 10.99.0.0/16}\n", own + "---\nkind: Other\nnetworking: {}\n",
        own + "---\nnetworking: {}\n", "kind: Other\nnetworking: 7\n---\n" + own,
        own + "---\napiVersion: example.org/v1\nkind: ClusterConfiguration\nnetworking: {}\n",
        own + "---\napiVersion: kubeadm.k8s.io/v1beta4\n" + own,
        std::string("networking: {podSubnet: 10.244.0.0/16}\n---\nkind: Other\n")}) {
    const auto said = parse_kubeadm_config(text);
    ASSERT_TRUE(said) << text << ": " << said.error().message;
    EXPECT_THAT(said->pod_subnets, ElementsAre(prefix("10.244.0.0/16"))) << text;
  }
}

TEST(KubeadmConfig, IsBounded) {
  EXPECT_THAT(refusal("a: " + std::string(4 << 20, 'x')), HasSubstr("more than 4194304"));
  EXPECT_THAT(refusal(times(70, "[") + times(70, "]")), HasSubstr("nested deeper than 64"));
}

}  // namespace
}  // namespace croft::wire
