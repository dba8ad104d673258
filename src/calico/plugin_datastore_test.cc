#include "calico/plugin_datastore.h"

#include <string>

#include <gtest/gtest.h>

namespace croft::wire::cni {
namespace {

using Kind = DatastoreChoice::Kind;

std::optional<Kind> kind_of(const std::string& members) {
  const auto found =
      datastore_of_calicos_plugin(R"({"name": "k8s-pod-network", "plugins": [{"type": "portmap"}, {"type": "calico")" +
                                  members + R"(, "ipam": {"type": "croft-ipam"}}]})");
  return found ? std::optional(found->kind) : std::nullopt;
}

TEST(PluginDatastore, IsWhatItsMembersSay) {
  EXPECT_EQ(kind_of(R"(, "datastore_type": "kubernetes")"), Kind::kubernetes);
  EXPECT_EQ(kind_of(""), Kind::kubernetes) << "as in Calico";
  EXPECT_EQ(kind_of(R"(, "datastore_type": "etcdv3", "etcd_endpoints": "https://10.0.0.9:2379")"), Kind::etcd);
  EXPECT_EQ(kind_of(R"(, "datastore_type": "etcdv3")"), Kind::etcd) << "by variables";
  EXPECT_EQ(kind_of(R"(, "Etcd_Endpoints": "https://10.0.0.9:2379")"), Kind::etcd) << "as Go reads names";
  EXPECT_EQ(kind_of(R"(, "etcd_discovery_srv": "example.org")"), Kind::etcd);
  EXPECT_EQ(kind_of(R"(, "datastore_type": "consul")"), std::nullopt);
}

TEST(PluginDatastore, TheKubeconfigIsToldToo) {
  const auto found = datastore_of_calicos_plugin(
      R"({"name": "a", "type": "calico", "kubernetes": {"kubeconfig": "/etc/calico/kubeconfig"}})");
  ASSERT_TRUE(found) << "the one plugin of a .conf";
  EXPECT_EQ(found->kubeconfig, "/etc/calico/kubeconfig");
}

TEST(PluginDatastore, WithoutCalicosPluginThereIsNone) {
  for (const char* text : {"", "[]", "{}", R"({"plugins": {}})", R"({"plugins": [{"type": "ptp"}]})",
                           R"({"plugins": [{"type": "ptp", "ipam": {"type": "calico-ipam"}}]})"}) {
    EXPECT_FALSE(datastore_of_calicos_plugin(text)) << text;
  }
}

}  // namespace
}  // namespace croft::wire::cni
