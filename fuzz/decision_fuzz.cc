// Reads any bytes as a register (pools of any shape, reservations, blocks, cooldowns, marks, switches), machines with
// clocks of their own, and a history of requests on it. Checked after each: nothing crashes; no decision looks at more
// than its bound; every block is sound; no two blocks overlap, whatever a foreign writer makes of the length of a
// pool's blocks; an address has one holder; what was held is lost only by its release; nothing that is reserved is
// handed out unasked; nothing is handed out again before its cooldown has passed in true time, as long as the machines'
// clocks are within an hour of each other.

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/assert.h"
#include "bytes.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/explain.h"
#include "ipam/decide/pool_changes.h"
#include "ipam/decide/release.h"
#include "register/test_register.h"

namespace {

using namespace croft;
using fuzz::Bytes;
using namespace croft::core;
using net::Address;
using net::Family;
using net::Prefix;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr std::size_t kActionsMax = 48;
/// More than any register that fits an input needs; far below the bound of a decision.
constexpr std::uint64_t kStepsMax = 20000;
constexpr std::size_t kMachines = 3;
/// What a claim adds to a block that was nobody's.

/// Few bases, so that what is made overlaps.
Prefix any_prefix(Bytes& in, Family family, int length_min, int length_max) {
  const int length = length_min + static_cast<int>(in.below(static_cast<std::uint32_t>(length_max - length_min + 1)));
  const net::U128 low = in.byte();
  const Address address = family == Family::v4 ? Address::from(family, net::U128(0x0a00'0000) + low)
                                               : Address::from(family, net::U128(0xfd00'0000'0000'0000, 0) + low);
  return Prefix::containing(address, length);
}

class World {
 public:
  explicit World(Bytes& in) : in_(in) {
    const std::uint8_t kind = in_.byte();
    register_.foreign_writers = (kind & 1) != 0;
    register_.knows_claimed = (kind & 2) != 0;
    odd_clocks_ = (kind & 8) != 0;
    damaged_ = (kind & 16) != 0;
    for (std::size_t i = 0; i < kMachines; ++i) {
      boots_[i] = static_cast<std::uint8_t>(i);
      // Within half an hour of the truth, so within an hour of each other.
      off_[i] = seconds(in_.below(3600)) - seconds(1800);
      up_[i] = seconds(in_.below(2000));
    }
    make_pools();
    make_reservations();
    if (in_.byte() % 4 == 0) {
      IpamConfig config;
      config.strict_affinity = (in_.byte() & 1) != 0;
      config.auto_allocate_blocks = (in_.byte() & 3) != 0;
      config.max_blocks_per_host = in_.below(4);
      register_.put(ipam_config_key(), config);
    }
    if (damaged_) damage();
  }

  void act() {
    switch (in_.below(11)) {
      case 0:
      case 1:
      case 2:
        return add();
      case 3:
      case 4:
        return remove();
      case 5:
        return pass(std::chrono::milliseconds(in_.below(65536)) * (1 + in_.byte() % 64));
      case 6:
        return reboot();
      case 7:
        return release_affinity();
      case 8:
        return claim_affinity();
      case 9:
        return change_length();
      default:
        return explain();
    }
  }

  void check() const {
    CROFT_ASSERT(register_.steps <= kStepsMax);
    if (damaged_) return;  // what was damaged from the start stays so
    std::map<Address, std::string> now_held;
    std::vector<Prefix> blocks;
    for (const auto& [key, value] : register_.records()) {
      const auto* block = std::get_if<Block>(&value);
      if (block == nullptr) continue;
      CROFT_ASSERT(check_block(*block).has_value());
      for (const Prefix& other : blocks) CROFT_ASSERT(!other.overlaps(block->cidr));
      blocks.push_back(block->cidr);
      for (std::uint32_t i = 0; i < block->allocations.size(); ++i) {
        if (state_of(*block, net::Ordinal(i)) != AddressState::held) continue;
        const bool is_only = now_held
                                 .emplace(net::address_at(block->cidr, net::Ordinal(i)),
                                          *attribute_of(*block, net::Ordinal(i))->handle_id)
                                 .second;
        CROFT_ASSERT(is_only);
      }
    }
    CROFT_ASSERT(now_held == held_);
  }

 private:
  void make_pools() {
    const std::uint32_t count = 1 + in_.below(3);
    for (std::uint32_t i = 0; i < count; ++i) {
      Pool pool;
      pool.name = "p" + std::to_string(i);
      const Family family = (in_.byte() & 1) != 0 ? Family::v6 : Family::v4;
      pool.cidr = any_prefix(in_, family, 0, net::bit_length(family));
      const int shortest = std::max(pool.cidr.length(), net::bit_length(family) - 6);
      pool.block_length =
          shortest + static_cast<int>(in_.below(static_cast<std::uint32_t>(net::bit_length(family) - shortest + 1)));
      pool.cooldown = seconds(in_.below(static_cast<std::uint32_t>(kCooldownMax.count()) + 1));
      pool.disabled = in_.byte() % 16 == 0;
      bool is_apart = true;
      for (const auto& [key, value] : register_.records()) {
        const auto* other = std::get_if<Pool>(&value);
        is_apart = is_apart && (other == nullptr || !other->cidr.overlaps(pool.cidr));
      }
      if (is_apart) register_.put(pool_key(pool.name), pool);
    }
  }

  void make_reservations() {
    Reservation reservation{"r", {}, {}};
    for (std::uint32_t count = in_.below(12); count > 0; --count) {
      const Family family = (in_.byte() & 1) != 0 ? Family::v6 : Family::v4;
      reservation.cidrs.push_back(any_prefix(in_, family, net::bit_length(family) / 2, net::bit_length(family)));
    }
    register_.put(reservation_key("r"), reservation);
  }

  /// Numbers that a record may have and a program never writes.
  void damage() {
    for (std::uint32_t count = in_.below(8); count > 0; --count) {
      const Family family = (in_.byte() & 1) != 0 ? Family::v6 : Family::v4;
      const Prefix cidr = any_prefix(in_, family, net::bit_length(family) - 6, net::bit_length(family));
      switch (in_.below(4)) {
        case 0:
          register_.put(high_water_mark_key(cidr), HighWaterMark{SequenceNumber(in_.wide() % kHighWaterMarkMax)});
          break;
        case 1:
          register_.put(vacancy_key(node(in_.below(2)), cidr), Vacancy{});
          break;
        case 2: {
          Block block = new_block(cidr, node(in_.below(2)), now(0), {});
          block.sequence_number = SequenceNumber(in_.wide());
          if (in_.byte() % 2 == 0) block.allocations.resize(in_.below(70));
          if (in_.byte() % 2 == 0) block.attributes.resize(in_.below(4));
          register_.put(block_key(cidr), block);
          break;
        }
        default: {
          Block block = new_block(cidr, node(in_.below(2)), now(0), {});
          Attribute attribute;
          attribute.cooling.emplace();
          attribute.cooling->released_at.wall = WallTime(nanoseconds(static_cast<std::int64_t>(in_.wide())));
          attribute.cooling->released_at.since_boot = nanoseconds(static_cast<std::int64_t>(in_.wide()));
          attribute.cooling->released_at.boot = now(0).boot;
          attribute.cooling->in_calicos_way = (in_.byte() & 1) != 0;
          if (auto taken = take_next(block, attribute, [](const Address&) { return false; })) block = taken->block;
          register_.put(block_key(cidr), block);
        }
      }
    }
  }

  static AffinityOwner node(std::uint32_t i) { return {AffinityOwner::Type::host, "node-" + std::to_string(i)}; }

  [[nodiscard]] Instant now(std::size_t machine) {
    Instant instant;
    instant.wall = WallTime(seconds(1'768'471'200)) + truth_ + off_[machine];
    instant.since_boot = up_[machine];
    instant.boot.bytes = {1, boots_[machine]};
    if (!odd_clocks_) return instant;
    // A clock of any value, and no boot id at all.
    if (in_.byte() % 4 == 0) instant.wall = WallTime(nanoseconds(static_cast<std::int64_t>(in_.wide())));
    if (in_.byte() % 8 == 0) instant.boot = {};
    return instant;
  }

  Owner owner() { return {"net", "c" + std::to_string(in_.below(10)), "eth0"}; }

  AssignRequest request(std::size_t machine) {
    AssignRequest wanted;
    wanted.owner = owner();
    wanted.node = node(static_cast<std::uint32_t>(machine));
    wanted.count.v4 = in_.below(3);
    wanted.count.v6 = in_.below(3);
    if (in_.byte() % 4 == 0) wanted.addresses.push_back(any_prefix(in_, Family::v4, 32, 32).first());
    if (in_.byte() % 8 == 0) wanted.addresses.push_back(any_prefix(in_, Family::v6, 128, 128).first());
    return wanted;
  }

  void add() {
    const std::size_t machine = in_.below(kMachines);
    const AssignRequest wanted = request(machine);
    const Instant when = now(machine);
    const auto answer = register_.decide<AssignAnswer>([&](const Snapshot& s) { return plan_assign(s, wanted, when); });
    if (!answer) return;
    const auto* assigned = std::get_if<Assigned>(&*answer);
    if (assigned == nullptr) return;
    for (const AssignedAddress& one : assigned->addresses) note(one, wanted);
  }

  void note(const AssignedAddress& one, const AssignRequest& wanted) {
    const std::string handle = handle_of(wanted.owner);
    const auto known = held_.find(one.address);
    if (one.held_before) {
      CROFT_ASSERT(damaged_ || (known != held_.end() && known->second == handle));
      return;
    }
    CROFT_ASSERT(known == held_.end());
    held_.emplace(one.address, handle);
    const auto* reservation = register_.get(reservation_key("r"));
    for (const Prefix& reserved : reservation->cidrs) CROFT_ASSERT(!reserved.contains(one.address));
    const auto rested = released_.find(one.address);
    const auto* pool = register_.get(pool_key(one.pool));
    if (rested == released_.end() || odd_clocks_) return;
    CROFT_ASSERT(pool != nullptr && truth_ - rested->second >= pool->cooldown);
  }

  void remove() {
    const Owner whose = owner();
    const Instant when = now(in_.below(kMachines));
    const auto done = register_.decide<Released>([&](const Snapshot& s) { return plan_release_owner(s, whose, when); });
    if (!done) return;
    for (const Address& address : done->addresses) {
      const auto known = held_.find(address);
      CROFT_ASSERT(known != held_.end() && known->second == handle_of(whose));
      held_.erase(known);
      released_[address] = truth_;
    }
  }

  void pass(nanoseconds span) {
    truth_ += span;
    for (nanoseconds& up : up_) up += span;
  }

  void reboot() {
    const std::size_t machine = in_.below(kMachines);
    up_[machine] = {};
    boots_[machine] = static_cast<std::uint8_t>(boots_[machine] + kMachines);
    off_[machine] = seconds(in_.below(3600)) - seconds(1800);
    if (boots_[machine] < kMachines) truth_ += std::chrono::hours(24);  // boot ids begin anew: nothing cools from then
  }

  void release_affinity() {
    std::vector<Prefix> blocks;
    for (const auto& [key, value] : register_.records()) {
      if (const auto* block = std::get_if<Block>(&value)) blocks.push_back(block->cidr);
    }
    if (blocks.empty()) return;
    const AffinityRelease release{node(in_.below(kMachines)),
                                  blocks[in_.below(static_cast<std::uint32_t>(blocks.size()))],
                                  (in_.byte() & 1) != 0,
                                  {}};
    const Instant when = now(in_.below(kMachines));
    static_cast<void>(
        register_.decide<AffinityOutcome>([&](const Snapshot& s) { return plan_release_affinity(s, release, when); }));
  }

  void claim_affinity() {
    const std::size_t machine = in_.below(kMachines);
    const Family family = (in_.byte() & 1) != 0 ? Family::v6 : Family::v4;
    const Prefix cidr = any_prefix(in_, family, net::bit_length(family) - 6, net::bit_length(family));
    const Instant when = now(machine);
    static_cast<void>(register_.decide<ClaimOutcome>([&](const Snapshot& s) {
      return plan_claim_affinity(s, node(static_cast<std::uint32_t>(machine)), cidr, when);
    }));
  }

  /// As a foreign writer does it, over all blocks that are there.
  void change_length() {
    const auto key = pool_key("p" + std::to_string(in_.below(3)));
    const auto* stored = register_.get(key);
    if (stored == nullptr || !register_.foreign_writers) return;
    Pool pool = *stored;
    const int bits = net::bit_length(pool.cidr.family());
    const int shortest = std::max(pool.cidr.length(), bits - 12);
    pool.block_length = shortest + static_cast<int>(in_.below(static_cast<std::uint32_t>(bits - shortest + 1)));
    register_.put(key, pool);
  }

  void explain() {
    const std::size_t machine = in_.below(kMachines);
    const AssignRequest wanted = request(machine);
    const Instant when = now(machine);
    static_cast<void>(register_.plan<Explanation>([&](const Snapshot& s) { return plan_explain(s, wanted, when); }));
  }

  Bytes& in_;
  TestRegister register_;
  bool odd_clocks_ = false, damaged_ = false;
  nanoseconds truth_{};
  std::array<nanoseconds, kMachines> off_{}, up_{};
  std::array<std::uint8_t, kMachines> boots_{};
  std::map<Address, std::string> held_;
  std::map<Address, nanoseconds> released_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Bytes in(data, size);
  World world(in);
  world.check();
  for (std::size_t i = 0; i < kActionsMax && !in.empty(); ++i) {
    world.act();
    world.check();
  }
  return 0;
}
