#include "vpc/daemon/guarded_api.h"

#include <functional>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "register/owner.h"
#include "vpc/daemon/cluster_claims.h"

namespace croft::app {
namespace {

using namespace std::chrono_literals;
using store::kube::Answer;

/// Answers as it is told.
class ToldApi final : public store::kube::Api {
 public:
  [[nodiscard]] Answer call(const store::kube::Request&, Deadline) override {
    ++calls;
    return answers();
  }
  [[nodiscard]] store::kube::WatchAnswer watch(const std::string&, Deadline) override { return {}; }
  int calls = 0;
  std::function<Answer()> answers;
};

class GuardedApiTest : public testing::Test {
 protected:
  GuardedApiTest() {
    api_.answers = [] { return answer(ErrorCode::unavailable); };
  }
  static Answer answer(ErrorCode code, int http_status = 0) {
    Answer answer;
    answer.outcome = http_status == 0     ? Answer::Outcome::not_done
                     : http_status == 200 ? Answer::Outcome::done
                                          : Answer::Outcome::refused;
    answer.http_status = http_status;
    answer.error = {code, "no connection", {}};
    return answer;
  }
  Answer ask() { return guarded_.call({}, Deadline::after(clock_.now(), 10s)); }

  ManualClock clock_;
  ToldApi api_;
  GuardedApi guarded_{api_, clock_};
};

TEST_F(GuardedApiTest, WhoDidNotAnswerIsAskedAfterAWhile) {
  EXPECT_EQ(ask().error.code, ErrorCode::unavailable);
  EXPECT_EQ(api_.calls, 1);
  clock_.advance(kAwayFor - 1ms);
  const Answer told = ask();
  EXPECT_EQ(told.outcome, Answer::Outcome::not_done);
  EXPECT_EQ(told.error.code, ErrorCode::unavailable);
  EXPECT_NE(told.error.message.find("no connection"), std::string::npos);
  EXPECT_EQ(api_.calls, 1) << "it is known";
  clock_.advance(1ms);
  EXPECT_EQ(ask().error.code, ErrorCode::unavailable);
  EXPECT_EQ(api_.calls, 2);
  EXPECT_EQ(ask().error.code, ErrorCode::unavailable);
  EXPECT_EQ(api_.calls, 2) << "it is away still";
  api_.answers = [] { return answer({}, 200); };
  clock_.advance(kAwayFor);
  EXPECT_EQ(ask().outcome, Answer::Outcome::done);
  EXPECT_EQ(ask().outcome, Answer::Outcome::done);
  EXPECT_EQ(api_.calls, 4) << "it is back";
}

TEST_F(GuardedApiTest, ARefusalIsAnAnswerAndSoIsADeadlineThatWasShort) {
  for (const int http_status : {403, 404, 409, 429, 500, 503}) {
    api_.answers = [&] { return answer(ErrorCode::unavailable, http_status); };
    static_cast<void>(ask());
  }
  EXPECT_EQ(api_.calls, 6);
  api_.answers = [&] {
    clock_.advance(kIsSilence - 1ms);
    return answer(ErrorCode::deadline_exceeded);
  };
  for (int i = 0; i < 3; ++i) static_cast<void>(ask());
  EXPECT_EQ(api_.calls, 9);
  api_.answers = [&] {
    clock_.advance(kIsSilence);
    return answer(ErrorCode::deadline_exceeded);
  };
  for (int i = 0; i < 3; ++i) static_cast<void>(ask());
  EXPECT_EQ(api_.calls, 10) << "and a longer one is none";
}

/// A write of which nobody heard was not answered either.
TEST_F(GuardedApiTest, AnUnknownOutcomeIsNoAnswer) {
  api_.answers = [&] {
    clock_.advance(kIsSilence);
    Answer lost = answer(ErrorCode::unknown_outcome);
    lost.outcome = Answer::Outcome::unknown;
    return lost;
  };
  EXPECT_EQ(ask().outcome, Answer::Outcome::unknown);
  EXPECT_EQ(ask().outcome, Answer::Outcome::not_done);
  EXPECT_EQ(api_.calls, 1);
}

TEST_F(GuardedApiTest, PodsOfWhichNothingIsKnownAreToldAtOnce) {
  ClusterClaims fixed(guarded_, "node-a");
  const auto soon = Deadline::after(clock_.now(), 10s);
  for (int i = 0; i < 20; ++i) {
    const auto wish = fixed.wish_of({"db-" + std::to_string(i), "shop", "u-" + std::to_string(i)}, soon);
    ASSERT_FALSE(wish);
    EXPECT_EQ(wish.error().code, ErrorCode::unavailable);
  }
  EXPECT_EQ(api_.calls, 1);
}

}  // namespace
}  // namespace croft::app
