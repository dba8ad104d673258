// How large a block becomes in etcd, against what core believes (register/stored_size.h).

#include <rapidcheck.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "calico/records.h"
#include "os/clock.h"
#include "os/random.h"
#include "register/block.h"
#include "register/stored_size.h"
#include "store/calico/codec.h"
#include "store/etcd/etcd_fixture.h"
#include "store/etcd/etcd_store.h"

namespace croft::store {
namespace {

using core::Attribute;
using core::Block;
using core::Bound;
using testing::HasSubstr;

std::size_t stored_bytes(const Block& block) {
  const calico::StoredBytes bytes = calico::encode(block, {}, {});
  return bytes.value.size() + (bytes.beside ? bytes.beside->size() : 0);
}

rc::Gen<std::string> texts() {
  return rc::gen::oneOf(rc::gen::container<std::string>(rc::gen::arbitrary<char>()),
                        rc::gen::element<std::string>("\u00fc<&>\"\\\n", "\u2028", "node-a", "", std::string(5, '\x01'),
                                                      std::string(5, '\xff')));
}

std::map<std::string, std::string> any_members() {
  return *rc::gen::container<std::map<std::string, std::string>>(texts(), texts());
}

core::Cooling any_cooling() {
  core::Cooling cooling;
  const auto any_time = [] {
    return std::chrono::nanoseconds{
        *rc::gen::oneOf(rc::gen::arbitrary<std::int64_t>(), rc::gen::just(std::numeric_limits<std::int64_t>::min()))};
  };
  cooling.released_at.wall = WallTime(std::chrono::nanoseconds{*rc::gen::inRange<std::int64_t>(0, 1LL << 62)});
  cooling.released_at.since_boot = any_time();
  cooling.previous_handle = *texts();
  cooling.previous_secondary = any_members();
  cooling.in_calicos_way = *rc::gen::inRange(0, 4) == 0;
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    cooling.seen.push_back({BootId{{static_cast<std::uint8_t>(10 - i)}}, any_time()});
  }
  return cooling;
}

/// Taken in any way; some attributes are those of several addresses.
Block any_block() {
  const bool is_v6 = *rc::gen::arbitrary<bool>();
  const int host_bits = *rc::gen::element(0, 3, 6, 12);
  Block block = core::new_block(is_v6 ? prefix("fd00:1111:2222:3333:4444:5555:6666:0/112").subprefix(0, 128 - host_bits)
                                      : prefix("100.127.112.0/20").subprefix(0, 32 - host_bits),
                                core::AffinityOwner{core::AffinityOwner::Type::virtual_owner, "load-balancer"}, {}, {});
  block.sequence_number = core::SequenceNumber(core::kSequenceMax);
  const int taken = *rc::gen::inRange(0, 40);
  for (int i = 0; i < taken && block.unallocated.free_count() > 0; ++i) {
    // The last ones have the longest numbers.
    const net::Ordinal ordinal(block.unallocated.order().back());
    static_cast<void>(block.unallocated.take(ordinal));
    if (block.attributes.empty() || *rc::gen::inRange(0, 3) > 0) {
      Attribute& attribute = block.attributes.emplace_back();
      if (*rc::gen::arbitrary<bool>()) {
        attribute.cooling = any_cooling();
      } else {
        if (*rc::gen::arbitrary<bool>()) attribute.handle_id = *texts();
        attribute.alternate_owner = any_members();
      }
      attribute.secondary = any_members();
    }
    block.allocations[ordinal.value] = static_cast<std::uint32_t>(block.attributes.size() - 1);
    block.sequence_number_for_allocation[ordinal.value] = block.sequence_number;
  }
  return block;
}

TEST(SizeInEtcd, NoBlockIsLargerThanItsBound) {
  const bool ok = rc::check("what is stored of a block, and beside it", [] {
    const Block block = any_block();
    const std::size_t stored = stored_bytes(block);
    RC_ASSERT(stored <= core::bytes_of(block, Bound::close));
    RC_ASSERT(stored <= core::bytes_of(block, Bound::quick));
    Block spared = block;
    for (const core::Spare spare : core::kSpares) spared = core::without(std::move(spared), spare);
    RC_ASSERT(stored_bytes(spared) <= core::bytes_needed(block, Bound::close));
  });
  EXPECT_TRUE(ok);
}

TEST(SizeInEtcd, WhatCroftDoesNotKnowOfABlockCounts) {
  const net::Prefix cidr = prefix("10.79.0.0/30");
  const std::string much(5000, 'x');
  const std::string json = R"({"cidr":"10.79.0.0/30","affinity":"host:a","allocations":[0,1,null,null],)"
                           R"("unallocated":[2,3],"attributes":[{"handle_id":"a","secondary":{},"new":")" +
                           much + R"("},{"handle_id":"b","secondary":{}}],"deleted":false,"hostAffinity":")" + much +
                           R"(","other":{"a":[")" + much + R"("]}})";
  const auto block = wire::calico::decode_value(core::block_key(cidr), json);
  ASSERT_TRUE(block) << block.error().message;
  const std::size_t stored = stored_bytes(std::get<Block>(*block));
  EXPECT_GT(stored, 15000U);
  EXPECT_LE(stored, core::bytes_of(std::get<Block>(*block), Bound::close));
  EXPECT_LE(stored, core::bytes_needed(std::get<Block>(*block), Bound::close));
}

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

Block filled(const net::Prefix& cidr, std::size_t bytes_max, std::size_t pod_bytes) {
  Block block = core::new_block(cidr, core::AffinityOwner{core::AffinityOwner::Type::host, "node-a"},
                                Instant{WallTime(std::chrono::hours{24 * 365 * 56}), {}, {}}, {});
  std::size_t bytes = core::bytes_of(block, Bound::close);
  for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
    block.attributes.push_back(holder(i, pod_bytes));
    block.allocations[i] = i;
    block.sequence_number_for_allocation[i] = block.sequence_number;
    static_cast<void>(block.unallocated.take(net::Ordinal(i)));
    const std::size_t more = 64 + 500 + pod_bytes;
    bytes += more;
    if (bytes + more <= bytes_max) continue;
    bytes = core::bytes_of(block, Bound::close);
    if (bytes + more > bytes_max) break;
  }
  return block;
}

TEST(SizeInEtcd, TheBoundOfAnOrdinaryBlockIsNotFarAboveIt) {
  const Block block = filled(prefix("10.79.0.0/26"), core::kNoBytesMax, 40);
  ASSERT_EQ(block.attributes.size(), 64U);
  EXPECT_LT(static_cast<double>(core::bytes_of(block, Bound::close)), 1.2 * static_cast<double>(stored_bytes(block)));
}

class LargeBlocks : public testing::Test {
 protected:
  void SetUp() override {
    CROFT_NEEDS_ETCD();
    server_.start();
    etcd::ClientOptions options;
    options.endpoints = {server_.url()};
    auto client = etcd::Client::make(std::move(options), clock_, random_);
    ASSERT_TRUE(client);
    store_ = make_etcd_store(*std::move(client), clock_, random_);
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

TEST_F(LargeBlocks, ACommitOfTheLargestBlockIsTaken) {
  const std::size_t bytes_max = store_->capabilities().commit_bytes_max;
  const Block block = filled(prefix("10.79.0.0/20"), bytes_max, 253);
  EXPECT_LE(core::bytes_of(block, Bound::close), bytes_max);
  EXPECT_GT(core::bytes_of(block, Bound::close), bytes_max - 2000);
  // With as many other records as a release of given addresses has, their names as long as they may be.
  std::vector<Write> writes = {put(block)};
  for (int i = 0; i < 64; ++i) {
    const std::string id = std::string(core::kKeyNameBytesMax - 10, 'h') + std::to_string(i);
    writes.push_back({core::handle_key(id), core::Handle{id, {{"10.79.0.0/20", 1}, {"fd00::/116", 2}}, false, {}},
                      Condition::if_absent(), false});
  }
  const auto done = commit(writes);
  EXPECT_TRUE(done) << done.error().message;
}

TEST_F(LargeBlocks, WhatIsLargerThanARequestIsNoFaultOfTheConfiguration) {
  // Refused by etcd, and by its gRPC.
  for (const std::size_t bytes_max : {std::size_t{1800} << 10, core::kNoBytesMax}) {
    const auto done = commit({put(filled(prefix("10.79.0.0/20"), bytes_max, 253))});
    ASSERT_FALSE(done);
    EXPECT_EQ(name_of(done.error().code), name_of(ErrorCode::storage_full));
    EXPECT_THAT(done.error().message, HasSubstr("--max-request-bytes"));
  }
}

}  // namespace
}  // namespace croft::store
