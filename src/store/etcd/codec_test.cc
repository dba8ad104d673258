#include "store/etcd/codec.h"

#include <chrono>
#include <optional>
#include <string>
#include <variant>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::store::etcd {
namespace {

using core::Key;
using core::Kind;
using testing::HasSubstr;

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
  [[nodiscard]] Value read(const Key& key, std::string value, std::optional<std::string> beside) const {
    wire::etcd::KeyValue kv;
    kv.key = places.place_of(key).value();
    kv.value = std::move(value);
    return decode(places, key, kv, beside, EpochNumber{}).value().value;
  }
  Places places{nullptr};
  core::Pool pool;
  core::Block block;
};

TEST_F(BesideRecords, OfAPoolTheyAreDamagedAlone) {
  const Key key = core::pool_key("a");
  const calico::StoredBytes stored = encode(places, pool, {}, {});
  ASSERT_TRUE(stored.beside);
  for (const std::string beside : {"", "{", "{\"v\":1}", "{\"v\":2,\"x\":1}"}) {
    const Value read_back = read(key, stored.value, beside);
    ASSERT_TRUE(core::is_damaged_beside(read_back)) << beside;
    EXPECT_EQ(core::kind_of(read_back), Kind::pool);
    EXPECT_THAT(core::damage_of(read_back)->message, HasSubstr("/croft/v1/beside/pool/a"));
    EXPECT_THAT(core::damage_of(read_back)->message, HasSubstr("Calico's own record of pool a is whole"));
    // Written as it is by Calico's record, the pool has nothing beside it, and Calico's record is as it was.
    const auto* whole = std::get_if<core::Pool>(&std::get<core::Damaged>(read_back).whole);
    ASSERT_NE(whole, nullptr);
    const calico::StoredBytes again = encode(places, *whole, {}, {});
    EXPECT_EQ(again.value, stored.value);
    EXPECT_EQ(again.beside, std::nullopt);
  }
  const Value both = read(key, "{", "{");
  ASSERT_NE(core::damage_of(both), nullptr);
  EXPECT_FALSE(core::is_damaged_beside(both));
  EXPECT_EQ(core::damage_of(read(key, stored.value, stored.beside)), nullptr);
}

TEST_F(BesideRecords, OfABlockTheyAreDamagedAlone) {
  const Key key = core::block_key(block.cidr);
  const calico::StoredBytes stored = encode(places, block, {}, {});
  ASSERT_TRUE(stored.beside);
  const Value read_back = read(key, stored.value, "{");
  ASSERT_TRUE(core::is_damaged_beside(read_back));
  EXPECT_EQ(core::damage_of(read_back)->code, ErrorCode::corrupt);
  EXPECT_THAT(core::damage_of(read_back)->message, HasSubstr("/croft/v1/beside/block/ipv4/10.0.0.8/29"));
  EXPECT_THAT(core::damage_of(read_back)->message, HasSubstr("Calico's own record of block ipv4/10.0.0.8/29 is whole"));
  const Value newer = read(key, stored.value, "{\"v\":2,\"x\":1}");
  ASSERT_TRUE(core::is_damaged_beside(newer));
  EXPECT_EQ(core::damage_of(newer)->code, ErrorCode::newer_version);
  // A block that contradicts itself is damaged, whatever is beside it.
  core::Block deleted = block;
  deleted.deleted = true;
  deleted.unallocated.take(net::Ordinal(0));
  const Value both = read(key, encode(places, deleted, {}, {}).value, "{");
  ASSERT_NE(core::damage_of(both), nullptr);
  EXPECT_FALSE(core::is_damaged_beside(both));
  EXPECT_EQ(read(key, stored.value, stored.beside), Value(block));
}

}  // namespace
}  // namespace croft::store::etcd
