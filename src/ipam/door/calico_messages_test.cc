#include "ipam/door/calico_messages.h"

#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::edge {
namespace {

using core::Refusal;
using core::RefusalCause;

Refusal refusal(RefusalCause cause, std::vector<core::PoolVerdict> considered = {}) {
  return {ErrorCode::exhausted, "Croft's summary", std::move(considered), cause};
}

core::AssignRequest request() {
  core::AssignRequest result;
  result.node.name = "node-a";
  result.count.v4 = result.count.v6 = 1;
  return result;
}

std::string message(const Refusal& refused, const core::AssignRequest& wanted = request()) {
  return calico_error(refused, wanted).message;
}

TEST(CalicoMessages, FullPoolsAreListedAsGoPrintsAList) {
  const std::vector<core::PoolVerdict> v4 = {{"m", prefix("10.3.0.0/24"), "serves only requests that name it", false},
                                             {"a", prefix("10.1.0.0/24"), "full", true},
                                             {"b", prefix("10.2.0.0/24"), "full", true}};
  EXPECT_EQ(
      message(refusal(RefusalCause::full, v4)),
      "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No IPs available in pools: "
      "[10.1.0.0/24 10.2.0.0/24]");
  EXPECT_EQ(
      message(refusal(RefusalCause::full, {{"six", prefix("fd00::/120"), "full", true}})),
      "failed to request IPv6 addresses: Assigned 0 out of 1 requested IPv6 addresses; No IPs available in pools: "
      "[fd00::/120]");
  EXPECT_EQ(
      message(refusal(RefusalCause::full_and_strict, v4)),
      "failed to request IPv4 addresses: Assigned 0 out of 1 requested IPv4 addresses; No more free affine blocks "
      "and strict affinity enabled");
}

TEST(CalicoMessages, CausesWithoutAPool) {
  EXPECT_EQ(message(refusal(RefusalCause::block_limit)), "cannot allocate new block due to per host block limit");
  EXPECT_EQ(message(refusal(RefusalCause::no_block_to_claim)), "failed to find or claim a block");
  EXPECT_EQ(message(refusal(RefusalCause::no_pool_enabled)), "cannot find a qualified ippool");
  EXPECT_EQ(message(refusal(RefusalCause::no_pool_for_node)), "no configured Calico pools for node node-a");
  EXPECT_EQ(message(refusal(RefusalCause::no_pool_qualified)),
            "cannot find a qualified ippool, no pools match the required use (Workload)");
  EXPECT_EQ(message(refusal(RefusalCause::other)), "Croft's summary");
}

TEST(CalicoMessages, PoolsThatWereAskedFor) {
  const Refusal refused =
      refusal(RefusalCause::pool_not_usable,
              {{"a", prefix("10.1.0.0/24"), "disabled", false}, {"six", prefix("fd00::/120"), "not asked for", false}});
  auto wanted = request();
  wanted.pools.v4 = {"nowhere"};
  EXPECT_EQ(message(refused, wanted), "error parsing pool \"nowhere\": invalid CIDR address: nowhere");
  wanted.pools.v4 = {"six"};
  EXPECT_EQ(message(refused, wanted), "\"fd00::\" isn't a IPv4 address");
  wanted.pools.v4 = {"a"};
  EXPECT_EQ(message(refused, wanted), "the given pool (10.1.0.0/24) does not exist, or is not enabled");
  wanted.pools.v4 = {prefix("10.9.0.0/24")};
  EXPECT_EQ(message(refused, wanted), "the given pool (10.9.0.0/24) does not exist, or is not enabled");
}

TEST(CalicoMessages, AddressesThatWereAskedFor) {
  auto wanted = request();
  wanted.addresses = {net::Address::parse("10.1.0.9").value()};
  EXPECT_EQ(message(refusal(RefusalCause::address_in_no_pool), wanted),
            "The provided IP address is not in a configured pool\n");
  EXPECT_EQ(message(refusal(RefusalCause::address_taken), wanted), "resource already exists: 10.1.0.9");
  EXPECT_EQ(message(refusal(RefusalCause::address_out_of_bounds), wanted), "Block host affinity does not match");
}

TEST(CalicoMessages, CodeAndDetailsAreCrofts) {
  const Error error =
      calico_error(refusal(RefusalCause::full, {{"a", prefix("10.1.0.0/24"), "its blocks are full", true}}), request());
  EXPECT_EQ(error.code, ErrorCode::exhausted);
  EXPECT_EQ(error.details, "pool a (10.1.0.0/24): its blocks are full");
  EXPECT_EQ(calico_error(refusal(RefusalCause::block_limit), request()).details, "Croft's summary");
}

}  // namespace
}  // namespace croft::edge
