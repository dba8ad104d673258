#include "wire/manifests/kubeadm_config.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "net/test_values.h"

namespace croft::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// The ConfigMap with this `networking`, each line of it indented as kubeadm writes it.
std::string config_map(const std::string& networking) {
  return R"({"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"kubeadm-config"},"data":{"ClusterConfiguration":)"
         R"("apiServer: {}\napiVersion: kubeadm.k8s.io/v1beta4\nkind: ClusterConfiguration\nnetworking:\n)" +
         networking + R"(scheduler: {}\n"}})";
}

TEST(KubeadmConfig, SaysWhatPodsAndServicesHave) {
  const auto both = parse_kubeadm_config_map(config_map(
      R"(  dnsDomain: cluster.local\n  podSubnet: 10.244.0.0/16, fd00:10::/48\n  serviceSubnet: 10.96.0.0/12\n)"));
  ASSERT_TRUE(both) << both.error().message;
  EXPECT_THAT(both->pod_subnets, ElementsAre(prefix("10.244.0.0/16"), prefix("fd00:10::/48")));
  EXPECT_THAT(both->service_subnets, ElementsAre(prefix("10.96.0.0/12")));
}

TEST(KubeadmConfig, WhatIsNotSaidIsEmpty) {
  for (const std::string& text :
       {config_map(R"(  dnsDomain: cluster.local\n)"), config_map(R"(  podSubnet: \"\"\n)"), std::string("{}"),
        std::string(R"({"data":{}})"), std::string(R"({"data":{"ClusterConfiguration":""}})")}) {
    const auto said = parse_kubeadm_config_map(text);
    ASSERT_TRUE(said) << text << ": " << said.error().message;
    EXPECT_THAT(said->pod_subnets, IsEmpty()) << text;
  }
}

/// The ConfigMap is JSON: what others write beside the configuration may be what YAML does not take.
TEST(KubeadmConfig, WhatYamlDoesNotTakeMayStandBesideIt) {
  for (const char* odd : {"\x7f", "\xc2\x80", "\xef\xbf\xbe"}) {
    const auto said = parse_kubeadm_config_map(
        fmt::format(R"({{"metadata":{{"annotations":{{"a":"{}"}}}},"data":{{"other":"{}",)"
                    R"("ClusterConfiguration":"networking:\n  podSubnet: 10.244.0.0/16\n"}}}})",
                    odd, odd));
    ASSERT_TRUE(said) << said.error().message;
    EXPECT_THAT(said->pod_subnets, ElementsAre(prefix("10.244.0.0/16")));
  }
}

TEST(KubeadmConfig, NonsenseNamesItsMember) {
  const auto wrong = [](const std::string& text) {
    const auto said = parse_kubeadm_config_map(text);
    return said ? std::string("it was taken") : said.error().message;
  };
  EXPECT_THAT(wrong(config_map(R"(  podSubnet: 10.244.0.0\n)")), HasSubstr("networking.podSubnet"));
  EXPECT_THAT(wrong(config_map(R"(  podSubnet: [10.244.0.0/16]\n)")), HasSubstr("networking.podSubnet"));
  EXPECT_THAT(wrong(config_map(R"(  podSubnet: 10.0.0.0/16,10.1.0.0/16\n)")), HasSubstr("two subnets of one family"));
  EXPECT_THAT(wrong(config_map(R"(  serviceSubnet: 10.96.0.1/12\n)")), HasSubstr("networking.serviceSubnet"));
  EXPECT_THAT(wrong(R"({"data":{"ClusterConfiguration":7}})"), HasSubstr("data.ClusterConfiguration"));
  EXPECT_THAT(wrong("[]"), HasSubstr("no ConfigMap"));
  EXPECT_THAT(wrong(R"({"data":{"ClusterConfiguration":"networking: 7"}})"), HasSubstr("networking"));
}

}  // namespace
}  // namespace croft::wire
