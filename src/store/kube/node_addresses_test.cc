#include "store/kube/node_addresses.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"

namespace croft::store::kube {
namespace {

/// Answers every question with one list of nodes.
class OneList final : public Api {
 public:
  explicit OneList(std::string items) : items_(std::move(items)) {}
  [[nodiscard]] Answer call(const Request& request, Deadline) override {
    asked = request.path;
    Answer answer;
    answer.outcome = Answer::Outcome::done;
    answer.http_status = 200;
    answer.body =
        R"({"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"9"},"items":[)" + items_ + "]}";
    return answer;
  }
  [[nodiscard]] WatchAnswer watch(const std::string&, Deadline) override { return {}; }
  std::string asked;

 private:
  std::string items_;
};

std::string node(const std::string& name, const std::string& status) {
  return R"({"metadata":{"name":")" + name + R"(","uid":"u","resourceVersion":"3"},"status":)" + status + "}";
}

TEST(NodeAddresses, AreTheInternalAndExternalOnes) {
  OneList api(
      node("a", R"({"addresses":[{"type":"Hostname","address":"10.9.9.9"},{"type":"InternalIP","address":"10.0.0.5"},)"
                R"({"type":"ExternalIP","address":"2001:db8::5"}]})") +
      "," +
      node("b", R"({"addresses":[{"type":"InternalIP","address":"none"},{"address":"10.1.1.1"},7,)"
                R"({"type":"InternalIP","address":"::ffff:10.1.2.4"}]})") +
      "," + node("c", "{}"));
  const os::SystemClock clock;
  const auto all = list_node_addresses(api, clock);
  ASSERT_TRUE(all) << all.error().message;
  std::vector<std::string> texts;
  for (const NodeAddress& one : *all) texts.push_back(one.node + " " + one.address.to_string());
  EXPECT_THAT(texts, testing::ElementsAre("a 10.0.0.5", "a 2001:db8::5", "b 10.1.2.4"));
  EXPECT_THAT(api.asked, testing::StartsWith("/api/v1/nodes"));
}

}  // namespace
}  // namespace croft::store::kube
