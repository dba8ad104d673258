#include "collector/format/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/address.h"

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
  EXPECT_THAT(error_of(R"({"nodes": [{"name": "a", "labels": {"zone": 1}}]})"), HasSubstr("nodes[0].labels.zone"));
  EXPECT_NE(error_of("{"), "");
  EXPECT_NE(error_of(""), "");
}

/// What nobody asks for takes memory too while it is read.
TEST(Facts, ValuesAreCounted) {
  const auto with_unknown = [](std::size_t count) {
    std::string text = R"({"nodes": [], "x": [0)";
    for (std::size_t i = 1; i < count; ++i) text += ",0";
    return text + "]}";
  };
  EXPECT_EQ(error_of(with_unknown(1000)), "");
  EXPECT_THAT(error_of(with_unknown(kFactsValuesMax)), HasSubstr("more than 6000000 values"));
  EXPECT_THAT(error_of(R"({"nodes": [], "x": )" + std::string(kFactsValuesMax, '[')), HasSubstr("values"));
}

}  // namespace
}  // namespace croft::wire
