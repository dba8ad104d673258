#include "store/kube/events.h"

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "store/kube/test_api.h"

namespace croft::store::kube {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using namespace std::chrono_literals;

class EventsTest : public testing::Test {
 protected:
  void wait_until(const std::function<bool()>& is_so) {
    for (int i = 0; i < 2000 && !is_so(); ++i) std::this_thread::sleep_for(5ms);
    EXPECT_TRUE(is_so());
  }
  void wait_for_sent(std::size_t count) {
    wait_until([&] { return requests().size() == count; });
  }
  void tell_pod(const std::string& name_space, const std::string& name, const std::string& message) {
    events_.tell({"v1", "Pod", name_space, name, "5f0c"},
                 {Events::Type::warning, "FailedAddressAssignment", "", message});
  }
  std::vector<Request> requests() {
    const std::lock_guard lock(mutex_);
    return requests_;
  }
  /// Takes what is sent, or refuses it.
  std::unique_ptr<Api> api() {
    return std::make_unique<AnsweringApi>([this](const Request& request) {
      const std::lock_guard lock(mutex_);
      requests_.push_back(request);
      return refuses_ ? refused(403, ErrorCode::permission_denied, "events is forbidden") : answered();
    });
  }
  /// Of the last one, without the digits that make its name one of its own.
  std::string body() {
    std::string text = requests().back().body;
    const auto name = text.find("\"name\":\"") + 8;
    return text.erase(text.find('"', name) - 16, 16);
  }

  std::mutex mutex_;
  std::vector<Request> requests_;
  bool refuses_ = false;
  ManualClock clock_;
  SeededRandom random_{3};
  Events events_{api(), clock_, random_, {.node = "node-a"}};
};

TEST_F(EventsTest, IsAnEventOfTheCoreGroup) {
  tell_pod("shop", "web-0", "no \"IPv4\" address\npool a: full");
  wait_for_sent(1);
  EXPECT_EQ(requests()[0].method, Request::Method::post);
  EXPECT_EQ(requests()[0].path, "/api/v1/namespaces/shop/events");
  EXPECT_EQ(body(),
            R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"web-0.","namespace":"shop"},)"
            R"("involvedObject":{"apiVersion":"v1","kind":"Pod","namespace":"shop","name":"web-0","uid":"5f0c"},)"
            R"("type":"Warning","reason":"FailedAddressAssignment","message":"no \"IPv4\" address\npool a: full",)"
            R"("source":{"component":"croft-agent","host":"node-a"},"firstTimestamp":"2026-01-15T10:00:00Z",)"
            R"("lastTimestamp":"2026-01-15T10:00:00Z","count":1,"reportingComponent":"croft-agent",)"
            R"("reportingInstance":"node-a"})");
  tell_pod("shop", "web-1", std::string(5000, 'x'));
  wait_for_sent(2);
  EXPECT_LT(body().size(), 1700U);
}

TEST_F(EventsTest, OfWhatIsInNoNamespaceIsInDefault) {
  Events events{api(), clock_, random_, {.component = "croft-controller", .node = ""}};
  events.tell({"networking.k8s.io/v1", "IPAddress", "", "10.96.0.9", ""},
              {Events::Type::normal, "ClusterIPLeaked", "ClusterIPAllocation", ""});
  wait_for_sent(1);
  EXPECT_EQ(requests()[0].path, "/api/v1/namespaces/default/events");
  EXPECT_EQ(body(), R"({"apiVersion":"v1","kind":"Event","metadata":{"name":"10.96.0.9.","namespace":"default"},)"
                    R"("involvedObject":{"apiVersion":"networking.k8s.io/v1","kind":"IPAddress","name":"10.96.0.9"},)"
                    R"("type":"Normal","reason":"ClusterIPLeaked","source":{"component":"croft-controller"},)"
                    R"("firstTimestamp":"2026-01-15T10:00:00Z","lastTimestamp":"2026-01-15T10:00:00Z","count":1,)"
                    R"("action":"ClusterIPAllocation","reportingComponent":"croft-controller"})");
}

TEST_F(EventsTest, APodIsToldOnceAMinuteForEachReason) {
  tell_pod("shop", "web-0", "no pool may be used");
  wait_for_sent(1);
  tell_pod("shop", "web-0", "no pool may be used");
  tell_pod("shop", "web-1", "another pod");
  wait_for_sent(2);
  clock_.advance(59s);
  tell_pod("shop", "web-0", "too soon");
  events_.tell({"v1", "Pod", "shop", "web-0", "5f0c"}, {Events::Type::warning, "Another", "", "another reason"});
  wait_for_sent(3);
  clock_.advance(1s);
  tell_pod("shop", "web-0", "still none");
  wait_for_sent(4);
  const auto sent = requests();
  EXPECT_THAT(sent[1].body, HasSubstr("another pod"));
  EXPECT_THAT(sent[2].body, HasSubstr("another reason"));
  EXPECT_THAT(sent[3].body, HasSubstr("still none"));
}

TEST_F(EventsTest, WhoIsNotKnownIsNotTold) {
  tell_pod("", "", "x");
  tell_pod("shop", "", "x");
  tell_pod("../../apis", "web-0", "a namespace that is none");
  wait_until([&] { return !events_.trouble().empty(); });
  EXPECT_THAT(requests(), SizeIs(0));
}

TEST_F(EventsTest, WhatTheApiDoesNotTakeIsSaidAndDropped) {
  refuses_ = true;
  tell_pod("shop", "web-0", "x");
  wait_until([&] { return events_.trouble() == "events is forbidden"; });
  {
    const std::lock_guard lock(mutex_);
    refuses_ = false;
  }
  clock_.advance(60s);
  tell_pod("shop", "web-0", "x");
  wait_until([&] { return events_.trouble().empty(); });
}

}  // namespace
}  // namespace croft::store::kube
