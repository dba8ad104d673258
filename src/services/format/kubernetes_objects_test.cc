#include "services/format/kubernetes_objects.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "services/format/service_manifest.h"
#include "store/kube/format/yaml.h"

namespace croft::wire::kube {
namespace {

using namespace std::chrono_literals;

constexpr std::string_view kPlace = "/registry/ranges/serviceips";

std::string from_hex(std::string_view hex) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string bytes;
  std::string digits;
  for (const char c : hex) {
    if (c == ' ') continue;
    digits += c;
    if (digits.size() < 2) continue;
    bytes += static_cast<char>(kDigits.find(digits[0]) << 4 | kDigits.find(digits[1]));
    digits.clear();
  }
  return bytes;
}

const std::string kExampleA = from_hex(
    "6b387300 0a15 0a02 7631 120f 52616e6765416c6c6f636174696f6e 1224 0a10 0a0012001a0022002a00320038004200 120b "
    "31302e302e302e302f3234 1a03 080201 1a00 2200");
const std::string kExampleB = from_hex(
    "6b387300 0a15 0a02 7631 120f 52616e6765416c6c6f636174696f6e 122c 0a10 0a0012001a0022002a00320038004200 120b "
    "33303030302d3332373637 1a0b 0100000000000000000000 1a00 2200");

/// What Kubernetes' own code wrote (e2e/kubernetes/build).
std::string golden(const std::string& name) {
  std::ifstream file(std::string(CROFT_TESTDATA) + "/kubernetes/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

core::RangeAllocation range_in(std::string_view bytes) {
  auto range = decode_range_allocation(kPlace, bytes);
  EXPECT_TRUE(range) << range.error().message;
  return range ? *std::move(range) : core::RangeAllocation{};
}

template <class T>
Error error_of(const Result<T>& result) {
  EXPECT_FALSE(result);
  return result ? Error{} : result.error();
}

Error refusal_of(std::string_view bytes) { return error_of(decode_range_allocation(kPlace, bytes)); }

TEST(KubeRange, ANewOneHasTheBytesOfTheWorkedExamples) {
  EXPECT_EQ(kExampleA.size(), 69U);
  EXPECT_EQ(kExampleB.size(), 77U);
  EXPECT_EQ(encode_range_allocation({"10.0.0.0/24", from_hex("080201"), nullptr}), kExampleA);
  EXPECT_EQ(encode_range_allocation({"30000-32767", from_hex("0100000000000000000000"), nullptr}), kExampleB);
  EXPECT_EQ(golden("range_addresses.pb"), kExampleA);
  EXPECT_EQ(range_in(kExampleA).data, from_hex("080201"));
  EXPECT_EQ(range_in(kExampleB).range, "30000-32767");
}

TEST(KubeRange, ANewOneWithoutBitsHasEmptyData) {
  const std::string bytes = encode_range_allocation({"10.0.0.0/24", "", nullptr});
  EXPECT_EQ(bytes, golden("range_empty.pb"));
  EXPECT_NE(bytes.find(from_hex("1a00 1a00 2200")), bytes.npos);
}

// Every value of Kubernetes' is written back as it was, byte for byte, and both forms of one object read the same.
TEST(KubeRange, WhatKubernetesWroteIsWrittenBackUnchanged) {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(std::string(CROFT_TESTDATA) + "/kubernetes")) {
    const std::filesystem::path& path = entry.path();
    if (!path.filename().string().starts_with("range_")) continue;
    const std::string bytes = golden(std::filesystem::relative(path, std::string(CROFT_TESTDATA) + "/kubernetes"));
    const core::RangeAllocation range = range_in(bytes);
    EXPECT_EQ(encode_range_allocation(range), bytes) << path;
    const core::RangeAllocation other = range_in(golden(path.stem().string() + ".pb"));
    EXPECT_EQ(range.range, other.range) << path;
    EXPECT_EQ(range.data, other.data) << path;
    ++count;
  }
  EXPECT_GE(count, 20U);
}

TEST(KubeRange, OnlyRangeAndDataAreChangedByAWrite) {
  core::RangeAllocation json = range_in(golden("range_metadata.json"));
  core::RangeAllocation protobuf = range_in(golden("range_metadata.pb"));
  const std::string old_range = json.range;
  const auto replaced = [&](std::string bytes, const std::string& from, const std::string& to) {
    const std::size_t at = bytes.find(from);
    EXPECT_NE(at, bytes.npos);
    return bytes.replace(at, from.size(), to);
  };
  json.range = protobuf.range = "10.97.0.0/24";
  EXPECT_EQ(encode_range_allocation(json), replaced(golden("range_metadata.json"), old_range, json.range));
  EXPECT_EQ(encode_range_allocation(protobuf), replaced(golden("range_metadata.pb"), old_range, json.range));
  json.data = from_hex("080201");
  EXPECT_NE(encode_range_allocation(json).find(R"("data":"CAIB"})"), std::string::npos);
}

TEST(KubeRange, NoDataIsNoBitsAndStaysAsItWas) {
  for (const char* name : {"range_nil.pb", "range_nil.json", "1.32/range_nil.json", "range_empty.json"}) {
    core::RangeAllocation range = range_in(golden(name));
    EXPECT_EQ(range.data, "") << name;
    EXPECT_EQ(encode_range_allocation(range), golden(name));
    range.data = from_hex("01");
    const core::RangeAllocation again = range_in(encode_range_allocation(range));
    EXPECT_EQ(again.data, range.data) << name;
  }
  core::RangeAllocation without = range_in(R"({"kind":"RangeAllocation","apiVersion":"v1"})");
  EXPECT_EQ(encode_range_allocation(without), R"({"kind":"RangeAllocation","apiVersion":"v1","range":""})");
  without.range = "10.0.0.0/24";
  without.data = from_hex("01");
  EXPECT_EQ(encode_range_allocation(without),
            R"({"kind":"RangeAllocation","apiVersion":"v1","range":"10.0.0.0/24","data":"AQ=="})");
}

TEST(KubeRange, WhatIsNotKnownSurvives) {
  const std::string json =
      R"({"data":"CAIB","range":"10.0.0.0/24","later":{"n":1.50,"list":[1,{"a":null}]},)"
      R"("metadata":{"creationTimestamp":null,"managedFields":[{"manager":"x"}]},"apiVersion":"v1",)"
      R"("kind":"RangeAllocation"})";
  EXPECT_EQ(encode_range_allocation(range_in(json)), json);
  // A field 9 in the object and a field 7 in the envelope.
  const std::string protobuf = from_hex(
      "6b387300 0a15 0a02 7631 120f 52616e6765416c6c6f636174696f6e 1228 0a10 0a0012001a0022002a00320038004200 120b "
      "31302e302e302e302f3234 1a03 080201 4a02 6162 1a00 2200 3a01 63");
  core::RangeAllocation range = range_in(protobuf);
  EXPECT_EQ(encode_range_allocation(range), protobuf);
  range.data = from_hex("0801");
  const core::RangeAllocation again = range_in(encode_range_allocation(range));
  EXPECT_EQ(encode_range_allocation(again).size(), protobuf.size() - 1);
}

TEST(KubeRange, ATwelveBitmapGoesThroughBothForms) {
  core::RangeAllocation range{"10.96.0.0/12", std::string(131072, '\xa5'), nullptr};
  EXPECT_EQ(range_in(encode_range_allocation(range)).data, range.data);
  core::RangeAllocation json = range_in(golden("range_addresses.json"));
  json.data = range.data;
  EXPECT_EQ(range_in(encode_range_allocation(json)).data, range.data);
}

TEST(KubeRange, EncryptionAtRestIsNamed) {
  const Error error = refusal_of("k8s:enc:aescbc:v1:key1:\x01\x02");
  EXPECT_EQ(error.code, ErrorCode::refused_by_configuration);
  EXPECT_NE(error.message.find("encrypted at rest"), std::string::npos);
  EXPECT_NE(error.message.find(kPlace), std::string::npos);
}

TEST(KubeRange, EveryDamageNamesTheKeyAndTheField) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "neither"},
      {"kind: RangeAllocation\napiVersion: v1\n", "neither"},
      {"null", "kind"},
      {"[]", "object"},
      {R"({"kind":"Service","apiVersion":"v1"})", "kind"},
      {R"({"kind":"RangeAllocation","apiVersion":"v2"})", "apiVersion"},
      {R"({"kind":"RangeAllocation","apiVersion":"v1","data":"CAI"})", "data"},
      {R"({"kind":"RangeAllocation","apiVersion":"v1","data":"CA*B"})", "data"},
      {R"({"kind":"RangeAllocation","apiVersion":"v1","data":7})", "data"},
      {R"({"kind":"RangeAllocation","apiVersion":"v1","range":7})", "range"},
      {R"({"kind":"RangeAllocation","apiVersion":"v1","range":"a","range":"b"})", "range"},
      {R"({"kind":"RangeAllocation","apiVersion":"v1","metadata":[]})", "metadata"},
      {std::string("k8s\0", 4), "kind"},
      {from_hex("6b387300 0a15 0a02"), "envelope"},
      {from_hex("6b387300 0a15 0a02 7631 120f 52616e6765416c6c6f636174696f6e"), "raw"},
      {from_hex("6b387300 0a15 0a02 7631 120f 52616e6765416c6c6f636174696f6e 1203 0a10 0a"), "raw"},
      {from_hex("6b387300 0a15 0a02 7631 120f 52616e6765416c6c6f636174696f6e 1204 0a02 0a05"), "metadata"},
      {from_hex("6b387300 0a15 0a02 7631 120f 52616e6765416c6c6f636174696f6e 1200 1a02 677a"), "contentEncoding"},
      {golden("service_cidr_v1.pb"), "kind"},
      {std::string(kObjectBytesMax + 1, ' '), "bytes"},
      {std::string(300, '[') + std::string(300, ']'), "neither"},
  };
  for (const auto& [bytes, field] : cases) {
    const Error error = refusal_of(bytes);
    EXPECT_EQ(error.code, ErrorCode::corrupt) << field;
    EXPECT_NE(error.message.find(kPlace), std::string::npos) << error.message;
    EXPECT_NE(error.message.find(field), std::string::npos) << error.message;
  }
}

TEST(KubeRange, ACutOffValueIsAnError) {
  for (std::size_t i = 0; i < kExampleA.size(); ++i) {
    const auto range = decode_range_allocation(kPlace, kExampleA.substr(0, i));
    const bool is_whole = i >= kExampleA.size() - 4;  // only the empty encoding and type are missing
    EXPECT_TRUE(!range || is_whole) << i;
  }
}

core::Service service_in(const std::string& file, const core::ServiceName& name) {
  auto service = decode_service("/registry/services/specs/" + name.to_string(), name, golden(file));
  EXPECT_TRUE(service) << service.error().message;
  return service ? *std::move(service) : core::Service{};
}

const std::pair<std::string, core::ServiceName> kServices[] = {
    {"service_before_dual_stack", {"default", "old"}},   {"service_dual_stack", {"default", "web"}},
    {"service_external_name", {"default", "elsewhere"}}, {"service_headless", {"default", "peers"}},
    {"service_kubernetes", {"default", "kubernetes"}},   {"service_leaving", {"edge", "leaving"}},
    {"service_load_balancer", {"edge", "gateway"}},      {"service_many_fields", {"shop", "front"}},
    {"service_node_port", {"kube-system", "dns"}},
};

TEST(KubeService, BothFormsReadTheSame) {
  for (const auto& [file, name] : kServices) {
    EXPECT_EQ(service_in(file + ".pb", name), service_in(file + ".json", name)) << file;
  }
}

TEST(KubeService, ManyFields) {
  const core::Service service = service_in("service_many_fields.pb", {"shop", "front"});
  EXPECT_EQ(service.uid, "6ba7b810-9dad-11d1-80b4-00c04fd430c8");
  EXPECT_EQ(service.created, WallTime(1773500966s));
  EXPECT_EQ(service.labels, (std::map<std::string, std::string>{{"app", "front"}, {"tier", "web"}}));
  EXPECT_EQ(service.selector, (std::map<std::string, std::string>{{"app", "web"}}));
  EXPECT_EQ(service.type, core::ServiceType::load_balancer);
  EXPECT_EQ(service.cluster_ip, "10.96.1.2");
  EXPECT_EQ(service.cluster_ips, (std::vector<std::string>{"10.96.1.2", "fd00:10:96::102"}));
  EXPECT_EQ(service.ip_families, (std::vector{net::Family::v4, net::Family::v6}));
  EXPECT_EQ(service.ip_family_policy, core::IpFamilyPolicy::require_dual_stack);
  const std::vector<core::ServicePort> ports = {
      {"http", core::ServiceProtocol::tcp, 80, "http", 30180, "kubernetes.io/h2c"},
      {"quic", core::ServiceProtocol::udp, 443, "443", 30443, ""},
      {"https", core::ServiceProtocol::tcp, 443, "443", 30443, ""},
      {"sctp", core::ServiceProtocol::sctp, 9999, "9999", 30999, ""},
  };
  EXPECT_EQ(service.ports, ports);
  EXPECT_EQ(service.external_traffic_policy, core::TrafficPolicy::local);
  EXPECT_TRUE(service.external_traffic_policy_given);
  EXPECT_EQ(service.health_check_node_port, 32000);
  EXPECT_EQ(service.allocate_load_balancer_node_ports, true);
  EXPECT_EQ(service.load_balancer_class, "example.com/anycast");
  EXPECT_FALSE(service.deleting);
}

TEST(KubeService, HeadlessLeavingAndOld) {
  const core::Service headless = service_in("service_headless.pb", {"default", "peers"});
  EXPECT_EQ(headless.cluster_ips, (std::vector<std::string>{"None"}));
  EXPECT_FALSE(headless.external_traffic_policy_given);
  EXPECT_EQ(headless.allocate_load_balancer_node_ports, std::nullopt);
  EXPECT_TRUE(service_in("service_leaving.json", {"edge", "leaving"}).deleting);
  EXPECT_EQ(service_in("service_load_balancer.pb", {"edge", "gateway"}).allocate_load_balancer_node_ports, false);
  const core::Service old = service_in("service_before_dual_stack.pb", {"default", "old"});
  EXPECT_EQ(old.cluster_ips, (std::vector<std::string>{old.cluster_ip}));
  EXPECT_EQ(old.ip_families, (std::vector{net::Family::v4}));
  EXPECT_EQ(old.ip_family_policy, core::IpFamilyPolicy::single_stack);
  const core::Service outside = service_in("service_external_name.pb", {"default", "elsewhere"});
  EXPECT_EQ(outside.type, core::ServiceType::external_name);
  EXPECT_FALSE(outside.external_name.empty());
  EXPECT_TRUE(outside.ip_families.empty());
}

TEST(KubeService, WhatCanNotBeIsNamed) {
  const auto refusal = [](const std::string& spec, const std::string& metadata = R"("name":"a","namespace":"b")") {
    return error_of(decode_service("/registry/services/specs/b/a", {"b", "a"},
                                   R"({"kind":"Service","apiVersion":"v1","metadata":{)" + metadata + R"(},"spec":{)" +
                                       spec + "}}"))
        .message;
  };
  const std::pair<std::string, std::string> cases[] = {
      {R"("type":"Other")", "spec.type: \"Other\""},
      {R"("ports":[{"port":80},{"port":65536}])", "spec.ports[1].port: 65536"},
      {R"("ports":[{"nodePort":-1}])", "spec.ports[0].nodePort: -1"},
      {R"("ports":[{"port":1.5}])", "spec.ports[0].port: "},
      {R"("ports":[{"targetPort":{}}])", "spec.ports[0].targetPort: "},
      {R"("ports":[{"protocol":"ICMP"}])", "spec.ports[0].protocol: \"ICMP\""},
      {R"("ipFamilies":["IPv5"])", "spec.ipFamilies: \"IPv5\""},
      {R"("ipFamilyPolicy":"Both")", "spec.ipFamilyPolicy: \"Both\""},
      {R"("externalTrafficPolicy":"Far")", "spec.externalTrafficPolicy: \"Far\""},
      {R"("healthCheckNodePort":70000)", "spec.healthCheckNodePort: 70000"},
      {R"("clusterIPs":[1])", "spec.clusterIPs[0]: "},
      {R"("allocateLoadBalancerNodePorts":"yes")", "spec.allocateLoadBalancerNodePorts: "},
  };
  for (const auto& [spec, text] : cases) EXPECT_NE(refusal(spec).find(text), std::string::npos) << refusal(spec);
  EXPECT_NE(refusal("", R"("creationTimestamp":"yesterday")").find("metadata.creationTimestamp"), std::string::npos);
}

TEST(KubeServiceCidr, BothVersionsAndForms) {
  for (const std::string version : {"v1", "v1beta1"}) {
    const auto protobuf = decode_service_cidr(kPlace, "kubernetes", golden("service_cidr_" + version + ".pb"));
    const auto json = decode_service_cidr(kPlace, "kubernetes", golden("service_cidr_" + version + ".json"));
    ASSERT_TRUE(protobuf) << protobuf.error().message;
    ASSERT_TRUE(json) << json.error().message;
    EXPECT_EQ(*protobuf, *json);
    ASSERT_EQ(protobuf->cidrs.size(), 2U);
    EXPECT_EQ(protobuf->cidrs[1].to_string(), "fd00:10:96::/112");
  }
}

TEST(KubeServiceCidr, ACidrIsReadAsAKubeApiserverReadsIt) {
  const auto decode = [](const std::string& cidr) {
    return decode_service_cidr(
        kPlace, "a",
        R"({"kind":"ServiceCIDR","apiVersion":"networking.k8s.io/v1","metadata":{"name":"a"},"spec":{"cidrs":[")" +
            cidr + R"("]}})");
  };
  for (const char* text : {"10.96.0.1/12", "010.096.00.0/12", "::ffff:10.96.0.0/108"}) {
    const auto decoded = decode(text);
    ASSERT_TRUE(decoded) << text;
    EXPECT_EQ(decoded->cidrs.front().to_string(), "10.96.0.0/12") << text;
  }
  EXPECT_NE(error_of(decode("ten")).message.find("spec.cidrs[0]"), std::string::npos);
}

}  // namespace
}  // namespace croft::wire::kube

namespace croft::wire {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string yaml(const std::string& text) {
  const auto documents = parse_yaml_documents(text);
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
  EXPECT_TRUE(parse_yaml_documents({}).value().empty());
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
