// A block that is larger than etcd takes in one request.

#include "store/etcd/etcd_store.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "os/clock.h"
#include "register/block.h"
#include "store/conformance/conformance.h"
#include "store/etcd/etcd_fixture.h"
#include "store/etcd/store_parts.h"

namespace croft::store {
namespace {

/// Each test begins with an empty etcd.
class EtcdBackend final : public ConformanceBackend {
 public:
  EtcdBackend() { etcd::clear(*connect(), soon()); }
  [[nodiscard]] std::unique_ptr<Store> open() override {
    return make_etcd_store(connect(), clock_, random_, etcd::make_kubernetes_registry({}).value());
  }
  void damage(const Key& key) override {
    const auto registry = etcd::make_kubernetes_registry({}).value();
    const auto done = connect()->txn(etcd::put_txn(etcd::Places(registry.get()).place_of(key).value(), "{"), soon());
    EXPECT_TRUE(done) << done.error().message;
  }
  [[nodiscard]] bool writes(Kind kind) const override {
    return kind != Kind::service_cidr && kind != Kind::foreign_service;
  }

 private:
  [[nodiscard]] std::unique_ptr<etcd::Client> connect() {
    return etcd::client_of({etcd::shared_etcd().url()}, clock_, random_);
  }
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds{10}); }

  os::SystemClock clock_;
  os::SystemRandom random_;
};

INSTANTIATE_TEST_SUITE_P(Etcd, StoreConformance,
                         testing::Values(BackendCase{"etcd", [] { return std::make_unique<EtcdBackend>(); }}));

}  // namespace

namespace {

using core::Attribute;
using core::Block;
using testing::HasSubstr;

/// As core::plan_assign makes them.
Attribute holder(std::uint32_t number, std::size_t pod_bytes) {
  Attribute attribute;
  attribute.handle_id = "k8s-pod-network." + std::string(60, 'c') + std::to_string(number);
  attribute.secondary = std::map<std::string, std::string>{{"ifname", "eth0"},
                                                           {"namespace", "default"},
                                                           {"node", "node-a"},
                                                           {"pod", std::string(pod_bytes, 'p')},
                                                           {"pod-uid", "8f6f1c1e-0000-0000-0000-000000000000"},
                                                           {"timestamp", "2026-01-15 10:00:00.123456789 +0000 UTC"}};
  return attribute;
}

Block filled(const net::Prefix& cidr, std::size_t holders) {
  Block block = core::new_block(cidr, core::AffinityOwner{core::AffinityOwner::Type::host, "node-a"},
                                Instant{WallTime(std::chrono::hours{24 * 365 * 56}), {}, {}}, {});
  for (std::uint32_t i = 0; i < holders; ++i) {
    block.attributes.push_back(holder(i, 253));
    block.allocations[i] = i;
    block.sequence_number_for_allocation[i] = block.sequence_number;
    static_cast<void>(block.unallocated.take(net::Ordinal(i)));
  }
  return block;
}

class LargeBlocks : public testing::Test {
 protected:
  void SetUp() override {
    CROFT_NEEDS_ETCD();
    server_.start();
    store_ = make_etcd_store(etcd::client_of({server_.url()}, clock_, random_), clock_, random_);
  }
  [[nodiscard]] Result<Revision> commit(const std::vector<Write>& writes) {
    return store_->commit(writes, {}, Deadline::after(clock_.now(), std::chrono::seconds{20}));
  }
  [[nodiscard]] static Write put(Block block) {
    const core::Key key = core::block_key(block.cidr);
    return {key, std::move(block), Condition::always(), false};
  }

  os::SystemClock clock_;
  os::SystemRandom random_;
  etcd::EtcdProcess server_;
  std::unique_ptr<Store> store_;
};

TEST_F(LargeBlocks, WhatIsLargerThanARequestIsNoFaultOfTheConfiguration) {
  EXPECT_TRUE(commit({put(filled(prefix("10.79.0.0/20"), 1024))}));
  // Refused by etcd, and by its gRPC.
  for (const std::size_t holders : {std::size_t{3200}, std::size_t{4096}}) {
    const auto done = commit({put(filled(prefix("10.79.0.0/20"), holders))});
    ASSERT_FALSE(done);
    EXPECT_EQ(name_of(done.error().code), name_of(ErrorCode::storage_full));
    EXPECT_THAT(done.error().message, HasSubstr("--max-request-bytes"));
  }
}

}  // namespace
}  // namespace croft::store

namespace croft::store::etcd {
namespace {

using core::Key;
using core::Kind;

const std::string kBlocks = "/calico/ipam/v2/assignment/";

TEST(EtcdPlaces, ABlockOfAListing) {
  const Places places(nullptr);
  EXPECT_EQ(places.listed_at(Kind::block, kBlocks + "ipv4/block/10.0.0.64-26"),
            core::block_key(prefix("10.0.0.64/26")));
  EXPECT_EQ(places.listed_at(Kind::block, kBlocks + "ipv6/block/fd00:10:244::1:40-122"),
            core::block_key(prefix("fd00:10:244::1:40/122")));
  EXPECT_EQ(places.listed_at(Kind::block, kBlocks + "ipv6/block/::-0"), core::block_key(prefix("::/0")));
}

/// What a listing of keys alone tells is what reading the records tells, for each record there can be.
TEST(EtcdPlaces, AListingTellsWhatReadingTells) {
  const Places places(nullptr);
  std::vector<Key> keys;
  for (const char* text : {"0.0.0.0/0", "10.0.0.0/8", "10.0.0.64/26", "255.255.255.255/32", "::/0", "fd00::/122",
                           "fd00:1:2:3:4:5:6:7/128", "2001:db8::/48"}) {
    keys.push_back(core::block_key(prefix(text)));
    keys.push_back(core::affinity_key({core::AffinityOwner::Type::host, "a-4.b"}, prefix(text)));
    keys.push_back(core::node_range_key(prefix(text)));
  }
  for (const char* name : {"a", "ipv4-26", "x.y"}) {
    keys.push_back(core::pool_key(name));
    keys.push_back(core::node_key(name));
    keys.push_back(core::handle_key(name));
  }
  keys.push_back(core::service_key({"default", "web"}));
  for (const Key& key : keys) {
    const auto place = places.place_of(key);
    ASSERT_TRUE(place) << key.name;
    EXPECT_EQ(places.listed_at(key.kind, *place), key) << *place;
    EXPECT_EQ(places.record_at(key.kind, *place), key) << *place;
  }
}

/// For a user that may not read it.
TEST(EtcdPlaces, WhatIsCroftsOwnCanBeLeftOut) {
  Places places(nullptr);
  EXPECT_FALSE(places.leaves_out(Kind::pool_set));
  EXPECT_TRUE(places.place_beside(core::pool_key("a")));
  places.leave_out_own();
  for (const Kind kind : {Kind::pool_set, Kind::node_range, Kind::removed_node, Kind::service}) {
    EXPECT_TRUE(places.leaves_out(kind)) << core::name_of(kind);
    EXPECT_TRUE(places.ranges_of({kind, ""})->empty()) << core::name_of(kind);
  }
  for (const Kind kind : {Kind::pool, Kind::block, Kind::affinity, Kind::handle, Kind::node, Kind::ipam_config}) {
    EXPECT_FALSE(places.leaves_out(kind)) << core::name_of(kind);
    EXPECT_FALSE(places.ranges_of({kind, ""})->empty()) << core::name_of(kind);
  }
  EXPECT_FALSE(places.place_beside(core::pool_key("a")));
  EXPECT_FALSE(places.places_beside(Kind::block));
}

TEST(EtcdPlaces, WhatIsNoBlock) {
  const Places places(nullptr);
  for (const char* rest : {"", "ipv4", "ipv4/", "ipv4/block", "ipv4/block/", "ipv4/block/10.0.0.64", "ipv4-26/block/",
                           "ipv5/block/10.0.0.64-26", "ipv4/blocks/10.0.0.64-26", "ipv4/blok/10.0.0.64-26",
                           "ip-v4/block/x", "/block/10.0.0.64-26", "ipv4", "-"}) {
    EXPECT_FALSE(places.listed_at(Kind::block, kBlocks + rest)) << rest;
  }
  EXPECT_FALSE(places.listed_at(Kind::block, ""));
  EXPECT_FALSE(places.listed_at(Kind::block, "/calico/ipam/v2/host/oak/ipv4/block/10.0.0.64-26"));
  EXPECT_FALSE(places.listed_at(Kind::block, "/calico/ipam/v2/assignments/ipv4/block/10.0.0.64-26"));
  // A place of a block is none of another kind.
  EXPECT_FALSE(places.listed_at(Kind::affinity, kBlocks + "ipv4/block/10.0.0.64-26"));
  EXPECT_FALSE(places.listed_at(Kind::pool, kBlocks + "ipv4/block/10.0.0.64-26"));
}

/// A block's CIDR is taken however it is spelled: it has a record of its own, at its own place.
TEST(EtcdPlaces, ABlockInAnotherSpelling) {
  const Places places(nullptr);
  for (const auto& [place, name, cidr] :
       {std::tuple("ipv4/block/10.0.0.65-26", "ipv4/10.0.0.65/26", "10.0.0.64/26"),
        std::tuple("ipv6/block/C001:C0AF::12-120", "ipv6/C001:C0AF::12/120", "c001:c0af::/120"),
        std::tuple("ipv4/block/10.0.0.064-26", "ipv4/10.0.0.064/26", "10.0.0.64/26"),
        std::tuple("ipv4/block/10.0.0.64-026", "ipv4/10.0.0.64/026", "10.0.0.64/26"),
        std::tuple("ipv6/block/fd00:0:0::-122", "ipv6/fd00:0:0::/122", "fd00::/122")}) {
    const auto key = places.record_at(Kind::block, kBlocks + place);
    ASSERT_TRUE(key) << place;
    EXPECT_EQ(*key, (Key{Kind::block, name}));
    EXPECT_EQ(core::block_cidr_of(*key), prefix(cidr));
    EXPECT_EQ(places.place_of(*key).value(), kBlocks + place);
  }
}

/// The list is a hint: a name that no record can have comes out as it is, and reading it says no.
TEST(EtcdPlaces, ANameThatNoRecordCanHave) {
  const Places places(nullptr);
  for (const char* cidr : {"nonsense-26", "10.0.0.64-260", "10.0.0.0x64-26", "10.0.0.64-"}) {
    const std::string place = kBlocks + "ipv4/block/" + cidr;
    EXPECT_TRUE(places.listed_at(Kind::block, place)) << cidr;
    EXPECT_FALSE(places.record_at(Kind::block, place)) << cidr;
  }
  EXPECT_EQ(places.listed_at(Kind::block, kBlocks + "ipv4/block/a-b-26")->name, "ipv4/a-b/26");
}

TEST(EtcdPlaces, OtherKindsAreReadAsTheyAre) {
  const Places places(nullptr);
  EXPECT_EQ(places.listed_at(Kind::affinity, "/calico/ipam/v2/host/oak/ipv4/block/10.0.0.64-26"),
            core::affinity_key({core::AffinityOwner::Type::host, "oak"}, prefix("10.0.0.64/26")));
  EXPECT_FALSE(places.listed_at(Kind::affinity, "/calico/ipam/v2/host/oak"));  // a marker
  EXPECT_EQ(places.listed_at(Kind::service, "/croft/v1/service/default/web"), core::service_key({"default", "web"}));
  EXPECT_FALSE(places.listed_at(Kind::service, "/croft/v1/service/"));
}

using testing::HasSubstr;
using testing::Not;

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
    kv.set_key(places.place_of(key).value());
    kv.set_value(std::move(value));
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
