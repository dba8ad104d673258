#include "register/stored_size.h"

#include <rapidcheck.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {
namespace {

using net::Address;
using testing::HasSubstr;

constexpr std::chrono::seconds kCooldown{600};

std::size_t bytes_of_all_spared(Block block) {
  for (const Spare spare : kSpares) block = without(std::move(block), spare);
  return bytes_of(block, Bound::close);
}

std::string any_text(std::size_t bytes_max) {
  const auto size = *rc::gen::inRange<std::size_t>(0, bytes_max + 1);
  return *rc::gen::container<std::string>(size, rc::gen::arbitrary<char>());
}

/// Held by handles with attributes of any length, some shared by several addresses; a few cool already.
Block any_block() {
  const Instant before{WallTime(std::chrono::hours{1}), {}, BootId{{7}}};
  Block block = new_block(prefix("10.79.0.0/28"), kNode, before, {});
  Attribute holder;
  while (*rc::gen::inRange(0, 16) > 0) {
    const bool is_another = *rc::gen::inRange(0, 3) > 0 || !holder.handle_id;
    if (is_another) {
      holder.handle_id = any_text(80);
      holder.secondary = std::map<std::string, std::string>{{"pod", any_text(300)}, {any_text(20), any_text(60)}};
    }
    auto taken = take_next(block, holder, [](const Address&) { return false; });
    if (!taken) break;
    block = std::move(taken->block);
    if (*rc::gen::inRange(0, 4) > 0) continue;
    const net::Ordinal ordinal = *net::ordinal_of(block.cidr, taken->address);
    block = release(std::move(block), std::vector{ordinal}, {kCooldown}, before);
  }
  return block;
}

TEST(StoredSize, NoReleaseNeedsMoreThanWhatIsHeld) {
  const bool ok = rc::check("bytes_needed does not grow, and is enough without spare parts", [] {
    Block block = any_block();
    Instant now{WallTime(std::chrono::hours{2}), std::chrono::hours{1}, BootId{{8}}};
    for (;;) {
      const std::size_t needed = bytes_needed(block, Bound::close);
      RC_ASSERT(needed <= bytes_needed(block, Bound::quick));
      RC_ASSERT(bytes_of(block, Bound::close) <= bytes_of(block, Bound::quick));
      RC_ASSERT(bytes_of_all_spared(block) <= needed);
      RC_ASSERT(bytes_of(fitted(block, needed), Bound::close) <= needed);
      RC_ASSERT(fitted(block, bytes_of(block, Bound::close)) == block);
      std::vector<net::Ordinal> held;
      for (std::uint32_t i = 0; i < block.allocations.size(); ++i) {
        if (state_of(block, net::Ordinal(i)) == AddressState::held) held.emplace_back(i);
      }
      if (held.empty()) break;
      const auto count = *rc::gen::inRange<std::size_t>(1, held.size() + 1);
      now.wall += std::chrono::seconds{1};
      block = with_clock_marks(release(std::move(block), std::span(held).first(count), {kCooldown}, now), now);
      RC_ASSERT(bytes_needed(block, Bound::close) <= needed);
    }
  });
  EXPECT_TRUE(ok);
}

TEST(StoredSize, TheLargestBlockFitsIntoEtcdHoweverItWasHeld) {
  Block block = new_block(prefix("10.79.0.0/20"), kNode, {}, {});
  Attribute holder;
  holder.handle_id = "h";
  std::vector<net::Ordinal> all;
  for (std::uint32_t i = 0; i < 4096; ++i) all.emplace_back(i);
  for (const net::Ordinal ordinal : all) {
    block.allocations[ordinal.value] = 0;
    static_cast<void>(block.unallocated.take(ordinal));
  }
  block.attributes = {holder};
  EXPECT_LE(bytes_needed(block, Bound::close), std::size_t{1280} << 10);
}

/// A store that takes little at once, with a pool of each family. Every commit is measured.
class SmallStore : public testing::Test {
 protected:
  SmallStore() {
    add_pool("four", "10.79.0.0/24", 28);
    add_pool("six", "fd00::/120", 124);
    reg_.commit_bytes_max = kBytesMax;
  }
  void add_pool(const char* name, const char* cidr, int block_length) {
    Pool pool;
    pool.name = name;
    pool.cidr = prefix(cidr);
    pool.block_length = block_length;
    pool.cooldown = kCooldown;
    reg_.put(pool_key(name), pool);
  }

  [[nodiscard]] static AssignRequest request(const std::string& container, std::size_t name_bytes = 900) {
    AssignRequest wanted;
    wanted.owner = {"net", container, "eth0"};
    wanted.node = kNode;
    wanted.pod = {std::string(name_bytes, 'p'), "default", ""};
    return wanted;
  }

  template <class Answer>
  Answer apply(Plan<Answer> plan) {
    std::size_t bytes = 0;
    for (const PlannedWrite& write : plan.writes) {
      if (write.value && write.key.kind == Kind::block) bytes += bytes_of(std::get<Block>(*write.value), Bound::close);
    }
    EXPECT_LE(bytes, reg_.commit_bytes_max);
    reg_.apply(plan.writes);
    ++commits_;
    return std::move(plan.answer);
  }

  /// As ipam/use/assign.h does.
  AssignAnswer assign(const AssignRequest& wanted) {
    for (;;) {
      auto plan = reg_.plan<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, wanted, now_); });
      AssignAnswer answer = apply(std::move(plan).value());
      const auto* assigned = std::get_if<Assigned>(&answer);
      if (assigned == nullptr || !assigned->unfinished) return answer;
    }
  }
  /// As ipam/use/release.h does; how many addresses that were.
  std::size_t remove(const std::string& container) {
    std::size_t count = 0;
    std::string after;
    do {
      auto plan = reg_.plan<Released>([&](const Snapshot& s) {
        return plan_release_owner(s, {"net", container, "eth0"}, now_, after);
      });
      const Released released = apply(std::move(plan).value());
      count += released.addresses.size();
      after = released.up_to;
    } while (!after.empty());
    return count;
  }
  [[nodiscard]] const Block* block(const std::string& cidr) const { return reg_.get(block_key(prefix(cidr))); }
  /// The blocks there are.
  [[nodiscard]] std::size_t blocks() const {
    return static_cast<std::size_t>(std::count_if(reg_.records().begin(), reg_.records().end(),
                                                  [](const auto& r) { return r.first.kind == Kind::block; }));
  }

  static constexpr std::size_t kBytesMax = 6000;
  Instant now_ = ManualClock().now();
  TestRegister reg_;
  int commits_ = 0;
};

TEST_F(SmallStore, ABlockWithoutRoomForOneMoreHolderIsPassedOver) {
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(std::holds_alternative<Assigned>(assign(request("c" + std::to_string(i)))));
  }
  EXPECT_EQ(blocks(), 2U) << "4 of 16 addresses are as much as one block can hold";
  // Of a holder with less to say the first block takes one more.
  const auto small = assign(request("small", 10));
  ASSERT_TRUE(std::holds_alternative<Assigned>(small));
  EXPECT_EQ(blocks(), 2U);
}

TEST_F(SmallStore, WhenEveryBlockIsTooLargeThatIsTheReason) {
  std::set<Address> given;
  for (int i = 0;; ++i) {
    const auto answer = assign(request("c" + std::to_string(i)));
    if (const auto* refusal = std::get_if<Refusal>(&answer)) {
      EXPECT_EQ(refusal->code, ErrorCode::exhausted);
      ASSERT_EQ(refusal->considered.size(), 1U);
      EXPECT_THAT(refusal->considered.front().reason, HasSubstr("the store takes 6000 bytes"));
      EXPECT_THAT(refusal->considered.front().reason, HasSubstr("smaller blocks"));
      break;
    }
    EXPECT_TRUE(given.insert(std::get<Assigned>(answer).addresses.front().address).second);
  }
  EXPECT_EQ(blocks(), 16U);
  EXPECT_GE(given.size(), 64U);
  for (std::size_t i = 0; i < given.size(); ++i) EXPECT_EQ(remove("c" + std::to_string(i)), 1U);
}

TEST_F(SmallStore, AHolderForWhomNoBlockHasRoomCostsNoSearch) {
  const auto answer = assign(request("c", 5000));
  const auto* refusal = std::get_if<Refusal>(&answer);
  ASSERT_NE(refusal, nullptr);
  EXPECT_THAT(refusal->considered.front().reason, HasSubstr("the store takes 6000 bytes"));
  EXPECT_LE(reg_.rounds, 4);
  EXPECT_EQ(blocks(), 0U);
}

TEST_F(SmallStore, AnAddressAskedForInABlockThatIsTooLargeIsRefused) {
  for (int i = 0; i < 4; ++i) assign(request("c" + std::to_string(i)));
  const Block* first = nullptr;
  for (const auto& [key, value] : reg_.records()) {
    if (key.kind == Kind::block) first = std::get_if<Block>(&value);
  }
  AssignRequest wanted = request("d");
  wanted.addresses = {net::address_at(first->cidr, net::Ordinal(15))};
  const auto answer = assign(wanted);
  const auto* refusal = std::get_if<Refusal>(&answer);
  ASSERT_NE(refusal, nullptr);
  EXPECT_EQ(refusal->code, ErrorCode::exhausted);
  EXPECT_THAT(refusal->considered.front().reason, HasSubstr("the store takes 6000 bytes"));
}

TEST_F(SmallStore, TwoBlocksThatDoNotFitIntoOneCommitTakeTwo) {
  for (int i = 0; i < 3; ++i) {
    assign(request("a" + std::to_string(i)));
    AssignRequest six = request("b" + std::to_string(i));
    six.count.v4 = 0;
    six.count.v6 = 1;
    assign(six);
  }
  ASSERT_EQ(blocks(), 2U);
  AssignRequest both = request("both");
  both.count.v6 = 1;
  commits_ = 0;
  const auto answer = assign(both);
  ASSERT_TRUE(std::holds_alternative<Assigned>(answer));
  EXPECT_EQ(std::get<Assigned>(answer).addresses.size(), 2U);
  EXPECT_EQ(commits_, 2);
  EXPECT_EQ(blocks(), 2U);
  commits_ = 0;
  EXPECT_EQ(remove("both"), 2U);
  EXPECT_EQ(commits_, 2);
}

TEST_F(SmallStore, WhatCoolsLosesItsSparePartsOnlyWhereThereIsNoRoom) {
  for (int i = 0; i < 4; ++i) assign(request("c" + std::to_string(i)));
  for (const auto& [key, value] : reg_.records()) {
    if (key.kind == Kind::block) reg_.commit_bytes_max = bytes_of(std::get<Block>(value), Bound::close) + 50;
  }
  const auto cooling_texts = [&] {
    std::size_t texts = 0;
    for (const auto& [key, value] : reg_.records()) {
      if (key.kind != Kind::block) continue;
      for (const Attribute& one : std::get<Block>(value).attributes) {
        texts += one.cooling ? one.cooling->previous_secondary.size() : 0;
      }
    }
    return texts;
  };
  EXPECT_EQ(remove("c0"), 1U);
  EXPECT_EQ(cooling_texts(), 0U) << "the block is full to the brim";
  EXPECT_EQ(remove("c1"), 1U);
  EXPECT_GT(cooling_texts(), 0U) << "there is room now";
}

TEST_F(SmallStore, WhateverIsAddedCanBeRemoved) {
  const bool ok = rc::check("ADD and DEL in any order, by several machines", [this] {
    TestRegister fresh;
    for (const char* pool : {"four", "six"}) fresh.put(pool_key(pool), *reg_.get(pool_key(pool)));
    fresh.commit_bytes_max = kBytesMax;
    reg_ = fresh;
    std::set<std::string> there;
    for (int i = 0; i < 30; ++i) {
      now_.boot = BootId{{static_cast<std::uint8_t>(*rc::gen::inRange(1, 6))}};
      now_.wall += std::chrono::seconds{1};
      now_.since_boot += std::chrono::seconds{1};
      const std::string name = "c" + std::to_string(*rc::gen::inRange(0, 25));
      if (*rc::gen::inRange(0, 5) > 1) {
        AssignRequest wanted = request(name);
        wanted.pod.name = any_text(250);
        wanted.pod.namespace_name = std::string(*rc::gen::inRange<std::size_t>(0, 900), 'n');
        wanted.count.v4 = *rc::gen::inRange(0U, 3U);
        wanted.count.v6 = wanted.count.v4 == 0 ? 1 : *rc::gen::inRange(0U, 3U);
        const auto answer = assign(wanted);
        if (const auto* refusal = std::get_if<Refusal>(&answer)) RC_ASSERT(refusal->code == ErrorCode::exhausted);
        there.insert(name);
      } else {
        static_cast<void>(remove(name));
        RC_ASSERT(reg_.get(handle_key("net." + name)) == nullptr);
        there.erase(name);
      }
      RC_ASSERT(!HasFailure());
    }
    for (const std::string& name : there) static_cast<void>(remove(name));
    for (const auto& [key, value] : reg_.records()) RC_ASSERT(key.kind != Kind::handle);
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace croft::core
