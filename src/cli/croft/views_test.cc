#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/croft/json_output.h"
#include "cli/croft/picture.h"
#include "cli/croft/table.h"
#include "ipam/commands/explain_view.h"
#include "ipam/commands/pool_usage.h"
#include "ipam/use/explain.h"
#include "ipam/use/test_world.h"

namespace croft::app {
namespace {

using testing::HasSubstr;

class Views : public testing::Test, public engine::World {
 protected:
  void SetUp() override {
    pool("a", "10.1.0.0/28", 29);
    for (int i = 0; i < 10; ++i) add("c" + std::to_string(i));
    del("c1");
  }
  engine::PoolView view() { return engine::look(context)->pools.front(); }
};

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCellAndEmptyReadsDash) {
  Table table({"NAME", "WHAT"});
  table.add({"a", "pool"});
  table.add({"überlang", ""});
  EXPECT_EQ(table.to_string(), "NAME       WHAT\na          pool\nüberlang   -\n");
}

/// A record of others holds a byte that is no UTF-8: it is shown, and so is the rest.
TEST_F(Views, BytesThatAreNoTextKeepNothingFromBeingShown) {
  core::Block block =
      std::get<core::Block>(*store.get(core::block_key(prefix("10.1.0.0/29")), Deadline{}).value()->value);
  for (core::Attribute& attribute : block.attributes) {
    if (attribute.handle_id) attribute.secondary["pod"] = "x\xffy";
  }
  put(core::block_key(block.cidr), block);
  const std::string blocks = json_of(view().blocks).json();
  EXPECT_THAT(blocks, HasSubstr("x\ufffdy"));
  EXPECT_THAT(blocks, HasSubstr("10.1.0.8/29"));
  const Data addresses = json_of(engine::list_addresses(context).value());
  EXPECT_THAT(addresses.json(), HasSubstr("x\ufffdy"));
  EXPECT_THAT(addresses.yaml(), HasSubstr("x\ufffdy"));
}

TEST_F(Views, PictureWithoutColour) {
  // node-a starts with the upper block: eight held, one of them (the second) cooling; then .2 .3 .4 of the lower.
  EXPECT_EQ(draw(view(), false),
            "blocks, one each half character, filled when claimed:\n"
            "  █\n"
            "two addresses a character: █ both held  ▀ ▄ one held  ▒ cooling  ░ reserved  · free\n"
            "  10.1.0.0/29 node-a  ░█▀·  3 held, 0 cooling, 3 free\n"
            "  10.1.0.8/29 node-a  ▒██▀  6 held, 1 cooling, 0 free\n");
}

TEST_F(Views, PictureInColourHasTheSameShape) {
  const std::string text = draw(view(), true);
  EXPECT_THAT(text, HasSubstr("\x1b[38;5;34;48;5;214m▀\x1b[0m"));  // held over cooling
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

TEST_F(Views, LargePoolsAreSummedUp) {
  pool("big", "10.64.0.0/10", 26);
  auto request = World::request("x");
  request.pools.v4 = {"big"};
  add(request);
  const std::string text = draw(engine::look(context)->pools[1], false);
  EXPECT_THAT(text, HasSubstr("blocks, 2^8 to a half character"));
  pool("six", "fd00::/32", 122);
  EXPECT_THAT(draw(engine::look(context)->pools[2], false), HasSubstr("no block is claimed yet"));
}

TEST_F(Views, UsageHasSharesAndBlocks) {
  const std::string text = usage_table(*engine::look(context), true);
  EXPECT_THAT(text,
              HasSubstr("pool       a      10.1.0.0/28   -             16      9 (56.2%)   1 (6.25%)   3 (18.8%)"));
  EXPECT_THAT(text, HasSubstr("block      a      10.1.0.8/29   host:node-a   8       6 (75%)"));
}

TEST_F(Views, ExplanationOfAnAssignmentAndOfARefusal) {
  auto request = World::request("x");
  const std::string told = text_of(*engine::explain(context, request), request);
  EXPECT_THAT(told, HasSubstr("  1. pool a (10.1.0.0/28): serves all nodes\n"));
  EXPECT_THAT(told, HasSubstr("own block 10.1.0.8/29: full, the first cooling one is free again at "));
  EXPECT_THAT(told, HasSubstr("nothing to claim: "));
  EXPECT_THAT(told, HasSubstr("Answer: 10.1.0.5 of pool a, own block 10.1.0.0/29\n"));
  request.pools.v4 = {"nowhere"};
  EXPECT_THAT(text_of(*engine::explain(context, request), request),
              HasSubstr("Answer: refused (refused_by_configuration): the given pool (nowhere) does not exist"));
}

TEST_F(Views, JsonIsOneArrayWithTheNamesThatScriptsRelyOn) {
  const std::string addresses = json_of(engine::list_addresses(context).value()).json();
  for (const char* name : {"address", "state", "pool", "block", "network", "containerId", "ifname", "node", "pod",
                           "namespace", "since", "until"}) {
    EXPECT_THAT(addresses, HasSubstr("\"" + std::string(name) + "\": ")) << name;
  }
  EXPECT_EQ(addresses.front(), '[');
  const std::string pools = json_of(std::vector{view()}).json();
  for (const char* name :
       {"cidr", "blockSize", "disabled", "allocatable", "nodeSelector", "gateway", "cooldownSeconds", "usage"}) {
    EXPECT_THAT(pools, HasSubstr("\"" + std::string(name) + "\": ")) << name << pools;
  }
  const std::string blocks = json_of(view().blocks).json();
  for (const char* name : {"cidr", "affinity", "affinityClaimTime", "allocations", "unallocated", "attributes",
                           "sequenceNumber", "sequenceNumberForAllocation", "deleted"}) {
    EXPECT_THAT(blocks, HasSubstr("\"" + std::string(name) + "\": ")) << name << blocks;
  }
  EXPECT_EQ(json_of(std::vector<core::audit::Finding>()).json(), "[]\n");
}

}  // namespace
}  // namespace croft::app
