#include "store/kube/pod_events.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"

namespace croft::store::kube {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::SizeIs;
using namespace std::chrono_literals;

/// Takes what is sent, or refuses it.
struct Taken {
  std::mutex mutex;
  std::vector<Request> requests;
  std::optional<Error> refusal;
};
class TakingApi final : public Api {
 public:
  explicit TakingApi(Taken& taken) : taken_(taken) {}
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    const std::lock_guard lock(taken_.mutex);
    taken_.requests.push_back(request);
    Answer answer;
    answer.outcome = taken_.refusal ? Answer::Outcome::refused : Answer::Outcome::done;
    if (taken_.refusal) answer.error = *taken_.refusal;
    return answer;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }

 private:
  Taken& taken_;
};

class PodEventsTest : public testing::Test {
 protected:
  void wait_until(const std::function<bool()>& is_so) {
    for (int i = 0; i < 2000 && !is_so(); ++i) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(is_so());
  }
  void wait_for_sent(std::uint64_t count) {
    wait_until([&] { return events_.counts().sent == count; });
  }
  std::vector<Request> requests() {
    const std::lock_guard lock(taken_.mutex);
    return taken_.requests;
  }

  Taken taken_;
  ManualClock clock_;
  SeededRandom random_{3};
  PodEvents events_{std::make_unique<TakingApi>(taken_), clock_, random_, {.node = "node-a"}};
  const core::PodIdentity pod_{"web-0", "shop", "5f0c"};
};

TEST_F(PodEventsTest, APodIsToldWhyOnceAMinute) {
  events_.tell(pod_, "FailedAddressAssignment", "no pool may be used");
  wait_for_sent(1);
  events_.tell(pod_, "FailedAddressAssignment", "no pool may be used");
  events_.tell({"web-1", "shop", ""}, "FailedAddressAssignment", "another pod");
  wait_for_sent(2);
  clock_.advance(59s);
  events_.tell(pod_, "FailedAddressAssignment", "too soon");
  clock_.advance(1s);
  events_.tell(pod_, "FailedAddressAssignment", "still none");
  wait_for_sent(3);
  const auto sent = requests();
  ASSERT_THAT(sent, SizeIs(3));
  EXPECT_EQ(sent[0].method, Request::Method::post);
  EXPECT_EQ(sent[0].path, "/api/v1/namespaces/shop/events");
  EXPECT_THAT(sent[0].body, AllOf(HasSubstr(R"("name":"web-0","uid":"5f0c")"), HasSubstr("no pool may be used"),
                                  HasSubstr(R"("host":"node-a")")));
  EXPECT_THAT(sent[1].body, HasSubstr("another pod"));
  EXPECT_THAT(sent[2].body, HasSubstr("still none"));
  EXPECT_EQ(events_.counts().dropped, 2U);
}

TEST_F(PodEventsTest, WhoIsNotKnownIsNotTold) {
  events_.tell({}, "FailedAddressAssignment", "x");
  events_.tell({"web-0", "", ""}, "FailedAddressAssignment", "x");
  events_.tell({"", "shop", ""}, "FailedAddressAssignment", "x");
  events_.tell({"web-0", "../../apis", ""}, "FailedAddressAssignment", "a namespace that is none");
  wait_until([&] { return events_.counts().dropped == 1; });
  EXPECT_THAT(requests(), SizeIs(0));
}

TEST_F(PodEventsTest, WhatTheApiDoesNotTakeIsSaidAndDropped) {
  taken_.refusal = Error{ErrorCode::permission_denied, "events is forbidden", {}};
  events_.tell(pod_, "FailedAddressAssignment", "x");
  wait_until([&] { return events_.counts().trouble == "events is forbidden"; });
  {
    const std::lock_guard lock(taken_.mutex);
    taken_.refusal.reset();
  }
  clock_.advance(60s);
  events_.tell(pod_, "FailedAddressAssignment", "x");
  wait_for_sent(1);
  EXPECT_EQ(events_.counts().trouble, "");
}

}  // namespace
}  // namespace croft::store::kube
