#include "ipam/use/handle_counts.h"

#include <algorithm>

#include "ipam/decide/draft.h"
#include "ipam/use/commit_once.h"
#include "ipam/use/each_record.h"

namespace croft::engine {
namespace {

std::map<std::string, std::uint32_t> holders_of(const core::Block& block) {
  std::map<std::string, std::uint32_t> result;
  for (const auto& index : block.allocations) {
    if (!index) continue;
    if (const auto& handle_id = block.attributes[*index].handle_id) ++result[*handle_id];
  }
  return result;
}

/// What the block holds of the handle; when that is less than `counted` the block has been written anew. Without block
/// what was counted: somebody may be about to make it.
[[nodiscard]] Result<std::uint32_t> held_surely(const Context& context, const net::Prefix& cidr,
                                                const std::string& handle_id, std::uint32_t counted, Basis& basis,
                                                Deadline deadline) {
  const core::Key key = core::block_key(cidr);
  TRY(const auto record, get_newest(context, key, deadline));
  if (!record) return counted;
  basis.emplace(key, store::Condition::if_revision(record->revision));
  const auto& block = std::get<core::Block>(record->value);
  TRY_VOID(core::check_writable(block));
  const std::uint32_t held = core::count_of_handle(block, handle_id);
  if (held >= counted) return held;
  const store::Write write{key, core::stamped(block), store::Condition::if_revision(record->revision)};
  TRY_VOID(commit_once(context, {&write, 1}, deadline));
  return held;
}

/// One try; what it rests on is noted. Errors: conflict, and those of the store.
[[nodiscard]] Result<void> recount_once(const Context& context, const std::string& handle_id,
                                        const std::vector<net::Prefix>& blocks, Basis& basis, Deadline deadline) {
  const core::Key key = core::handle_key(handle_id);
  TRY(const auto record, get_newest(context, key, deadline));
  if (!record) return {};
  basis.emplace(key, store::Condition::if_revision(record->revision));
  core::Handle handle = std::get<core::Handle>(record->value);
  for (const net::Prefix& cidr : blocks) {
    const auto entry = handle.blocks.find(cidr.to_string());
    if (entry == handle.blocks.end()) continue;
    TRY(const std::uint32_t held, held_surely(context, cidr, handle_id, entry->second, basis, deadline));
    if (held == 0) {
      handle.blocks.erase(entry);
    } else {
      entry->second = held;
    }
  }
  if (handle == std::get<core::Handle>(record->value)) return {};
  const store::Write write{key, handle.blocks.empty() ? std::nullopt : std::optional<core::Value>(std::move(handle)),
                           store::Condition::if_revision(record->revision)};
  TRY_VOID(commit_once(context, {&write, 1}, deadline));
  return {};
}

}  // namespace

std::map<std::string, std::uint32_t> gains(const core::Block* before, const core::Block* after) {
  if (after == nullptr) return {};
  auto result = holders_of(*after);
  if (before == nullptr) return result;
  for (const auto& [handle_id, count] : holders_of(*before)) {
    const auto it = result.find(handle_id);
    if (it == result.end()) continue;
    if (it->second > count) {
      it->second -= count;
    } else {
      result.erase(it);
    }
  }
  return result;
}

std::optional<core::Handle> raised(const HandleChange& change) {
  if (!change.stored && change.gained.empty()) return change.planned;
  core::Handle handle = change.planned ? *change.planned : *change.stored;
  if (change.stored) {
    for (const auto& [block, count] : change.stored->blocks) {
      std::uint32_t& entry = handle.blocks[block];
      entry = std::max(entry, count);
    }
  }
  for (const auto& [block, count] : change.gained) {
    if (!change.stored) break;  // it comes into being, which is change enough
    const auto before = change.stored->blocks.find(block);
    if (before != change.stored->blocks.end() && handle.blocks[block] == before->second) handle.blocks[block] += count;
  }
  return handle;
}

void recount(const Context& context, const std::string& handle_id, const std::vector<net::Prefix>& blocks,
             Deadline deadline) {
  Conflicts conflicts(context);
  for (int tries = 0; tries < kTriesMax; ++tries) {
    Basis basis;
    const auto done = recount_once(context, handle_id, blocks, basis, deadline);
    if (done || done.error().code != ErrorCode::conflict) return;
    if (!conflicts.wait(std::move(basis), deadline)) return;
  }
}

}  // namespace croft::engine
