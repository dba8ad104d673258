#include "install/format/kubeadm_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

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
