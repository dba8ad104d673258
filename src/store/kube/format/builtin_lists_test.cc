#include "store/kube/format/builtin_lists.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <kube/kube.pb.h>

#include "store/kube/format/api.h"

namespace croft::wire::kube {
namespace {

namespace pb = croft::kube;

template <class Meta>
void name(Meta& meta, const std::string& text) {
  meta.set_name(text);
  meta.set_uid("u-" + text);
  meta.set_resource_version("7");
}
std::string enveloped(const pb::AnyList& list, const std::string& kind) {
  pb::Unknown envelope;
  envelope.mutable_type_meta()->set_api_version("v1");
  envelope.mutable_type_meta()->set_kind(kind);
  envelope.set_raw(list.SerializeAsString());
  return std::string("k8s\0", 4) + envelope.SerializeAsString();
}
template <class... Items>
std::string list_of(const std::string& kind, const Items&... items) {
  pb::AnyList list;
  list.mutable_metadata()->set_resource_version("9");
  list.mutable_metadata()->set_continue_("next");
  (list.add_items(items.SerializeAsString()), ...);
  return enveloped(list, kind);
}
std::string json_of(std::string body) {
  auto json = json_of_builtin_list(std::move(body), 0);
  return json ? *std::move(json) : "error: " + json.error().message;
}

TEST(BuiltinLists, ANodeWithItsRangesAddressesAndWriters) {
  pb::Node node;
  name(*node.mutable_metadata(), "oak");
  node.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(1);
  auto& label = *node.mutable_metadata()->add_labels();
  label.set_key("zone");
  label.set_value("<a>");
  auto& field = *node.mutable_metadata()->add_managed_fields();
  field.set_manager("kcm");
  field.mutable_fields_v1()->set_raw(R"({"f:spec":{"f:podCIDR":{}}})");
  node.mutable_metadata()->add_managed_fields()->mutable_fields_v1()->set_raw("{");
  node.mutable_spec()->set_pod_cidr("10.0.0.0/24");
  node.mutable_spec()->add_pod_cidrs("10.0.0.0/24");
  auto& address = *node.mutable_status()->add_addresses();
  address.set_type("InternalIP");
  address.set_address("192.0.2.1");
  const std::string json = json_of(list_of("NodeList", node));
  EXPECT_EQ(
      json,
      R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"next"},"items":[{"metadata":{"name":"oak",)"
      R"("uid":"u-oak","resourceVersion":"7","deletionTimestamp":"1970-01-01T00:00:01Z","labels":{"zone":"\u003ca\u003e"},)"
      R"("managedFields":[{"manager":"kcm","fieldsV1":{"f:spec":{"f:podCIDR":{}}}}]},)"
      R"("spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"]},)"
      R"("status":{"addresses":[{"type":"InternalIP","address":"192.0.2.1"}]}}]})");
  const auto page = decode_list(json, {"v1", "Node"});
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->continue_token, "next");
  EXPECT_TRUE(page->items.at(0).meta.deletion_timestamp);
}

TEST(BuiltinLists, ATimeOfDeletionThatCannotBeHeldIsSetAllTheSame) {
  for (const std::int64_t seconds :
       {std::int64_t{9'220'000'000}, std::int64_t{10'796'000'000}, std::numeric_limits<std::int64_t>::max(),
        std::numeric_limits<std::int64_t>::min()}) {
    pb::Node node;
    name(*node.mutable_metadata(), "oak");
    node.mutable_metadata()->mutable_deletion_timestamp()->set_seconds(seconds);
    const auto page = decode_list(json_of(list_of("NodeList", node)), {"v1", "Node"});
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_TRUE(page->items.at(0).meta.deletion_timestamp) << seconds;
  }
}

TEST(BuiltinLists, ServicesAndWhatIsBesideThem) {
  pb::Service service;
  name(*service.mutable_metadata(), "web");
  service.mutable_metadata()->set_namespace_("shop");
  auto& port = *service.mutable_spec()->add_ports();
  port.set_port(80);
  port.set_node_port(30080);
  port.mutable_target_port()->set_type(1);
  port.mutable_target_port()->set_str_val("http");
  service.mutable_spec()->set_cluster_ip("10.96.0.9");
  service.mutable_spec()->add_cluster_ips("10.96.0.9");
  service.mutable_spec()->set_allocate_load_balancer_node_ports(false);
  EXPECT_NE(json_of(list_of("ServiceList", service))
                .find(R"("spec":{"ports":[{"port":80,"targetPort":"http","nodePort":30080}],"clusterIP":"10.96.0.9",)"
                      R"("clusterIPs":["10.96.0.9"],"allocateLoadBalancerNodePorts":false})"),
            std::string::npos);
  pb::IPAddress address;
  name(*address.mutable_metadata(), "10.96.0.9");
  address.mutable_spec()->mutable_parent_ref()->set_name("web");
  EXPECT_NE(json_of(list_of("IPAddressList", address)).find(R"("spec":{"parentRef":{"name":"web"}})"),
            std::string::npos);
  pb::ServiceCIDR cidr;
  name(*cidr.mutable_metadata(), "kubernetes");
  cidr.mutable_spec()->add_cidrs("10.96.0.0/24");
  auto& condition = *cidr.mutable_status()->add_conditions();
  condition.set_type("Ready");
  condition.set_status("True");
  EXPECT_NE(
      json_of(list_of("ServiceCIDRList", cidr))
          .find(R"("spec":{"cidrs":["10.96.0.0/24"]},"status":{"conditions":[{"type":"Ready","status":"True"}]})"),
      std::string::npos);
  pb::Namespace name_space;
  name(*name_space.mutable_metadata(), "shop");
  const std::string namespaces = json_of(list_of("NamespaceList", name_space, name_space));
  EXPECT_TRUE(decode_list(namespaces, {"v1", "Namespace"}));
  EXPECT_FALSE(decode_list(namespaces, {"v1", "Node"}));
  EXPECT_FALSE(decode_list(json_of(list_of("ServiceList", name_space)), {"v1", "Service", true}));
}

TEST(BuiltinLists, APartThatSaysItIsNotTheEndStaysSo) {
  pb::Node node;
  name(*node.mutable_metadata(), "oak");
  pb::AnyList list;
  list.mutable_metadata()->set_resource_version("9");
  list.mutable_metadata()->set_remaining_item_count(5);
  list.add_items(node.SerializeAsString());
  EXPECT_FALSE(decode_list(json_of(enveloped(list, "NodeList")), {"v1", "Node"}));
  list.mutable_metadata()->set_continue_("next");
  EXPECT_TRUE(decode_list(json_of(enveloped(list, "NodeList")), {"v1", "Node"}));
}

TEST(BuiltinLists, JsonComesBackAsItIsAndNonsenseIsNamed) {
  EXPECT_EQ(json_of(R"({"kind":"NodeList"})"), R"({"kind":"NodeList"})");
  EXPECT_EQ(json_of(""), "");
  pb::Node node;
  name(*node.mutable_metadata(), "oak");
  const std::string good = list_of("NodeList", node);
  for (std::size_t size = 4; size < good.size(); ++size) {
    const auto json = json_of_builtin_list(good.substr(0, size), 0);
    if (json) continue;  // what is cut off may be a shorter message: what was lost then has no resourceVersion
    EXPECT_EQ(json.error().code, ErrorCode::corrupt) << size;
  }
  EXPECT_EQ(json_of_builtin_list(list_of("PodList", node), 0).error().code, ErrorCode::corrupt);
  EXPECT_EQ(json_of_builtin_list(std::string("k8s\0", 4) + std::string(100, '\xff'), 0).error().code,
            ErrorCode::corrupt);
  pb::AnyList broken;
  broken.mutable_metadata()->set_resource_version("9");
  broken.add_items("\xff\xff");
  EXPECT_EQ(json_of_builtin_list(enveloped(broken, "NodeList"), 0).error().code, ErrorCode::corrupt);
  EXPECT_EQ(json_of_builtin_list("k8s\0" + std::string(kApiListBytesMax, 'x'), 0).has_value(),
            true);  // no mark: "k8s" alone
  EXPECT_EQ(json_of_builtin_list(std::string("k8s\0", 4) + std::string(kApiListBytesMax, 'x'), 0).error().code,
            kTooLarge);
}

/// Two bytes each: read as they came, they took a hundred times as much.
TEST(BuiltinLists, MoreObjectsThanWereAskedForAreRefusedUnread) {
  pb::AnyList list;
  list.mutable_metadata()->set_resource_version("9");
  for (int i = 0; i < 517; ++i) list.add_items("");
  const std::string body = enveloped(list, "NodeList");
  const auto json = json_of_builtin_list(body, 500);
  ASSERT_FALSE(json);
  EXPECT_EQ(json.error().code, ErrorCode::corrupt);
  EXPECT_NE(json.error().message.find("asked for were at most 500 objects (limit), and it has 517"), std::string::npos)
      << json.error().message;
  EXPECT_TRUE(json_of_builtin_list(body, 501));
  EXPECT_TRUE(json_of_builtin_list(body, 0));
  for (std::size_t i = 0; i < kApiItemsMax; ++i) list.add_items("");
  const auto many = json_of_builtin_list(enveloped(list, "NodeList"), 0);
  ASSERT_FALSE(many);
  EXPECT_NE(many.error().message.find("it has 100517 objects, and at most 100000 are read"), std::string::npos)
      << many.error().message;
}

TEST(BuiltinLists, AnObjectWithMoreThanCanBeIsRefusedUnread) {
  const auto refused = [](const std::string& kind, const auto& item) {
    const auto json = json_of_builtin_list(list_of(kind, item), 500);
    return json ? "none" : json.error().message;
  };
  pb::Node node;
  name(*node.mutable_metadata(), "oak");
  for (int i = 0; i < 65; ++i) node.mutable_spec()->add_pod_cidrs("");
  EXPECT_NE(refused("NodeList", node).find("spec.podCIDRs of Node \"oak\" has 65 entries, and at most 64 are read"),
            std::string::npos)
      << refused("NodeList", node);
  node.mutable_spec()->mutable_pod_cidrs()->RemoveLast();
  EXPECT_EQ(refused("NodeList", node), "none");
  for (int i = 0; i < 4097; ++i) node.mutable_status()->add_addresses();
  EXPECT_NE(refused("NodeList", node).find("status.addresses of Node \"oak\" has 4097 entries"), std::string::npos);

  pb::Service service;
  name(*service.mutable_metadata(), "web");
  for (int i = 0; i < 250'001; ++i) service.mutable_metadata()->add_labels();
  EXPECT_NE(refused("ServiceList", service).find("metadata.labels of Service \"web\" has 250001 entries"),
            std::string::npos);
}

/// A text that is escaped takes six bytes for one.
TEST(BuiltinLists, WhatGrowsIntoTooMuchIsAskedForInSmallerParts) {
  pb::Namespace one;
  name(*one.mutable_metadata(), "shop");
  auto& label = *one.mutable_metadata()->add_labels();
  label.set_key("k");
  label.set_value(std::string(std::size_t{3} << 20, '\x01'));
  EXPECT_EQ(json_of_builtin_list(list_of("NamespaceList", one), 500).error().code, kTooLarge);
}

}  // namespace
}  // namespace croft::wire::kube
