#include "agent/daemon/pools_of_pods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "register/snapshot.h"

namespace croft::app {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

core::Pool pool(const char* name, const char* cidr) {
  core::Pool made;
  made.name = name;
  made.cidr = net::Prefix::parse(cidr).value();
  made.gateway = made.cidr.first().next();
  return made;
}
const core::Pool kFour = pool("default-ipv4-ippool", "10.244.0.0/16");
const core::Pool kSix = pool("default-ipv6-ippool", "fd00:10:244::/56");

PodNeeds needs(const std::vector<std::string>& asked_v4 = {}, const std::vector<std::string>& asked_v6 = {}) {
  PodNeeds made;
  made.node = "oak";
  made.families = {true, !asked_v6.empty()};
  for (const std::string& text : asked_v4) made.asked.v4.push_back(core::asked_pool(text));
  for (const std::string& text : asked_v6) made.asked.v6.push_back(core::asked_pool(text));
  return made;
}

Result<std::vector<std::string>> compare(const PodNeeds& needs, const std::vector<core::Pool>& pools) {
  core::Snapshot snapshot;
  std::vector<core::KeyedValue> records;
  for (const core::Pool& one : pools) records.emplace_back(core::pool_key(one.name), one);
  snapshot.set_list({core::Kind::pool, ""}, records);
  core::Reader reader(snapshot);
  return compare_pools(needs, core::PoolTable(reader));
}

void refused(const PodNeeds& needs, const std::vector<core::Pool>& pools, const testing::Matcher<std::string>& text) {
  const auto done = compare(needs, pools);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::refused_by_configuration);
  EXPECT_THAT(done.error().message, text);
}

TEST(PoolsOfPods, WhatIsThereIsFine) {
  EXPECT_THAT(compare(needs(), {kFour}).value(), IsEmpty());
  EXPECT_THAT(compare(needs({"default-ipv4-ippool"}), {kFour, kSix}).value(), IsEmpty());
  EXPECT_THAT(compare(needs({"10.244.0.0/16"}, {"default-ipv6-ippool"}), {kFour, kSix}).value(), IsEmpty());
}

TEST(PoolsOfPods, WithoutAnyPoolNothingIsSaid) {
  EXPECT_THAT(compare(needs(), {}).value(), IsEmpty());
  EXPECT_THAT(compare(needs({"later"}), {}).value(), IsEmpty());
}

TEST(PoolsOfPods, OneThatIsNotThereIsRefused) {
  refused(needs({"nodee-7"}), {kFour, pool("node-7", "10.7.0.0/24"), kSix},
          AllOf(HasSubstr("--ipv4-pool \"nodee-7\": the register has no such pool"),
                HasSubstr("\"default-ipv4-ippool\", \"node-7\""), testing::Not(HasSubstr("ipv6-ippool"))));
  refused(needs({"default-ipv4-ippool", "nodee-7"}), {kFour}, HasSubstr("nodee-7"));
  refused(needs({"10.244.0.0/17"}), {kFour}, HasSubstr("10.244.0.0/17"));
  refused(needs({"default-ipv4-ippool"}, {"six"}), {kFour, kSix}, HasSubstr("--ipv6-pool \"six\""));
}

TEST(PoolsOfPods, OneOfTheOtherFamilyIsRefused) {
  refused(needs({"default-ipv6-ippool"}), {kFour, kSix},
          AllOf(HasSubstr("--ipv4-pool \"default-ipv6-ippool\""), HasSubstr("of IPv6 (fd00:10:244::/56)"),
                HasSubstr("\"default-ipv4-ippool\"")));
}

/// Of a family that no pod gets nothing is asked.
TEST(PoolsOfPods, WhatIsNotUsedIsNotLookedAt) {
  PodNeeds of_four = needs({}, {"nope"});
  of_four.families = {true, false};
  EXPECT_THAT(compare(of_four, {kFour}).value(), IsEmpty());
}

TEST(PoolsOfPods, OneThatIsNotForPodsIsRefused) {
  core::Pool tunnels = pool("tunnels", "10.9.0.0/24");
  tunnels.allowed_uses = {core::PoolUse::tunnel};
  refused(needs({"tunnels"}), {kFour, tunnels}, HasSubstr("allowedUses"));
  EXPECT_THAT(compare(needs({"tunnels", "default-ipv4-ippool"}), {kFour, tunnels}).value(), IsEmpty());
}

/// It may be enabled again, or the node get the label.
TEST(PoolsOfPods, WhatServesNobodyNowIsTold) {
  core::Pool off = kFour;
  off.disabled = true;
  EXPECT_THAT(compare(needs(), {off}).value(),
              ElementsAre(AllOf(HasSubstr("no pod of this node starts as it is now"), HasSubstr("IPv4"),
                                HasSubstr("\"default-ipv4-ippool\" (10.244.0.0/16): disabled"))));
  EXPECT_THAT(compare(needs({"default-ipv4-ippool"}), {off}).value(),
              ElementsAre(AllOf(HasSubstr("--ipv4-pool"), HasSubstr("croft pool enable"))));
  core::Pool racks = kFour;
  racks.node_selector = "rack == 'b'";
  EXPECT_THAT(compare(needs(), {racks}).value(), ElementsAre(HasSubstr("does not select node oak")));
  PodNeeds in_b = needs();
  in_b.node_labels = core::Labels{{"rack", "b"}};
  EXPECT_THAT(compare(in_b, {racks}).value(), IsEmpty());
  in_b.node_labels.reset();
  EXPECT_THAT(compare(in_b, {racks}).value(), IsEmpty()) << "nobody knows";
}

TEST(PoolsOfPods, ThatNoneHasAGatewayIsRefused) {
  core::Pool four = kFour, six = kSix, manual = pool("manual", "10.8.0.0/24");
  four.gateway.reset();
  six.gateway.reset();
  manual.assignment_mode = core::AssignmentMode::manual;
  PodNeeds of_ptp = needs();
  EXPECT_THAT(compare(of_ptp, {four}).value(), IsEmpty()) << "as Calico's, for Calico's plugin";
  of_ptp.wants_gateways = "ptp";
  EXPECT_THAT(compare(of_ptp, {kFour}).value(), IsEmpty());
  refused(of_ptp, {four, kSix},
          AllOf(HasSubstr("from ptp"), HasSubstr("no IPv4 pool"), HasSubstr("(\"default-ipv4-ippool\")"),
                HasSubstr("--gateways first"), HasSubstr("croft pool disable")));
  of_ptp.families.v6 = true;
  refused(of_ptp, {kFour, six}, AllOf(HasSubstr("no IPv6 pool"), HasSubstr("(\"default-ipv6-ippool\")")));
  of_ptp.families.v6 = false;
  EXPECT_THAT(compare(of_ptp, {kFour, six}).value(), IsEmpty());
  of_ptp.asked.v4 = {core::asked_pool("default-ipv4-ippool")};
  refused(of_ptp, {four, pool("other", "10.9.0.0/24")}, HasSubstr("(\"default-ipv4-ippool\")"));
  // One that pods name, and one that is not in use.
  of_ptp.asked.v4.clear();
  EXPECT_THAT(compare(of_ptp, {four, manual}).value(), ElementsAre(HasSubstr("gateway: \"default-ipv4-ippool\".")));
  manual.disabled = true;
  refused(of_ptp, {four, manual}, HasSubstr("(\"default-ipv4-ippool\")"));
  four.disabled = true;
  EXPECT_THAT(compare(of_ptp, {four, pool("other", "10.9.0.0/24")}).value(), IsEmpty());
  EXPECT_THAT(compare(of_ptp, {four}).value(), ElementsAre(HasSubstr("disabled")));
}

TEST(PoolsOfPods, OneWithoutAGatewayIsTold) {
  core::Pool first = pool("aaa", "10.66.0.0/24"), of_racks = pool("racks", "10.67.0.0/24");
  first.gateway.reset();
  PodNeeds of_bridge = needs();
  of_bridge.wants_gateways = "bridge";
  EXPECT_THAT(
      compare(of_bridge, {first, kFour}).value(),
      ElementsAre(AllOf(HasSubstr("from bridge"), HasSubstr("gateway: \"aaa\"."), HasSubstr("croft pool disable"))));
  // Another node's pool is not this one's, but where nobody knows.
  of_racks.node_selector = "rack == 'b'";
  refused(of_bridge, {first, of_racks}, HasSubstr("(\"aaa\")"));
  of_bridge.node_labels.reset();
  EXPECT_THAT(compare(of_bridge, {first, of_racks}).value(), ElementsAre(HasSubstr("gateway: \"aaa\".")));
}

/// Some pod may name it, or live in such a namespace.
TEST(PoolsOfPods, WhatSomePodsMayUseIsFine) {
  core::Pool manual = kFour, of_tenants = kFour;
  manual.assignment_mode = core::AssignmentMode::manual;
  of_tenants.namespace_selector = "tenant == 'x'";
  EXPECT_THAT(compare(needs(), {manual}).value(), IsEmpty());
  EXPECT_THAT(compare(needs(), {of_tenants}).value(), IsEmpty());
}

}  // namespace
}  // namespace croft::app
