#include "store/kube/node_condition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::store::kube {
namespace {

using testing::HasSubstr;

/// Answers a GET with one node, and notes what is patched.
class OneNode final : public Api {
 public:
  explicit OneNode(std::string status) : status_(std::move(status)) {}
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    Answer answer;
    answer.outcome = request.is_read() ? Answer::Outcome::done : on_patch;
    if (!request.is_read()) patches.push_back(request.path + " " + request.body);
    answer.body = R"({"kind":"Node","apiVersion":"v1","metadata":{"name":")" + name +
                  R"(","uid":"u","resourceVersion":"3"},"status":)" + status_ + "}";
    if (answer.outcome != Answer::Outcome::done) answer.error = {ErrorCode::permission_denied, "no", {}};
    answer.http_status = http_status;
    return answer;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }
  std::vector<std::string> patches;
  Answer::Outcome on_patch = Answer::Outcome::done;
  int http_status = 200;
  std::string name = "oak";

 private:
  std::string status_;
};

Result<bool> clear(OneNode& api) {
  return clear_network_unavailable(api, "oak", WallTime(std::chrono::seconds(1)), Deadline{});
}

TEST(NodeCondition, IsTakenBackWhereItIsSaid) {
  OneNode api(R"({"conditions":[{"type":"Ready","status":"True"},{"type":"NetworkUnavailable","status":"True"}]})");
  EXPECT_EQ(clear(api), true);
  ASSERT_EQ(api.patches.size(), 1U);
  EXPECT_EQ(api.patches[0],
            R"(/api/v1/nodes/oak/status {"status":{"conditions":[{"type":"NetworkUnavailable","status":"False",)"
            R"("reason":"CroftIsUp","message":"Croft gives addresses to the pods of this node",)"
            R"("lastHeartbeatTime":"1970-01-01T00:00:01Z","lastTransitionTime":"1970-01-01T00:00:01Z"}]}})");
}

TEST(NodeCondition, IsLeftWhereItIsNot) {
  for (const char* status : {"{}", "null", R"({"conditions":[]})", R"({"conditions":7})",
                             R"({"conditions":[{"type":"NetworkUnavailable","status":"False"},null,7]})"}) {
    OneNode api(status);
    EXPECT_EQ(clear(api), false) << status;
    EXPECT_TRUE(api.patches.empty()) << status;
  }
}

TEST(NodeCondition, OfAnotherNodeSaysNothingOfThisOne) {
  OneNode api(R"({"conditions":[{"type":"NetworkUnavailable","status":"True"}]})");
  api.name = "elm";
  const auto done = clear(api);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, testing::AllOf(HasSubstr("\"oak\""), HasSubstr("\"elm\"")));
  EXPECT_TRUE(api.patches.empty());
}

TEST(NodeCondition, ARefusalSaysWhatToAllow) {
  OneNode api(R"({"conditions":[{"type":"NetworkUnavailable"}]})");
  api.on_patch = Answer::Outcome::refused;
  api.http_status = 403;
  const auto done = clear(api);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message, HasSubstr("network-unavailable.yaml"));
  // Who refuses a certificate, or a token, misses no right.
  for (const int none : {0, 401}) {
    api.http_status = none;
    EXPECT_EQ(clear(api).error().message.find("network-unavailable.yaml"), std::string::npos) << none;
  }
}

}  // namespace
}  // namespace croft::store::kube
