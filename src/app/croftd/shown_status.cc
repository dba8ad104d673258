#include "app/croftd/shown_status.h"

#include <algorithm>
#include <utility>

#include "app/croftd/log_format.h"
#include "core/audit/pool_status.h"
#include "engine/inspect.h"
#include "engine/node_range.h"

namespace croft::app {
namespace {

/// Of the time, the part that rounds may take.
constexpr int kPart = 20;

}  // namespace

void ShownStatus::show() {
  const auto begin = context_.clock.now().since_boot;
  note("pools", pools_told_, show_pools());
  if (with_node_ranges_) note("node ranges", ranges_told_, show_node_ranges());
  const auto now = context_.clock.now().since_boot;
  due_ = now + std::max(interval_, (now - begin) * kPart);
}

Result<void> ShownStatus::show_pools() {
  TRY(auto pools, engine::fill_of_pools(context_));
  TRY(const auto shown, board_->show(core::status_of_pools(std::move(pools))));
  for (const std::string& name : shown.deleted) log_.info("croftpools {} shows no pool: deleted", one_line(name));
  if (shown.left > 0) {
    log_.info("status of pools: {} made, {} written, {} wait for the next round", shown.made, shown.written,
              shown.left);
  }
  return {};
}

Result<void> ShownStatus::show_node_ranges() {
  TRY(const core::NodeRangesSeen seen, engine::look_at_node_ranges(context_));
  if (!seen.set) return {};
  TRY_VOID(board_->show(core::status_of_node_ranges(seen)));
  return {};
}

void ShownStatus::note(const char* what, std::string& told, const Result<void>& done) {
  const std::string text = done ? std::string() : done.error().message;
  if (text == told) return;
  if (!text.empty()) log_.warn("status of {}: {}", what, one_line(text));
  if (text.empty()) log_.info("status of {} is shown again", what);
  told = text;
}

}  // namespace croft::app
