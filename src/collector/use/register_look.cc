#include "collector/use/register_look.h"

#include <optional>
#include <set>
#include <string>
#include <utility>

#include "ipam/decide/draft.h"
#include "ipam/use/each_record.h"

namespace croft::engine {
namespace {

using core::Kind;

/// A block of 256 addresses takes a quarter of a megabyte in memory.
constexpr std::size_t kBlocksPage = 50;
/// Names so many corrupt blocks; the others are left alone all the same.
constexpr std::size_t kCorruptNamedMax = 100;

/// The records of removed nodes that have come to their end. A block that can't be read may hold what is meant.
std::vector<core::RemovedNode> spent_of(std::vector<core::RemovedNode> removals,
                                        const core::collect::RegisterView& view) {
  if (removals.empty() || view.is_partial()) return {};
  std::set<std::string> needed;
  for (const auto& row : view.held()) {
    if (view.is_of_removed_node(row)) needed.insert(view.nodes()[row.node]);
  }
  std::erase_if(removals, [&](const core::RemovedNode& removed) { return needed.contains(removed.node); });
  return removals;
}

}  // namespace

Result<RegisterLook> look_at_register(const Context& context, bool may_lack) {
  Loader loader(context.store, deadline_of_use_case(context));
  std::optional<core::PoolTable> pools;
  bool is_config_damaged = false;
  TRY_VOID(read_for(context.clock, loader, [&](core::Reader& reader) {
    pools.emplace(reader);
    is_config_damaged = reader.damage(core::ipam_config_key()) != nullptr;
  }));

  RegisterLook look;
  if (!pools->config().auto_allocate_blocks || is_config_damaged) look.view.set_claimed_by_hand();
  const Instant now = context.clock.now();
  const auto take_block = [&](const store::Record& record) {
    if (!record.value) {
      look.view.set_partial();
      if (look.alarms.size() == kCorruptNamedMax) return;
      look.alarms.push_back({core::collect::Alarm::Kind::block_corrupt, record.value.error().message});
      return;
    }
    const auto& block = std::get<core::Block>(*record.value);
    if (!block.deleted) look.view.add_block(block, pools->cooldowns_of(block.cidr), now);
  };
  TRY_VOID(for_each_in_any_order(context, {Kind::block, "", "", kBlocksPage}, take_block, OnDamage::visit));
  const auto pass_over = [&](Kind kind, const Result<void>& read) -> Result<void> {
    if (read || !may_lack || read.error().code != ErrorCode::permission_denied) return read;
    look.not_allowed.emplace(kind, read.error());
    return {};
  };
  // A damaged claim is nobody's to judge: it stays, and its block, which is judged by itself.
  TRY_VOID(pass_over(Kind::affinity, for_each_in_any_order(
                                         context, {Kind::affinity, "", "", store::kListLimitMax},
                                         [&](const store::Record& record) {
                                           const auto& affinity = std::get<core::Affinity>(*record.value);
                                           look.view.add_affinity(affinity);
                                         },
                                         OnDamage::skip)));
  // A damaged note of a removal removes nothing.
  std::vector<core::RemovedNode> removals;
  TRY_VOID(pass_over(Kind::removed_node, for_each_record(
                                             context, {Kind::removed_node, ""},
                                             [&](const store::Record& record) {
                                               const auto& removed = std::get<core::RemovedNode>(*record.value);
                                               look.view.add_removed(removed);
                                               removals.push_back(removed);
                                             },
                                             OnDamage::skip)));
  look.spent = spent_of(std::move(removals), look.view);
  TRY_VOID(pass_over(
      Kind::handle, for_each_in_any_order(
                        context, {Kind::handle, "", "", store::kListLimitMax, true},
                        [&](const store::Record& record) { look.view.add_handle(record.key.name); }, OnDamage::visit)));
  return look;
}

}  // namespace croft::engine
