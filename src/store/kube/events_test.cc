#include "store/kube/events.h"

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

class EventsTest : public testing::Test {
 protected:
  void wait_until(const std::function<bool()>& is_so) {
    for (int i = 0; i < 2000 && !is_so(); ++i) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(is_so());
  }
  void wait_for_sent(std::uint64_t count) {
    wait_until([&] { return events_.counts().sent == count; });
  }
  void tell_pod(const std::string& name_space, const std::string& name, const std::string& message) {
    events_.tell({"v1", "Pod", name_space, name, "5f0c"},
                 {wire::kube::Event::Type::warning, "FailedAddressAssignment", "", message});
  }
  std::vector<Request> requests() {
    const std::lock_guard lock(taken_.mutex);
    return taken_.requests;
  }

  Taken taken_;
  ManualClock clock_;
  SeededRandom random_{3};
  Events events_{std::make_unique<TakingApi>(taken_), clock_, random_, {.node = "node-a"}};
};

TEST_F(EventsTest, APodIsToldWhyOnceAMinute) {
  tell_pod("shop", "web-0", "no pool may be used");
  wait_for_sent(1);
  tell_pod("shop", "web-0", "no pool may be used");
  tell_pod("shop", "web-1", "another pod");
  wait_for_sent(2);
  clock_.advance(59s);
  tell_pod("shop", "web-0", "too soon");
  clock_.advance(1s);
  tell_pod("shop", "web-0", "still none");
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

TEST_F(EventsTest, WhoIsNotKnownIsNotTold) {
  tell_pod("", "", "x");
  tell_pod("shop", "", "x");
  tell_pod("../../apis", "web-0", "a namespace that is none");
  wait_until([&] { return events_.counts().dropped == 1; });
  EXPECT_THAT(requests(), SizeIs(0));
}

TEST_F(EventsTest, WhatTheApiDoesNotTakeIsSaidAndDropped) {
  taken_.refusal = Error{ErrorCode::permission_denied, "events is forbidden", {}};
  tell_pod("shop", "web-0", "x");
  wait_until([&] { return events_.counts().trouble == "events is forbidden"; });
  {
    const std::lock_guard lock(taken_.mutex);
    taken_.refusal.reset();
  }
  clock_.advance(60s);
  tell_pod("shop", "web-0", "x");
  wait_for_sent(1);
  EXPECT_EQ(events_.counts().trouble, "");
}

TEST_F(EventsTest, EachReasonHasAnIntervalOfItsOwnWhereThatIsWanted) {
  Events events{std::make_unique<TakingApi>(taken_),
                clock_,
                random_,
                {.component = "croft-controller", .node = "", .each_reason = true}};
  const auto tell = [&](const std::string& reason) {
    events.tell({"v1", "Node", "", "node-a", "node-a"}, {wire::kube::Event::Type::normal, reason, "", "x"});
  };
  tell("CIDRNotAvailable");
  tell("CIDRAssignmentFailed");
  tell("CIDRNotAvailable");
  wait_until([&] { return events.counts().sent == 2; });
  EXPECT_EQ(events.counts().dropped, 1U);
  EXPECT_EQ(requests()[0].path, "/api/v1/namespaces/default/events");
}

}  // namespace
}  // namespace croft::store::kube
