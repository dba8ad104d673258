#include "services/format/service_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "store/kube/format/yaml_documents.h"

namespace croft::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string yaml(const std::string& text) {
  const auto documents = parse_yaml(text);
  if (!documents) return documents.error().message;
  std::string result;
  for (const auto& document : *documents) result += (result.empty() ? "" : " | ") + document.dump();
  return result;
}

TEST(yaml, documents_and_scalars) {
  EXPECT_EQ(
      yaml("a: 1\nb: [x, 'y', \"z\"]\n---\n# nothing\n---\n- true\n- ~\n- 0x10\n- -1\n- 1.5\n- '1'\n- no\n- 1a\n"),
      R"({"a":1,"b":["x","y","z"]} | [true,null,"0x10",-1,"1.5","1",false,"1a"])");
  EXPECT_EQ(yaml(R"({"a": {"b": [1, 2]}, "c": "d"})"), R"({"a":{"b":[1,2]},"c":"d"})");
  EXPECT_EQ(yaml("a: !!str 1\nb: 10.0.0.5\nc: fd00::1\nd: |\n  two\n  lines\n"),
            R"({"a":"1","b":"10.0.0.5","c":"fd00::1","d":"two\nlines\n"})");
  EXPECT_EQ(yaml(""), "");
  EXPECT_TRUE(parse_yaml({}).value().empty());
}

TEST(yaml, what_is_refused) {
  EXPECT_EQ(yaml("a: 1\na: 2\n"), "line 2: a key comes twice");
  EXPECT_EQ(yaml("a: &x 1\nb: *x\n"), "line 2: aliases (*name) are not read");
  EXPECT_EQ(yaml("a: !mine 1\n"), "line 1: a tag is not known");
  EXPECT_EQ(yaml("? [1]\n: 2\n"), "line 1: a key must be a text");
  EXPECT_THAT(yaml("a: [1\n"), HasSubstr("line 2: "));
  EXPECT_THAT(yaml(std::string(70, '[') + std::string(70, ']')), HasSubstr("nested deeper than 64"));
  EXPECT_THAT(yaml(std::string(kYamlBytesMax + 1, ' ')), HasSubstr("more than 4194304"));
  EXPECT_THAT(yaml("\xff\xfe\xff"), HasSubstr("line "));
}

constexpr auto kManifest = R"(apiVersion: v1
kind: Service
metadata:
  name: web
  namespace: shop
  resourceVersion: "12"
  uid: "0"
  labels: {app: web}
spec:
  type: LoadBalancer
  clusterIP: 10.0.0.5
  clusterIPs: [10.0.0.5]
  ipFamilies: [IPv4]
  ipFamilyPolicy: PreferDualStack
  selector: {app: web}
  externalTrafficPolicy: Local
  healthCheckNodePort: 30118
  allocateLoadBalancerNodePorts: false
  loadBalancerClass: example.com/a
  sessionAffinity: None
  ports:
  - name: http
    port: 80
    targetPort: 8080
    nodePort: 30080
  - {name: dns, port: 53, protocol: UDP, targetPort: dns, appProtocol: a/b}
status: {}
)";

TEST(service_manifest, has_all_members) {
  const auto read = parse_service_manifests(kManifest);
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 1U);
  const core::Service& service = read->front().service;
  EXPECT_EQ(service.name.to_string(), "shop/web");
  EXPECT_EQ(read->front().resource_version, "12");
  EXPECT_EQ(service.type, core::ServiceType::load_balancer);
  EXPECT_EQ(service.cluster_ip, "10.0.0.5");
  EXPECT_THAT(service.cluster_ips, ElementsAre("10.0.0.5"));
  EXPECT_THAT(service.ip_families, ElementsAre(net::Family::v4));
  EXPECT_EQ(service.ip_family_policy, core::IpFamilyPolicy::prefer_dual_stack);
  EXPECT_EQ(service.labels.at("app"), "web");
  EXPECT_EQ(service.selector.at("app"), "web");
  EXPECT_EQ(service.external_traffic_policy, core::TrafficPolicy::local);
  EXPECT_TRUE(service.external_traffic_policy_given);
  EXPECT_EQ(service.health_check_node_port, 30118);
  EXPECT_EQ(service.allocate_load_balancer_node_ports, false);
  EXPECT_EQ(service.load_balancer_class, "example.com/a");
  ASSERT_EQ(service.ports.size(), 2U);
  EXPECT_EQ(service.ports[0].target_port, "8080");
  EXPECT_EQ(service.ports[0].node_port, 30080);
  EXPECT_EQ(service.ports[1].protocol, core::ServiceProtocol::udp);
  EXPECT_EQ(service.ports[1].target_port, "dns");
  EXPECT_EQ(service.ports[1].app_protocol, "a/b");
}

TEST(service_manifest, of_several_documents_and_lists) {
  const auto read = parse_service_manifests(R"(
apiVersion: v1
kind: Service
metadata: {name: a}
---
{"apiVersion": "v1", "kind": "List", "items": [
  {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "b"}},
  {"metadata": {"name": "c"}}]}
)");
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->size(), 3U);
  EXPECT_EQ((*read)[2].service.name.name, "c");
}

TEST(service_manifest, errors_name_the_place) {
  const auto error = [](const std::string& text) {
    const auto read = parse_service_manifests(text);
    return read ? "read" : read.error().message;
  };
  const std::string head = "apiVersion: v1\nkind: Service\n";
  EXPECT_EQ(error("kind: Pod\napiVersion: v1\n"), "document 1 is a \"Pod\" of apiVersion \"v1\", not a Service of v1");
  EXPECT_EQ(error(""), "there is no Service in it");
  for (const auto& [body, member] :
       std::vector<std::pair<std::string, std::string>>{{"metadata: {name: 5}", "metadata.name"},
                                                        {"spec: {type: Clusterip}", "spec.type"},
                                                        {"spec: {ports: [{port: 70000}]}", "spec.ports[0].port"},
                                                        {"spec: {ports: [{port: -1}]}", "spec.ports[0].port"},
                                                        {"spec: {selector: {app: yes}}", "spec.selector"},
                                                        {"spec: {ipFamilies: [IPv5]}", "spec.ipFamilies"},
                                                        {"spec: {ports: 5}", "spec.ports"},
                                                        {"spec: 5", "spec"}}) {
    EXPECT_THAT(error(head + body + "\n"), testing::StartsWith("document 1: " + member));
  }
}

}  // namespace
}  // namespace croft::wire
