#include <algorithm>
#include <map>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/net/echo.h"
#include "store/move/store_move_parts.h"
#include "store/naming.h"

namespace croft::engine {
namespace {

using core::Kind;
using store::Record;

/// Which records of the source a target can have no objects for: by the target's rules for names, or because another
/// has the same name there.
class Unnameable {
 public:
  explicit Unnameable(const MoveContext& context)
      : context_(context), naming_(dynamic_cast<store::Naming*>(&context.to.store)) {}

  [[nodiscard]] Result<void> look_at(const core::Key& key) {
    if (naming_ == nullptr || !target_takes(context_, key.kind)) return {};
    const auto place = naming_->place_of(key, soon(context_));
    if (!place && place.error().code != ErrorCode::invalid_argument) return fail(place.error());
    if (!place) {
      if (refused_.empty()) why_ = place.error().message;
      refused_.add(name_of_record(key.kind, key.name));
      return {};
    }
    // Names come in the order of their bytes, so of those that differ by upper case alone the last is the one without.
    const auto [twin, is_first] =
        has_upper_case(key.name) ? taken_.try_emplace(*place, key.name) : std::pair(taken_.find(*place), false);
    if (is_first || twin == taken_.end()) return {};
    twins_.add(fmt::format("{} beside {}", name_of_record(key.kind, key.name), net::echo(twin->second)));
    return {};
  }

  void tell(std::vector<std::string>& obstacles) const {
    constexpr std::string_view kRemedy =
        "give the node, network or container another name: end the pods that hold addresses under it, and start them "
        "again under the new one";
    if (!refused_.empty()) {
      obstacles.push_back(
          fmt::format("the target can have no objects for {} ({}); {}", refused_.text(), why_, kRemedy));
    }
    if (!twins_.empty()) {
      obstacles.push_back(
          fmt::format("names that differ by upper case alone are one in the target: {}; {}", twins_.text(), kRemedy));
    }
  }

 private:
  [[nodiscard]] static bool has_upper_case(std::string_view name) {
    return std::ranges::any_of(name, [](char c) { return c >= 'A' && c <= 'Z'; });
  }

  const MoveContext& context_;
  store::Naming* const naming_;
  Names refused_, twins_;
  std::string why_;
  std::map<std::string, std::string> taken_;  ///< place -> key with upper case
};

}  // namespace

void OwnRecords::note(Kind kind, const std::string& name, const Record* here, const Record* there, Due::What due) {
  if (there == nullptr || core::audit::may_be_there_before(kind)) return;
  if (here == nullptr) {
    extra_.add(name_of_record(kind, name));
  } else if (due != Due::What::nothing) {
    other_.add(name_of_record(kind, name));
  }
}

std::vector<std::string> OwnRecords::obstacles() const {
  std::vector<std::string> obstacles;
  if (!extra_.empty()) {
    obstacles.push_back(fmt::format(
        "the target has records that the source does not have: {}; a register cannot be moved into another: "
        "empty the target, or name another",
        extra_.text()));
  }
  if (!other_.empty()) {
    obstacles.push_back(
        fmt::format("the target has other records under the same names: {}; delete them there, or make "
                    "them equal",
                    other_.text()));
  }
  return obstacles;
}

Result<std::vector<std::string>> own_records_of_target(const MoveContext& context) {
  OwnRecords own;
  for (const Kind kind : core::audit::kMovedKinds) {
    if (!target_takes(context, kind) || core::audit::may_be_there_before(kind)) continue;
    const auto take = [&](const std::string& name, const Record* here, const Record* there) -> Result<void> {
      if (there != nullptr) own.note(kind, name, here, there, due_of(kind, here, there).what);
      return {};
    };
    TRY_VOID(side_by_side(context, kind, take));
  }
  return own.obstacles();
}

Result<void> look_at_source(const MoveContext& context, const MoveOptions& options, MovePlan& plan) {
  Names damaged, not_allocatable;
  Unnameable unnameable(context);
  for (const Kind kind : core::audit::kMovedKinds) {
    StoreWalk walk(context.from.store, kind, context);
    while (true) {
      TRY(const Record* record, walk.current());
      if (record == nullptr) break;
      if (core::damage_of(record->value) != nullptr) damaged.add(name_of_record(kind, record->key.name));
      const auto* pool = std::get_if<core::Pool>(&record->value);
      if (pool != nullptr && !pool->unallocatable.empty()) not_allocatable.add(name_of_record(kind, record->key.name));
      TRY_VOID(unnameable.look_at(record->key));
      walk.next();
    }
  }
  if (!damaged.empty()) {
    plan.obstacles.push_back(
        fmt::format("the source has records that cannot be read: {}; mend them first "
                    "(docs/runbooks/damaged-records.md)",
                    damaged.text()));
  }
  if (!not_allocatable.empty()) {
    plan.obstacles.push_back(
        fmt::format("nothing may be assigned from {}, which the target could not record: `croft check` tells why, and "
                    "what to do",
                    not_allocatable.text()));
  }
  unnameable.tell(plan.obstacles);
  const bool from_cluster = context.from.store.capabilities().services == core::System::kubernetes;
  for (const Kind kind : core::audit::kStayingKinds) {
    if (kind == Kind::service && from_cluster) continue;  // Kubernetes' own
    Names staying;
    StoreWalk walk(context.from.store, kind, context);
    while (true) {
      TRY(const Record* record, walk.current());
      if (record == nullptr) break;
      walk.next();
      if (kind == Kind::block_beside) {
        // Beside a block it goes with the block.
        TRY(const auto block, context.from.store.get({Kind::block, record->key.name}, soon(context)));
        if (block) continue;
      }
      staying.add(name_of_record(kind, record->key.name));
    }
    if (staying.empty()) continue;
    std::string text = fmt::format("stays in the source: {}", staying.text());
    if (kind == Kind::block_beside)
      text += " (addresses of blocks that are gone rest there; here they could be given out at once)";
    if (options.leave_behind) {
      plan.notes.push_back(std::move(text));
    } else {
      plan.obstacles.push_back(std::move(text) + "; --leave-behind moves the rest without it");
    }
  }
  return {};
}

Result<void> look_at_nodes(const MoveContext& context, MovePlan& plan) {
  if (target_takes(context, Kind::node)) return {};
  Names missing;
  const auto take = [&](const std::string& name, const Record* here, const Record* there) -> Result<void> {
    if (here != nullptr && there == nullptr) missing.add(name);
    return {};
  };
  TRY_VOID(side_by_side(context, Kind::node, take));
  if (!missing.empty()) {
    plan.notes.push_back(
        fmt::format("nodes that the target's cluster does not have: {}; the collector frees there what "
                    "pods of nodes hold that do not exist",
                    missing.text()));
  }
  return {};
}

}  // namespace croft::engine
