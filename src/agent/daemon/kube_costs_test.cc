// What calls cost on a Kubernetes API: requests, and how many times one waits for an answer before the next is asked.

#include <memory>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include "agent/door/service.h"
#include "ipam/use/assign.h"
#include "ipam/use/inspect.h"
#include "ipam/use/pools.h"
#include "ipam/use/test_world.h"
#include "os/clock.h"
#include "store/cached/cached_store.h"
#include "store/kube/fake_api_fixture.h"
#include "store/kube/kube_store.h"

namespace croft::app {
namespace {

using store::kube::Answer;
using store::kube::Request;

/// Round trips, and the requests of each.
class Noted {
 public:
  void note(std::vector<std::string> requests) {
    const std::lock_guard lock(mutex_);
    rounds_.push_back(std::move(requests));
  }
  std::vector<std::vector<std::string>> take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(rounds_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::vector<std::string>> rounds_;
};

class NotingApi final : public store::kube::Api {
 public:
  NotingApi(std::shared_ptr<store::kube::FakeCluster> cluster, const Clock& clock, Noted& noted)
      : api_(std::move(cluster), clock), noted_(noted) {}

  [[nodiscard]] Answer call(const Request& request, Deadline deadline) override {
    noted_.note({text_of(request)});
    return api_.call(request, deadline);
  }
  [[nodiscard]] std::vector<Answer> call_all(std::span<const Request> requests, Deadline deadline) override {
    std::vector<std::string> texts;
    std::vector<Answer> answers;
    for (const Request& request : requests) {
      texts.push_back(text_of(request));
      answers.push_back(api_.call(request, deadline));
    }
    if (!texts.empty()) noted_.note(std::move(texts));
    return answers;
  }
  [[nodiscard]] store::kube::WatchAnswer watch(const std::string& path, Deadline deadline) override {
    return api_.watch(path, deadline);
  }

 private:
  static std::string text_of(const Request& request) {
    static constexpr const char* kNames[] = {"GET", "POST", "PUT", "DELETE", "PATCH"};
    std::string path = request.path;
    for (const char* known : {"/apis/crd.projectcalico.org/v1/", "/apis/ipam.croft.dev/v1alpha1/", "/api/v1/"}) {
      if (path.starts_with(known)) path.erase(0, std::string_view(known).size());
    }
    return std::string(kNames[static_cast<int>(request.method)]) + " " + path;
  }
  store::kube::FakeApi api_;
  Noted& noted_;
};

/// What was asked, as text: a line for each round trip.
std::string text_of(const std::vector<std::vector<std::string>>& rounds) {
  std::string text;
  for (const auto& round : rounds) text += fmt::format("{}\n", fmt::join(round, ", "));
  return text;
}
std::size_t requests_in(const std::vector<std::vector<std::string>>& rounds) {
  std::size_t requests = 0;
  for (const auto& round : rounds) requests += round.size();
  return requests;
}
bool is_asked(const std::vector<std::vector<std::string>>& rounds, const std::string& text) {
  return text_of(rounds).find(text) != std::string::npos;
}

constexpr const char* kInformation = "/apis/crd.projectcalico.org/v1/clusterinformations/default";

class KubeCosts : public testing::Test {
 protected:
  KubeCosts() {
    // As where Calico is, or was.
    cluster_->make(kInformation, {{"apiVersion", "crd.projectcalico.org/v1"},
                                  {"kind", "ClusterInformation"},
                                  {"metadata", {{"name", "default"}}},
                                  {"spec", {{"datastoreReady", true}}}});
    const auto store = open();
    const engine::Context context{*store, clock_, random_};
    EXPECT_TRUE(engine::create_pool(context, engine::World::spec("a", "10.0.0.0/14", 26)));
  }

  /// Without a group it is Calico's older one until nothing is found there.
  std::unique_ptr<store::Store> open(std::optional<wire::calico::ApiGroup> group = wire::calico::ApiGroup::crd_v1) {
    return store::make_kube_store(std::make_unique<NotingApi>(cluster_, clock_, noted_),
                                  {wire::kube::fake_digest, wire::kube::fake_digest}, clock_, {.group = group});
  }
  /// A plugin without agent.
  core::AssignAnswer assign(const core::AssignRequest& wanted,
                            std::optional<wire::calico::ApiGroup> group = wire::calico::ApiGroup::crd_v1) {
    const auto store = open(group);
    noted_.take();
    const auto done = engine::assign({*store, clock_, random_}, wanted);
    EXPECT_TRUE(done) << done.error().message;
    return done.value_or(core::AssignAnswer());
  }
  void add(const std::string& container) { assign(engine::World::request(container), std::nullopt); }
  std::size_t blocks() {
    std::size_t blocks = 0;
    for (const auto& [path, object] : cluster_->all()) blocks += path.find("/ipamblocks/") != path.npos ? 1 : 0;
    return blocks;
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
  std::shared_ptr<store::kube::FakeCluster> cluster_ = std::make_shared<store::kube::FakeCluster>();
  Noted noted_;
};

/// Whatever the number of blocks: what a claim reads of them is in one list of those of other lengths.
TEST_F(KubeCosts, AClaimAsksLittle) {
  std::size_t blocks_seen = 0;
  for (int i = 0; i < 600; ++i) {
    const std::string node = fmt::format("node-{}", i);
    assign(engine::World::request("first-of-" + node, node));
    const auto rounds = noted_.take();
    if (is_asked(rounds, "ipamblocks?labelSelector=ipam.croft.dev%2Flength%21%3D26")) ++blocks_seen;
    if (i > 2 && i < 590) continue;
    // Among many the first choice may be another's: then three more are asked for together.
    EXPECT_LE(rounds.size(), i > 2 ? 9U : 7U) << text_of(rounds);
    EXPECT_LE(requests_in(rounds), i > 2 ? 29U : 20U) << text_of(rounds);
    EXPECT_FALSE(is_asked(rounds, "ipamblocks?limit")) << text_of(rounds);
  }
  EXPECT_EQ(blocks_seen, 600U);
}

/// A namespace is asked for only where a pool selects some.
TEST_F(KubeCosts, LabelsOfANamespaceAreReadWhereAPoolAsksForThem) {
  const auto is_served = [&](const std::string& container) {
    auto wanted = engine::World::request(container);
    wanted.pod = {"web-0", "shop", ""};
    return std::holds_alternative<core::Assigned>(assign(wanted));
  };
  EXPECT_TRUE(is_served("c0"));
  EXPECT_FALSE(is_asked(noted_.take(), "namespaces/"));
  cluster_->edit("/apis/crd.projectcalico.org/v1/ippools/a",
                 [](auto& object) { object["spec"]["namespaceSelector"] = "team == 'shop'"; });
  EXPECT_FALSE(is_served("c1")) << "there is no such namespace";
  cluster_->make(
      "/api/v1/namespaces/shop",
      {{"apiVersion", "v1"}, {"kind", "Namespace"}, {"metadata", {{"name", "shop"}, {"labels", {{"team", "shop"}}}}}});
  EXPECT_TRUE(is_served("c1"));
  EXPECT_TRUE(is_asked(noted_.take(), "GET namespaces/shop"));
  cluster_->edit("/api/v1/namespaces/shop", [](auto& object) { object["metadata"]["labels"]["team"] = "other"; });
  EXPECT_FALSE(is_served("c2"));
}

/// An API server whose memory lags: a claim of moments ago is found all the same, and no block is claimed beside it.
TEST_F(KubeCosts, AClaimThatTheListDoesNotShowIsUsed) {
  cluster_->stop_remembering();
  for (int i = 0; i < 70; ++i) add(fmt::format("c{}", i));
  EXPECT_EQ(blocks(), 2U) << "64 addresses each";
}

/// What Calico's library wrote has no label: the block is found among those that may be of other lengths.
TEST_F(KubeCosts, ABlockOfAnotherLengthIsFoundWithAndWithoutItsLabel) {
  for (const bool is_labelled : {true, false}) {
    const std::string node = is_labelled ? "node-a" : "node-b";
    const auto first = assign(engine::World::request("c0" + node, node));
    std::string path;
    for (const auto& [one, object] : cluster_->all()) {
      if (one.find("/ipamblocks/") != one.npos && object.dump().find(node) != std::string::npos) path = one;
    }
    ASSERT_FALSE(path.empty());
    EXPECT_EQ(cluster_->all().at(path)["metadata"]["labels"]["ipam.croft.dev/length"], "26");
    if (!is_labelled) cluster_->edit(path, [](auto& object) { object["metadata"].erase("labels"); });
    // Somebody changes the length of the pool: who claims in it must not get the addresses of that block.
    cluster_->edit("/apis/crd.projectcalico.org/v1/ippools/a", [](auto& object) { object["spec"]["blockSize"] = 24; });
    std::set<net::Address> all;
    for (int i = 0; i < 300; ++i) {
      const auto done = assign(engine::World::request(fmt::format("{}-{}", node, i), node + "-other"));
      for (const auto& one : std::get<core::Assigned>(done).addresses) EXPECT_TRUE(all.insert(one.address).second);
    }
    for (const auto& one : std::get<core::Assigned>(first).addresses) {
      EXPECT_FALSE(all.contains(one.address)) << one.address.to_string();
    }
    cluster_->edit("/apis/crd.projectcalico.org/v1/ippools/a", [](auto& object) { object["spec"]["blockSize"] = 26; });
  }
}

/// Versions of Calico before 3.31 write affinities without labels: their blocks are used before another is claimed.
TEST_F(KubeCosts, ABlockWhoseAffinityHasNoLabelsIsUsed) {
  add("c0");
  for (const auto& [path, object] : cluster_->all()) {
    if (path.find("/blockaffinities/") == path.npos) continue;
    cluster_->edit(path, [](auto& edited) { edited["metadata"].erase("labels"); });
  }
  add("c1");
  EXPECT_EQ(blocks(), 1U);

  const auto store = open();
  const auto told = engine::explain({*store, clock_, random_}, engine::World::request("c2"));
  ASSERT_TRUE(told) << told.error().message;
  ASSERT_EQ(told->families.size(), 1U);
  EXPECT_EQ(told->families[0].owned_blocks, 1U);
  ASSERT_EQ(told->families[0].pools.size(), 1U);
  EXPECT_EQ(told->families[0].pools[0].own.size(), 1U) << "the block that the answer is of";
}

/// As for a report of what a dead node held: a register of thousands of blocks is not read anew for each address.
TEST_F(KubeCosts, TwoAddressesOfABlockAreLookedAtAsOne) {
  for (const char* container : {"c0", "c1"}) add(container);
  const auto store = open();
  const engine::Context context{*store, clock_, random_};
  const auto all = engine::list_addresses(context);
  ASSERT_TRUE(all);
  std::set<net::Address> held;
  for (const auto& one : *all) {
    if (one.state == core::AddressState::held) held.insert(one.address);
  }
  ASSERT_EQ(held.size(), 2U);
  noted_.take();
  ASSERT_TRUE(engine::show_address(context, *held.begin()));
  const std::size_t alone = noted_.take().size();
  const auto both = engine::show_addresses(context, held);
  ASSERT_TRUE(both);
  EXPECT_EQ(both->size(), 2U);
  EXPECT_EQ(noted_.take().size(), alone);
}

class KubeCostsWithAgent : public KubeCosts {
 protected:
  KubeCostsWithAgent() {
    add("c0");
    follow();
  }
  void follow() {
    for (int i = 0; i < 3; ++i) EXPECT_TRUE(cached_.step(Deadline::after(clock_.now(), std::chrono::milliseconds(50))));
  }
  [[nodiscard]] wire::agent::Caller caller() const {
    return {"kube:", "node-a", clock_.now().boot, Deadline::after(clock_.now(), std::chrono::seconds(20)), {}};
  }
  /// Served together.
  std::vector<std::vector<std::string>> serve(const std::vector<std::string>& containers, const auto& take) {
    std::vector<edge::AgentCall> calls;
    for (const std::string& container : containers) calls.push_back(take(container).value());
    noted_.take();
    const std::size_t count = calls.size();
    edge::AgentService::Together served = service_.serve_together(std::move(calls));
    EXPECT_EQ(served.answers.size(), count);
    for (const auto& answer : served.answers) EXPECT_TRUE(answer.message) << answer.message.error().message;
    return noted_.take();
  }
  std::vector<std::vector<std::string>> add_all(const std::vector<std::string>& containers) {
    return serve(containers, [this](const std::string& container) {
      const wire::agent::AssignCall call{caller(), {}, engine::World::request(container)};
      return service_.take_assign(encode(call), {});
    });
  }
  std::vector<std::vector<std::string>> del_all(const std::vector<std::string>& containers) {
    return serve(containers, [this](const std::string& container) {
      const wire::agent::ReleaseCall call{caller(), core::Owner{"net", container, "eth0"}};
      return service_.take_release(encode(call), {});
    });
  }
  static std::vector<std::string> containers(int from, int to) {
    std::vector<std::string> names;
    for (int i = from; i < to; ++i) names.push_back("c" + std::to_string(i));
    return names;
  }

  std::unique_ptr<store::Store> store_ = open();
  store::CachedStore cached_{*store_, {core::AffinityOwner::Type::host, "node-a"}, clock_};
  edge::AgentWorld world_{cached_, cached_.uncached(), clock_, random_,
                          "kube:", "node-a",           {},     [](const std::string&) {}};
  edge::AgentService service_{world_};
};

/// What an agent remembers begins at a position: a server whose memory lags behind that would hide a claim from it
/// until it reads everything anew.
TEST_F(KubeCostsWithAgent, ItsMemoryDoesNotBeginWithALaggingList) {
  cluster_->stop_remembering();
  for (int i = 0; i < 70; ++i) add(fmt::format("more{}", i));  // fills the block and claims another
  store::CachedStore late(*store_, {core::AffinityOwner::Type::host, "node-a"}, clock_);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(late.step(Deadline::after(clock_.now(), std::chrono::milliseconds(50))));
  EXPECT_EQ(late.state().own_blocks, 2U);
}

TEST_F(KubeCostsWithAgent, ABurstWritesTheBlockOnce) {
  const auto added = add_all(containers(1, 41));
  EXPECT_EQ(requests_in(added), 41U) << text_of(added);
  EXPECT_LE(added.size(), 2U) << text_of(added);
  follow();
  const auto deleted = del_all(containers(1, 41));
  EXPECT_EQ(requests_in(deleted), 41U) << text_of(deleted);
  EXPECT_LE(deleted.size(), 2U) << text_of(deleted);
}

TEST_F(KubeCostsWithAgent, AnotherBlockIsSevenRoundTrips) {
  add_all(containers(1, 64));
  follow();
  const auto rounds = add_all({"c64"});
  EXPECT_TRUE(is_asked(rounds, "POST ipamblocks")) << text_of(rounds);
  EXPECT_LE(rounds.size(), 7U) << text_of(rounds);
  EXPECT_LE(requests_in(rounds), 10U) << text_of(rounds);
}

}  // namespace
}  // namespace croft::app
