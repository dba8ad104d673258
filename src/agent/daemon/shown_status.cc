#include "agent/daemon/shown_status.h"

#include <algorithm>

#include "agent/daemon/log_format.h"
#include "ipam/audit/pool_status.h"
#include "ipam/use/inspect.h"
#include "noderanges/use/node_range.h"
#include "store/kube/format/own_kinds.h"

namespace croft::app {
namespace {

/// Of the time, the part that rounds may take.
constexpr int kPart = 20;

}  // namespace

void ShownStatus::show() {
  const auto begin = context_.clock.now().since_boot;
  note("pools", pools_told_, show_pools());
  if (with_node_ranges_ && board_ != nullptr) note("node ranges", ranges_told_, show_node_ranges());
  const auto now = context_.clock.now().since_boot;
  due_ = now + std::max(interval_, (now - begin) * kPart);
}

Result<void> ShownStatus::show_pools() {
  TRY(const auto pools, engine::fill_of_pools(context_));
  if (metrics_ != nullptr) metrics_->count(pools);
  Result<store::kube::StatusBoard::Shown> shown;
  if (board_ != nullptr) shown = board_->show(core::status_of_pools(pools));
  tell_of_fullness(pools, shown ? shown->uids : std::map<std::string, std::string>());
  if (!shown) return fail(shown.error());
  for (const std::string& name : shown->deleted) log_.info("croftpools {} shows no pool: deleted", one_line(name));
  return {};
}

Result<void> ShownStatus::show_node_ranges() {
  TRY(const core::NodeRangesSeen seen, engine::look_at_node_ranges(context_));
  if (!seen.set) return {};
  return board_->show(core::status_of_node_ranges(seen));
}

void ShownStatus::tell_of_fullness(const std::vector<core::PoolFill>& pools,
                                   const std::map<std::string, std::string>& uids) {
  std::map<std::string, core::Fullness> now;
  for (const core::PoolFill& fill : pools) {
    const core::Fullness fullness = core::fullness_of(fill);
    if (fullness == core::Fullness::room) continue;
    const std::string& name = fill.pool.name;
    now[name] = fullness;
    const auto before = fullness_.find(name);
    if (before != fullness_.end() && before->second >= fullness) continue;
    const std::string text = core::fullness_text(fill);
    log_.warn("{}", one_line(text));
    if (events_ == nullptr) continue;
    const auto uid = uids.find(name);
    events_->tell(
        {wire::kube::kOwnApiVersion, wire::kube::own_pool_kind().kind, {}, name, uid == uids.end() ? "" : uid->second},
        {store::kube::Events::Type::warning, fullness == core::Fullness::full ? "PoolFull" : "PoolNearlyFull", "",
         text});
  }
  fullness_ = std::move(now);
}

void ShownStatus::note(const char* what, std::string& told, const Result<void>& done) {
  const std::string text = done ? std::string() : done.error().message;
  if (text == told) return;
  if (!text.empty()) log_.warn("status of {}: {}", what, one_line(text));
  if (text.empty()) log_.info("status of {} is shown again", what);
  told = text;
}

}  // namespace croft::app
