#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "store/test_records.h"

namespace croft::e2e {

/// A sequence of commits in which number `i` decides all content: the same for the client that makes them and for the
/// checker that must find the state after some number of them, and no other.

inline constexpr std::uint32_t kBlocks = 6;

/// How many addresses of its block are held after commit `i`: up, then down again.
[[nodiscard]] inline std::uint32_t held_after(std::uint64_t i) {
  const auto round = static_cast<std::uint32_t>(i / kBlocks % 120);
  return round <= 60 ? 1 + round : 121 - round;
}

/// Commit `i`, from 1 on: one block, the handle of this round, the handle of an earlier round gone, and the number.
[[nodiscard]] inline std::vector<store::Write> commit_number(std::uint64_t i) {
  using store::Condition;
  const auto block_index = static_cast<std::uint32_t>(i % kBlocks);
  core::Block block = store::sample_block(block_index, held_after(i));
  block.sequence_number.value += i;
  const core::Handle handle = store::sample_handle(i, block_index);
  std::vector<store::Write> writes;
  writes.push_back({core::block_key(block.cidr), block, Condition::always()});
  writes.push_back({core::handle_key(handle.id), handle, Condition::always()});
  writes.push_back({core::pool_set_key(), core::PoolSet{i}, Condition::always()});
  constexpr std::uint64_t kHandlesKept = 20;
  if (i > kHandlesKept) {
    writes.push_back({core::handle_key(store::sample_handle_id(i - kHandlesKept)), std::nullopt, Condition::always()});
  }
  return writes;
}

/// All records after the first `count` commits.
[[nodiscard]] inline std::map<store::Key, store::Value> state_after(std::uint64_t count) {
  std::map<store::Key, store::Value> state;
  constexpr std::uint64_t kEnough = 200;  // commits before these left nothing that the later ones don't replace
  for (std::uint64_t i = count > kEnough ? count - kEnough : 1; i <= count; ++i) {
    for (const store::Write& write : commit_number(i)) {
      if (write.value) {
        state.insert_or_assign(write.key, *write.value);
      } else {
        state.erase(write.key);
      }
    }
  }
  return state;
}

}  // namespace croft::e2e
