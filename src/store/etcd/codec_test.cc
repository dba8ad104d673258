#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "store/etcd/parts.h"

namespace croft::store::etcd {
namespace {

using core::Key;
using core::Kind;
using testing::HasSubstr;
using testing::Not;

net::Prefix prefix(const char* text) { return net::Prefix::parse(text).value(); }

/// A pool and a block that have something beside them, as they are stored.
struct BesideRecords : testing::Test {
  BesideRecords() {
    pool.name = "a";
    pool.cidr = prefix("10.0.0.0/24");
    pool.block_length = 29;
    pool.gateway = pool.cidr.first();
    block = core::new_block(prefix("10.0.0.8/29"), core::AffinityOwner{core::AffinityOwner::Type::host, "node-a"}, {},
                            core::SequenceNumber(7));
    core::Cooling cooling;
    cooling.released_at.wall = WallTime(std::chrono::seconds{1});
    block = core::with_cooling(std::move(block), {{3, core::SequenceNumber(5), cooling}});
  }
  [[nodiscard]] Record read(const Key& key, std::string value, std::optional<std::string> beside) const {
    wire::etcd::KeyValue kv;
    kv.key = places.place_of(key).value();
    kv.value = std::move(value);
    return decode(places, key, kv, beside, EpochNumber{}).value();
  }
  Places places{nullptr};
  core::Pool pool;
  core::Block block;
};

/// Nobody gives or releases by half of what is known.
TEST_F(BesideRecords, WhatCannotBeReadBesideARecordMakesItUnreadable) {
  const auto expect_unreadable = [&](const Key& key, const Value& value, const char* place, const char* whole) {
    const calico::StoredBytes stored = encode(places, value, {}, {});
    ASSERT_TRUE(stored.beside);
    const Record sound = read(key, stored.value, stored.beside);
    EXPECT_TRUE(sound.value && !sound.calicos);
    for (const std::string beside : {"", "{", "{\"v\":1}", "{\"v\":2,\"x\":1}"}) {
      const Record record = read(key, stored.value, beside);
      const Result<Value>& read_back = record.value;
      ASSERT_FALSE(read_back) << beside;
      ASSERT_TRUE(record.calicos);
      EXPECT_EQ(core::without_rest(*record.calicos), core::without_rest(*read(key, stored.value, std::nullopt).value));
      EXPECT_THAT(read_back.error().message, HasSubstr(place));
      EXPECT_THAT(read_back.error().message, HasSubstr(whole));
      const bool is_newer = beside.starts_with("{\"v\":2");
      EXPECT_EQ(read_back.error().code, is_newer ? ErrorCode::newer_version : ErrorCode::corrupt) << beside;
    }
  };
  expect_unreadable(core::pool_key("a"), pool, "/croft/v1/beside/pool/a", "Calico's own record of pool a is whole");
  expect_unreadable(core::block_key(block.cidr), block, "/croft/v1/beside/block/ipv4/10.0.0.8/29",
                    "Calico's own record of block ipv4/10.0.0.8/29 is whole");
  EXPECT_EQ(read(core::block_key(block.cidr), encode(places, block, {}, {}).value, encode(places, block, {}, {}).beside)
                .value,
            Value(block));
  // Calico's own record is told first.
  const Record both = read(core::pool_key("a"), "{", "{");
  ASSERT_FALSE(both.value || both.calicos);
  EXPECT_THAT(both.value.error().message, Not(HasSubstr("is whole")));
}

}  // namespace
}  // namespace croft::store::etcd
