#include "install/commands/installed_cluster.h"

#include <string>

#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::app {
namespace {

constexpr const char* kCa = "-----BEGIN CERTIFICATE-----\nQUFB\nQQ==\n-----END CERTIFICATE-----\n";
constexpr const char* kSameCa =
    "# of the cluster\n-----BEGIN CERTIFICATE-----\r\nQUFBQQ==\r\n-----END CERTIFICATE-----";
constexpr const char* kOtherCa = "-----BEGIN CERTIFICATE-----\nQkJCQg==\n-----END CERTIFICATE-----\n";

wire::kube::KubeAccess access(const std::string& server, const std::string& ca) {
  wire::kube::KubeAccess now;
  now.servers.push_back(wire::kube::parse_kube_server(server).value());
  now.ca.data = ca;
  return now;
}

TEST(InstalledClusterTest, AServerOrACaInCommonIsOneCluster) {
  const os::ScratchDirectory scratch;
  const std::string file = scratch.file("croft-kubeconfig");
  ASSERT_TRUE(os::replace_file_durably(
      file, wire::kube::encode_kubeconfig(access("https://10.0.0.1:6443", kCa), kCa, "token")));
  EXPECT_EQ(compare_cluster(file, access("https://10.0.0.1:6443", kOtherCa)), OneCluster::yes) << "its CA was renewed";
  EXPECT_EQ(compare_cluster(file, access("https://10.0.0.2:6443", kSameCa)), OneCluster::by_its_ca);
  EXPECT_EQ(compare_cluster(file, access("https://10.0.0.2:6443", std::string(kOtherCa) + kCa)), OneCluster::by_its_ca);
  EXPECT_EQ(compare_cluster(file, access("https://10.0.0.2:6443", kOtherCa)), OneCluster::no);
  EXPECT_EQ(compare_cluster(file, access("https://10.0.0.2:6443", "")), OneCluster::not_said);
  EXPECT_EQ(compare_cluster(scratch.file("none"), access("https://10.0.0.1:6443", kCa)), OneCluster::not_said);
  wire::kube::KubeAccess by_file = access("https://10.0.0.2:6443", "");
  by_file.ca.file = scratch.file("ca.crt");
  EXPECT_EQ(compare_cluster(file, by_file), OneCluster::not_said);
  ASSERT_TRUE(os::replace_file_durably(by_file.ca.file, kSameCa));
  EXPECT_EQ(compare_cluster(file, by_file), OneCluster::by_its_ca);
}

}  // namespace
}  // namespace croft::app
