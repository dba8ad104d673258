#include "store/kube/format/own_status.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::kube {
namespace {

using testing::HasSubstr;

constexpr WallTime kAt{std::chrono::seconds(1)}, kLater{std::chrono::seconds(90)};

core::PoolStatus pool() {
  core::PoolStatus status;
  status.use.pool.name = "p";
  status.use.pool.cidr = net::Prefix::parse("fd00::/48").value();
  status.use.pool.block_length = 122;
  status.use.capacity = net::Count::of(status.use.pool.cidr);
  status.use.held = 2;
  status.use.blocks = 1;
  status.conditions = {{"Ready", true, "AddressesFree", ""}, {"Overlaps", true, "PoolsOverlap", "a < b"}};
  return status;
}

StatusSeen seen(const std::string& object) {
  const auto document = parse_json(object);
  return read_status(document.value().root());
}

TEST(OwnStatus, WhatIsWritten) {
  StatusSeen before;
  before.generation = 3;
  const std::string status = encode_status(pool(), before, kAt);
  EXPECT_EQ(
      status,
      R"({"blockSize":122,"blocks":1,"capacity":"1208925819614629174706176","cidr":"fd00::/48","conditions":[)"
      R"({"lastTransitionTime":"1970-01-01T00:00:01Z","message":"","observedGeneration":3,"reason":"AddressesFree",)"
      R"("status":"True","type":"Ready"},)"
      R"({"lastTransitionTime":"1970-01-01T00:00:01Z","message":"a \u003c b","observedGeneration":3,)"
      R"("reason":"PoolsOverlap","status":"True","type":"Overlaps"}],)"
      R"("cooling":0,"free":"1208925819614629174706174","held":2,"reserved":"0"})");
}

/// Read back, in whatever order of members, it is the same; a condition that stays keeps its time, one that turns not.
TEST(OwnStatus, WhatIsAsItWasIsEqual) {
  const std::string first = encode_status(pool(), seen(R"({"metadata":{"generation":3}})"), kAt);
  const auto before = seen(R"({"status":)" + first + R"(,"metadata":{"generation":3,"name":"p"}})");
  EXPECT_EQ(before.status, first);
  EXPECT_EQ(before.generation, 3);
  EXPECT_EQ(encode_status(pool(), before, kLater), first);
  EXPECT_FALSE(is_turn(pool().conditions, before));

  auto turned = pool();
  turned.conditions[0] = {"Ready", false, "Exhausted", "no address is free"};
  EXPECT_TRUE(is_turn(turned.conditions, before));
  const std::string second = encode_status(turned, before, kLater);
  EXPECT_THAT(second, HasSubstr(R"("lastTransitionTime":"1970-01-01T00:01:30Z","message":"no address is free")"));
  EXPECT_THAT(second, HasSubstr(R"("lastTransitionTime":"1970-01-01T00:00:01Z","message":"a \u003c b")"));
}

TEST(OwnStatus, WhatIsNoneIsWrittenOver) {
  std::string deep = "1";
  for (int i = 0; i < 40; ++i) deep = "[" + deep + "]";
  for (const std::string& status : std::vector<std::string>{
           "null", "7", "[]", "{}", R"({"conditions":7})", R"({"conditions":[7,{"type":7}]})", deep,
           R"({"conditions":[{"type":"Ready","status":"True","lastTransitionTime":"yesterday"}]})"}) {
    const auto before = seen(R"({"metadata":{"generation":"x"},"status":)" + status + "}");
    EXPECT_EQ(before.generation, 0);
    EXPECT_NE(encode_status(pool(), before, kAt), before.status) << status;
    EXPECT_THAT(encode_status(pool(), before, kAt), HasSubstr(R"("lastTransitionTime":"1970-01-01T00:00:01Z")"));
  }
  EXPECT_EQ(seen("{}").status, "");
}

TEST(OwnStatus, NodeRanges) {
  core::NodeRangeStatus ranges;
  ranges.nodes = 3;
  ranges.waiting = 1;
  ranges.clusters = {{"10.0.0.0/22", 4, 2, 1}};
  ranges.conditions = {{"Ready", false, "NodesWait", "1 node lacks a range"}};
  EXPECT_EQ(encode_status(ranges, {}, kAt),
            R"({"clusterCIDRs":[{"capacity":4,"cidr":"10.0.0.0/22","excluded":1,"free":1,"taken":2}],"conditions":[)"
            R"({"lastTransitionTime":"1970-01-01T00:00:01Z","message":"1 node lacks a range","observedGeneration":0,)"
            R"("reason":"NodesWait","status":"False","type":"Ready"}],"nodes":3,"waiting":1})");
}

TEST(OwnStatus, Bodies) {
  ApiMeta meta;
  meta.uid = "u";
  meta.resource_version = "7";
  EXPECT_EQ(encode_status_patch(meta, "{}"), R"({"metadata":{"uid":"u","resourceVersion":"7"},"status":{}})");
  EXPECT_EQ(
      encode_own_pool("p"),
      R"({"apiVersion":"ipam.croft.dev/v1alpha1","kind":"CroftPool","metadata":{"name":"p"},"spec":{"pool":"p"}})");
}

}  // namespace
}  // namespace croft::wire::kube
