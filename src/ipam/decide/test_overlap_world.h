#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"
#include "register/test_values.h"

namespace croft::core {

/// A pool in a store with foreign writers. `length` is that of its blocks for now.
class OverlapWorld {
 public:
  explicit OverlapWorld(const std::string& cidr, int length, bool keys_at_hand = false) {
    reg.foreign_writers = true;
    reg.keys_at_hand = keys_at_hand;
    pool_.name = "a";
    pool_.cidr = prefix(cidr);
    pool_.cooldown = std::chrono::seconds{0};
    set_length(length);
  }
  void set_length(int length) {
    pool_.block_length = length;
    reg.put(pool_key("a"), pool_);
  }
  [[nodiscard]] AssignRequest request(const std::string& container, const std::string& on) {
    AssignRequest request;
    request.owner = {"net", container, "eth0"};
    request.node = node(on);
    request.count.v4 = pool_.cidr.family() == net::Family::v4 ? 1 : 0;
    request.count.v6 = 1 - request.count.v4;
    return request;
  }
  [[nodiscard]] Result<AssignAnswer> decide(const AssignRequest& wanted) {
    return reg.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, wanted, clock.now()); });
  }
  std::optional<net::Address> add(const std::string& container, const std::string& on) {
    const auto answer = decide(request(container, on));
    if (!answer) return {};
    const auto* assigned = std::get_if<Assigned>(&*answer);
    return assigned != nullptr ? std::optional(assigned->addresses.front().address) : std::nullopt;
  }
  [[nodiscard]] std::vector<net::Prefix> blocks() const {
    std::vector<net::Prefix> result;
    for (const auto& [key, value] : reg.records()) {
      if (const auto* block = std::get_if<Block>(&value)) result.push_back(block->cidr);
    }
    return result;
  }
  [[nodiscard]] bool any_overlap() const {
    const auto all = blocks();
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (std::size_t k = 0; k < i; ++k) {
        if (all[i].overlaps(all[k])) return true;
      }
    }
    return false;
  }
  void set_cooldown(std::chrono::seconds cooldown) {
    pool_.cooldown = cooldown;
    reg.put(pool_key("a"), pool_);
  }
  void del(const std::string& container) {
    const Owner owner{"net", container, "eth0"};
    ASSERT_TRUE(reg.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, owner, clock.now()); }));
  }
  /// Four addresses cool, the blocks go, and the pool has another length; which addresses.
  std::set<net::Address> rest_four_and_come_back_with(int length) {
    set_cooldown(std::chrono::seconds{600});
    std::set<net::Address> resting;
    for (int i = 0; i < 4; ++i) resting.insert(add("c" + std::to_string(i), "node-a").value());
    for (int i = 0; i < 4; ++i) del("c" + std::to_string(i));
    lose_blocks();
    set_length(length);
    return resting;
  }
  /// Calico deletes every block, all of which are empty to it. What Croft has beside them stays.
  void lose_blocks() {
    std::vector<PlannedWrite> writes;
    for (const auto& [key, value] : reg.records()) {
      if (key.kind == Kind::affinity) writes.push_back(to_delete(key, Guard::none));
      const auto* block = std::get_if<Block>(&value);
      if (block == nullptr) continue;
      writes.push_back(to_delete(key, Guard::none));
      writes.push_back(to_put(block_beside_key(block->cidr), BlockBeside{without_cooling(*block).second}, Guard::none));
    }
    reg.apply(writes);
  }
  /// The first one in which nothing is held, if any.
  void lose_empty_block() {
    for (const net::Prefix& cidr : blocks()) {
      const Block block = *reg.get(block_key(cidr));
      const auto [seen, beside] = without_cooling(block);
      if (!is_empty(seen)) continue;
      std::vector<PlannedWrite> writes{to_delete(block_key(cidr), Guard::none)};
      if (block.affinity) writes.push_back(to_delete(affinity_key(*block.affinity, cidr), Guard::none));
      const auto key = block_beside_key(cidr);
      writes.push_back(beside.empty() ? to_delete(key, Guard::none) : to_put(key, BlockBeside{beside}, Guard::none));
      reg.apply(writes);
      return;
    }
  }
  /// A cache drops what it concluded of blocks under a claim that it sees (store/cached/cache.h).
  void unsettle_under(const net::Prefix& cidr) {
    for (const net::Prefix& other : blocks()) {
      Block block = *reg.get(block_key(other));
      block.is_settled = block.is_settled && (other == cidr || !other.overlaps(cidr));
      reg.put(block_key(other), std::move(block));
    }
  }
  /// A block as another program makes it, for its own use.
  void make_as_another(const net::Prefix& cidr, const std::string& on) {
    Block block = new_block(cidr, node(on), clock.now(), {});
    // A store shows it with what is recorded beside the one before it.
    const auto* beside = reg.get(block_beside_key(cidr));
    if (beside != nullptr) block = with_cooling(std::move(block), beside->cooling);
    reg.apply({to_delete(block_beside_key(cidr), Guard::none)});
    reg.put(block_key(cidr), std::move(block));
    reg.put(affinity_key(node(on), cidr), Affinity{node(on), cidr, AffinityState::confirmed, false});
    unsettle_under(cidr);
  }
  /// Another program writes a block, or this one has begun anew.
  void touch_as_another(const net::Prefix& cidr) {
    Block block = *reg.get(block_key(cidr));
    block.is_settled = false;
    reg.put(block_key(cidr), stamped(std::move(block)));
  }
  ManualClock clock;
  TestRegister reg;

 private:
  Pool pool_;
};

}  // namespace croft::core
