#include "store/kube/leadership.h"

#include <functional>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "store/kube/fake_api_fixture.h"
#include "store/kube/fenced_store.h"
#include "store/kube/format/fake_digest_fixture.h"
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

/// One process with clocks of its own.
struct Candidate {
  explicit Candidate(const std::shared_ptr<FakeCluster>& cluster, const std::string& identity, LeaseTimes times = {})
      : api(cluster, clock),
        leadership(Leadership::make(api, {"croft-system", "croftd-controller", identity, times}, clock).value()) {}
  [[nodiscard]] Leadership::Attempt attempt() { return leadership->attempt(); }
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

std::string text_of(const Leadership::Attempt& attempt) {
  return attempt.failure ? attempt.failure->message : "no failure";
}

// ---------------------------------------------------------------- the rules

TEST(LeaseRules, TimesGoTogetherOrAreRefusedByName) {
  const auto refusal = [](LeaseTimes times) {
    const auto checked = check_lease_times(times);
    return checked ? std::string("accepted") : checked.error().message;
  };
  EXPECT_EQ(refusal({}), "accepted");
  EXPECT_EQ(refusal({1s, 900ms, 200ms}), "accepted");
  EXPECT_EQ(refusal({999ms, 900ms, 200ms}), "lease duration 999 ms: at least 1000 ms");
  EXPECT_EQ(refusal({10s, 10s, 2s}),
            "renew deadline 10000 ms: below the lease duration, 10000 ms, after which another may lead");
  EXPECT_EQ(refusal({15s, 10s, 0s}), "retry period 0 ms: above 0");
  EXPECT_EQ(refusal({15s, 10s, 5s}), "retry period 5000 ms: 2.2 of them are to be below the renew deadline, 10000 ms");
}

TEST(LeaseRules, ALeaseSaysWholeSecondsAndNeverLess) {
  EXPECT_EQ(lease_seconds(15s), 15);
  EXPECT_EQ(lease_seconds(1001ms), 2);
}

/// Whoever wrote it there: a Lease that nobody could take would leave all without a leader.
TEST(LeaseRules, TransitionsEndWithWhatTheApiTakes) {
  const LeaseTimes times{15s, 10s, 2s};
  wire::kube::LeaseRecord before{"other", 15, {}, {}, 2147483646};
  before = taken_record(&before, "a", times, {});
  EXPECT_EQ(before.transitions, 2147483647);
  EXPECT_EQ(taken_record(&before, "b", times, {}).transitions, 2147483647);
}

TEST(LeaseRules, CandidatesComeApart) {
  SeededRandom random(7);
  const LeaseTimes times;
  std::chrono::nanoseconds least = 1h, most{0};
  for (int i = 0; i < 10'000; ++i) {
    const auto pause = candidate_pause(times, random);
    least = std::min(least, pause);
    most = std::max(most, pause);
  }
  EXPECT_GE(least, 2s);
  EXPECT_LT(least, 2010ms);
  EXPECT_LE(most, 4400ms);
  EXPECT_GT(most, 4390ms);
}

TEST(LeaseRules, OnlyOwnTimeSinceAChangeWasSeenEndsARecord) {
  ManualClock clock;
  LeaseSight sight;
  const LeaseTimes times;
  wire::kube::LeaseRecord record{"oak", 3, "", "2020-01-01T00:00:00.000000Z", 0};  // renewed years ago, it says
  sight.see(record, clock.now());
  EXPECT_FALSE(sight.may_take("elm", times, clock.now()));
  EXPECT_TRUE(sight.may_take("oak", times, clock.now()));
  clock.jump_wall(24h);
  EXPECT_FALSE(sight.may_take("elm", times, clock.now()));
  clock.advance(2s);
  sight.see(record, clock.now());  // the same: it does not begin anew
  clock.advance(999ms);
  EXPECT_FALSE(sight.may_take("elm", times, clock.now()));
  clock.advance(1ms);
  EXPECT_TRUE(sight.may_take("elm", times, clock.now()));
  record.renewed = "2020-01-01T00:00:01.000000Z";
  sight.see(record, clock.now());
  EXPECT_FALSE(sight.may_take("elm", times, clock.now()));
  record.duration_s = 0;  // not said: one's own counts
  sight.see(record, clock.now());
  clock.advance(14s);
  EXPECT_FALSE(sight.may_take("elm", times, clock.now()));
  clock.advance(1s);
  EXPECT_TRUE(sight.may_take("elm", times, clock.now()));
  record.holder = "";
  sight.see(record, clock.now());
  EXPECT_TRUE(sight.may_take("elm", times, clock.now()));
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

TEST_F(LeadershipTest, WhoWasStoppedFindsThatAnotherLeads) {
  ASSERT_TRUE(a.attempt().leads);
  ASSERT_FALSE(b.attempt().leads);
  pass(15s);
  ASSERT_TRUE(b.attempt().leads);
  EXPECT_FALSE(a.leads());
  const auto back = a.attempt();
  EXPECT_FALSE(back.leads);
  EXPECT_FALSE(back.failure) << text_of(back);
  EXPECT_EQ(back.holder, "elm_b");
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
  EXPECT_TRUE(a.leadership->release(Deadline::after(a.clock.now(), 1s)));
  EXPECT_EQ(cluster->object(kPath), before);
}

TEST_F(LeadershipTest, ALostReplyIsReadBack) {
  a.api.next_write = FakeApi::Lost::reply;
  EXPECT_TRUE(a.attempt().leads);
  pass(2s);
  a.api.next_write = FakeApi::Lost::reply;
  const auto renewed = a.attempt();
  EXPECT_TRUE(renewed.leads);
  EXPECT_FALSE(renewed.failure);
  pass(9s);
  EXPECT_TRUE(a.leads());
  a.api.next_write = FakeApi::Lost::reply;
  EXPECT_TRUE(a.leadership->release(Deadline::after(a.clock.now(), 1s)));
  EXPECT_EQ(spec()["holderIdentity"], "");
}

TEST_F(LeadershipTest, ALostRequestIsNotTakenForARenewal) {
  a.api.next_write = FakeApi::Lost::request;
  const auto first = a.attempt();
  EXPECT_FALSE(first.leads);
  EXPECT_TRUE(first.failure);
  EXPECT_TRUE(a.attempt().leads);
  pass(6s);
  a.api.next_write = FakeApi::Lost::request;
  const auto renewal = a.attempt();
  EXPECT_TRUE(renewal.leads);  // still, by the one before
  EXPECT_TRUE(renewal.failure);
  pass(4s);
  EXPECT_FALSE(a.leads());
  a.api.next_write = FakeApi::Lost::request;
  EXPECT_TRUE(a.attempt().failure);
  EXPECT_TRUE(a.attempt().leads);
  a.api.next_write = FakeApi::Lost::request;
  EXPECT_TRUE(a.leadership->release(Deadline::after(a.clock.now(), 1s)));  // asked again
  EXPECT_EQ(spec()["holderIdentity"], "");
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

/// Always has something to tell.
class Flood final : public WatchStream {
 public:
  explicit Flood(ManualClock& clock) : clock_(clock) {}
  [[nodiscard]] Result<std::optional<wire::kube::ApiEvent>> next(Deadline) override {
    clock_.advance(1ms);
    EXPECT_LT(++told_, 10'000) << "it is still listened to";
    if (told_ >= 10'000) return fail(ErrorCode::unavailable, "enough");
    return std::optional(wire::kube::decode_event(R"({"type":"BOOKMARK","object":{"kind":"Lease","apiVersion":)"
                                                  R"("coordination.k8s.io/v1","metadata":{"resourceVersion":"7"}}})")
                             .value());
  }

 private:
  ManualClock& clock_;
  int told_ = 0;
};
class FloodingApi final : public FakeApi {
 public:
  FloodingApi(std::shared_ptr<FakeCluster> cluster, ManualClock& clock)
      : FakeApi(std::move(cluster), clock), clock_(clock) {}
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override {
    WatchAnswer opened;
    opened.answer.outcome = Answer::Outcome::done;
    opened.stream = std::make_unique<Flood>(clock_);
    return opened;
  }

 private:
  ManualClock& clock_;
};

TEST_F(LeadershipTest, ALeaseThatNeverRestsKeepsNoCandidateListening) {
  ASSERT_TRUE(a.attempt().leads);
  ManualClock clock;
  FloodingApi api(cluster, clock);
  const auto who = Leadership::make(api, {"croft-system", "croftd-controller", "flooded", {}}, clock).value();
  ASSERT_FALSE(who->attempt().leads);
  EXPECT_EQ(who->listen(Deadline::after(clock.now(), 200ms)), Leadership::Heard::nothing);
}

TEST_F(LeadershipTest, ACandidateHearsOfTheRelease) {
  using Heard = Leadership::Heard;
  const auto listen = [](Candidate& who) { return who.leadership->listen(Deadline::after(who.clock.now(), 1ms)); };
  EXPECT_EQ(listen(b), Heard::no_watch);  // it has seen none
  ASSERT_TRUE(a.attempt().leads);
  ASSERT_FALSE(b.attempt().leads);
  EXPECT_EQ(listen(b), Heard::nothing);
  pass(2s);
  ASSERT_TRUE(a.attempt().leads);
  EXPECT_EQ(listen(b), Heard::nothing);
  ASSERT_TRUE(a.leadership->release(Deadline::after(a.clock.now(), 1s)));
  EXPECT_EQ(listen(b), Heard::release);
  EXPECT_TRUE(b.attempt().leads);
  Candidate c(cluster, "ash_c");
  ASSERT_FALSE(c.attempt().leads);
  ASSERT_EQ(cluster->serve(Request::Method::delete_object, kPath, "").code, 200);
  EXPECT_EQ(listen(c), Heard::release);
  EXPECT_TRUE(c.attempt().leads);
}

TEST_F(LeadershipTest, WhatAWatchToldCountsAsSeen) {
  ASSERT_TRUE(a.attempt().leads);
  ASSERT_FALSE(b.attempt().leads);
  pass(8s);
  ASSERT_TRUE(a.attempt().leads);
  EXPECT_EQ(b.leadership->listen(Deadline::after(b.clock.now(), 1ms)), Leadership::Heard::nothing);
  pass(14s);
  EXPECT_FALSE(b.attempt().leads);
  pass(1s);
  EXPECT_TRUE(b.attempt().leads);  // not 15 s after its own look
}

TEST_F(LeadershipTest, ALostWatchIsOpenedAnewAfterTheNextLook) {
  using Heard = Leadership::Heard;
  const auto listen = [&] { return b.leadership->listen(Deadline::after(b.clock.now(), 1ms)); };
  ASSERT_TRUE(a.attempt().leads);
  ASSERT_FALSE(b.attempt().leads);
  EXPECT_EQ(listen(), Heard::nothing);
  pass(1s);
  ASSERT_TRUE(a.attempt().leads);
  cluster->forget_history();
  EXPECT_EQ(listen(), Heard::no_watch);
  ASSERT_FALSE(b.attempt().leads);
  EXPECT_EQ(listen(), Heard::nothing);
}

TEST_F(LeadershipTest, PausesEndWithTheTerm) {
  SeededRandom random(1);
  EXPECT_GE(a.leadership->pause(random), 2s);
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
  EXPECT_FALSE(Leadership::make(api, {"", "a", "me", {}}, clock));
  EXPECT_FALSE(Leadership::make(api, {"a/b", "a", "me", {}}, clock));
  EXPECT_FALSE(Leadership::make(api, {"a", "", "me", {}}, clock));
  EXPECT_FALSE(Leadership::make(api, {"a", "a", "", {}}, clock));
  EXPECT_FALSE(Leadership::make(api, {"a", "a", "me", {1s, 1s, 1s}}, clock));
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
  EXPECT_TRUE(fenced.wait_until_idle(0s));
}

// ---------------------------------------------------------------- written twice

/// A proxy sends what it is sent twice, and gives the second answer: a conflict with itself.
TEST_F(LeadershipTest, AWriteThatIsRepeatedOnItsWayIsDone) {
  a.api.repeats = true;
  auto attempt = a.attempt();
  EXPECT_TRUE(attempt.leads) << text_of(attempt);
  EXPECT_FALSE(attempt.failure) << text_of(attempt);
  EXPECT_EQ(spec()["holderIdentity"], "oak_a");
  const auto term = a.leadership->term();
  pass(3s);
  attempt = a.attempt();
  EXPECT_TRUE(attempt.leads) << text_of(attempt);
  EXPECT_FALSE(attempt.failure) << text_of(attempt);
  EXPECT_EQ(a.leadership->term(), term) << "the same term";
  EXPECT_TRUE(a.leadership->release(Deadline::after(a.clock.now(), 5s)));
  EXPECT_EQ(spec()["holderIdentity"], "");

  // Taken from nobody, over the object that is there.
  b.api.repeats = true;
  attempt = b.attempt();
  EXPECT_TRUE(attempt.leads) << text_of(attempt);
  EXPECT_EQ(spec()["holderIdentity"], "elm_b");
}

TEST_F(LeadershipTest, AConflictWithAnotherStaysOne) {
  a.api.repeats = true;
  a.api.between = [&] { cluster->edit(kPath, [](Json& lease) { lease["spec"]["holderIdentity"] = "elm_b"; }); };
  const auto attempt = a.attempt();
  EXPECT_FALSE(attempt.leads);
  EXPECT_FALSE(a.leads());
}

}  // namespace
}  // namespace croft::store::kube
