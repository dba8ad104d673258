#include "store/kube/leadership.h"

#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/time_text.h"
#include "store/kube/fake_api_fixture.h"
#include "store/kube/kube_store.h"

namespace croft::store::kube {
namespace {

using namespace std::chrono_literals;
using Json = FakeCluster::Json;

constexpr const char* kPath = "/apis/coordination.k8s.io/v1/namespaces/croft-system/leases/croftd-controller";
constexpr const char* kLeasesOf = "/apis/coordination.k8s.io/v1/namespaces/croft-system/leases";

/// An API that is away, or takes its time.
class TroubledApi final : public FakeApi {
 public:
  TroubledApi(std::shared_ptr<FakeCluster> cluster, ManualClock& clock) : FakeApi(std::move(cluster), clock) {}
  [[nodiscard]] Answer call(const Request& request, Deadline deadline) override {
    if (before) before(request);
    if (is_away) {
      ++calls;
      Answer answer;
      answer.error = {ErrorCode::unavailable, "no server could be reached", {}};
      return answer;
    }
    Answer answer = FakeApi::call(request, deadline);
    if (after) after(request);
    return answer;
  }
  bool is_away = false;
  std::function<void(const Request&)> before, after;
};

/// What came of an attempt.
struct Tried {
  bool leads = false;
  std::string holder;
  std::optional<Error> failure;
};

/// One process with clocks of its own.
struct Candidate {
  explicit Candidate(const std::shared_ptr<FakeCluster>& cluster, const std::string& identity)
      : api(cluster, clock),
        leadership(Leadership::make(api, {"croft-system", "croftd-controller", identity}, clock).value()) {}
  [[nodiscard]] Tried attempt() {
    auto done = leadership->attempt();
    return {leads(), std::move(done.holder), std::move(done.failure)};
  }
  [[nodiscard]] bool leads() const { return leadership->is_leader(); }

  ManualClock clock;
  TroubledApi api;
  std::unique_ptr<Leadership> leadership;
};

class LeadershipTest : public testing::Test {
 protected:
  /// Time passes for everybody.
  void pass(std::chrono::nanoseconds span) {
    a.clock.advance(span);
    b.clock.advance(span);
  }
  [[nodiscard]] Json spec() const { return cluster->object(kPath)["spec"]; }

  std::shared_ptr<FakeCluster> cluster = std::make_shared<FakeCluster>();
  Candidate a{cluster, "oak_a"};
  Candidate b{cluster, "elm_b"};
};

std::string text_of(const Tried& attempt) { return attempt.failure ? attempt.failure->message : "no failure"; }

// ---------------------------------------------------------------- the rules

/// Whoever wrote it there: a Lease that nobody could take would leave all without a leader.
TEST(LeaseRules, TransitionsEndWithWhatTheApiTakes) {
  LeaseRecord before{"other", 15, {}, {}, 2147483646};
  before = taken_record(&before, "a", 15s, {});
  EXPECT_EQ(before.transitions, 2147483647);
  EXPECT_EQ(taken_record(&before, "b", 1001ms, {}).transitions, 2147483647);
  EXPECT_EQ(taken_record(&before, "b", 1001ms, {}).duration_s, 2) << "never less than is meant";
}

TEST(LeaseRules, OnlyOwnTimeSinceAChangeWasSeenEndsARecord) {
  LeaseRecord record{"oak", 3, "", "2020-01-01T00:00:00.000000Z", 0};  // renewed years ago, it says
  EXPECT_FALSE(may_take(record, 2999ms, "elm", 15s));
  EXPECT_TRUE(may_take(record, 3s, "elm", 15s));
  EXPECT_TRUE(may_take(record, 0s, "oak", 15s));
  record.duration_s = 0;  // not said: one's own counts
  EXPECT_FALSE(may_take(record, 14s, "elm", 15s));
  EXPECT_TRUE(may_take(record, 15s, "elm", 15s));
  record.holder = "";
  EXPECT_TRUE(may_take(record, 0s, "elm", 15s));
}

// ---------------------------------------------------------------- the bytes

const std::string kBegin = R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1",)"
                           R"("metadata":{"name":"a","namespace":"n","resourceVersion":"42"})";

TEST(Lease, EveryMemberArrives) {
  const auto lease = decode_lease(
      kBegin + R"(,"spec":{"holderIdentity":"oak_1","leaseDurationSeconds":15,"leaseTransitions":3,"strategy":"x",)"
               R"("acquireTime":"2026-01-15T10:00:00.000000Z","renewTime":"2026-01-15T10:00:02.500000Z"}})");
  ASSERT_TRUE(lease) << lease.error().message;
  EXPECT_EQ(lease->record, (LeaseRecord{"oak_1", 15, "2026-01-15T10:00:00.000000Z", "2026-01-15T10:00:02.500000Z", 3}));
  EXPECT_EQ(lease->resource_version, "42");
}

TEST(Lease, WhatIsNotSaidIsNobodysAndDamageNamesTheMember) {
  for (const char* spec : {R"(,"spec":{})", R"(,"spec":null)", "",
                           R"(,"spec":{"holderIdentity":null,"leaseDurationSeconds":null,"renewTime":null})"}) {
    const auto lease = decode_lease(kBegin + spec + "}");
    ASSERT_TRUE(lease) << lease.error().message;
    EXPECT_EQ(lease->record, LeaseRecord()) << spec;
  }
  const auto refusal = [](const std::string& spec) {
    const auto lease = decode_lease(kBegin + R"(,"spec":)" + spec + "}");
    return lease ? "accepted" : lease.error().message;
  };
  EXPECT_EQ(refusal(R"({"holderIdentity":7})"),
            "a Lease of the API server: spec.holderIdentity: an integer (7) where a string is wanted");
  EXPECT_EQ(refusal(R"({"leaseDurationSeconds":-1})"),
            "a Lease of the API server: spec.leaseDurationSeconds: -1 is out of range: 0 to 2147483647");
  EXPECT_FALSE(decode_lease("not JSON"));
}

TEST(Lease, ANewOneAndAChange) {
  const LeaseRecord record{"oak_1", 15, "2026-01-15T10:00:00.000000Z", "2026-01-15T10:00:02.500000Z", 4};
  EXPECT_EQ(encode_lease("n", "a", "", record),
            R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"a","namespace":"n"},)"
            R"("spec":{"holderIdentity":"oak_1","leaseDurationSeconds":15,"acquireTime":"2026-01-15T10:00:00.000000Z",)"
            R"("renewTime":"2026-01-15T10:00:02.500000Z","leaseTransitions":4}})");
  EXPECT_NE(encode_lease("n", "a", "42", record).find(R"("namespace":"n","resourceVersion":"42"},"spec")"),
            std::string::npos);
}

TEST(Lease, TimesHaveExactlySixDigits) {
  const auto text_of = [](const char* text) {
    return taken_record(nullptr, "a", 1001ms, parse_rfc3339(text).value()).renewed;
  };
  EXPECT_EQ(text_of("2026-01-15T10:00:00Z"), "2026-01-15T10:00:00.000000Z");
  EXPECT_EQ(text_of("2026-01-15T10:00:59.999999999Z"), "2026-01-15T10:00:59.999999Z");
  EXPECT_EQ(text_of("1969-12-31T23:59:59.000001Z"), "1969-12-31T23:59:59.000001Z");
}

// ---------------------------------------------------------------- who leads

TEST_F(LeadershipTest, TheFirstMakesTheLeaseAndTheSecondWaits) {
  const auto first = a.attempt();
  EXPECT_TRUE(first.leads) << text_of(first);
  EXPECT_EQ(first.holder, "oak_a");
  EXPECT_EQ(spec(), (Json{{"holderIdentity", "oak_a"},
                          {"leaseDurationSeconds", 15},
                          {"acquireTime", "2026-01-15T10:00:00.000000Z"},
                          {"renewTime", "2026-01-15T10:00:00.000000Z"},
                          {"leaseTransitions", 0}}));
  const auto second = b.attempt();
  EXPECT_FALSE(second.leads);
  EXPECT_EQ(second.holder, "oak_a");
  EXPECT_FALSE(second.failure);
  EXPECT_TRUE(a.leads());
  EXPECT_FALSE(b.leads());
}

TEST_F(LeadershipTest, ARenewalIsOneRequestAndKeepsTheTerm) {
  ASSERT_TRUE(a.attempt().leads);
  const auto term = a.leadership->term();
  const auto calls = a.api.calls.load();
  pass(2s);
  ASSERT_TRUE(a.attempt().leads);
  EXPECT_EQ(a.api.calls, calls + 1);
  EXPECT_EQ(a.leadership->term(), term);
  EXPECT_EQ(spec()["renewTime"], "2026-01-15T10:00:02.000000Z");
  EXPECT_EQ(spec()["acquireTime"], "2026-01-15T10:00:00.000000Z");
  EXPECT_EQ(spec()["leaseTransitions"], 0);
}

TEST_F(LeadershipTest, WhoCannotRenewStopsBeforeAnotherBegins) {
  ASSERT_TRUE(a.attempt().leads);
  ASSERT_FALSE(b.attempt().leads);
  a.api.is_away = true;
  for (int second = 1; second <= 20; ++second) {
    pass(1s);
    static_cast<void>(a.attempt());
    static_cast<void>(b.attempt());
    EXPECT_FALSE(a.leads() && b.leads()) << second;
    EXPECT_EQ(a.leads(), second < 10) << second;
    EXPECT_EQ(b.leads(), second >= 15) << second;
  }
  EXPECT_EQ(spec()["holderIdentity"], "elm_b");
  EXPECT_EQ(spec()["leaseTransitions"], 1);
  a.api.is_away = false;
  const auto back = a.attempt();
  EXPECT_FALSE(back.leads);
  EXPECT_EQ(back.holder, "elm_b");
}

TEST_F(LeadershipTest, WallClocksDecideNothing) {
  ASSERT_TRUE(a.attempt().leads);
  b.clock.jump_wall(24h * 365);
  EXPECT_FALSE(b.attempt().leads);
  a.clock.jump_wall(-24h * 365);
  for (int i = 0; i < 30; ++i) {
    pass(2s);
    EXPECT_TRUE(a.attempt().leads);
    EXPECT_FALSE(b.attempt().leads);
  }
}

TEST_F(LeadershipTest, ItLeadsFromBeforeTheRequestWasSent) {
  // A request that takes long counts against who sent it.
  a.api.after = [&](const Request& request) {
    if (!request.is_read()) pass(4s);
  };
  ASSERT_TRUE(a.attempt().leads);
  a.api.after = nullptr;
  pass(5999ms);
  EXPECT_TRUE(a.leads());
  pass(1ms);
  EXPECT_FALSE(a.leads());
}

TEST_F(LeadershipTest, ARenewalThatCameTooLateIsNone) {
  a.api.after = [&](const Request& request) {
    if (!request.is_read()) pass(11s);  // stopped while it waited
  };
  const auto late = a.attempt();
  EXPECT_FALSE(late.leads);
  EXPECT_TRUE(late.failure);
  EXPECT_FALSE(a.leads());
  a.api.after = nullptr;
  EXPECT_TRUE(a.attempt().leads);
}

TEST_F(LeadershipTest, AfterAGapItIsAnotherTerm) {
  ASSERT_TRUE(a.attempt().leads);
  const auto term = a.leadership->term();
  pass(10s);
  EXPECT_FALSE(a.leads());
  EXPECT_FALSE(a.leadership->end_of(*term));
  ASSERT_TRUE(a.attempt().leads);  // nobody else was there
  EXPECT_NE(a.leadership->term(), term);
  EXPECT_FALSE(a.leadership->end_of(*term));
  EXPECT_EQ(spec()["leaseTransitions"], 0);
}

TEST_F(LeadershipTest, WhoIsReleasedIsFollowedAtOnce) {
  ASSERT_TRUE(a.attempt().leads);
  ASSERT_FALSE(b.attempt().leads);
  const auto done = a.leadership->release(Deadline::after(a.clock.now(), 1s));
  ASSERT_TRUE(done) << done.error().message;
  EXPECT_FALSE(a.leads());
  EXPECT_EQ(spec()["holderIdentity"], "");
  EXPECT_EQ(spec()["leaseDurationSeconds"], 1);
  EXPECT_TRUE(b.attempt().leads);
  EXPECT_EQ(spec()["leaseTransitions"], 1);
  // It is not taken back.
  EXPECT_FALSE(a.attempt().leads);
  EXPECT_EQ(spec()["holderIdentity"], "elm_b");
}

TEST_F(LeadershipTest, WhatIsNotOwnIsNotReleased) {
  ASSERT_TRUE(a.attempt().leads);
  pass(11s);
  ASSERT_FALSE(b.attempt().leads);
  pass(15s);
  ASSERT_TRUE(b.attempt().leads);
  const Json before = cluster->object(kPath);
  EXPECT_FALSE(a.leadership->release(Deadline::after(a.clock.now(), 1s)));
  EXPECT_EQ(cluster->object(kPath), before);
}

TEST_F(LeadershipTest, ALostReplyIsReadBackByTheNextAttempt) {
  a.api.next_write = FakeApi::Lost::reply;
  EXPECT_FALSE(a.attempt().leads);
  pass(2s);
  EXPECT_TRUE(a.attempt().leads);
  EXPECT_EQ(spec()["leaseTransitions"], 0);
  const auto term = a.leadership->term();
  a.api.next_write = FakeApi::Lost::reply;
  const auto renewed = a.attempt();
  EXPECT_TRUE(renewed.leads);  // by the one before
  EXPECT_TRUE(renewed.failure);
  pass(2s);
  EXPECT_TRUE(a.attempt().leads);
  EXPECT_EQ(a.leadership->term(), term);
  pass(9s);
  EXPECT_TRUE(a.leads());
}

TEST_F(LeadershipTest, ALostRequestIsNotTakenForARenewal) {
  a.api.next_write = FakeApi::Lost::request;
  EXPECT_TRUE(a.attempt().failure);
  EXPECT_TRUE(a.attempt().leads);
  pass(6s);
  a.api.next_write = FakeApi::Lost::request;
  const auto renewal = a.attempt();
  EXPECT_TRUE(renewal.leads);  // still, by the one before
  EXPECT_TRUE(renewal.failure);
  pass(4s);
  EXPECT_FALSE(a.leads());
}

TEST_F(LeadershipTest, OfTwoThatComeTogetherOneLeads) {
  // b comes between a's look and a's write.
  a.api.before = [&](const Request& request) {
    if (request.is_read()) return;
    a.api.before = nullptr;
    EXPECT_TRUE(b.attempt().leads);
  };
  const auto late = a.attempt();
  EXPECT_FALSE(late.leads);
  ASSERT_TRUE(late.failure);
  EXPECT_EQ(late.failure->code, ErrorCode::conflict);
  EXPECT_EQ(spec()["holderIdentity"], "elm_b");
  // The same with a Lease that is there.
  ASSERT_TRUE(b.leadership->release(Deadline::after(b.clock.now(), 1s)));
  Candidate c(cluster, "ash_c");
  a.api.before = [&](const Request& request) {
    if (request.is_read()) return;
    a.api.before = nullptr;
    EXPECT_TRUE(c.attempt().leads);
  };
  EXPECT_FALSE(a.attempt().leads);
  EXPECT_EQ(spec()["holderIdentity"], "ash_c");
}

TEST_F(LeadershipTest, WhatOthersPutOnTheLeaseStays) {
  ASSERT_TRUE(a.attempt().leads);
  const auto term = a.leadership->term();
  cluster->edit(kPath, [](auto& lease) {
    lease["metadata"]["labels"] = {{"team", "shop"}};
    lease["spec"]["strategy"] = "OldestEmulationVersion";
  });
  pass(2s);
  EXPECT_TRUE(a.attempt().leads);
  EXPECT_EQ(a.leadership->term(), term);
  EXPECT_EQ(cluster->object(kPath)["metadata"]["labels"]["team"], "shop");
  EXPECT_EQ(spec()["strategy"], "OldestEmulationVersion");
  EXPECT_EQ(spec()["renewTime"], "2026-01-15T10:00:02.000000Z");
}

TEST_F(LeadershipTest, ALeaseThatWasDeletedIsMadeAnew) {
  ASSERT_TRUE(a.attempt().leads);
  const auto term = a.leadership->term();
  ASSERT_EQ(cluster->serve(Request::Method::delete_object, kPath, "").code, 200);
  pass(2s);
  EXPECT_TRUE(a.attempt().leads);
  EXPECT_NE(a.leadership->term(), term);  // somebody may have had one in between
  EXPECT_EQ(spec()["holderIdentity"], "oak_a");
}

TEST_F(LeadershipTest, WithoutTheResourceNobodyLeads) {
  cluster->do_not_serve(kLeasesOf);
  const auto attempt = a.attempt();
  EXPECT_FALSE(attempt.leads);
  EXPECT_TRUE(attempt.failure);
}

TEST_F(LeadershipTest, PausesOfCandidatesComeApartAndALeadersEndWithTheTerm) {
  SeededRandom random(1);
  std::chrono::nanoseconds least = 1h, most{0};
  for (int i = 0; i < 10'000; ++i) {
    const auto pause = a.leadership->pause(random);
    least = std::min(least, pause);
    most = std::max(most, pause);
  }
  EXPECT_GE(least, 2s);
  EXPECT_LT(least, 2010ms);
  EXPECT_LE(most, 4400ms);
  EXPECT_GT(most, 4390ms);
  ASSERT_TRUE(a.attempt().leads);
  EXPECT_EQ(a.leadership->pause(random), 2s);
  pass(9s);
  EXPECT_EQ(a.leadership->pause(random), 1s);
  pass(1s);
  EXPECT_GE(a.leadership->pause(random), 2s);
}

TEST(Leadership, RefusesWhatCanBeNoLease) {
  ManualClock clock;
  FakeApi api(std::make_shared<FakeCluster>(), clock);
  EXPECT_FALSE(Leadership::make(api, {"", "a", "me"}, clock));
  EXPECT_FALSE(Leadership::make(api, {"a/b", "a", "me"}, clock));
}

// ---------------------------------------------------------------- the fence

class FenceTest : public LeadershipTest {
 protected:
  [[nodiscard]] Result<Revision> commit(const std::string& node) {
    const std::vector<Write> writes{{core::removed_node_key(node), core::RemovedNode{}, Condition::if_absent()}};
    WriteToken token;
    token.bytes[0] = 1;
    return fenced.commit(writes, token, Deadline::after(a.clock.now(), 60s));
  }

  std::unique_ptr<Store> beneath =
      make_kube_store(std::make_unique<FakeApi>(cluster, a.clock), {wire::kube::fake_digest, wire::kube::fake_digest},
                      a.clock, {.group = wire::calico::ApiGroup::crd_v1});
  FencedStore fenced{*beneath, *a.leadership};
};

TEST_F(FenceTest, CommitsOnlyInTheTermThatWasEntered) {
  const auto refusal = [&](const std::string& node) {
    const auto done = commit(node);
    EXPECT_TRUE(done || done.error().code == ErrorCode::unavailable);
    return done ? std::string("done") : done.error().message;
  };
  const std::string no = "no longer the leader: another controller goes on";
  EXPECT_EQ(refusal("n1"), no);
  ASSERT_TRUE(a.attempt().leads);
  EXPECT_EQ(refusal("n1"), no);  // no work has begun in this term
  fenced.enter(*a.leadership->term());
  EXPECT_EQ(refusal("n1"), "done");
  pass(10s);
  EXPECT_EQ(refusal("n2"), no);
  ASSERT_TRUE(a.attempt().leads);
  EXPECT_EQ(refusal("n2"), no);  // it leads again, but that work is of before
  fenced.enter(*a.leadership->term());
  EXPECT_EQ(refusal("n2"), "done");
  a.leadership->resign();
  EXPECT_EQ(refusal("n3"), no);
}

}  // namespace
}  // namespace croft::store::kube
