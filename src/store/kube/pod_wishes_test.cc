#include "store/kube/pod_wishes.h"

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "os/clock.h"
#include "store/kube/test_api.h"

namespace croft::store::kube {
namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

/// A few pods and namespaces, told by GETs, lists and watches.
struct Cluster {
  std::mutex mutex;
  std::map<std::string, std::string> objects;  ///< by path
  std::deque<std::string> events;              ///< of pods, not told yet
  std::vector<std::string> asked;
  int revision = 10;
  int watches = 0;
  int lists = 0;
  bool refuses = false;

  void put_pod(const std::string& name, const std::string& uid, const std::string& annotations, bool is_event = false) {
    const std::lock_guard lock(mutex);
    const std::string object = pod(name, uid, annotations, ++revision, "node-a");
    objects["/api/v1/namespaces/shop/pods/" + name] = object;
    if (is_event) events.push_back(R"({"type":"MODIFIED","object":)" + object + "}");
  }
  static std::string pod(const std::string& name, const std::string& uid, const std::string& annotations, int revision,
                         const std::string& node) {
    return fmt::format(
        R"({{"kind":"Pod","apiVersion":"v1","metadata":{{"name":"{}","namespace":"shop","uid":"{}","resourceVersion":"{}",)"
        R"("annotations":{{{}}}}},"spec":{{"nodeName":"{}"}}}})",
        name, uid, revision, annotations, node);
  }
  void put_namespace(const std::string& annotations) {
    const std::lock_guard lock(mutex);
    objects["/api/v1/namespaces/shop"] =
        R"({"kind":"Namespace","apiVersion":"v1","metadata":{"name":"shop","uid":"n","resourceVersion":"3","annotations":{)" +
        annotations + "}}}";
  }
  std::size_t count(const std::string& part) {
    const std::lock_guard lock(mutex);
    return static_cast<std::size_t>(
        std::ranges::count_if(asked, [&](const std::string& path) { return path.find(part) != path.npos; }));
  }
};

class ToldStream final : public WatchStream {
 public:
  ToldStream(Cluster& cluster, bool is_of_pods) : cluster_(cluster), is_of_pods_(is_of_pods) {}
  [[nodiscard]] Result<std::optional<wire::kube::ApiEvent>> next(Deadline) override {
    std::this_thread::sleep_for(1ms);
    const std::lock_guard lock(cluster_.mutex);
    if (!is_of_pods_ || cluster_.events.empty()) return std::optional<wire::kube::ApiEvent>();
    auto event = wire::kube::decode_event(cluster_.events.front());
    cluster_.events.pop_front();
    return std::optional(*std::move(event));
  }

 private:
  Cluster& cluster_;
  const bool is_of_pods_;
};

class ClusterApi final : public Api {
 public:
  explicit ClusterApi(Cluster& cluster) : cluster_(cluster) {}
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    const std::lock_guard lock(cluster_.mutex);
    cluster_.asked.push_back(request.path);
    if (cluster_.refuses) return refused(403, ErrorCode::permission_denied, "pods is forbidden");
    const bool is_pods = request.path.starts_with("/api/v1/pods?");
    if (request.path.find('?') != request.path.npos) ++cluster_.lists;
    if (is_pods || request.path.starts_with("/api/v1/namespaces?")) {
      std::string items;
      for (const auto& [path, object] : cluster_.objects) {
        if ((path.find("/pods/") != path.npos) == is_pods) items += (items.empty() ? "" : ",") + object;
      }
      return answered(std::string(is_pods ? R"({"kind":"PodList")" : R"({"kind":"NamespaceList")") +
                      R"(,"apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)" + items + "]}");
    }
    const auto found = cluster_.objects.find(request.path);
    const bool is_there = found != cluster_.objects.end();
    return is_there ? answered(found->second) : refused(404, ErrorCode::not_found, "not found", "x");
  }
  [[nodiscard]] WatchAnswer watch(const std::string& path, Deadline) override {
    const std::lock_guard lock(cluster_.mutex);
    cluster_.asked.push_back(path);
    ++cluster_.watches;
    return {answered(), std::make_unique<ToldStream>(cluster_, path.starts_with("/api/v1/pods"))};
  }

 private:
  Cluster& cluster_;
};

class WishFollowerTest : public testing::Test {
 protected:
  void wait_until(const std::function<bool()>& is_so) {
    for (int i = 0; i < 4000 && !is_so(); ++i) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(is_so());
  }
  static std::string pools_of(const core::PodWishes& wishes) {
    std::string text;
    for (const auto& pool : wishes.pools.v4.value_or(std::vector<core::AskedPool>())) text += core::text_of(pool) + " ";
    return text;
  }

  Cluster cluster_;
  os::SystemClock clock_;
  ClusterApi api_{cluster_};
  const core::PodIdentity pod_{"web-0", "shop", "u-1"};
};

TEST_F(WishFollowerTest, BothAreAskedForAtOnce) {
  cluster_.put_pod("web-0", "u-1", R"("cni.projectcalico.org/ipv4pools":"[\"a\"]")");
  cluster_.put_namespace(
      R"("ipam.croft.dev/ipv4pools":"[\"b\",\"10.2.0.0/16\"]","ipam.croft.dev/ipAddrs":"[\"10.0.0.1\"]")");
  const auto wishes = ask_for_wishes(api_, pod_, Deadline{});
  ASSERT_TRUE(wishes) << wishes.error().message;
  EXPECT_EQ(pools_of(wishes->pod), "a ");
  EXPECT_EQ(pools_of(wishes->name_space), "b 10.2.0.0/16 ");
  EXPECT_TRUE(wishes->name_space.addresses.empty()) << "a namespace asks for no addresses";
  const auto of_nobody = ask_for_wishes(api_, {"static", "shop", ""}, Deadline{});
  ASSERT_TRUE(of_nobody);
  EXPECT_EQ(of_nobody->pod, core::PodWishes{});
}

TEST_F(WishFollowerTest, WhatIsWrongIsSaidWithItsName) {
  cluster_.put_pod("web-0", "u-1", R"("cni.projectcalico.org/ipv4pools":"a")");
  const auto wishes = ask_for_wishes(api_, pod_, Deadline{});
  ASSERT_FALSE(wishes);
  EXPECT_THAT(wishes.error().message, HasSubstr("annotations of pod \"shop/web-0\": cni.projectcalico.org/ipv4pools"));
  cluster_.refuses = true;
  EXPECT_THAT(ask_for_wishes(api_, pod_, Deadline{}).error().message, HasSubstr("annotations.yaml"));
}

TEST_F(WishFollowerTest, MemoryFollowsFromTheFirstQuestionOn) {
  cluster_.put_pod("web-0", "u-1", R"("cni.projectcalico.org/ipv4pools":"[\"a\"]")");
  cluster_.put_namespace("");
  WishFollower follower(std::make_unique<ClusterApi>(cluster_), "node-a", clock_);
  EXPECT_EQ(cluster_.asked.size(), 0U) << "nobody wanted any yet";
  wait_until([&] { return follower.remembered(pod_).has_value(); });
  EXPECT_EQ(
      cluster_.count("fieldSelector=spec.nodeName%3Dnode-a%2Cstatus.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"),
      2U)
      << "a list and a watch";
  EXPECT_EQ(pools_of((*follower.remembered(pod_))->pod), "a ");
  cluster_.put_pod("web-0", "u-1", R"("cni.projectcalico.org/ipv4pools":"[\"c\"]")", true);
  wait_until([&] { return pools_of((*follower.remembered(pod_))->pod) == "c "; });
  cluster_.put_pod("web-1", "u-2", R"("cni.projectcalico.org/ipv4pools":"odd")", true);
  wait_until([&] { return follower.remembered({"web-1", "shop", "u-2"}).has_value(); });
  EXPECT_FALSE(*follower.remembered({"web-1", "shop", "u-2"})) << "an error is remembered as one";
}

/// Anybody may choose when his pod is deleted (terminationGracePeriodSeconds 9000000000).
TEST_F(WishFollowerTest, APodThatIsDeletedInThreeHundredYearsHidesNoOther) {
  cluster_.put_pod("web-0", "u-1", "");
  cluster_.put_pod("web-1", "u-2", R"("a":"b"},"deletionTimestamp":"2312-02-07T00:26:40Z","labels":{"x":"y")");
  cluster_.put_namespace("");
  WishFollower follower(std::make_unique<ClusterApi>(cluster_), "node-a", clock_);
  wait_until([&] { return follower.remembered(pod_).has_value(); });
  EXPECT_TRUE(follower.remembered({"web-1", "shop", "u-2"}));
  EXPECT_EQ(follower.refusal(), "");
}

TEST_F(WishFollowerTest, WhyItIsNotFollowedIsSaid) {
  cluster_.put_pod("web-0", "u-1", R"("a":"b"},"uid":7,"labels":{"x":"y")");
  cluster_.put_namespace("");
  WishFollower follower(std::make_unique<ClusterApi>(cluster_), "node-a", clock_);
  static_cast<void>(follower.remembered(pod_));
  wait_until([&] { return follower.refusal().find("uid") != std::string::npos; });
  EXPECT_FALSE(follower.remembered(pod_));
}

TEST_F(WishFollowerTest, AWishOfManyNamesIsNotRemembered) {
  const auto asks_for = [](std::size_t pools) {
    std::string names;
    for (std::size_t i = 0; i < pools; ++i) names += fmt::format(R"({}\"pool-{}\")", i == 0 ? "" : ",", i);
    return fmt::format(R"("cni.projectcalico.org/ipv4pools":"[{}]")", names);
  };
  cluster_.put_pod("few", "u-1", asks_for(WishFollower::kNamesMax));
  cluster_.put_pod("many", "u-2", asks_for(WishFollower::kNamesMax + 1));
  cluster_.put_namespace("");
  WishFollower follower(std::make_unique<ClusterApi>(cluster_), "node-a", clock_);
  wait_until([&] { return follower.remembered({"few", "shop", "u-1"}).has_value(); });
  EXPECT_FALSE(follower.remembered({"many", "shop", "u-2"}));
  // What was remembered of it before is no more.
  cluster_.put_pod("few", "u-1", asks_for(WishFollower::kNamesMax + 1), true);
  wait_until([&] { return !follower.remembered({"few", "shop", "u-1"}); });
}

TEST_F(WishFollowerTest, WhoIsNotKnownForSureHasToBeAskedFor) {
  cluster_.put_pod("web-0", "u-1", "");
  cluster_.put_namespace("");
  WishFollower follower(std::make_unique<ClusterApi>(cluster_), "node-a", clock_);
  wait_until([&] { return follower.remembered(pod_).has_value(); });
  EXPECT_FALSE(follower.remembered({"web-0", "shop", "u-9"})) << "another pod of that name";
  EXPECT_FALSE(follower.remembered({"web-0", "shop", ""})) << "maybe another pod";
  EXPECT_FALSE(follower.remembered({"web-7", "shop", "u-7"}));
  EXPECT_FALSE(follower.remembered({"web-0", "other", "u-1"}));
}

/// As over a connection that is dead and does not say so.
TEST_F(WishFollowerTest, AWatchThatSaysNothingIsOpenedAnew) {
  cluster_.put_pod("web-0", "u-1", "");
  cluster_.put_namespace("");
  ManualClock clock;
  WishFollower follower(std::make_unique<ClusterApi>(cluster_), "node-a", clock);
  wait_until([&] { return follower.remembered(pod_).has_value(); });
  const auto watches = [&] { return cluster_.count("watch=1"); };
  EXPECT_EQ(watches(), 2U);
  clock.advance(std::chrono::minutes{5} - 1ms);
  std::this_thread::sleep_for(100ms);
  EXPECT_EQ(watches(), 2U);
  clock.advance(1s);
  wait_until([&] { return watches() == 4U; });
  EXPECT_EQ(cluster_.lists, 2) << "they go on from where they were";
  EXPECT_TRUE(follower.remembered(pod_));
}

}  // namespace
}  // namespace croft::store::kube
