#include "vpc/daemon/pod_annotations.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "os/clock.h"
#include "store/kube/fake_api_fixture.h"

namespace croft::app {
namespace {

using namespace std::chrono_literals;
using store::kube::FakeApi;
using store::kube::FakeCluster;

const std::string kPods = "/api/v1/namespaces/shop/pods/";
constexpr const char* kAnnotation = "cni.projectcalico.org/podIP";

/// Refuses what is asked of one pod, as an admission webhook does.
class TroubledApi final : public FakeApi {
 public:
  using FakeApi::FakeApi;
  std::atomic<int> refused = 0;
  store::kube::Answer call(const store::kube::Request& request, Deadline deadline) override {
    store::kube::Answer answer;
    if (request.path.ends_with("/refused")) {
      ++refused;
      answer.outcome = store::kube::Answer::Outcome::refused;
      answer.http_status = 403;
      answer.error = {ErrorCode::permission_denied, "a webhook says no", {}};
      return answer;
    }
    return FakeApi::call(request, deadline);
  }
};

class PodAnnotationsTest : public testing::Test {
 protected:
  core::PodIdentity make_pod(const std::string& name) {
    cluster_->make(kPods + name, {{"metadata", {{"name", name}, {"namespace", "shop"}}}});
    return {name, "shop", cluster_->object(kPods + name)["metadata"].value("uid", "")};
  }
  [[nodiscard]] std::string annotation(const std::string& name) const {
    const auto pod = cluster_->object(kPods + name);
    const auto annotations = pod["metadata"].value("annotations", nlohmann::json::object());
    return annotations.value(kAnnotation, "");
  }
  template <class Condition>
  void wait_for(Condition is_so, const char* what) {
    for (int i = 0; i < 3000 && !is_so(); ++i) std::this_thread::sleep_for(10ms);
    EXPECT_TRUE(is_so()) << what;
  }

  os::SystemClock clock_;
  std::shared_ptr<FakeCluster> cluster_ = std::make_shared<FakeCluster>();
  TroubledApi api_{cluster_, clock_};
  std::mutex mutex_;
  std::vector<std::string> log_;
  std::function<void(const std::string&)> note_ = [this](const std::string& line) {
    const std::lock_guard lock(mutex_);
    log_.push_back(line);
  };
};

TEST_F(PodAnnotationsTest, OneThatIsRefusedHoldsUpNobody) {
  const auto refused = make_pod("refused"), good = make_pod("good"), late = make_pod("late");
  PodAnnotations annotations(api_, clock_, note_);
  annotations.add(refused, net::Address::parse("10.0.0.5").value());
  annotations.add({"gone", "shop", "u-gone"}, net::Address::parse("10.0.0.4").value());
  annotations.add(good, net::Address::parse("10.0.0.6").value());
  annotations.add(late, net::Address::parse("10.0.0.7").value());
  wait_for([&] { return annotation("good") == "10.0.0.6" && annotation("late") == "10.0.0.7"; },
           "the others are annotated");
  EXPECT_EQ(annotation("refused"), "");
  EXPECT_EQ(api_.refused, 1);
  const std::lock_guard lock(mutex_);
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_NE(log_.front().find("pod shop/refused is not annotated: "), std::string::npos) << log_.front();
}

TEST_F(PodAnnotationsTest, AStaticPodIsKnownByTheHashOfItsFile) {
  cluster_->make(
      kPods + "static",
      {{"metadata",
        {{"name", "static"}, {"namespace", "shop"}, {"annotations", {{"kubernetes.io/config.hash", "hash-1"}}}}}});
  PodAnnotations annotations(api_, clock_, note_);
  annotations.add({"static", "shop", "hash-2"}, net::Address::parse("10.0.0.5").value());
  annotations.add({"static", "shop", "hash-1"}, net::Address::parse("10.0.0.6").value());
  wait_for([&] { return annotation("static") == "10.0.0.6"; }, "the mirror is annotated");
}

TEST_F(PodAnnotationsTest, WhatThePodGotLastCounts) {
  const auto pod = make_pod("web");
  PodAnnotations annotations(api_, clock_, note_);
  annotations.add(pod, net::Address::parse("10.0.0.5").value());
  annotations.add(pod, net::Address::parse("10.0.0.6").value());
  wait_for([&] { return annotation("web") == "10.0.0.6"; }, "the last one is written");
}

}  // namespace
}  // namespace croft::app
