#include "noderanges/audit/node_range_audit.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::core::audit {
namespace {

using testing::HasSubstr;

TEST(NodeRangeAudit, EachFaultNamesBothNodesAndTheRemedy) {
  NodeRangeOverview seen;
  seen.collisions.emplace_back(NodeRange{"p", prefix("10.2.0.0/24")}, NodeRange{"q", prefix("10.2.0.0/25")});
  seen.surplus.emplace_back("h", std::vector{prefix("10.3.0.0/24"), prefix("10.3.1.0/24")});
  SaidComparison said;
  said.overlaps.push_back({{"a", prefix("10.0.0.0/23")}, {"b", prefix("10.0.1.0/24")}, false});
  said.overlaps.push_back({{"c", prefix("10.0.2.0/24")}, {"d", prefix("10.0.2.0/24")}, true});
  said.differing.push_back({"e", {prefix("10.0.3.0/24")}, {prefix("10.0.4.0/24")}});
  said.unrecorded.push_back({"g", prefix("10.9.0.0/24")});
  const auto findings =
      audit_node_ranges(seen, said, {{"f", Error{ErrorCode::corrupt, "node f says the range \"ten\"", {}}}});
  ASSERT_EQ(findings.size(), 6U) << "a range without a record is kept from others: no fault";
  const auto told = [&](std::size_t i, std::string_view id, std::vector<const char*> words) {
    EXPECT_EQ(findings[i].id, id) << i;
    for (const char* word : words) {
      EXPECT_THAT(findings[i].subject + "|" + findings[i].what + "|" + findings[i].remedy, HasSubstr(word)) << i;
    }
  };
  told(0, "node_range_twice", {"10.2.0.0/24 of node \"p\"", "10.2.0.0/25 of node \"q\"", "node range release"});
  told(1, "node_range_surplus", {"node \"h\"", "10.3.0.0/24, 10.3.1.0/24:", "croft node range assign"});
  told(2, "node_range_twice", {"10.0.0.0/23 of node \"a\"", "10.0.1.0/24 of node \"b\"", "drain one"});
  told(3, "node_range_twice",
       {"10.0.2.0/24 of node \"c\"", "recorded for node \"d\"", "croft node range release d --force"});
  told(4, "node_range_differs", {"node \"e\"", "10.0.3.0/24", "10.0.4.0/24", "croft node range release e --force"});
  told(5, "node_range_unreadable", {"node \"f\"", "ten", "delete its object"});
}

TEST(NodeRangeAudit, ABlockThatIsAnotherNodesPodCidrNamesBothAndTheRemedy) {
  const std::vector<NodeRange> said{{"node-1", prefix("10.244.1.0/24")},
                                    {"node-2", prefix("10.244.2.0/24")},
                                    {"node-9", prefix("10.244.8.0/24")},
                                    {"node-9", prefix("fd00::/64")}};
  const BlockOfNode own{prefix("10.244.1.0/24"), "node-1"}, others{prefix("10.244.8.0/24"), "node-2"},
      nobodys{prefix("10.244.20.0/24"), "node-2"};
  const auto findings = audit_pod_ranges({own, nobodys, others}, said);
  ASSERT_EQ(findings.size(), 1U);
  EXPECT_EQ(findings[0].id, "pod_range_overlap");
  EXPECT_EQ(findings[0].subject, "block 10.244.8.0/24 of node \"node-2\"");
  EXPECT_THAT(findings[0].what, HasSubstr("podCIDR of node \"node-9\""));
  for (const char* word : {"--auto-allocate-blocks false", "affinity release --node node-2 --cidr 10.244.8.0/24",
                           "affinity claim 10.244.8.0/24 --node node-9"}) {
    EXPECT_THAT(findings[0].remedy, HasSubstr(word));
  }
  // As kubeadm has it, whose ranges nobody heeds beside Croft's pools: no node has its own as a block.
  EXPECT_TRUE(audit_pod_ranges({nobodys, others}, said).empty());
  EXPECT_TRUE(audit_pod_ranges({own}, said).empty());
}

TEST(NodeRangeAudit, NothingWrong) { EXPECT_TRUE(audit_node_ranges({}, {}, {}).empty()); }

}  // namespace
}  // namespace croft::core::audit
