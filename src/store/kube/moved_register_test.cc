// A register whose objects go from one of Calico's groups to the other while a store is open: that is over then.

#include <memory>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/calico_cluster.h"
#include "store/kube/fake_api_fixture.h"
#include "store/kube/format/fake_digest_fixture.h"
#include "store/kube/kube_store.h"

namespace croft::store {
namespace {

using testing::HasSubstr;
using wire::calico::ApiGroup;
using Json = kube::FakeCluster::Json;

constexpr const char* kV1 = "/apis/crd.projectcalico.org/v1/";
constexpr const char* kV3 = "/apis/projectcalico.org/v3/";

/// What the API's groups are, and how often they were asked for.
struct Groups {
  ApiGroup calicos = ApiGroup::crd_v1;
  int asked = 0;
};

/// An API that has one of Calico's groups.
class Grouped final : public kube::FakeApi {
 public:
  Grouped(std::shared_ptr<kube::FakeCluster> cluster, const Clock& clock, Groups& groups)
      : FakeApi(std::move(cluster), clock), groups_(groups) {}
  [[nodiscard]] kube::Answer call(const kube::Request& request, Deadline deadline) override {
    if (request.path != "/apis") return FakeApi::call(request, deadline);
    ++groups_.asked;
    kube::Answer answer;
    answer.outcome = kube::Answer::Outcome::done;
    answer.body = R"({"kind":"APIGroupList","groups":[{"name":")" +
                  std::string(groups_.calicos == ApiGroup::v3 ? "" : "crd.") + R"(projectcalico.org"}]})";
    return answer;
  }

 private:
  Groups& groups_;
};

class MovedRegister : public testing::Test {
 protected:
  MovedRegister() {
    store_ = make_kube_store(std::make_unique<Grouped>(cluster_, clock_, groups_),
                             {wire::kube::fake_digest, wire::kube::fake_digest}, clock_, {.moved = [] { ++moved_; }});
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds(5)); }
  [[nodiscard]] Result<Revision> write(const std::string& handle, Condition condition, std::uint8_t token) {
    core::Handle value;
    value.id = handle;
    value.blocks = {};
    const Write one{core::handle_key(handle), value, condition};
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
  EXPECT_EQ(read("net.a").error().code, ErrorCode::refused_by_configuration);  // the API has no other answer yet
  EXPECT_EQ(moved_, 0);
  groups_.calicos = ApiGroup::v3;
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
  Middlebox(std::shared_ptr<kube::FakeCluster> cluster, const Clock& clock) : FakeApi(std::move(cluster), clock) {}
  [[nodiscard]] kube::Answer call(const kube::Request& request, Deadline deadline) override {
    const bool is_meant = request.method == method && request.path.find(part) != request.path.npos && times > 0;
    if (!is_meant) return FakeApi::call(request, deadline);
    --times;
    kube::Answer answer = own;
    if (echoes) answer.body = request.body;
    return answer;
  }
  kube::Request::Method method = kube::Request::Method::get;
  std::string part;
  int times = 0;
  kube::Answer own;
  bool echoes = false;
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
  [[nodiscard]] static kube::Answer done(std::string body) {
    kube::Answer answer;
    answer.outcome = kube::Answer::Outcome::done;
    answer.http_status = 200;
    answer.body = std::move(body);
    return answer;
  }
  Middlebox* box_ = nullptr;
};

TEST_F(BehindAMiddlebox, WhatIsNoClusterInformationPermitsNoWrite) {
  box_->part = "clusterinformations";
  for (const kube::Answer& answer :
       {done("<html>log in</html>"), done("{}"), done(R"({"kind":"ClusterInformation","apiVersion":"v1","spec":{}})"),
        done(R"({"kind":"IPPool","apiVersion":"crd.projectcalico.org/v1","spec":{}})")}) {
    box_->own = answer;
    box_->times = 100;
    const auto written = write("net.a", Condition::if_absent(), 1);
    ASSERT_FALSE(written) << answer.body;
    EXPECT_EQ(written.error().code, ErrorCode::unavailable) << written.error().message;
  }
}

TEST_F(BehindAMiddlebox, WhatIsNoListOfGroupsChoosesNone) {
  box_->part = "/apis";
  for (const char* body : {"<html>", "{}", R"({"kind":"APIGroupList","groups":7})"}) {
    box_->own = done(body);
    box_->times = 1;
    const auto group = kube::discover_calico_group(*box_, soon());
    ASSERT_FALSE(group) << body;
    EXPECT_EQ(group.error().code, ErrorCode::unavailable);
  }
  box_->own = done(R"({"kind":"APIGroupList","groups":[{"name":"projectcalico.org"}]})");
  box_->times = 1;
  EXPECT_EQ(kube::discover_calico_group(*box_, soon()).value(), ApiGroup::v3);
  kube::Answer forbidden;
  forbidden.outcome = kube::Answer::Outcome::refused;
  forbidden.http_status = forbidden.status.code = 403;
  forbidden.status.reason = "Forbidden";
  forbidden.error = {ErrorCode::permission_denied, "forbidden", {}};
  box_->own = forbidden;
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
