#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
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
  explicit OverlapWorld(const std::string& cidr, int length, bool knows_claimed = false) {
    reg.foreign_writers = true;
    reg.knows_claimed = knows_claimed;
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
  void del(const std::string& container) {
    const Owner owner{"net", container, "eth0"};
    ASSERT_TRUE(reg.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, owner, clock.now()); }));
  }
  /// A block as another program makes it, for its own use.
  void make_as_another(const net::Prefix& cidr, const std::string& on) {
    reg.put(block_key(cidr), new_block(cidr, node(on), clock.now(), {}));
    reg.put(affinity_key(node(on), cidr), Affinity{node(on), cidr, AffinityState::confirmed, false});
  }
  ManualClock clock;
  TestRegister reg;

 private:
  Pool pool_;
};

}  // namespace croft::core
