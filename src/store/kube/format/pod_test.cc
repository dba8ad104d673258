#include "store/kube/format/pod.h"

#include <functional>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <kube/kube.pb.h>

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

croft::kube::Pod message(const std::string& name) {
  croft::kube::Pod pod;
  pod.mutable_metadata()->set_name(name);
  pod.mutable_metadata()->set_namespace_("shop");
  pod.mutable_metadata()->set_uid("u-1");
  pod.mutable_metadata()->set_resource_version("7");
  auto& noted = *pod.mutable_metadata()->add_annotations();
  noted.set_key("cni.projectcalico.org/podIPs");
  noted.set_value("10.0.0.5/32,10.0.0.6/32");
  pod.mutable_spec()->set_node_name("oak");
  pod.mutable_status()->set_phase("Failed");
  pod.mutable_status()->set_reason("Evicted");
  pod.mutable_status()->set_pod_ip("10.0.0.5");
  pod.mutable_status()->add_pod_ips()->set_ip("fd00::5");
  return pod;
}
std::string enveloped(const croft::kube::PodList& list, const std::string& kind = "PodList") {
  croft::kube::Unknown envelope;
  envelope.mutable_type_meta()->set_api_version("v1");
  envelope.mutable_type_meta()->set_kind(kind);
  envelope.set_raw(list.SerializeAsString());
  return std::string("k8s\0", 4) + envelope.SerializeAsString();
}

TEST(PodPage, IsReadInEitherForm) {
  croft::kube::PodList list;
  list.mutable_metadata()->set_resource_version("9");
  list.mutable_metadata()->set_continue_("next");
  *list.add_items() = message("web-0");
  const auto page = decode_pods(enveloped(list), 500);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_EQ(page->resource_version, "9");
  EXPECT_EQ(page->continue_token, "next");
  const auto in_json =
      decode_pods(R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":"next"},
    "items":[{"metadata":{"name":"web-0","namespace":"shop","uid":"u-1","resourceVersion":"7",
      "annotations":{"cni.projectcalico.org/podIPs":"10.0.0.5/32,10.0.0.6/32"}},"spec":{"nodeName":"oak"},
      "status":{"phase":"Failed","reason":"Evicted","podIP":"10.0.0.5","podIPs":[{"ip":"fd00::5"}]}}]})",
                  500);
  ASSERT_TRUE(in_json) << in_json.error().message;
  EXPECT_EQ(in_json->resource_version, "9");
  EXPECT_EQ(in_json->continue_token, "next");
  for (const PodPage& one : {*page, *in_json}) {
    ASSERT_EQ(one.pods.size(), 1U);
    const PodFact& fact = one.pods.front();
    EXPECT_EQ(fact.namespace_name + "/" + fact.name, "shop/web-0");
    EXPECT_EQ(fact.uid, "u-1");
    EXPECT_EQ(fact.node, "oak");
    EXPECT_EQ(fact.phase, "Failed");
    EXPECT_EQ(fact.reason, "Evicted");
    EXPECT_THAT(fact.addresses, ElementsAre(ip("10.0.0.5"), ip("10.0.0.6"), ip("fd00::5")));
    EXPECT_FALSE(fact.has_unreadable_address);
  }
}

/// Kubelet goes on reporting phase and addresses of a pod whose sandbox is gone, until it has another.
TEST(PodPage, OneWithoutASandboxSaysSo) {
  using Status = croft::kube::PodStatus;
  const auto condition = [](Status& status, const char* type, const char* value) {
    auto& one = *status.add_conditions();
    one.set_type(type);
    one.set_status(value);
  };
  const auto running = [](croft::kube::ContainerStatus& status) { status.mutable_state()->mutable_running(); };
  constexpr const char* kCondition = "PodReadyToStartContainers";
  const struct {
    const char* what;
    const char* json;
    std::function<void(Status&)> fill;
    bool has_none;
  } cases[] = {
      {"nothing is said", R"({"phase":"Running"})", [](Status&) {}, false},
      {"it has one",
       R"({"conditions":[{"type":"Ready","status":"False"},{"type":"PodReadyToStartContainers","status":"True"}],
         "containerStatuses":[{"state":{"waiting":{"reason":"CrashLoopBackOff"}}}]})",
       [&](Status& status) {
         condition(status, "Ready", "False");
         condition(status, kCondition, "True");
         status.add_container_statuses()->mutable_state();
       },
       false},
      {"it has none", R"({"conditions":[{"type":"PodReadyToStartContainers","status":"False"}],
         "containerStatuses":[{"state":{"running":{}}}]})",
       [&](Status& status) {
         condition(status, kCondition, "False");
         running(*status.add_container_statuses());
       },
       true},
      {"of an older kubelet, none runs",
       R"({"containerStatuses":[{"state":{"terminated":{"exitCode":137}}},{"state":{"waiting":{},"running":null}}]})",
       [](Status& status) {
         status.add_container_statuses()->mutable_state();
         status.add_container_statuses();
       },
       true},
      {"of an older kubelet, one runs",
       R"({"containerStatuses":[{"state":{"waiting":{}}}],"initContainerStatuses":[{"state":{"running":{"startedAt":"x"}}}]})",
       [&](Status& status) {
         status.add_container_statuses()->mutable_state();
         running(*status.add_init_container_statuses());
       },
       false},
      {"a debugger runs", R"({"containerStatuses":[{}],"ephemeralContainerStatuses":[{"state":{"running":{}}}]})",
       [&](Status& status) {
         status.add_container_statuses();
         running(*status.add_ephemeral_container_statuses());
       },
       false}};
  for (const auto& one : cases) {
    croft::kube::PodList list;
    list.mutable_metadata()->set_resource_version("9");
    *list.add_items() = message("a");
    one.fill(*list.mutable_items(0)->mutable_status());
    const auto page = decode_pods(enveloped(list), 500);
    ASSERT_TRUE(page) << one.what << ": " << page.error().message;
    EXPECT_EQ(page->pods.at(0).has_no_sandbox, one.has_none) << one.what << ", in protobuf";
    const PodFact fact = pod(
        std::string(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"},"status":)") + one.json + "}");
    EXPECT_EQ(fact.has_no_sandbox, one.has_none) << one.what << ", in JSON";
  }
}

TEST(PodPage, AMirrorOfAStaticPodSaysSo) {
  croft::kube::PodList list;
  list.mutable_metadata()->set_resource_version("9");
  *list.add_items() = message("web-0");
  croft::kube::Pod mirror = message("gw-oak");
  auto& noted = *mirror.mutable_metadata()->add_annotations();
  noted.set_key("kubernetes.io/config.mirror");
  noted.set_value("34fb0746a0c244a9a53059ec1e33297c");
  *list.add_items() = mirror;
  const auto page = decode_pods(enveloped(list), 500);
  ASSERT_TRUE(page) << page.error().message;
  EXPECT_FALSE(page->pods.at(0).is_mirror);
  EXPECT_TRUE(page->pods.at(1).is_mirror);
  EXPECT_TRUE(pod(R"({"metadata":{"name":"gw-oak","namespace":"edge","uid":"u-1","resourceVersion":"7",
    "annotations":{"kubernetes.io/config.mirror":"34fb0746a0c244a9a53059ec1e33297c"}}})")
                  .is_mirror);
}

/// Each of them would free the addresses of every pod that it does not tell of.
TEST(PodPage, AListOfSomethingElseOrNotWholeIsNone) {
  croft::kube::PodList list;
  list.mutable_metadata()->set_resource_version("9");
  *list.add_items() = message("web-0");
  EXPECT_FALSE(decode_pods(enveloped(list, "NamespaceList"), 500));
  list.mutable_metadata()->set_remaining_item_count(5);
  EXPECT_FALSE(decode_pods(enveloped(list), 500));
  list.mutable_metadata()->set_continue_("next");
  EXPECT_TRUE(decode_pods(enveloped(list), 500));
  list.mutable_metadata()->clear_continue_();
  list.mutable_metadata()->set_remaining_item_count(0);
  EXPECT_TRUE(decode_pods(enveloped(list), 500));
  list.mutable_items(0)->mutable_metadata()->clear_namespace_();
  EXPECT_FALSE(decode_pods(enveloped(list), 500));

  const auto in_json = [](std::string_view kind, std::string_view version, std::string_view more,
                          std::string_view name_space) {
    return decode_pods(
        fmt::format(
            R"({{"kind":"{}","apiVersion":"{}","metadata":{{"resourceVersion":"9"{}}},"items":[{{"metadata":{{"name":"a",)"
            R"("uid":"u","resourceVersion":"7"{}}}}}]}})",
            kind, version, more, name_space),
        500);
  };
  constexpr std::string_view kIn = R"(,"namespace":"shop")";
  EXPECT_TRUE(in_json("PodList", "v1", "", kIn));
  EXPECT_FALSE(in_json("NamespaceList", "v1", "", ""));
  EXPECT_FALSE(in_json("ServiceList", "v1", "", kIn));
  EXPECT_FALSE(in_json("PodList", "v2", "", kIn));
  EXPECT_FALSE(in_json("List", "v1", "", kIn));
  EXPECT_FALSE(in_json("PodList", "v1", R"(,"remainingItemCount":5)", kIn));
  EXPECT_TRUE(in_json("PodList", "v1", R"(,"remainingItemCount":5,"continue":"c")", kIn));
  EXPECT_FALSE(in_json("PodList", "v1", "", ""));
}

TEST(PodPage, WhatIsNoListIsNoEmptyList) {
  croft::kube::PodList list;
  list.mutable_metadata()->set_resource_version("9");
  *list.add_items() = message("web-0");
  EXPECT_TRUE(decode_pods(enveloped(list), 500));
  const std::string whole = enveloped(list);
  for (std::size_t size = 4; size < whole.size(); ++size) EXPECT_FALSE(decode_pods(whole.substr(0, size), 500)) << size;
  EXPECT_FALSE(decode_pods(enveloped(list, "Status"), 500));
  list.mutable_items(0)->mutable_metadata()->clear_name();
  EXPECT_FALSE(decode_pods(enveloped(list), 500));
  EXPECT_FALSE(decode_pods("", 500));
}

std::string refusal_of(const Result<PodPage>& page) { return page ? "none" : page.error().message; }

TEST(PodPage, MorePodsThanWereAskedForAreRefusedUnread) {
  croft::kube::PodList list;
  list.mutable_metadata()->set_resource_version("9");
  for (int i = 0; i < 17; ++i) *list.add_items() = message("web-" + std::to_string(i));
  EXPECT_THAT(refusal_of(decode_pods(enveloped(list), 0)), "none");
  EXPECT_THAT(refusal_of(decode_pods(enveloped(list), 1)), "none") << "a small allowance";
  *list.add_items() = message("web-17");
  EXPECT_THAT(refusal_of(decode_pods(enveloped(list), 1)),
              testing::HasSubstr("asked for were at most 1 objects (limit), and it has 18"));
  std::string json = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)";
  for (int i = 0; i < 18; ++i) {
    json += (i == 0 ? "" : ",") +
            fmt::format(R"({{"metadata":{{"name":"a{}","namespace":"b","resourceVersion":"7"}}}})", i);
  }
  EXPECT_THAT(refusal_of(decode_pods(json + "]}", 1)), testing::HasSubstr("and it has 18"));
  EXPECT_THAT(refusal_of(decode_pods(json + "]}", 2)), "none");
}

/// An empty entry takes two bytes in protobuf, and fifty when it is read.
TEST(PodPage, APodWithMoreAddressesThanCanBeIsRefusedUnread) {
  croft::kube::PodList list;
  list.mutable_metadata()->set_resource_version("9");
  *list.add_items() = message("web-0");
  auto& status = *list.mutable_items(0)->mutable_status();
  status.clear_pod_ips();
  for (std::size_t i = 0; i < 64; ++i) status.add_pod_ips()->set_ip("10.0.0.7");
  EXPECT_THAT(refusal_of(decode_pods(enveloped(list), 500)), "none");
  status.add_pod_ips();
  EXPECT_THAT(refusal_of(decode_pods(enveloped(list), 500)),
              testing::HasSubstr("status.podIPs of Pod \"web-0\" has 65 entries, and at most 64 are read"));

  std::string json = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[{"metadata":)"
                     R"({"name":"web-0","namespace":"b","resourceVersion":"7"},"status":{"podIPs":[{})";
  for (int i = 1; i < 65; ++i) json += ",{}";
  EXPECT_THAT(refusal_of(decode_pods(json + "]}}]}", 500)),
              testing::HasSubstr("status.podIPs of Pod \"web-0\" has 65 entries, and at most 64 are read"));
}

/// Merged, as protobuf has it, they count together.
TEST(PodPage, AFieldThatComesInPartsIsCountedWhole) {
  croft::kube::Pod part;
  for (int i = 0; i < 33; ++i) part.mutable_status()->add_pod_ips();
  croft::kube::AnyList list;
  list.mutable_metadata()->set_resource_version("9");
  list.add_items(message("web-0").SerializeAsString() + part.SerializeAsString() + part.SerializeAsString());
  croft::kube::Unknown envelope;
  envelope.mutable_type_meta()->set_api_version("v1");
  envelope.mutable_type_meta()->set_kind("PodList");
  envelope.set_raw(list.SerializeAsString());
  EXPECT_THAT(refusal_of(decode_pods(std::string("k8s\0", 4) + envelope.SerializeAsString(), 500)),
              testing::HasSubstr("has 67 entries"));
}

TEST(PodPage, ATokenWithoutEndIsNotSentBack) {
  croft::kube::PodList list;
  list.mutable_metadata()->set_resource_version("9");
  list.mutable_metadata()->set_continue_(std::string(kContinueBytesMax + 1, 'c'));
  EXPECT_THAT(refusal_of(decode_pods(enveloped(list), 500)), testing::HasSubstr("metadata.continue"));
}

}  // namespace
}  // namespace croft::wire::kube
