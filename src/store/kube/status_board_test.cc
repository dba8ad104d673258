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
  StatusBoard::Shown show(const std::vector<core::PoolFill>& pools, std::size_t writes_max = 200) {
    if (!board_ || writes_max != writes_max_) {
      auto api = std::make_unique<FakeApi>(cluster_, clock_);
      api_ = api.get();
      board_.emplace(std::move(api), clock_, StatusBoard::Options{writes_max});
      writes_max_ = writes_max;
    }
    const auto shown = board_->show(core::status_of_pools(pools));
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
  FakeApi* api_ = nullptr;
  std::size_t writes_max_ = 0;
  std::optional<StatusBoard> board_;
};

TEST_F(Board, PoolsAreShownAndOnlyChangesAreWritten) {
  EXPECT_EQ(show({pool("a", "10.0.0.0/24", 3), pool("b", "10.1.0.0/24")}).made, 2U);
  EXPECT_EQ(object("a")["spec"], (Json{{"pool", "a"}}));
  EXPECT_EQ(object("a")["status"]["held"], 3);
  EXPECT_EQ(object("a")["status"]["free"], "253");
  EXPECT_EQ(object("a")["status"]["conditions"][0]["type"], "Ready");
  EXPECT_EQ(object("a")["status"]["conditions"][0]["observedGeneration"], 1);
  const std::string a = version("a"), b = version("b");

  auto calls = api_->calls.load();
  auto shown = show({pool("a", "10.0.0.0/24", 3), pool("b", "10.1.0.0/24")});
  EXPECT_EQ(shown.made + shown.written + shown.left, 0U);
  EXPECT_EQ(api_->calls - calls, 1U);  // the list
  EXPECT_EQ(version("a"), a);

  shown = show({pool("a", "10.0.0.0/24", 4), pool("b", "10.1.0.0/24")});
  EXPECT_EQ(shown.written, 1U);
  EXPECT_EQ(object("a")["status"]["held"], 4);
  EXPECT_EQ(version("b"), b);
}

TEST_F(Board, AnObjectThatShowsNoPoolIsDeleted) {
  show({pool("a", "10.0.0.0/24"), pool("b", "10.1.0.0/24")});
  EXPECT_THAT(show({pool("b", "10.1.0.0/24")}).deleted, ElementsAre("a"));
  EXPECT_TRUE(object("a").is_null());
  EXPECT_FALSE(object("b").is_null());
}

/// Anybody may make such objects. Who has put a finalizer there takes it away; it is no work for every round.
TEST_F(Board, ObjectsThatAreHeldByFinalizersKeepNoPoolFromBeingShown) {
  for (int i = 0; i < 12; ++i) {
    const std::string name = fmt::format("ghost{:02}", i);
    const Json finalizers = {"example.com/hold"};
    cluster_->make(std::string(kPools) + "/" + name,
                   Json{{"metadata", {{"name", name}, {"finalizers", finalizers}}}, {"spec", {{"pool", name}}}});
  }
  auto shown = show({pool("a", "10.0.0.0/24")}, 10);
  EXPECT_EQ(shown.made, 1U);
  EXPECT_EQ(shown.deleted.size(), 10U);
  shown = show({pool("a", "10.0.0.0/24", 1)}, 10);
  EXPECT_EQ(shown.written, 1U);
  EXPECT_EQ(shown.left, 0U);
  EXPECT_THAT(shown.deleted, ElementsAre("ghost10", "ghost11")) << "each is told once";
  const auto calls = api_->calls.load();
  EXPECT_THAT(show({pool("a", "10.0.0.0/24", 1)}, 10).deleted, IsEmpty());
  EXPECT_EQ(api_->calls - calls, 1U) << "the list";
}

/// Of a thousand pools that all change no more are written in one round than was said, each gets its turn, and one that
/// has just become full does not wait for it.
TEST_F(Board, NoMoreWritesThanAllowed) {
  std::vector<core::PoolFill> pools;
  for (int i = 0; i < 1000; ++i)
    pools.push_back(pool(fmt::format("p{:03}", i), fmt::format("10.{}.{}.0/24", i / 250, i % 250)));
  constexpr std::size_t kMax = 300;
  std::size_t rounds = 0;
  for (auto shown = show(pools, kMax); shown.left > 0; shown = show(pools, kMax), ++rounds) {
    EXPECT_LE(shown.made + shown.written, kMax + 1);
  }
  EXPECT_EQ(rounds, 6U);  // two writes each

  for (auto& one : pools) one.held = 1;
  pools[999].held = 256;
  auto calls = api_->calls.load();
  auto shown = show(pools, kMax);
  EXPECT_EQ(shown.written, kMax);
  EXPECT_EQ(shown.left, 1000 - kMax);
  EXPECT_EQ(api_->calls - calls, kMax + 2);  // two pages
  EXPECT_EQ(object("p999")["status"]["free"], "0");
  EXPECT_EQ(object("p999")["status"]["conditions"][0]["status"], "False");

  // The first ones go on changing, and the last ones are written all the same.
  for (int round = 2; round <= 4; ++round) {
    for (auto& one : pools) one.held += one.held < 256 ? 1 : 0;
    shown = show(pools, kMax);
  }
  for (int i = 0; i < 1000; ++i) EXPECT_GE(object(fmt::format("p{:03}", i))["status"]["held"], 1) << i;
}

/// Somebody writes between the list and the patch.
TEST_F(Board, WhoWasFasterIsNotOverwritten) {
  show({pool("a", "10.0.0.0/24")});
  class Faster final : public Api {
   public:
    Faster(std::shared_ptr<FakeCluster> cluster, const Clock& clock) : cluster_(cluster), inner_(cluster, clock) {}
    [[nodiscard]] Answer call(const Request& request, Deadline deadline) override {
      if (request.method == Request::Method::patch) {
        cluster_->edit(std::string(kPools) + "/a", [](Json& object) { object["status"]["held"] = 77; });
      }
      return inner_.call(request, deadline);
    }
    [[nodiscard]] WatchAnswer watch(const std::string& path, Deadline deadline) override {
      return inner_.watch(path, deadline);
    }

   private:
    std::shared_ptr<FakeCluster> cluster_;
    FakeApi inner_;
  };
  StatusBoard board(std::make_unique<Faster>(cluster_, clock_), clock_, {});
  const auto shown = board.show(core::status_of_pools({pool("a", "10.0.0.0/24", 5)}));
  ASSERT_TRUE(shown) << shown.error().message;
  EXPECT_EQ(shown->written, 0U);
  EXPECT_EQ(object("a")["status"]["held"], 77);
}

TEST_F(Board, AMissingDefinitionIsNamedWithItsRemedy) {
  cluster_->do_not_serve(kPools);
  StatusBoard board(std::make_unique<FakeApi>(cluster_, clock_), clock_, {});
  const auto shown = board.show(core::status_of_pools({pool("a", "10.0.0.0/24")}));
  ASSERT_FALSE(shown);
  EXPECT_THAT(shown.error().message, HasSubstr("kubectl apply -f deploy/kubernetes/crds-croft.yaml"));
}

TEST_F(Board, TheSpecOfNodeRangesStaysAsItIs) {
  StatusBoard board(std::make_unique<FakeApi>(cluster_, clock_), clock_, {});
  core::NodeRangeStatus ranges;
  ranges.clusters = {{"10.0.0.0/22", 4, 2, 1}};
  ranges.conditions = {{"Ready", true, "NodesHaveRanges", ""}};
  EXPECT_EQ(board.show(ranges).value(), false);  // nobody has configured any

  FakeApi other(cluster_, clock_);
  Request make;
  make.method = Request::Method::post;
  make.path = std::string(kSet).substr(0, std::string(kSet).rfind('/'));
  make.body = R"({"metadata":{"name":"default"},"spec":{"generation":"1"},"status":{"nodes":5}})";
  ASSERT_EQ(other.call(make, Deadline::after(clock_.now(), std::chrono::seconds(5))).outcome, Answer::Outcome::done);
  EXPECT_FALSE(cluster_->object(kSet).contains("status"));
  EXPECT_EQ(board.show(ranges).value(), true);
  EXPECT_EQ(board.show(ranges).value(), false);
  EXPECT_EQ(cluster_->object(kSet)["spec"], (Json{{"generation", "1"}}));
  EXPECT_EQ(cluster_->object(kSet)["status"]["clusterCIDRs"][0]["free"], 1);
}

}  // namespace
}  // namespace croft::store::kube
