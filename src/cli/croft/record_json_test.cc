#include "cli/croft/record_json.h"

#include <chrono>
#include <string>

#include <gtest/gtest.h>

#include "cli/croft/data.h"
#include "register/format/records.h"
#include "store/sample_records.h"

namespace croft::app {
namespace {

using Json = nlohmann::ordered_json;

/// What the record says, with its sequence numbers as texts. Compared as text: the order counts.
std::string stored(const core::Value& value) {
  Json json = Json::parse(wire::encode_record(value));
  json.erase("v");
  const auto quote = [](Json& number) { number = std::to_string(number.get<std::uint64_t>()); };
  if (json.contains("sequenceNumber")) {
    quote(json["sequenceNumber"]);
    for (Json& number : json["sequenceNumberForAllocation"]) quote(number);
  }
  return json.dump(1);
}

/// Whether a pool gives addresses is what its store says of it (core::Pool::unallocatable), and no part of the record.
std::string stored_pool(const core::Pool& pool) {
  const Json record = Json::parse(stored(pool));
  Json shown = Json::object();
  for (auto it = record.begin(); it != record.end(); ++it) {
    shown[it.key()] = it.value();
    if (it.key() == "disabled") shown["allocatable"] = pool.unallocatable.empty();
  }
  return shown.dump(1);
}

TEST(RecordJson, APoolIsShownAsItIsStored) {
  core::Pool pool;
  pool.name = "web";
  pool.cidr = net::Prefix::parse("10.1.0.0/16").value();
  pool.block_length = 26;
  EXPECT_EQ(record_json(pool).dump(1), stored_pool(pool));
  pool.gateway = net::Address::parse("10.1.0.1").value();
  pool.disabled = true;
  pool.unallocatable = "it is being deleted";
  pool.node_selector = "zone == \"a\"";
  pool.namespace_selector = "all()";
  pool.allowed_uses = {core::PoolUse::load_balancer, core::PoolUse::tunnel};
  pool.assignment_mode = core::AssignmentMode::manual;
  pool.ipip_mode = core::Encapsulation::always;
  pool.vxlan_mode = core::Encapsulation::cross_subnet;
  pool.nat_outgoing = true;
  pool.disable_bgp_export = true;
  pool.cooldown = std::chrono::seconds(600);
  EXPECT_EQ(record_json(pool).dump(1), stored_pool(pool));
}

TEST(RecordJson, ABlockIsShownAsItIsStored) {
  core::Block block = store::sample_block(3, 5);
  EXPECT_EQ(record_json(block).dump(1), stored(block));
  block.affinity_claim_time = WallTime(std::chrono::nanoseconds(1'768'471'200'500'000'000));
  block.deleted = true;
  block.attributes[0].alternate_owner = {{"node", "other"}};
  core::Cooling cooling;
  cooling.released_at.wall = WallTime(std::chrono::nanoseconds(1'768'471'200'000'000'001));
  cooling.released_at.since_boot = std::chrono::nanoseconds(77);
  cooling.released_at.boot.bytes.fill(0xab);
  cooling.previous_handle = "net.c1";
  cooling.previous_secondary = {{"pod", "web"}};
  cooling.seen.push_back({cooling.released_at.boot, std::chrono::nanoseconds(99)});
  cooling.cooldown = std::chrono::seconds(30);
  block.attributes[1].handle_id.reset();
  block.attributes[1].secondary = {};
  block.attributes[1].cooling = cooling;
  EXPECT_EQ(record_json(block).dump(1), stored(block));
  const core::Block empty = store::sample_block(4, 0);
  EXPECT_EQ(record_json(empty).dump(1), stored(empty));
}

TEST(RecordJson, BytesThatAreNoUtf8KeepNothingElseFromBeingShown) {
  core::Pool pool;
  pool.cidr = net::Prefix::parse("10.1.0.0/16").value();
  pool.node_selector = "zone == \"\xff\"";
  const std::string shown_pool = Data(record_json(pool)).json();
  EXPECT_EQ(Json::parse(shown_pool)["nodeSelector"], "zone == \"\ufffd\"");

  core::Block block = store::sample_block(3, 2);
  block.attributes[0].handle_id = "net.\xc3";
  block.attributes[0].secondary = {{"p\x80od", "web\xf0\x9f"}};
  core::Cooling cooling;
  cooling.previous_handle = "\xed\xa0\x80";  // a surrogate
  cooling.previous_secondary = {{"\xfe", "a"}};
  block.attributes[1].cooling = cooling;
  const Data data(record_json(block));
  const Json shown = Json::parse(data.json());
  EXPECT_EQ(shown["cidr"], block.cidr.to_string());
  EXPECT_EQ(shown["attributes"][0]["handle_id"], "net.\ufffd");
  EXPECT_EQ(shown["attributes"][0]["secondary"], Json({{"p\ufffdod", "web\ufffd"}}));
  EXPECT_EQ(shown["attributes"][1]["previousSecondary"], Json({{"\ufffd", "a"}}));
  EXPECT_NE(data.yaml().find("previousHandle: \"\ufffd"), std::string::npos);
}

}  // namespace
}  // namespace croft::app
