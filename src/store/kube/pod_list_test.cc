#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/cluster_facts.h"
#include "store/kube/test_api.h"

namespace croft::store::kube {
namespace {

using core::collect::PodFact;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

/// Answers with what is written down, and notes what it was asked.
struct ScriptedApi final : AnsweringApi {
  ScriptedApi()
      : AnsweringApi([this](const Request& request) -> Answer {
          asked.push_back(request.path);
          if (answers.empty()) return {};
          Answer next = std::move(answers.front());
          answers.erase(answers.begin());
          return next;
        }) {}

  void page(const std::vector<std::string>& names, const std::string& next = "") {
    std::string items;
    for (const std::string& name : names) {
      if (!items.empty()) items += ",";
      items += R"({"metadata":{"name":")" + name + R"(","namespace":"d","uid":"u","resourceVersion":"3"}})";
    }
    answers.push_back(answered(R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":")" +
                               next + R"("},"items":[)" + items + "]}"));
  }
  void refusal(int code, ErrorCode error) { answers.push_back(refused(code, error)); }

  std::vector<Answer> answers;
  std::vector<std::string> asked;
};

class PodList : public testing::Test {
 protected:
  Result<std::optional<std::uint64_t>> list() {
    return for_each_pod(
        api, clock, [&] { names.clear(); }, [&](const PodFact& pod) { names.push_back(pod.name); });
  }
  os::SystemClock clock;
  ScriptedApi api;
  std::vector<std::string> names;
};

TEST_F(PodList, AllPages) {
  api.page({"a", "b"}, "token");
  api.page({"c"});
  EXPECT_EQ(list().value(), std::optional<std::uint64_t>(9));
  EXPECT_THAT(names, testing::ElementsAre("a", "b", "c"));
  ASSERT_THAT(api.asked, SizeIs(2));
  EXPECT_THAT(api.asked[0], testing::StartsWith("/api/v1/pods?"));
  EXPECT_THAT(api.asked[0], testing::Not(HasSubstr("resourceVersion"))) << "as new as can be";
  EXPECT_THAT(api.asked[1], HasSubstr("continue=token"));
}

TEST_F(PodList, WhatAServerForgetsInTheMiddleIsReadAnew) {
  api.page({"a", "b"}, "token");
  api.refusal(410, ErrorCode::too_old);
  api.page({"b", "c"});
  ASSERT_TRUE(list());
  EXPECT_THAT(names, testing::ElementsAre("b", "c"));
  EXPECT_THAT(api.asked[2], testing::Not(HasSubstr("continue")));
}

TEST_F(PodList, AnEndInTheMiddleIsAnError) {
  api.page({"a"}, "token");
  EXPECT_FALSE(list());
}

Answer too_long() {
  Answer answer;
  answer.error = {ErrorCode::invalid_argument, "the answer is longer than 67108864 bytes", {}};
  return answer;
}

TEST_F(PodList, APageThatIsTooLargeIsAskedForInSmallerParts) {
  api.answers.push_back(too_long());
  api.page({"a"}, "token");
  api.page({"b"});
  ASSERT_TRUE(list());
  EXPECT_THAT(names, testing::ElementsAre("a", "b"));
  EXPECT_THAT(api.asked[0], HasSubstr("limit=500"));
  EXPECT_THAT(api.asked[1], HasSubstr("limit=62"));
  // A single object that is too large is said.
  for (int i = 0; i < 5; ++i) api.answers.push_back(too_long());
  EXPECT_FALSE(list());
}

/// How many requests it takes to get as many small or large pods, of an API whose answer may come to 16,000; -1: they
/// do not come.
int requests_for(const std::vector<int>& sizes, const Clock& clock) {
  AnsweringApi api([&](const Request& request) {
    const auto number = [&](std::string_view name) -> std::size_t {
      const std::size_t at = request.path.find(name);
      return at == std::string::npos ? 0 : std::stoul(request.path.substr(at + name.size()));
    };
    const std::size_t from = number("continue="), to = std::min(sizes.size(), from + number("limit="));
    const auto begin = sizes.begin() + static_cast<std::ptrdiff_t>(from);
    if (std::accumulate(begin, sizes.begin() + static_cast<std::ptrdiff_t>(to), 0) > 16'000) return too_long();
    std::string items;
    for (std::size_t i = from; i < to; ++i) {
      items += (items.empty() ? "" : ",") + std::string(R"({"metadata":{"name":"p)") + std::to_string(i) +
               R"(","namespace":"d","resourceVersion":"3"}})";
    }
    return answered(R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9","continue":")" +
                    (to == sizes.size() ? std::string() : std::to_string(to)) + R"("},"items":[)" + items + "]}");
  });
  std::size_t pods = 0;
  const auto listed = for_each_pod(
      api, clock, [&] { pods = 0; }, [&](const auto&) { ++pods; });
  return listed && pods == sizes.size() ? static_cast<int>(api.asked.size()) : -1;
}

/// A tenant's few large pods are no reason to ask for all others seven by seven.
TEST_F(PodList, BehindWhatIsTooLargePagesGrowAgain) {
  std::vector<int> sizes(13, 1400);
  sizes.resize(4013, 1);
  const int with_large = requests_for(sizes, clock);
  EXPECT_GT(with_large, 8);
  EXPECT_LT(with_large, 30) << "8 without the large ones, 576 seven by seven";
  // Where all are large the attempts to have more cost a request each at most.
  EXPECT_LT(requests_for(std::vector<int>(4000, 1400), clock), 2 * 4000 / 5);
  EXPECT_EQ(requests_for({1, 17'000, 1}, clock), -1) << "one that is too large by itself";
}

TEST_F(PodList, OfOneNodeByASelectorAndAsNewAsCanBe) {
  const auto pod = [](const std::string& name, const std::string& spec) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"d","uid":"u","resourceVersion":"3"},"spec":)" + spec +
           "}";
  };
  api.answers.push_back(answered(R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)" +
                                 pod("a", R"({"nodeName":"n1"})") + "," +
                                 pod("h", R"({"nodeName":"n1","hostNetwork":true})") + "]}"));
  std::vector<PodFact> pods;
  const auto list_of = [&](const std::string& node, Deadline deadline) {
    return for_each_pod_of_node(
        api, clock, node, deadline, [&] { pods.clear(); }, [&](const auto& one) { pods.push_back(one); });
  };
  ASSERT_TRUE(list_of("n1", Deadline::after(clock.now(), std::chrono::seconds(30))));
  ASSERT_THAT(pods, SizeIs(2));
  EXPECT_EQ(pods[0].name, "a");
  EXPECT_FALSE(pods[0].is_in_node_network);
  EXPECT_TRUE(pods[1].is_in_node_network);
  EXPECT_THAT(api.asked[0], testing::AllOf(HasSubstr("fieldSelector=spec.nodeName%3Dn1"),
                                           testing::Not(HasSubstr("resourceVersion"))));
  EXPECT_THAT(api.asked, SizeIs(1));
  api.refusal(403, ErrorCode::permission_denied);
  EXPECT_THAT(list_of("n1", {}).error().message, HasSubstr("the agent of this node"));
}

TEST_F(PodList, OnePodIsAskedForByItself) {
  const auto find = [&](const std::string& name_space, const std::string& name) {
    return find_pod(api, name_space, name, Deadline::after(clock.now(), std::chrono::seconds(15)));
  };
  const auto answer = [&](const std::string& name) {
    api.answers.push_back(
        answered(R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name +
                 R"(","namespace":"d","uid":"u","resourceVersion":"3"},"status":{"podIP":"10.0.0.3"}})"));
  };
  answer("web");
  const auto pod = find("d", "web");
  ASSERT_TRUE(pod && *pod) << pod.error().message;
  EXPECT_EQ((*pod)->uid, "u");
  EXPECT_THAT((*pod)->addresses, SizeIs(1));
  EXPECT_EQ(api.asked.at(0), "/api/v1/namespaces/d/pods/web") << "as new as can be: no resourceVersion";
  api.refusal(404, ErrorCode::not_found);
  api.answers.back().status.name = "web";
  EXPECT_FALSE(find("d", "web").value());
  // Who does not say what it has not may not know of pods.
  api.refusal(404, ErrorCode::not_found);
  EXPECT_FALSE(find("d", "web"));
  api.refusal(403, ErrorCode::permission_denied);
  const auto refused = find("d", "web");
  ASSERT_FALSE(refused);
  EXPECT_THAT(refused.error().message, testing::AllOf(HasSubstr("access.yaml"), HasSubstr("`get` and `list` of pods")));
  // What can be no name is no pod's, and is not asked for.
  const std::size_t asked = api.asked.size();
  EXPECT_FALSE(find("d", "a/b").value());
  EXPECT_EQ(api.asked.size(), asked);
}

TEST_F(PodList, WhoMayNotIsToldWhatToAllow) {
  api.refusal(403, ErrorCode::permission_denied);
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::permission_denied);
  EXPECT_THAT(listed.error().message, HasSubstr("list pods"));
  EXPECT_THAT(listed.error().message, HasSubstr("access.yaml"));
  api.refusal(0, ErrorCode::permission_denied);
  const auto untrusted = list();
  ASSERT_FALSE(untrusted);
  EXPECT_THAT(untrusted.error().message, testing::Not(HasSubstr("access.yaml"))) << "a certificate that is refused";
}

// ---------------------------------------------------------------- one pod's facts

PodFact pod_in(const std::string& text) {
  const auto object = wire::kube::decode_object(text);
  EXPECT_TRUE(object) << object.error().message;
  auto fact = pod_fact(object->value, object->meta);
  EXPECT_TRUE(fact) << fact.error().message;
  return *fact;
}

net::Address ip(const char* text) { return net::Address::parse(text).value(); }

TEST(Pod, WhatTheCollectorNeeds) {
  const PodFact fact = pod_in(R"({"apiVersion":"v1","kind":"Pod",
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
  const PodFact fact = pod_in(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}})");
  EXPECT_EQ(fact.node, "");
  EXPECT_THAT(fact.addresses, IsEmpty());
  EXPECT_FALSE(fact.has_unreadable_address);
}

/// A pod holds what its further networks gave it as well as what kubelet tells.
TEST(Pod, TheAddressesOfAllItsNetworks) {
  const PodFact fact = pod_in(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1","annotations":{
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
    EXPECT_TRUE(pod_in(text).has_unreadable_address) << members;
  }
  for (const char* value : {"no list", "{}", R"([{\"ips\":\"10.0.0.1\"}])", R"([{\"ips\":[\"x\"]}])"}) {
    const auto text = std::string(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1","annotations":)"
                                  R"({"k8s.v1.cni.cncf.io/networks-status":")") +
                      value + R"("}}})";
    EXPECT_TRUE(pod_in(text).has_unreadable_address) << value;
  }
}

TEST(Pod, ANameThatNoneHasIsRefused) {
  const auto object = wire::kube::decode_object(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"}})");
  ASSERT_TRUE(object);
  wire::kube::ApiMeta meta = object->meta;
  meta.name_space = std::string(2000, 'a');
  EXPECT_EQ(pod_fact(object->value, meta).error().code, ErrorCode::corrupt);
}

TEST(Pod, OneThatReportsTooManyAddressesProvesNothingOfOthers) {
  std::string list;
  for (int i = 0; i < 5000; ++i)
    list += (i > 0 ? "," : "") + ("10.1." + std::to_string(i / 250)) + "." + std::to_string(i % 250);
  const PodFact fact = pod_in(
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
  AnsweringApi api([&](const Request&) {
    return answered(R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)" + text +
                    "]}");
  });
  std::vector<PodFact> of_list;
  ASSERT_TRUE(for_each_pod(
      api, os::SystemClock(), [] {}, [&](const auto& one) { of_list.push_back(one); }));
  ASSERT_THAT(of_list, SizeIs(1));
  for (const PodFact& fact : {of_list.front(), pod_in(text)}) {
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
    const PodFact fact = pod_in(
        std::string(R"({"metadata":{"name":"a","namespace":"b","resourceVersion":"1"},"status":)") + one.json + "}");
    EXPECT_EQ(fact.has_no_sandbox, one.has_none) << one.what;
  }
}

}  // namespace
}  // namespace croft::store::kube
