#include "register/one_nodes_part.h"

#include <array>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::core {
namespace {

using testing::ElementsAre;

net::Prefix prefix(const char* text) { return net::Prefix::parse(text).value(); }

TEST(OneNodesPart, IsWhatTheTableOfKindsSays) {
  const AffinityOwner node{AffinityOwner::Type::host, "a"};
  const NodesPart part = part_of(node);
  const std::string own = owned_names_of(node);
  EXPECT_THAT(part.records, ElementsAre(ipam_config_key(), node_key("a")));
  EXPECT_THAT(part.lists,
              ElementsAre(Listing{Kind::pool, ""}, Listing{Kind::reservation, ""}, Listing{Kind::vacancy, own}));
  EXPECT_THAT(part.claims, ElementsAre(Listing{Kind::affinity, ""}));
  EXPECT_THAT(part.own_claims, ElementsAre(Listing{Kind::affinity, own, true}));
}

TEST(OneNodesPart, OfAStockIsTheStockAlone) {
  const NodesPart part = part_of({AffinityOwner::Type::host, "a"}, Follower::stock);
  EXPECT_THAT(part.records, ElementsAre());
  EXPECT_THAT(part.lists, ElementsAre(Listing{Kind::warm_address, ""}, Listing{Kind::warm_intent, ""},
                                      Listing{Kind::warm_node, ""}));
  EXPECT_THAT(part.claims, ElementsAre());
}

TEST(OneNodesPart, APastHolderHoldsNothing) {
  Block block;
  Attribute held, held_twice, cooling;
  held.handle_id = "b";
  held_twice.handle_id = "b";
  cooling.handle_id = "a";
  cooling.cooling.emplace();
  Attribute other;
  other.handle_id = "c";
  block.attributes = {other, held, cooling, Attribute(), held_twice};
  EXPECT_THAT(handles_holding(block), ElementsAre("b", "c"));
}

TEST(OneNodesPart, WhatAClaimSaysOfOtherBlocks) {
  for (const auto& [block, inside, beside] : {std::array{"10.0.0.64/26", "10.0.0.96/27", "10.0.0.128/26"},
                                              {"fd00::40/122", "fd00::60/123", "fd00::80/122"}}) {
    Pool pool;
    pool.cidr = prefix(block);
    pool.block_length = prefix(block).length();
    EXPECT_TRUE(may_be_block_of(pool, prefix(block)));
    EXPECT_FALSE(may_be_block_of(pool, prefix(inside)));
    EXPECT_TRUE(may_be_block_of(pool, prefix(beside))) << "it is no block of this pool";
  }
}

}  // namespace
}  // namespace croft::core
