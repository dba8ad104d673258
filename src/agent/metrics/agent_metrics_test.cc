#include "agent/metrics/agent_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::edge {
namespace {

using std::chrono::microseconds;
using testing::HasSubstr;
using testing::Not;

core::AssignAnswer refused(std::vector<core::PoolVerdict> considered, core::RefusalCause cause) {
  core::Refusal refusal;
  refusal.considered = std::move(considered);
  refusal.cause = cause;
  return refusal;
}

TEST(AgentMetrics, CountsAddsByHowTheyEnded) {
  AgentMetrics metrics;
  EXPECT_THAT(metrics.text(), HasSubstr("croft_agent_add_duration_seconds_count{outcome=\"ok\"} 0\n"));
  core::Assigned assigned;
  assigned.addresses.resize(2);
  assigned.addresses[0].borrowed = true;
  core::AssignAnswer ok = assigned;
  metrics.count(microseconds(300), &ok);
  assigned.addresses[0].held_before = true;  // asked again: nothing was borrowed anew
  ok = assigned;
  metrics.count(microseconds(100), &ok);
  metrics.count(microseconds(100), nullptr);
  const std::string text = metrics.text();
  for (const char* line : {"croft_agent_add_duration_seconds_count{outcome=\"ok\"} 2\n",
                           "croft_agent_add_duration_seconds_bucket{outcome=\"ok\",le=\"0.00025\"} 1\n",
                           "croft_agent_add_duration_seconds_bucket{outcome=\"ok\",le=\"0.0005\"} 2\n",
                           "croft_agent_add_duration_seconds_bucket{outcome=\"ok\",le=\"+Inf\"} 2\n",
                           "croft_agent_add_duration_seconds_count{outcome=\"failed\"} 1\n",
                           "croft_agent_add_duration_seconds_count{outcome=\"refused\"} 0\n",
                           "croft_agent_borrowed_addresses_total 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("croft_agent_refusals_total")));
}

TEST(AgentMetrics, ARefusalCountsForEachPoolThatMightHaveServed) {
  AgentMetrics metrics;
  const net::Prefix cidr = prefix("10.0.0.0/24");
  const auto full = refused({{"one", cidr, "its blocks are full", true},
                             {"two", cidr, "its blocks are full", true},
                             {"off", cidr, "disabled", false}},
                            core::RefusalCause::full);
  metrics.count(microseconds(10), &full);
  metrics.count(microseconds(10), &full);
  const auto none = refused({{"off", cidr, "disabled", false}}, core::RefusalCause::no_pool_enabled);
  metrics.count(microseconds(10), &none);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("croft_agent_refusals_total{pool=\"one\",reason=\"full\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("croft_agent_refusals_total{pool=\"two\",reason=\"full\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("croft_agent_refusals_total{pool=\"\",reason=\"no_pool_enabled\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("pool=\"off\"")));
  EXPECT_THAT(text, HasSubstr("croft_agent_add_duration_seconds_count{outcome=\"refused\"} 3\n"));
}

}  // namespace
}  // namespace croft::edge
