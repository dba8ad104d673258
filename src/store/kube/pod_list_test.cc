#include "store/kube/pod_list.h"

#include <memory>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/list_walk.h"

namespace croft::store::kube {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

/// Answers with what is written down, and notes what it was asked.
class ScriptedApi final : public Api {
 public:
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    asked.push_back(request.path);
    if (answers.empty()) return {};
    Answer next = std::move(answers.front());
    answers.erase(answers.begin());
    return next;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }

  void page(const std::vector<std::string>& names, const std::string& next = "", const std::string& moment = "9") {
    std::string items;
    for (const std::string& name : names) {
      if (!items.empty()) items += ",";
      items += R"({"metadata":{"name":")" + name + R"(","namespace":"d","uid":"u","resourceVersion":"3"}})";
    }
    Answer answer;
    answer.outcome = Answer::Outcome::done;
    answer.http_status = 200;
    answer.body = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":")" + moment +
                  R"(","continue":")" + next + R"("},"items":[)" + items + "]}";
    answers.push_back(std::move(answer));
  }
  void refusal(int code, ErrorCode error) {
    Answer answer;
    answer.outcome = Answer::Outcome::refused;
    answer.http_status = code;
    answer.status.code = code;
    answer.error = {error, "no", {}};
    answers.push_back(std::move(answer));
  }

  std::vector<Answer> answers;
  std::vector<std::string> asked;
};

class PodList : public testing::Test {
 protected:
  Result<std::optional<std::uint64_t>> list() {
    return for_each_pod(
        api, clock, [&] { names.clear(); }, [&](const core::collect::PodFact& pod) { names.push_back(pod.name); });
  }
  /// How many pages of a list without an end are taken, the refused one with them.
  [[nodiscard]] std::int64_t pages_of(std::size_t objects, std::size_t bytes, const ListBounds& bounds) const {
    wire::kube::ApiListQuery query;
    ListWalk walk(query, clock, bounds);
    std::int64_t pages = 0;
    for (Result<void> goes_on; goes_on && pages <= ListWalk::kPagesMax; ++pages) {
      goes_on = walk.go_on({"9", std::to_string(pages), std::vector<std::uint64_t>(objects)}, bytes);
    }
    return pages;
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

TEST_F(PodList, PagesOfDifferentMomentsAreNoList) {
  api.page({"a", "b"}, "token");
  api.page({}, "", "1");
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::corrupt);
  EXPECT_THAT(listed.error().message, HasSubstr("pages of resourceVersion \"9\", and another of \"1\""));
  // One that is read anew may be of another moment.
  api.page({"a", "b"}, "token");
  api.refusal(410, ErrorCode::too_old);
  api.page({"a"}, "next", "12");
  api.page({"b"}, "", "12");
  EXPECT_TRUE(list());
}

TEST_F(PodList, APageThatComesTwiceIsNoList) {
  api.page({"a", "b"}, "token");
  api.page({"a", "b"});
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::corrupt);
  EXPECT_THAT(listed.error().message, HasSubstr("has an object twice"));
}

/// Names that a tenant made for one hash of the C++ library's: they must not stop what lists all pods.
TEST_F(PodList, NamesThatWereMadeForOneHashAreTwo) {
  const std::string first = "xxxxxxvoytcpjrhyldx0dy9ygurpj3voytcpjr", second = "xxxxxxeofg5w7thyldx0dy9ygurpj3eofg5w7t";
  ASSERT_EQ(std::hash<std::string>{}("d/" + first), std::hash<std::string>{}("d/" + second));
  api.page({first}, "token");
  api.page({second});
  EXPECT_TRUE(list());
  EXPECT_THAT(names, testing::ElementsAre(first, second));
}

TEST_F(PodList, AnEndInTheMiddleIsAnError) {
  api.page({"a"}, "token");
  EXPECT_FALSE(list());
}

TEST_F(PodList, APageThatIsTooLargeIsAskedForInSmallerParts) {
  Answer too_long;
  too_long.error = {ErrorCode::invalid_argument, "the answer is longer than 67108864 bytes", {}};
  api.answers.push_back(too_long);
  api.page({"a"}, "token");
  api.page({"b"});
  ASSERT_TRUE(list());
  EXPECT_THAT(names, testing::ElementsAre("a", "b"));
  EXPECT_THAT(api.asked[0], HasSubstr("limit=500"));
  EXPECT_THAT(api.asked[1], HasSubstr("limit=62"));
  // A single object that is too large is said.
  for (int i = 0; i < 5; ++i) api.answers.push_back(too_long);
  EXPECT_FALSE(list());
}

/// How many requests a list takes of a server whose answers may come to 16; its objects come to that.
int requests_for(const std::vector<int>& sizes, const Clock& clock) {
  constexpr int kMost = 16;
  wire::kube::ApiListQuery query;
  query.limit = 500;
  ListWalk walk(query, clock);
  std::size_t at = 0;
  for (int requests = 1; requests < 100'000; ++requests) {
    const std::size_t end = std::min(sizes.size(), at + static_cast<std::size_t>(query.limit));
    int size = 0;
    for (std::size_t i = at; i < end; ++i) size += sizes[i];
    if (size > kMost * 1000) {
      if (!walk.asks_for_less(Error{wire::kube::kTooLarge, "too large", {}})) return -1;
      continue;
    }
    at = end;
    const bool is_last = at == sizes.size();
    if (!walk.go_on({"9", is_last ? std::string() : std::to_string(at), {}})) return -1;
    if (is_last) return requests;
  }
  return -1;
}

/// A tenant's few large pods are no reason to ask for all others seven by seven.
TEST_F(PodList, BehindWhatIsTooLargePagesGrowAgain) {
  std::vector<int> sizes(13, 1400);
  sizes.resize(4013, 1);
  const int with_large = requests_for(sizes, clock);
  EXPECT_GT(with_large, 8);
  EXPECT_LT(with_large, 30) << "8 without the large ones, 576 seven by seven";
  // Where all are large the attempts to have more cost little.
  const int all_large = requests_for(std::vector<int>(4000, 1400), clock);
  EXPECT_GT(all_large, 4000 / 11);
  EXPECT_LT(all_large, 4000 / 7 * 5 / 4);
  // In turns: never more than a few requests for each that is needed.
  std::vector<int> in_turns;
  for (int i = 0; i < 20; ++i) {
    in_turns.resize(in_turns.size() + 500, 1);
    in_turns.resize(in_turns.size() + 13, 1400);
  }
  EXPECT_LT(requests_for(in_turns, clock), 20 * 30);
  EXPECT_EQ(requests_for({1, 17'000, 1}, clock), -1) << "one that is too large by itself";
}

TEST_F(PodList, AListWithoutAnEndIsGivenUp) {
  api.page({"a"}, "token");
  api.page({"b"}, "token");
  api.page({"c"}, "token");
  const auto listed = list();
  ASSERT_FALSE(listed);
  EXPECT_EQ(listed.error().code, ErrorCode::corrupt);
  // Each small and right, and another one behind it.
  EXPECT_EQ(pages_of(1, 0, {}), ListWalk::kPagesMax);
  EXPECT_EQ(pages_of(0, 0, {}), ListWalk::kEmptyPagesMax) << "that bring nothing";
}

TEST_F(PodList, AListIsBoundedAsAWhole) {
  EXPECT_EQ(pages_of(400, 0, {10'000, SIZE_MAX}), 26);
  EXPECT_EQ(pages_of(400, 1000, {10'000, 5000}), 6);
  // A large cluster's is taken: 150,000 pods, 500,000 handles.
  EXPECT_EQ(pages_of(500, std::size_t{16} << 20, {}), 2001);
  // What was read anew counts once.
  wire::kube::ApiListQuery query;
  ListWalk walk(query, clock, {1000, 1000});
  for (int time = 0; time < 3; ++time) {
    query.continue_token.clear();
    EXPECT_TRUE(walk.go_on({"9", "next", std::vector<std::uint64_t>(900)}, 900));
  }
  const auto more = walk.go_on({"9", "next2", std::vector<std::uint64_t>(200)}, 50);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code, ErrorCode::corrupt);
  EXPECT_THAT(more.error().message, HasSubstr("more than 1000 objects, 1100 objects of 950 bytes so far"));
}

TEST_F(PodList, OfOneNodeByASelectorAndAsNewAsCanBe) {
  Answer answer;
  answer.outcome = Answer::Outcome::done;
  answer.http_status = 200;
  const auto pod = [](const std::string& name, const std::string& spec) {
    return R"({"metadata":{"name":")" + name + R"(","namespace":"d","uid":"u","resourceVersion":"3"},"spec":)" + spec +
           "}";
  };
  answer.body = R"({"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)" +
                pod("a", R"({"nodeName":"n1"})") + "," + pod("h", R"({"nodeName":"n1","hostNetwork":true})") + "," +
                pod("of-another", R"({"nodeName":"n2"})") + "," + pod("bound-to-none", "{}") + "]}";
  api.answers.push_back(answer);
  std::vector<core::collect::PodFact> pods;
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
  // Nothing is asked where there is no time, or no node.
  EXPECT_EQ(list_of("n1", Deadline{std::chrono::nanoseconds(0)}).error().code, ErrorCode::deadline_exceeded);
  for (const char* none : {"", "n1,status.phase=Running", "a/b", "n1=", "!n"}) {
    EXPECT_EQ(list_of(none, {}).error().code, ErrorCode::invalid_argument) << none;
  }
  EXPECT_THAT(api.asked, SizeIs(1));
  api.refusal(403, ErrorCode::permission_denied);
  EXPECT_THAT(list_of("n1", {}).error().message, HasSubstr("the agent of this node"));
}

TEST_F(PodList, OnePodIsAskedForByItself) {
  const auto find = [&](const std::string& name_space, const std::string& name) {
    return find_pod(api, name_space, name, Deadline::after(clock.now(), std::chrono::seconds(15)));
  };
  const auto answer = [&](const std::string& name) {
    Answer one;
    one.outcome = Answer::Outcome::done;
    one.http_status = 200;
    one.body = R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":")" + name +
               R"(","namespace":"d","uid":"u","resourceVersion":"3"},"status":{"podIP":"10.0.0.3"}})";
    api.answers.push_back(std::move(one));
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
  // A cache may mix answers up.
  answer("other");
  EXPECT_EQ(find("d", "web").error().code, ErrorCode::corrupt);
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

}  // namespace
}  // namespace croft::store::kube
