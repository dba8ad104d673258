#include "collector/door/static_facts.h"

#include <chrono>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/address.h"
#include "os/scratch_directory.h"

namespace croft::edge {

namespace {

using namespace std::chrono_literals;
using testing::HasSubstr;

class StaticFactsTest : public testing::Test {
 protected:
  /// As of the clock of the test.
  void write(const std::string& text) {
    std::ofstream(path) << text;
    std::filesystem::last_write_time(path, std::chrono::file_clock::from_sys(clock.now().wall));
  }

  /// Why the file proves nothing; empty: it does.
  std::string doubt() {
    const auto facts = source.facts();
    if (!facts) return facts.error().message;
    EXPECT_EQ(facts->complete, facts->incomplete_because.empty());
    return facts->incomplete_because;
  }

  os::ScratchDirectory directory;
  const std::string path = directory.path() + "/facts.json";
  ManualClock clock;
  StaticFacts source{path, 5min, clock};
};

TEST_F(StaticFactsTest, IsReadAnewEachTime) {
  write(R"({"nodes": [{"name": "n1"}], "pods": [{"namespace": "d", "name": "a"}], "complete": true})");
  const auto first = source.facts();
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(first->complete);
  EXPECT_EQ(first->taken_at, clock.now());
  EXPECT_TRUE(first->has_node("n1"));
  EXPECT_EQ(first->pod("d", "a").answer, core::collect::Facts::Pod::Answer::found);
  write(R"({"nodes": [{"name": "n2"}], "complete": true})");
  const auto second = source.facts();
  ASSERT_TRUE(second);
  EXPECT_FALSE(second->has_node("n1"));
  EXPECT_FALSE(second->pods_known());
}

TEST_F(StaticFactsTest, WithoutCompleteItProvesNothing) {
  write(R"({"nodes": [{"name": "n1"}]})");
  EXPECT_THAT(doubt(), HasSubstr("complete is not true"));
}

TEST_F(StaticFactsTest, AnOldFileProvesNothing) {
  write(R"({"nodes": [{"name": "n1"}], "complete": true, "time": "2026-01-15T09:56:00Z"})");
  EXPECT_EQ(doubt(), "");
  clock.advance(2min);
  EXPECT_THAT(doubt(), HasSubstr("2026-01-15T09:56:00Z"));
  clock.jump_wall(-1h);
  EXPECT_NE(doubt(), "") << "from the future";
}

/// An abandoned file of a clock that is ahead must not stay fresh for two looks a grace apart.
TEST_F(StaticFactsTest, TheFutureIsShorterThanTheAgeThatIsAllowed) {
  StaticFacts brief(path, 2s, clock);
  write(R"({"nodes": [{"name": "n1"}], "complete": true, "time": "2026-01-15T10:00:01Z"})");
  EXPECT_FALSE(brief.facts()->complete);
  EXPECT_TRUE(source.facts()->complete);
}

/// Farther away than a difference of times can say.
TEST_F(StaticFactsTest, NoTimeIsTooOldOrTooLateToBeTold) {
  for (const char* time : {"1700-01-01T00:00:00Z", "1969-12-31T23:59:59Z", "2261-01-01T00:00:00Z"}) {
    SCOPED_TRACE(time);
    write(fmt::format(R"({{"nodes": [{{"name": "n1"}}], "complete": true, "time": "{}"}})", time));
    EXPECT_THAT(doubt(), HasSubstr(std::string(": its time is ") + time));
  }
}

TEST_F(StaticFactsTest, AFileWithoutTimeIsAsOldAsItsLastChange) {
  write(R"({"nodes": [{"name": "n1"}], "complete": true})");
  clock.advance(5min);
  EXPECT_EQ(doubt(), "");
  clock.advance(1s);
  EXPECT_THAT(doubt(), HasSubstr("it says no time and was written 2026-01-15T10:00:00Z"));
  clock.jump_wall(-1h);
  EXPECT_NE(doubt(), "") << "from the future";
}

TEST_F(StaticFactsTest, ErrorsNameTheFileAndTheMember) {
  const auto absent = source.facts();
  ASSERT_FALSE(absent);
  EXPECT_THAT(absent.error().message, HasSubstr(path));
  write(R"({"nodes": [{"name": 7}], "complete": true})");
  const auto wrong = source.facts();
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message, HasSubstr(path + ": nodes[0].name"));
}

}  // namespace

}  // namespace croft::edge

namespace croft::wire {

namespace {

using namespace net::literals;
using testing::ElementsAre;
using testing::HasSubstr;

std::string error_of(std::string_view text) {
  const auto parsed = parse_facts(text);
  return parsed ? "" : parsed.error().message;
}

TEST(Facts, ReadsNodesAndPods) {
  const auto file = parse_facts(R"({
    "nodes": [{"name": "n1", "labels": {"zone": "a"}, "tunnelAddresses": ["10.0.0.1", "fd00::1"]}, {"name": "n2"}],
    "pods": [{"namespace": "d", "name": "web", "uid": "u", "node": "n1", "phase": "Failed", "reason": "Evicted",
              "addresses": ["10.0.0.3", "FD00:0::3"], "more": {}}],
    "complete": true, "time": "2026-01-15T10:00:00Z", "cluster": "u1"})");
  ASSERT_TRUE(file) << file.error().message;
  ASSERT_EQ(file->nodes.size(), 2U);
  EXPECT_THAT(file->nodes[0].tunnel_addresses, ElementsAre("10.0.0.1"_ip, "fd00::1"_ip));
  ASSERT_TRUE(file->pods);
  ASSERT_EQ(file->pods->size(), 1U);
  const auto& pod = file->pods->front();
  EXPECT_EQ(pod.namespace_name + "/" + pod.name + " " + pod.uid + " " + pod.node, "d/web u n1");
  EXPECT_EQ(pod.phase + pod.reason, "FailedEvicted");
  EXPECT_THAT(pod.addresses, ElementsAre("10.0.0.3"_ip, "fd00::3"_ip));
  EXPECT_TRUE(file->complete);
  EXPECT_TRUE(file->time);
  EXPECT_EQ(file->cluster, "u1");
}

TEST(Facts, PodsMayBeUnknownAndCompleteMustBeSaid) {
  const auto file = parse_facts(R"({"nodes": []})");
  ASSERT_TRUE(file);
  EXPECT_FALSE(file->pods);
  EXPECT_FALSE(file->complete);
  EXPECT_TRUE(parse_facts(R"({"nodes": [], "pods": []})")->pods);
}

TEST(Facts, ErrorsNameTheMemberAndTheValue) {
  EXPECT_THAT(error_of(R"({"nodes": [{"name": "a"}, {}]})"), HasSubstr("nodes[1]: it has no name"));
  EXPECT_THAT(error_of(R"({"nodes": [], "pods": [{"name": "a"}]})"), HasSubstr("pods[0]: it has no namespace"));
  EXPECT_THAT(error_of(R"({"nodes": [], "pods": [{"namespace": "d", "name": "a", "addresses": ["10.0.0.300"]}]})"),
              HasSubstr("pods[0].addresses[0]: invalid IP address \"10.0.0.300\""));
  EXPECT_THAT(error_of(R"({"nodes": [], "pods": [{"namespace": "d", "name": "a", "addresses": [null]}]})"),
              HasSubstr("pods[0].addresses[0]"));
  EXPECT_THAT(error_of(R"({"nodes": [], "complete": "yes"})"), HasSubstr("complete"));
  EXPECT_THAT(error_of(R"({"nodes": [], "time": "yesterday"})"), HasSubstr("time"));
  EXPECT_THAT(error_of(R"({"nodes": [{"name": "a\u0007"}]})"), HasSubstr("nodes[0].name"));
  EXPECT_THAT(error_of(R"({"pods": []})"), HasSubstr("nodes: it is missing"));
  EXPECT_THAT(error_of("[]"), HasSubstr("an object"));
  EXPECT_NE(error_of("{"), "");
  EXPECT_NE(error_of(""), "");
}

}  // namespace

}  // namespace croft::wire
