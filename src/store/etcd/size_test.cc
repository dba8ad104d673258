// A block that is larger than etcd takes in one request.

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "os/clock.h"
#include "os/random.h"
#include "register/block.h"
#include "store/etcd/etcd_fixture.h"
#include "store/etcd/etcd_store.h"

namespace croft::store {
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
