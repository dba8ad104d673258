#include "store/kube/format/pod.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::kube {
namespace {

using core::collect::PodFact;
using testing::ElementsAre;
using testing::IsEmpty;

PodFact pod(const std::string& text) {
  const auto object = decode_object(text);
  EXPECT_TRUE(object) << object.error().message;
  auto fact = pod_fact(object->value, object->meta);
  EXPECT_TRUE(fact) << fact.error().message;
  return *fact;
}

net::Address ip(const char* text) { return net::Address::parse(text).value(); }

TEST(Pod, WhatTheCollectorNeeds) {
  const PodFact fact = pod(R"({"apiVersion":"v1","kind":"Pod",
    "metadata":{"name":"web-0","namespace":"shop","uid":"u-1","resourceVersion":"7"},
    "spec":{"nodeName":"oak","hostNetwork":false},
    "status":{"phase":"Failed","reason":"Evicted","podIP":"10.0.0.5","podIPs":[{"ip":"10.0.0.5"},{"ip":"fd00::5"}]}})");
  EXPECT_EQ(fact.namespace_name, "shop");
  EXPECT_EQ(fact.name, "web-0");
  EXPECT_EQ(fact.uid, "u-1");
  EXPECT_FALSE(fact.is_mirror);
  EXPECT_EQ(fact.node, "oak");
  EXPECT_EQ(fact.phase, "Failed");
  EXPECT_EQ(fact.reason, "Evicted");
  EXPECT_THAT(fact.addresses, ElementsAre(ip("10.0.0.5"), ip("fd00::5")));
  EXPECT_FALSE(fact.has_unreadable_address);
}

TEST(Pod, OneThatWasJustMadeHasLittle) {
  const PodFact fact = pod(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}})");
  EXPECT_EQ(fact.node, "");
  EXPECT_THAT(fact.addresses, IsEmpty());
  EXPECT_FALSE(fact.has_unreadable_address);
}

/// A pod holds what its further networks gave it as well as what kubelet tells.
TEST(Pod, TheAddressesOfAllItsNetworks) {
  const PodFact fact = pod(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1","annotations":{
    "cni.projectcalico.org/podIP":"10.0.0.5/32","cni.projectcalico.org/podIPs":"10.0.0.5/32,fd00::5/128",
    "k8s.v1.cni.cncf.io/network-status":"[{\"name\":\"cbr0\",\"ips\":[\"10.0.0.5\"],\"default\":true},{\"name\":\"b/macvlan\",\"interface\":\"net1\",\"ips\":[\"10.7.0.9\"]},{\"name\":\"b/none\"}]"
    }},"status":{"podIP":"10.0.0.5","podIPs":null}})");
  EXPECT_THAT(fact.addresses, ElementsAre(ip("10.0.0.5"), ip("10.7.0.9"), ip("fd00::5")));
  EXPECT_FALSE(fact.has_unreadable_address);
}

TEST(Pod, WhatIsNoAddressIsNoted) {
  const char* const odd[] = {
      R"("status":{"podIP":"ten"})",         R"("status":{"podIPs":[{"ip":7}]})",
      R"("status":{"podIPs":[{}]})",         R"("status":{"podIPs":{"ip":"10.0.0.1"}})",
      R"("status":{"podIPs":["10.0.0.1"]})",
  };
  for (const char* members : odd) {
    const auto text = std::string(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"},)") + members + "}";
    EXPECT_TRUE(pod(text).has_unreadable_address) << members;
  }
  for (const char* value : {"no list", "{}", R"([{\"ips\":\"10.0.0.1\"}])", R"([{\"ips\":[\"x\"]}])"}) {
    const auto text = std::string(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1","annotations":)"
                                  R"({"k8s.v1.cni.cncf.io/networks-status":")") +
                      value + R"("}}})";
    EXPECT_TRUE(pod(text).has_unreadable_address) << value;
  }
}

TEST(Pod, ANameThatNoneHasIsRefused) {
  const auto object = decode_object(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}})");
  ASSERT_TRUE(object);
  ApiMeta meta = object->meta;
  meta.name_space = std::string(2000, 'a');
  EXPECT_EQ(pod_fact(object->value, meta).error().code, ErrorCode::corrupt);
}

TEST(Pod, OneThatReportsTooManyAddressesProvesNothingOfOthers) {
  std::string list;
  for (int i = 0; i < 5000; ++i)
    list += (i > 0 ? "," : "") + ("10.1." + std::to_string(i / 250)) + "." + std::to_string(i % 250);
  const PodFact fact = pod(
      R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1","annotations":{"cni.projectcalico.org/podIPs":")" +
      list + R"("}}})");
  EXPECT_EQ(fact.addresses.size(), core::collect::kPodAddressesMax);
  EXPECT_TRUE(fact.has_unreadable_address);
}

/// A list leaves out what is not read of a pod; what is read is the same.
TEST(Pod, IsReadFromAListAsByItself) {
  const std::string text =
      R"({"metadata":{"name":"web-0","namespace":"shop","uid":"u-1","resourceVersion":"7","labels":{"a":"b"},)"
      R"("annotations":{"cni.projectcalico.org/podIPs":"10.0.0.5/32,10.0.0.6/32","other":"x",)"
      R"("kubernetes.io/config.mirror":"34fb"},"managedFields":[{"fieldsV1":{"f:spec":{}}}]},)"
      R"("spec":{"containers":[{"name":"web","args":["}","]"]}],"nodeName":"oak","hostNetwork":true},)"
      R"("status":{"phase":"Failed","reason":"Evicted","podIP":"10.0.0.5","podIPs":[{"ip":"fd00::5"}],"hostIP":"10.1.1.1",)"
      R"("conditions":[{"type":"PodReadyToStartContainers","status":"False","lastProbeTime":null}],)"
      R"("containerStatuses":[{"name":"web","state":{"running":{"startedAt":"x"}}}]}})";
  const auto item = decode_item(text, list_of_pods());
  ASSERT_TRUE(item) << item.error().message;
  const auto of_list = pod_fact(item->value, item->meta);
  ASSERT_TRUE(of_list) << of_list.error().message;
  for (const PodFact& fact : {*of_list, pod(text)}) {
    EXPECT_EQ(fact.namespace_name + "/" + fact.name, "shop/web-0");
    EXPECT_EQ(fact.uid, "u-1");
    EXPECT_EQ(fact.node, "oak");
    EXPECT_EQ(fact.phase, "Failed");
    EXPECT_EQ(fact.reason, "Evicted");
    EXPECT_TRUE(fact.is_in_node_network);
    EXPECT_TRUE(fact.is_mirror);
    EXPECT_TRUE(fact.has_no_sandbox);
    EXPECT_THAT(fact.addresses, ElementsAre(ip("10.0.0.5"), ip("10.0.0.6"), ip("fd00::5")));
    EXPECT_FALSE(fact.has_unreadable_address);
  }
}

/// Kubelet goes on reporting phase and addresses of a pod whose sandbox is gone, until it has another.
TEST(Pod, OneWithoutASandboxSaysSo) {
  const struct {
    const char* what;
    const char* json;
    bool has_none;
  } cases[] = {
      {"nothing is said", R"({"phase":"Running"})", false},
      {"it has one",
       R"({"conditions":[{"type":"Ready","status":"False"},{"type":"PodReadyToStartContainers","status":"True"}],
         "containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]})",
       false},
      {"it has none", R"({"conditions":[{"type":"PodReadyToStartContainers","status":"False"}],
         "containerStatuses":[{"state":{"running":{}}}]})",
       true},
      {"an older kubelet says nothing of it", R"({"containerStatuses":[{"state":{"terminated":{"exitCode":137}}}]})",
       false}};
  for (const auto& one : cases) {
    const PodFact fact = pod(
        std::string(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"},"status":)") + one.json + "}");
    EXPECT_EQ(fact.has_no_sandbox, one.has_none) << one.what;
  }
}

}  // namespace
}  // namespace croft::wire::kube
