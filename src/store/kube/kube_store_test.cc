// A register whose objects go from one of Calico's groups to the other while a store is open: that is over then.

#include "store/kube/kube_store.h"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "register/block.h"
#include "store/conformance/conformance.h"
#include "store/kube/fake_api_fixture.h"
#include "store/kube/objects.h"
#include "store/kube/test_api.h"
#include "store/pause.h"
#include "store/store.h"

namespace croft::store {
namespace {

template <wire::calico::ApiGroup group>
class KubeBackend final : public ConformanceBackend {
 public:
  KubeBackend() { cluster_->gives_bookmarks = true; }
  [[nodiscard]] std::unique_ptr<Store> open() override {
    return open(std::make_unique<kube::FakeApi>(cluster_, clock_));
  }
  [[nodiscard]] std::unique_ptr<Store> open(std::unique_ptr<kube::Api> api) {
    return make_kube_store(std::move(api), {wire::kube::fake_digest, wire::kube::fake_digest}, clock_,
                           {.group = group});
  }
  void damage(const Key& key) override {
    std::vector<std::unique_ptr<kube::ObjectMapping>> mappings;
    mappings.push_back(kube::make_croft_mapping(wire::kube::fake_digest));
    mappings.push_back(kube::make_calico_mapping(group, {wire::kube::fake_digest, wire::kube::fake_digest}));
    for (const auto& mapping : mappings) {
      if (!mapping->has(key.kind)) continue;
      cluster_->edit(mapping->path_of(key).value(), [](auto& object) {
        object["spec"]["formatVersion"] = "odd";
        object["spec"]["blockSize"] = "odd";
        object["spec"]["allocations"] = "odd";
      });
    }
  }
  [[nodiscard]] bool writes(Kind kind) const override {
    return wire::kube::croft_kind_of(kind) != nullptr || wire::calico::has_crd(kind);
  }
  [[nodiscard]] bool outlives_processes() const override { return false; }
  [[nodiscard]] kube::FakeCluster& cluster() { return *cluster_; }
  [[nodiscard]] std::shared_ptr<kube::FakeCluster> shared() { return cluster_; }

 private:
  os::SystemClock clock_;
  std::shared_ptr<kube::FakeCluster> cluster_ = std::make_shared<kube::FakeCluster>();
};

using testing::HasSubstr;
using wire::calico::ApiGroup;
using Json = kube::FakeCluster::Json;

class KubeStore : public testing::Test {
 protected:
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock.now(), std::chrono::seconds(5)); }

  os::SystemClock clock;
  KubeBackend<ApiGroup::crd_v1> backend;
};

/// Else an agent without the right would go on with pools that have changed since.
TEST_F(KubeStore, AWatchThatMayNotBeEndsAndSaysSo) {
  const auto ours = backend.open();
  const auto position = ours->position(soon());
  ASSERT_TRUE(position);
  backend.cluster().watches_are_forbidden = true;
  const auto watch = ours->watch({{core::pool_set_key()}, {}}, *position, soon());
  ASSERT_TRUE(watch);
  Result<std::vector<Change>> told = (*watch)->next(soon());
  ASSERT_FALSE(told);
  EXPECT_EQ(told.error().code, ErrorCode::permission_denied);
  EXPECT_EQ(told.error().message, "cannot watch");
}

constexpr const char* kBlockPath = "/apis/crd.projectcalico.org/v1/ipamblocks/10-1-2-0-30";

/// A block with the mark of deletion, in an API.
class MarkedBlock : public KubeStore {
 protected:
  MarkedBlock() {
    empty_ = core::new_block(cidr_, core::AffinityOwner{core::AffinityOwner::Type::host, "a"}, clock.now(), {});
    empty_.affinity_claim_time.reset();
  }

  void make(const core::Block& block) {
    const Write made{core::block_key(cidr_), block, Condition::if_absent()};
    ASSERT_TRUE(backend.open()->commit({&made, 1}, {}, soon()));
    backend.cluster().edit(kBlockPath, [](auto& object) { object["spec"]["deleted"] = true; });
  }
  [[nodiscard]] core::Block held() const {
    core::Attribute holder;
    holder.handle_id = "net.one";
    return core::take_next(empty_, holder, [](const net::Address&) { return false; }).value().block;
  }

  net::Prefix cidr_ = net::Prefix::parse("10.1.2.0/30").value();
  core::Block empty_;
};

/// Another damage does not make the mark true.
TEST_F(MarkedBlock, ThatIsNotUnderstoodIsSetAside) {
  make(held());
  backend.cluster().edit(kBlockPath, [](auto& object) { object["spec"]["allocations"] = "odd"; });
  const auto read = backend.open()->get(core::block_key(cidr_), soon());
  ASSERT_TRUE(read && *read);
  EXPECT_FALSE((*read)->value);
  EXPECT_FALSE(backend.cluster().object(kBlockPath).is_null());
}

TEST_F(MarkedBlock, ThatIsEmptyIsNoneAndIsDeletedByWritersOnly) {
  make(empty_);
  const auto reader = backend.open();
  core::Missing together;
  together.records.insert(core::block_key(cidr_));
  EXPECT_EQ(reader->get(core::block_key(cidr_), soon()).value(), std::nullopt);
  EXPECT_EQ(reader->read(together, soon()).value().records.front(), std::nullopt);
  EXPECT_FALSE(backend.cluster().object(kBlockPath).is_null()) << "who reads deletes nothing";

  const Write again{core::block_key(cidr_), held(), Condition::if_absent()};
  EXPECT_TRUE(reader->commit({&again, 1}, {}, soon())) << "who writes in its place finishes its deletion";
}

/// What would be written into it goes with the last finalizer.
TEST_F(MarkedBlock, ThatAFinalizerKeepsIsSetAside) {
  const Write made{core::block_key(cidr_), empty_, Condition::if_absent()};
  const auto store = backend.open();
  ASSERT_TRUE(store->commit({&made, 1}, {}, soon()));
  backend.cluster().edit(kBlockPath, [](auto& object) { object["metadata"]["finalizers"] = {"example.org/slow"}; });
  const auto read = store->get(core::block_key(cidr_), soon()).value();
  ASSERT_TRUE(read);
  const Write removal{core::block_key(cidr_), std::nullopt, Condition::if_revision(read->revision)};
  ASSERT_TRUE(store->commit({&removal, 1}, {}, soon()));
  const auto kept = store->get(core::block_key(cidr_), soon()).value();
  ASSERT_TRUE(kept);
  ASSERT_FALSE(kept->value);
  const std::string why = kept->value.error().message;
  EXPECT_NE(why.find("a finalizer keeps"), std::string::npos) << why;
}

/// Read as damaged, because of its name: a DEL of it ends (ipam/decide/release.h), and nothing is written under it.
TEST_F(KubeStore, AHandleThatCanHaveNoObjectIsReadAsOneThatCanNotBe) {
  const auto store = backend.open();
  const auto put = [&](const std::string& id) {
    const Write write{core::handle_key(id), core::Handle{id, {{"10.0.0.0/26", 1}}, false, {}}, Condition::if_absent()};
    return store->commit({&write, 1}, WriteToken{{1}}, soon());
  };
  ASSERT_TRUE(put("net.Abc"));
  for (const std::string& id : {std::string("my_net.c"), std::string("net.a.b_c"), std::string("net.c-"),
                                std::string("net.c."), std::string("net.a..b"), "net." + std::string(250, 'c')}) {
    SCOPED_TRACE(id);
    core::Missing wanted;
    wanted.records = {core::handle_key("net.Abc"), core::handle_key(id)};
    const auto read = store->read(wanted, soon());
    ASSERT_TRUE(read) << read.error().message;
    std::size_t at = 0;
    for (const Key& key : wanted.records) EXPECT_EQ(read->records[at++].has_value(), key.name != id);
    const auto alone = store->get(core::handle_key(id), soon());
    EXPECT_TRUE(alone && !*alone);
    EXPECT_FALSE(put(id));
  }
  // Its object is another's, whom nothing may be taken from.
  const auto twin = store->get(core::handle_key("net.abc"), soon());
  ASSERT_TRUE(twin && *twin);
  EXPECT_EQ((*twin)->value.error().code, ErrorCode::corrupt);
  EXPECT_FALSE(put("net.abc"));
  // Asked before anything is written.
  auto& naming = dynamic_cast<Naming&>(*store);
  const auto place = naming.place_of(core::handle_key("net.Abc"), soon());
  ASSERT_TRUE(place) << place.error().message;
  EXPECT_EQ(naming.place_of(core::handle_key("net.abc"), soon()).value_or(""), *place);
  EXPECT_NE(naming.place_of(core::handle_key("net.b"), soon()).value_or(""), *place);
  EXPECT_EQ(naming.place_of(core::handle_key("my_net.c"), soon()).error().code, ErrorCode::invalid_argument);
  const auto kept = store->get(core::handle_key("net.Abc"), soon());
  ASSERT_TRUE(kept && *kept);
  EXPECT_TRUE(std::holds_alternative<core::Handle>(*(*kept)->value));
  // Once the one is gone the other can be.
  const Write gone{core::handle_key("net.Abc"), std::nullopt, Condition::if_revision((*kept)->revision)};
  ASSERT_TRUE(store->commit({&gone, 1}, WriteToken{{2}}, soon()));
  EXPECT_TRUE(put("net.abc"));
}

/// An API whose watches tell one thing, and then maybe end.
class OddWatches final : public kube::FakeApi {
 public:
  OddWatches(std::shared_ptr<kube::FakeCluster> cluster, const Clock& clock, std::string line, bool ends,
             std::atomic<int>& opened)
      : FakeApi(std::move(cluster), clock), line_(std::move(line)), ends_(ends), opened_(opened) {}
  [[nodiscard]] kube::WatchAnswer watch(const std::string&, Deadline) override {
    class Odd final : public kube::WatchStream {
     public:
      Odd(std::string line, bool ends) : line_(std::move(line)), ends_(ends) {}
      [[nodiscard]] Result<std::optional<wire::kube::ApiEvent>> next(Deadline) override {
        if (!line_.empty()) {
          TRY(auto event, wire::kube::decode_event(std::exchange(line_, {})));
          return std::optional(std::move(event));
        }
        if (ends_) return fail(ErrorCode::unavailable, "the API server has ended the watch");
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        return std::optional<wire::kube::ApiEvent>();
      }

     private:
      std::string line_;
      const bool ends_;
    };
    ++opened_;
    return {kube::answered(), std::make_unique<Odd>(line_, ends_)};
  }

 private:
  const std::string line_;
  const bool ends_;
  std::atomic<int>& opened_;
};

std::string bookmark_of(std::string_view resource_version) {
  return R"({"type":"BOOKMARK","object":{"kind":"CroftPoolSet","apiVersion":"ipam.croft.dev/v1alpha1",)"
         R"("metadata":{"resourceVersion":")" +
         std::string(resource_version) + R"("}}})";
}

/// It would be told again and again, and who follows would never hear of it.
TEST_F(KubeStore, AWatchThatTellsNonsenseEndsAndSaysSo) {
  for (const std::string& line : {bookmark_of("abc"), std::string("{\"type\":\"ADDED\"")}) {
    std::atomic<int> opened = 0;
    const auto ours = backend.open(std::make_unique<OddWatches>(backend.shared(), clock, line, false, opened));
    const auto position = ours->position(soon());
    ASSERT_TRUE(position);
    const auto watch = ours->watch({{core::pool_set_key()}, {}}, *position, soon());
    ASSERT_TRUE(watch);
    Result<std::vector<Change>> told = (*watch)->next(soon());
    ASSERT_FALSE(told);
    EXPECT_EQ(told.error().code, ErrorCode::corrupt);
    EXPECT_NE(told.error().message.find("a watch of pool_set records"), std::string::npos) << told.error().message;
    EXPECT_EQ(opened, 1);
  }
}

TEST_F(KubeStore, AWatchThatEndsAtOnceIsOpenedMoreAndMoreSeldomWhateverItTold) {
  const auto position = backend.open()->position(soon());
  ASSERT_TRUE(position);
  std::atomic<int> opened = 0;
  const std::string line = bookmark_of(std::to_string(position->value));
  const auto ours = backend.open(std::make_unique<OddWatches>(backend.shared(), clock, line, true, opened));
  ASSERT_TRUE(ours->position(soon()));
  const auto watch = ours->watch({{core::pool_set_key()}, {}}, *position, soon());
  ASSERT_TRUE(watch);
  ASSERT_TRUE((*watch)->next(Deadline::after(clock.now(), std::chrono::seconds(2))));
  // After pauses of at least 25, 50, 100, 200, 400 and 800 ms.
  EXPECT_LE(opened, 7);
  EXPECT_GE(opened, 1);
}

TEST_F(KubeStore, AWatchThatIsToldNothingHasPassedNoMoreThanItGave) {
  using namespace std::chrono_literals;
  backend.cluster().gives_bookmarks = false;
  const auto in = [&](std::chrono::milliseconds span) { return Deadline::after(clock.now(), span); };
  const auto ours = backend.open();
  const auto start = ours->position(in(5s));
  ASSERT_TRUE(start);
  const auto watch = ours->watch({{}, {{Kind::high_water_mark, ""}}}, *start, in(5s));
  ASSERT_TRUE(watch);
  const auto passes = [&](Revision position) {
    for (const Deadline limit = in(1500ms); !limit.passed(clock.now());) {
      EXPECT_TRUE((*watch)->next(in(50ms)));
      if ((*watch)->is_complete_up_to(position)) return true;
    }
    return false;
  };
  const Write mark{{Kind::high_water_mark, "a"}, core::HighWaterMark{core::SequenceNumber(1)}, Condition::always()};
  ASSERT_TRUE(ours->commit({&mark, 1}, WriteToken{{1}}, in(5s)));
  EXPECT_TRUE(passes(*ours->position(in(5s)))) << "its last change is the API's";
  const Write other{core::handle_key("net.a"), core::Handle{"net.a", {}}, Condition::always()};
  ASSERT_TRUE(ours->commit({&other, 1}, WriteToken{{2}}, in(5s)));
  const auto later = ours->position(in(5s));
  EXPECT_FALSE(passes(*later)) << "the API has not said that nothing came before";
  backend.cluster().gives_bookmarks = true;
  EXPECT_TRUE(passes(*later));
}

/// What STATUS asks (engine::check_status).
TEST_F(KubeStore, WhetherWritesAreTakenIsToldWithoutOne) {
  // Its caller may do all, or only read, or it does not tell.
  for (const char* answer : {R"({"status":{"allowed":true}})", R"({"status":{"allowed":false}})", "{}", ""}) {
    for (const bool is_ready : {true, false}) {
      SCOPED_TRACE(answer);
      KubeBackend<ApiGroup::crd_v1> reviewed;
      kube::FakeApi beneath(reviewed.shared(), clock);
      int writes = 0;
      const auto respond = [&](const kube::Request& request) {
        const bool is_review = request.path.ends_with("selfsubjectaccessreviews");
        if (!request.is_read() && !is_review) ++writes;
        if (!is_review) return beneath.call(request, soon());
        EXPECT_NE(request.body.find(R"("resource":"ipamblocks","verb":"update")"), std::string::npos) << request.body;
        kube::Answer reply = kube::answered(answer);
        if (reply.body.empty()) reply.outcome = kube::Answer::Outcome::not_done;
        return reply;
      };
      const auto store = reviewed.open(std::make_unique<kube::AnsweringApi>(respond));
      reviewed.cluster().make("/apis/crd.projectcalico.org/v1/clusterinformations/default",
                              {{"apiVersion", "crd.projectcalico.org/v1"},
                               {"kind", "ClusterInformation"},
                               {"metadata", {{"name", "default"}}},
                               {"spec", {{"datastoreReady", is_ready}}}});
      const Write question = write_question();
      const auto told = store->commit({&question, 1}, {}, soon());
      ASSERT_FALSE(told);
      const bool is_denied = std::string_view(answer).find("false") != std::string_view::npos;
      EXPECT_EQ(told.error().code, !is_ready   ? ErrorCode::unavailable
                                   : is_denied ? ErrorCode::permission_denied
                                               : ErrorCode::conflict)
          << told.error().message;
      EXPECT_EQ(writes, 0);
    }
  }
}

/// Which groups of Calico's an API has, by which status it answers, and how often it was asked.
struct Groups {
  bool v1 = true, v3 = false;
  int code = 200;
  int asked = 0;
};

class Grouped final : public kube::FakeApi {
 public:
  Grouped(std::shared_ptr<kube::FakeCluster> cluster, const Clock& clock, Groups& groups)
      : FakeApi(std::move(cluster), clock), groups_(groups) {}
  [[nodiscard]] kube::Answer call(const kube::Request& request, Deadline deadline) override {
    if (request.path != "/apis") return FakeApi::call(request, deadline);
    ++groups_.asked;
    const auto& [v1, v3, code, asked] = groups_;
    if (code != 200) {
      return kube::refused(code, code == 403 ? ErrorCode::permission_denied : ErrorCode::unavailable, "not now");
    }
    return kube::answered(std::string(R"({"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps"})") +
                          (v1 ? R"(,{"name":"crd.projectcalico.org"})" : "") +
                          (v3 ? R"(,{"name":"projectcalico.org"})" : "") + "]}");
  }

 private:
  Groups& groups_;
};

class TwoGroups : public testing::Test {
 protected:
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds(5)); }
  [[nodiscard]] Result<ApiGroup> discovered(const Groups& groups) {
    groups_ = groups;
    Grouped api(cluster_, clock_, groups_);
    return kube::discover_calico_group(api, soon());
  }
  /// What a DEL reads, by a store of its own.
  [[nodiscard]] std::size_t pools_read(bool v1, bool v3) {
    groups_ = {v1, v3};
    const auto store = make_kube_store(std::make_unique<Grouped>(cluster_, clock_, groups_),
                                       {wire::kube::fake_digest, wire::kube::fake_digest}, clock_);
    core::Missing del;
    del.records.insert(core::handle_key("net.c1"));
    del.lists.insert({Kind::pool, "", true});
    const auto read = store->read(del, soon());
    EXPECT_TRUE(read) << read.error().message;
    return read ? read->lists.front().size() : 0;
  }
  template <ApiGroup group>
  void make_pool() {
    KubeBackend<group> backend;
    cluster_ = backend.shared();
    core::Pool pool;
    pool.name = "a";
    pool.cidr = net::Prefix::parse("10.0.0.0/24").value();
    pool.block_length = 26;
    const Write made{core::pool_key("a"), pool, Condition::if_absent()};
    ASSERT_TRUE(backend.open()->commit({&made, 1}, {}, soon()));
  }

  os::SystemClock clock_;
  std::shared_ptr<kube::FakeCluster> cluster_ = std::make_shared<kube::FakeCluster>();
  Groups groups_;
};

TEST_F(TwoGroups, TheOlderCountsWhereverItIsServed) {
  EXPECT_EQ(discovered({true, false}), ApiGroup::crd_v1);
  EXPECT_EQ(discovered({false, true}), ApiGroup::v3);
  EXPECT_EQ(discovered({false, false}), ApiGroup::crd_v1);
  EXPECT_EQ(discovered({true, true}), ApiGroup::crd_v1) << "v3 is a view of it there, by Calico's API server";
}

/// A server that is just restarting has not said that the older group is the one.
TEST_F(TwoGroups, WhatIsNoAnswerChoosesNone) {
  for (const int code : {429, 500, 503}) EXPECT_FALSE(discovered({false, true, code})) << code;
  EXPECT_EQ(discovered({false, true, 403}), ApiGroup::crd_v1) << "most clusters have it";
}

/// A plugin guesses the older group and is spared the question; where that would hide a register it asks.
TEST_F(TwoGroups, AGuessIsLookedAtWhereNothingIsFound) {
  EXPECT_EQ(pools_read(true, false), 0U) << "nothing is anywhere";
  make_pool<ApiGroup::v3>();
  EXPECT_EQ(pools_read(false, true), 1U) << "a DEL would free nothing, and be told as done";
  EXPECT_EQ(groups_.asked, 1);
  make_pool<ApiGroup::crd_v1>();
  EXPECT_EQ(pools_read(true, true), 1U);
  EXPECT_EQ(groups_.asked, 0) << "a register with a pool costs no request more";
}

INSTANTIATE_TEST_SUITE_P(Kube, StoreConformance,
                         testing::Values(BackendCase{"crd.projectcalico.org/v1",
                                                     [] { return std::make_unique<KubeBackend<ApiGroup::crd_v1>>(); }},
                                         BackendCase{"projectcalico.org/v3",
                                                     [] { return std::make_unique<KubeBackend<ApiGroup::v3>>(); }}));

constexpr const char* kV1 = "/apis/crd.projectcalico.org/v1/";
constexpr const char* kV3 = "/apis/projectcalico.org/v3/";

class MovedRegister : public testing::Test {
 protected:
  MovedRegister() {
    store_ = make_kube_store(std::make_unique<Grouped>(cluster_, clock_, groups_),
                             {wire::kube::fake_digest, wire::kube::fake_digest}, clock_, {.moved = [] { ++moved_; }});
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds(5)); }
  [[nodiscard]] Result<Revision> write(const std::string& handle, Condition condition, std::uint8_t token) {
    const Write one{core::handle_key(handle), core::Handle{handle, {}}, condition};
    return store_->commit({&one, 1}, WriteToken{{token}}, soon());
  }
  [[nodiscard]] Result<std::optional<Record>> read(const std::string& handle) {
    return store_->get(core::handle_key(handle), soon());
  }
  void say(const std::string& place, bool ready) {
    const std::string path = place + "clusterinformations/default";
    if (!cluster_->object(path).is_null())
      return cluster_->edit(path, [&](Json& o) { o["spec"]["datastoreReady"] = ready; });
    cluster_->make(path, {{"apiVersion", place == kV1 ? "crd.projectcalico.org/v1" : "projectcalico.org/v3"},
                          {"kind", "ClusterInformation"},
                          {"metadata", {{"name", "default"}}},
                          {"spec", {{"datastoreReady", ready}}}});
  }
  void delete_v1() {
    for (const char* kind : {"ipamhandles", "ipamblocks", "clusterinformations"}) {
      cluster_->do_not_serve(std::string(kV1) + kind);
    }
  }
  /// As the migration does it: without what it knows nothing of.
  void copy_to_v3(const std::string& handle) {
    Json object = cluster_->object(std::string(kV1) + "ipamhandles/" + handle);
    object["metadata"] = {{"name", handle}};
    object["apiVersion"] = "projectcalico.org/v3";
    cluster_->make(std::string(kV3) + "ipamhandles/" + handle, object);
  }

  os::SystemClock clock_;
  std::shared_ptr<kube::FakeCluster> cluster_ = std::make_shared<kube::FakeCluster>();
  Groups groups_;
  static inline int moved_ = 0;
  std::unique_ptr<Store> store_;
};

TEST_F(MovedRegister, AnOpenStoreDoesNotGoOver) {
  moved_ = 0;
  const auto made = write("net.a", Condition::if_absent(), 1);
  ASSERT_TRUE(made) << made.error().message;
  copy_to_v3("net.a");
  delete_v1();
  const auto gone = read("net.a");
  ASSERT_FALSE(gone);
  EXPECT_EQ(gone.error().code, ErrorCode::refused_by_configuration);  // the API has no other answer yet
  EXPECT_THAT(gone.error().message,
              testing::AllOf(HasSubstr("has no ipamhandles.crd.projectcalico.org of version v1, in which a "
                                       "register of pools and blocks is kept"),
                             HasSubstr("--store")));
  EXPECT_EQ(moved_, 0);
  groups_ = {.v1 = false, .v3 = true};
  const auto there = read("net.a");
  ASSERT_FALSE(there);
  EXPECT_EQ(there.error().code, ErrorCode::unavailable);
  EXPECT_THAT(there.error().message, HasSubstr("start this program again"));
  EXPECT_EQ(moved_, 1) << "a daemon ends";
  EXPECT_EQ(write("net.b", Condition::if_absent(), 2).error().code, ErrorCode::unavailable);
  EXPECT_EQ(moved_, 1);
  EXPECT_TRUE(cluster_->object(std::string(kV3) + "ipamhandles/net.b").is_null());
}

TEST_F(MovedRegister, WhereAKindIsMissingAndNothingMovedItStaysAndSaysSo) {
  ASSERT_TRUE(write("net.a", Condition::if_absent(), 1));
  const int asked = groups_.asked;
  cluster_->do_not_serve(std::string(kV1) + "ipamhandles");
  const auto found = read("net.a");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("ipamhandles.crd.projectcalico.org"));
  EXPECT_GT(groups_.asked, asked);
}

TEST_F(MovedRegister, NothingIsWrittenInAnOlderGroupThatIsBeingDeleted) {
  say(kV3, true);
  cluster_->do_not_serve(std::string(kV1) + "clusterinformations");
  const auto written = write("net.a", Condition::if_absent(), 1);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::unavailable);
  EXPECT_THAT(written.error().message, HasSubstr("as when the older group is deleted after a migration"));
}

/// The object goes before its kind does.
TEST_F(MovedRegister, NorWhereItWasSeenLocked) {
  say(kV1, false);
  EXPECT_THAT(write("net.a", Condition::if_absent(), 1).error().message, HasSubstr("datastoreReady: false"));
  say(kV3, true);
  kube::FakeApi other(cluster_, clock_);
  kube::Request gone;
  gone.method = kube::Request::Method::delete_object;
  gone.path = std::string(kV1) + "clusterinformations/default";
  ASSERT_EQ(other.call(gone, soon()).outcome, kube::Answer::Outcome::done);
  const auto written = write("net.a", Condition::if_absent(), 1);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::unavailable);
}

/// Nor by who comes just then, and has seen nothing: a plugin alone.
TEST_F(MovedRegister, NorByWhoNeverSawItLocked) {
  say(kV3, true);  // and none in v1, whose kinds are all served still
  const auto written = write("net.a", Condition::if_absent(), 1);
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, ErrorCode::unavailable);
  EXPECT_THAT(written.error().message, HasSubstr("as when the older group is deleted after a migration"));
  EXPECT_TRUE(cluster_->object(std::string(kV1) + "ipamhandles/net.a").is_null());
  say(kV1, true);
  const auto stays = write("net.a", Condition::if_absent(), 1);
  EXPECT_TRUE(stays) << "both groups are to stay: " << stays.error().message;
}

/// What stands before the API server and answers in its place, for requests of one kind.
class Middlebox final : public kube::FakeApi {
 public:
  using FakeApi::FakeApi;
  [[nodiscard]] kube::Answer call(const kube::Request& request, Deadline deadline) override {
    const bool is_meant = request.is_read() && request.path.find(part) != request.path.npos && times > 0;
    if (!is_meant) return FakeApi::call(request, deadline);
    --times;
    return own;
  }
  std::string part;
  int times = 0;
  kube::Answer own;
};

/// A store behind one.
class BehindAMiddlebox : public MovedRegister {
 protected:
  BehindAMiddlebox() {
    auto api = std::make_unique<Middlebox>(cluster_, clock_);
    box_ = api.get();
    store_ = make_kube_store(std::move(api), {wire::kube::fake_digest, wire::kube::fake_digest}, clock_,
                             {.group = ApiGroup::crd_v1});
  }
  Middlebox* box_ = nullptr;
};

TEST_F(BehindAMiddlebox, WhatIsNoClusterInformationPermitsNoWrite) {
  box_->part = "clusterinformations";
  for (const kube::Answer& answer :
       {kube::answered("<html>log in</html>"), kube::answered("{}"),
        kube::answered(R"({"kind":"ClusterInformation","apiVersion":"v1","spec":{}})"),
        kube::answered(R"({"kind":"IPPool","apiVersion":"crd.projectcalico.org/v1","spec":{}})")}) {
    box_->own = answer;
    box_->times = 100;
    const auto written = write("net.a", Condition::if_absent(), 1);
    ASSERT_FALSE(written) << answer.body;
    EXPECT_EQ(written.error().code, ErrorCode::unavailable) << written.error().message;
  }
}

/// The sweep takes a block that comes twice for two (collector/use/sweep.cc).
TEST_F(BehindAMiddlebox, AListThatIsLostMidwayGivesEachRecordOnce) {
  const std::vector<std::string> names{"net.a", "net.b", "net.c", "net.d", "net.e"};
  for (const std::string& name : names) ASSERT_TRUE(write(name, Condition::if_absent(), 1));
  box_->part = "continue=";
  box_->times = 1;
  box_->own = kube::refused(410, ErrorCode::too_old, "expired");
  std::vector<std::string> taken;
  const auto take = [&](Record& record) -> Result<void> {
    taken.push_back(record.key.name);
    return {};
  };
  ASSERT_TRUE(store_->for_each(
      {Kind::handle, "", 2}, [&] { return soon(); }, take));
  EXPECT_EQ(box_->times, 0) << "its second page was lost";
  EXPECT_EQ(taken, names);
}

/// An ADD may see its node's claims as the API remembers them; what gives up a node may not.
TEST_F(BehindAMiddlebox, ClaimsInOrderAreOfThisMoment) {
  box_->part = "resourceVersion=0";
  box_->times = 1;
  ASSERT_TRUE(store_->for_each(
      {Kind::affinity, "host/a/", 1000, false, true}, [&] { return soon(); }, [](Record&) { return Result<void>(); }));
  EXPECT_EQ(box_->times, 1) << "the API's memory was asked";
  core::Missing claims;
  claims.lists.insert({Kind::affinity, "host/a/"});
  static_cast<void>(store_->read(claims, soon()));
  EXPECT_EQ(box_->times, 0) << "an ADD asks it";
}

TEST_F(BehindAMiddlebox, WhatIsNoListOfGroupsChoosesNone) {
  box_->part = "/apis";
  for (const char* body : {"<html>", "{}", R"({"kind":"APIGroupList","groups":7})"}) {
    box_->own = kube::answered(body);
    box_->times = 1;
    const auto group = kube::discover_calico_group(*box_, soon());
    ASSERT_FALSE(group) << body;
    EXPECT_EQ(group.error().code, ErrorCode::unavailable);
  }
  box_->own = kube::answered(R"({"kind":"APIGroupList","groups":[{"name":"projectcalico.org"}]})");
  box_->times = 1;
  EXPECT_EQ(kube::discover_calico_group(*box_, soon()).value(), ApiGroup::v3);
  box_->own = kube::refused(403, ErrorCode::permission_denied, "forbidden");
  box_->times = 1;
  EXPECT_EQ(kube::discover_calico_group(*box_, soon()).value(), ApiGroup::crd_v1);
}

/// Definitions without ClusterInformation, and a cluster that never had a newer group.
TEST_F(MovedRegister, AClusterWithoutAnyIsReady) {
  cluster_->do_not_serve(std::string(kV1) + "clusterinformations");
  EXPECT_TRUE(write("net.a", Condition::if_absent(), 1));
}

}  // namespace
}  // namespace croft::store
