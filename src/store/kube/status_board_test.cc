#include "store/kube/status_board.h"

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/fake_api_fixture.h"

namespace croft::store::kube {
namespace {

using Json = FakeCluster::Json;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kPools = "/apis/ipam.croft.dev/v1alpha1/croftpools";
constexpr const char* kSet = "/apis/ipam.croft.dev/v1alpha1/croftnoderangesets/default";

// ---------------------------------------------------------------- the bytes

constexpr WallTime kAt{std::chrono::seconds(1)}, kLater{std::chrono::seconds(90)};

core::PoolStatus pool_p() {
  core::PoolStatus status;
  status.use.pool.name = "p";
  status.use.pool.cidr = net::Prefix::parse("fd00::/48").value();
  status.use.pool.block_length = 122;
  status.use.capacity = net::Count::of(status.use.pool.cidr);
  status.use.held = 2;
  status.use.blocks = 1;
  status.conditions = {{"Ready", true, "AddressesFree", ""}, {"Overlaps", true, "PoolsOverlap", "a < b"}};
  return status;
}

template <class Status>
std::string status_on(const std::string& object, const Status& status, WallTime now) {
  const auto document = wire::parse_json(object);
  return encode_status(status, document.value().root(), now);
}

TEST(OwnStatus, WhatIsWritten) {
  const std::string status = status_on(R"({"metadata":{"generation":3}})", pool_p(), kAt);
  EXPECT_EQ(
      status,
      R"({"blockSize":122,"blocks":1,"capacity":"1208925819614629174706176","cidr":"fd00::/48","conditions":[)"
      R"({"lastTransitionTime":"1970-01-01T00:00:01Z","message":"","observedGeneration":3,"reason":"AddressesFree",)"
      R"("status":"True","type":"Ready"},)"
      R"({"lastTransitionTime":"1970-01-01T00:00:01Z","message":"a \u003c b","observedGeneration":3,)"
      R"("reason":"PoolsOverlap","status":"True","type":"Overlaps"}],)"
      R"("cooling":0,"free":"1208925819614629174706174","held":2,"reserved":"0"})");
}

/// A condition that stays keeps its time, one that turns not.
TEST(OwnStatus, WhatIsAsItWasIsEqual) {
  const std::string first = status_on(R"({"metadata":{"generation":3}})", pool_p(), kAt);
  const std::string object = R"({"status":)" + first + R"(,"metadata":{"generation":3,"name":"p"}})";
  EXPECT_EQ(status_on(object, pool_p(), kLater), first);
  auto turned = pool_p();
  turned.conditions[0] = {"Ready", false, "Exhausted", "no address is free"};
  const std::string second = status_on(object, turned, kLater);
  EXPECT_THAT(second, HasSubstr(R"("lastTransitionTime":"1970-01-01T00:01:30Z","message":"no address is free")"));
  EXPECT_THAT(second, HasSubstr(R"("lastTransitionTime":"1970-01-01T00:00:01Z","message":"a \u003c b")"));
}

TEST(OwnStatus, WhatIsNoneIsPassedOver) {
  for (const std::string status :
       {"null", "7", "[]", "{}", R"({"conditions":7})", R"({"conditions":[7,{"type":7}]})",
        R"({"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"yesterday"}]})"}) {
    EXPECT_THAT(status_on(R"({"metadata":{"generation":"x"},"status":)" + status + "}", pool_p(), kAt),
                HasSubstr(R"("lastTransitionTime":"1970-01-01T00:00:01Z","message":"","observedGeneration":0)"));
  }
}

TEST(OwnStatus, NodeRanges) {
  core::NodeRangeStatus ranges;
  ranges.nodes = 3;
  ranges.waiting = 1;
  ranges.clusters = {{"10.0.0.0/22", 4, 2, 1}};
  ranges.conditions = {{"Ready", false, "NodesWait", "1 node lacks a range"}};
  EXPECT_EQ(status_on("{}", ranges, kAt),
            R"({"clusterCIDRs":[{"capacity":4,"cidr":"10.0.0.0/22","excluded":1,"free":1,"taken":2}],"conditions":[)"
            R"({"lastTransitionTime":"1970-01-01T00:00:01Z","message":"1 node lacks a range","observedGeneration":0,)"
            R"("reason":"NodesWait","status":"False","type":"Ready"}],"nodes":3,"waiting":1})");
}

// ---------------------------------------------------------------- the rounds

class Board : public testing::Test {
 protected:
  static core::PoolFill pool(const std::string& name, const std::string& cidr, std::uint64_t held = 0) {
    core::PoolFill fill;
    fill.pool.name = name;
    fill.pool.cidr = net::Prefix::parse(cidr).value();
    fill.pool.block_length = 28;
    fill.capacity = net::Count::of(fill.pool.cidr);
    fill.held = held;
    return fill;
  }
  StatusBoard::Shown show(const std::vector<core::PoolFill>& pools) {
    const auto shown = board_.show(core::status_of_pools(pools));
    EXPECT_TRUE(shown) << shown.error().message;
    return shown.value();
  }
  [[nodiscard]] Json object(const std::string& name) const {
    return cluster_->object(std::string(kPools) + "/" + name);
  }
  [[nodiscard]] std::string version(const std::string& name) const {
    return object(name)["metadata"]["resourceVersion"];
  }

  os::SystemClock clock_;
  std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  FakeApi* api_ = new FakeApi(cluster_, clock_);
  StatusBoard board_{std::unique_ptr<Api>(api_), clock_};
};

TEST_F(Board, PoolsAreShownAndOnlyChangesAreWritten) {
  EXPECT_EQ(show({pool("a", "10.0.0.0/24", 3), pool("b", "10.1.0.0/24")}).uids.size(), 2U);
  EXPECT_EQ(object("a")["apiVersion"], "ipam.croft.dev/v1alpha1");
  EXPECT_EQ(object("a")["kind"], "CroftPool");
  EXPECT_EQ(object("a")["spec"], (Json{{"pool", "a"}}));
  EXPECT_EQ(object("a")["status"]["held"], 3);
  EXPECT_EQ(object("a")["status"]["free"], "253");
  EXPECT_EQ(object("a")["status"]["conditions"][0]["type"], "Ready");
  EXPECT_EQ(object("a")["status"]["conditions"][0]["observedGeneration"], 1);
  const std::string a = version("a"), b = version("b");

  const auto calls = api_->calls.load();
  show({pool("a", "10.0.0.0/24", 3), pool("b", "10.1.0.0/24")});
  EXPECT_EQ(api_->calls - calls, 1U);  // the list
  EXPECT_EQ(version("a"), a);

  show({pool("a", "10.0.0.0/24", 4), pool("b", "10.1.0.0/24")});
  EXPECT_EQ(object("a")["status"]["held"], 4);
  EXPECT_EQ(version("b"), b);
}

TEST_F(Board, AnObjectThatShowsNoPoolIsDeleted) {
  show({pool("a", "10.0.0.0/24"), pool("b", "10.1.0.0/24")});
  EXPECT_THAT(show({pool("b", "10.1.0.0/24")}).deleted, ElementsAre("a"));
  EXPECT_TRUE(object("a").is_null());
  EXPECT_FALSE(object("b").is_null());
}

/// Whoever has put a finalizer there takes it away; it is no work for every round.
TEST_F(Board, ObjectsThatAreHeldByFinalizersAreToldOnce) {
  const Json finalizers = {"example.com/hold"};
  cluster_->make(std::string(kPools) + "/ghost",
                 Json{{"metadata", {{"name", "ghost"}, {"finalizers", finalizers}}}, {"spec", {{"pool", "ghost"}}}});
  EXPECT_THAT(show({pool("a", "10.0.0.0/24")}).deleted, ElementsAre("ghost"));
  const auto calls = api_->calls.load();
  EXPECT_THAT(show({pool("a", "10.0.0.0/24")}).deleted, IsEmpty());
  EXPECT_EQ(api_->calls - calls, 1U) << "the list";
}

TEST_F(Board, OfAThousandPoolsEachIsShown) {
  std::vector<core::PoolFill> pools;
  for (int i = 0; i < 1000; ++i)
    pools.push_back(pool(fmt::format("p{:03}", i), fmt::format("10.{}.{}.0/24", i / 250, i % 250)));
  show(pools);
  for (auto& one : pools) one.held = 1;
  const auto calls = api_->calls.load();
  EXPECT_EQ(show(pools).uids.size(), 1000U);
  EXPECT_EQ(api_->calls - calls, 1002U);  // two pages
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(object(fmt::format("p{:03}", i))["status"]["held"], 1) << i;
}

/// Somebody writes between the list and the patch.
TEST_F(Board, WhoWasFasterIsNotOverwritten) {
  show({pool("a", "10.0.0.0/24")});
  class Faster final : public FakeApi {
   public:
    using FakeApi::FakeApi;
    [[nodiscard]] Answer call(const Request& request, Deadline deadline) override {
      if (request.method == Request::Method::patch && before_patch) before_patch();
      return FakeApi::call(request, deadline);
    }
    std::function<void()> before_patch;
  };
  auto faster = std::make_unique<Faster>(cluster_, clock_);
  faster->before_patch = [&] {
    cluster_->edit(std::string(kPools) + "/a", [](Json& object) { object["status"]["held"] = 77; });
  };
  StatusBoard board(std::move(faster), clock_);
  const auto shown = board.show(core::status_of_pools({pool("a", "10.0.0.0/24", 5)}));
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(object("a")["status"]["held"], 77);
}

TEST_F(Board, AMissingDefinitionIsNamedWithItsRemedy) {
  cluster_->do_not_serve(kPools);
  StatusBoard board(std::make_unique<FakeApi>(cluster_, clock_), clock_);
  const auto shown = board.show(core::status_of_pools({pool("a", "10.0.0.0/24")}));
  ASSERT_FALSE(shown);
  EXPECT_THAT(shown.error().message, HasSubstr("kubectl apply -f deploy/kubernetes/crds-croft.yaml"));
}

TEST_F(Board, TheSpecOfNodeRangesStaysAsItIs) {
  StatusBoard board(std::make_unique<FakeApi>(cluster_, clock_), clock_);
  core::NodeRangeStatus ranges;
  ranges.clusters = {{"10.0.0.0/22", 4, 2, 1}};
  ranges.conditions = {{"Ready", true, "NodesHaveRanges", ""}};
  EXPECT_TRUE(board.show(ranges));  // nobody has configured any

  FakeApi other(cluster_, clock_);
  Request make;
  make.method = Request::Method::post;
  make.path = std::string(kSet).substr(0, std::string(kSet).rfind('/'));
  make.body = R"({"metadata":{"name":"default"},"spec":{"generation":"1"},"status":{"nodes":5}})";
  ASSERT_EQ(other.call(make, Deadline::after(clock_.now(), std::chrono::seconds(5))).outcome, Answer::Outcome::done);
  EXPECT_FALSE(cluster_->object(kSet).contains("status"));
  EXPECT_TRUE(board.show(ranges));
  const Json before = cluster_->object(kSet);
  EXPECT_TRUE(board.show(ranges));
  EXPECT_EQ(cluster_->object(kSet), before);
  EXPECT_EQ(cluster_->object(kSet)["spec"], (Json{{"generation", "1"}}));
  EXPECT_EQ(cluster_->object(kSet)["status"]["clusterCIDRs"][0]["free"], 1);
}

}  // namespace
}  // namespace croft::store::kube
