#include "store/copy/store_copy.h"

#include <map>
#include <optional>
#include <ranges>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"
#include "ipam/use/transact.h"
#include "store/pause.h"
#include "store/store_url.h"

namespace croft::core {
namespace {

using Phase = Pause::Phase;

[[nodiscard]] Error refusal(std::string_view which, const Pause& pause, std::string_view remedy) {
  return make_error(ErrorCode::refused_for_safety, "{} is paused ({}, other store {}): {}", which, name_of(pause.phase),
                    echo(pause.other), remedy);
}

/// A number that never goes back; absent for other records.
[[nodiscard]] std::optional<std::uint64_t> growing(const Value& value) {
  if (const auto* mark = std::get_if<HighWaterMark>(&value)) return mark->sequence_number.value;
  if (const auto* set = std::get_if<PoolSet>(&value)) return set->generation;
  return std::nullopt;
}

[[nodiscard]] const Attribute* attribute_at(const Block& block, std::size_t ordinal) {
  const auto& index = block.allocations[ordinal];
  return index && *index < block.attributes.size() ? &block.attributes[*index] : nullptr;
}

[[nodiscard]] bool say_the_same(const Block& a, const Block& b) {
  if (a.allocations.size() != b.allocations.size()) return false;
  for (std::size_t i = 0; i < a.allocations.size(); ++i) {
    const Attribute* one = attribute_at(a, i);
    const Attribute* other = attribute_at(b, i);
    const bool is_same = one == nullptr || other == nullptr ? one == other : *one == *other;
    if (!is_same) return false;
  }
  return a.cidr == b.cidr && a.affinity == b.affinity && a.unallocated == b.unallocated &&
         a.sequence_number == b.sequence_number &&
         a.sequence_number_for_allocation == b.sequence_number_for_allocation && a.deleted == b.deleted;
}

[[nodiscard]] bool say_the_same(const Value& a, const Value& b) {
  const auto* one = std::get_if<Block>(&a);
  const auto* other = std::get_if<Block>(&b);
  return one != nullptr && other != nullptr ? say_the_same(*one, *other) : without_rest(a) == without_rest(b);
}

/// A value of the source, with what the target's format holds besides.
[[nodiscard]] Value in_place_of(const Value& value, const Value* there) {
  Value placed = without_rest(value);
  std::visit(
      [there](auto& record) {
        using T = std::decay_t<decltype(record)>;
        if constexpr (requires { record.rest; }) {
          if (const auto* old = there != nullptr ? std::get_if<T>(there) : nullptr) record.rest = old->rest;
        }
      },
      placed);
  return placed;
}

}  // namespace

bool can_keep(Kind kind, Kinds lacks) {
  // A Kubernetes API has its nodes itself.
  return !lacks.contains(kind) && (kind != Kind::node || lacks.contains(Kind::name_space));
}

bool may_be_in_empty_target(Kind kind) {
  return kind == Kind::high_water_mark || kind == Kind::pool_set || is_hint(kind);
}

Result<Due> change_due(Kind kind, const Value* in_source, const Value* in_target) {
  if (in_source == nullptr) {
    const bool stays = in_target == nullptr || (may_be_in_empty_target(kind) && !is_hint(kind));
    return Due{stays ? Due::What::nothing : Due::What::remove, std::nullopt};
  }
  if (in_target != nullptr) {
    const auto grown = growing(*in_source);
    if (grown && growing(*in_target) >= grown) return Due{};
    const auto* here = std::get_if<Block>(in_source);
    const auto* there = std::get_if<Block>(in_target);
    if (here != nullptr && there != nullptr && there->sequence_number > here->sequence_number) {
      return fail(ErrorCode::refused_for_safety,
                  "another program wrote block {} of the target, which is being filled: stop it, end the "
                  "pods that have addresses there, and delete that block",
                  there->cidr.to_string());
    }
    if (say_the_same(*in_source, *in_target)) return Due{};
  }
  return Due{Due::What::write, in_place_of(*in_source, in_target)};
}

Result<CopyStep> next_copy_step(const Pauses& pauses) {
  constexpr std::string_view kOther = "finish that copy first, or give it up with `croft store resume`";
  const auto& [source, target, source_names_target, target_names_source] = pauses;
  if (source && source->phase == Phase::filling) return fail(refusal("FROM", *source, "it holds no whole register"));
  if (source && !source_names_target) return fail(refusal("FROM", *source, kOther));
  if (target && !target_names_source) return fail(refusal("TO", *target, kOther));
  if (target && target->phase == Phase::copying) {
    return fail(refusal("TO", *target, "it is being copied the other way; finish that, or give it up"));
  }
  if (!source) return target ? CopyStep::copy : CopyStep::begin;
  if (source->phase == Phase::moved) {
    if (!target) return CopyStep::done;
    return target->phase == Phase::filling ? Result<CopyStep>(CopyStep::open)
                                           : fail(refusal("TO", *target, "both stores name the other as theirs"));
  }
  if (target && target->phase == Phase::filling) return CopyStep::copy;
  return fail(refusal("FROM", *source, "TO is not paused, so somebody else opened it: `croft store resume`"));
}

}  // namespace croft::core

namespace croft::engine {
namespace {

using core::CopyStep;
using core::Due;
using core::Kind;
using core::Pause;
using store::Record;
using store::StoredPause;

constexpr std::size_t kPageRecords = 500;
/// Records of one commit; blocks, which may be large, have one each.
constexpr std::size_t kBatchRecords = 48;
/// Passes until one has nothing to do.
constexpr int kPassesMax = 8;

[[nodiscard]] std::string name_of_record(const core::Key& key) {
  return fmt::format("{} {}", core::name_of(key.kind), echo(key.name));
}

class Copier {
 public:
  Copier(const CopyContext& context, const CopyOptions& options)
      : context_(context),
        options_(options),
        target_{context.to.store, context.clock, context.random, context.time_limit} {}

  [[nodiscard]] Result<CopyReport> run() {
    if (!context_.to.store.capabilities().foreign_writers) {
      return fail(ErrorCode::refused_for_safety,
                  "TO is a store of one machine, and a copy goes into an etcd or a Kubernetes API: for another "
                  "machine take `croft store backup`");
    }
    TRY(std::optional<StoredPause> source, context_.from.pausable.pause(soon()));
    TRY(std::optional<StoredPause> target, context_.to.pausable.pause(soon()));
    TRY(const CopyStep step, core::next_copy_step(pauses(source, target)));
    report_.was_done = step == CopyStep::done;
    if (step == CopyStep::done) return report_;
    if (step != CopyStep::open) {
      TRY_VOID(look(step == CopyStep::begin));
      if (options_.dry_run) return report_;
      TRY_VOID(close(source, target));
      TRY_VOID(copy());
      TRY_VOID(change(context_.from, source, pause_of(Pause::Phase::moved, context_.to.url)));
    }
    if (!options_.dry_run) TRY_VOID(change(context_.to, target, std::nullopt));
    return report_;
  }

 private:
  [[nodiscard]] Deadline soon() const { return Deadline::after(context_.clock.now(), context_.time_limit); }

  [[nodiscard]] core::Pauses pauses(const std::optional<StoredPause>& source,
                                    const std::optional<StoredPause>& target) const {
    core::Pauses pauses;
    if (source) pauses.source = source->pause;
    if (target) pauses.target = target->pause;
    pauses.source_names_target = source && store::are_same_store(source->pause.other, context_.to.url);
    pauses.target_names_source = target && store::are_same_store(target->pause.other, context_.from.url);
    return pauses;
  }

  /// Puts a pause, or takes it away, while it still is as `there` says, which becomes what is stored then. Others may
  /// write the object that has it, as Calico does its ClusterInformation.
  [[nodiscard]] Result<void> change(const CopyEnd& end, std::optional<StoredPause>& there,
                                    const std::optional<Pause>& next) {
    TRY(const auto now, end.pausable.pause(soon()));
    const bool is_same = there && now ? there->pause == now->pause : there.has_value() == now.has_value();
    if (!is_same) return fail(ErrorCode::conflict, "a pause was changed by somebody else; run the copy again");
    TRY_VOID(end.pausable.change_pause(now, next, soon()));
    TRY(there, end.pausable.pause(soon()));
    return {};
  }
  [[nodiscard]] Pause pause_of(Pause::Phase phase, const std::string& other) const {
    return {phase, other, context_.clock.now().wall};
  }

  [[nodiscard]] Result<void> close(std::optional<StoredPause>& source, std::optional<StoredPause>& target) {
    if (!target || target->pause.phase != Pause::Phase::filling) {
      TRY_VOID(change(context_.to, target, pause_of(Pause::Phase::filling, context_.from.url)));
    }
    if (!source) TRY_VOID(change(context_.from, source, pause_of(Pause::Phase::copying, context_.to.url)));
    const std::chrono::seconds settling = context_.from.pausable.settling();
    context_.tell(fmt::format(
        "the source is paused: ADDs are refused until the copy is made{}",
        settling.count() > 0 ? fmt::format("; writes that are on their way end within {} s", settling.count()) : ""));
    if (settling.count() > 0) context_.wait(settling);
    context_.to.pausable.fill();
    return {};
  }

  [[nodiscard]] Result<std::map<std::string, Record>> read_all(store::Store& store, Kind kind) const {
    std::map<std::string, Record> all;
    if (store.capabilities().lacks.contains(kind)) return all;
    const auto take = [&all](Record& record) -> Result<void> {
      std::string name = record.key.name;
      all.insert_or_assign(std::move(name), std::move(record));
      return {};
    };
    const auto read = store.for_each(
        {kind, {}, kPageRecords}, [this] { return soon(); }, take);
    // A store that knows no such kind has none of it.
    if (!read && read.error().code != ErrorCode::invalid_argument) return fail(read.error());
    return all;
  }

  [[nodiscard]] static Result<void> check_sound(const std::map<std::string, Record>& records, std::string_view end) {
    for (const auto& [name, record] : records) {
      if (record.value) continue;
      return fail(ErrorCode::refused_for_safety,
                  "{} of {} cannot be read: {}; mend it first (docs/runbooks/damaged-records.md)",
                  name_of_record(record.key), end, record.value.error().message);
    }
    return {};
  }

  /// Calls `take(key, in_source, in_target, due)` for each name that one of the stores has; null where it has none.
  template <class Take>
  [[nodiscard]] Result<void> compare(Kind kind, Take take) {
    TRY(auto here, read_all(context_.from.store, kind));
    TRY(auto there, read_all(context_.to.store, kind));
    TRY_VOID(check_sound(here, "FROM"));
    TRY_VOID(check_sound(there, "TO"));
    for (const auto& [name, record] : here) {
      const auto found = there.find(name);
      const Record* present = found == there.end() ? nullptr : &found->second;
      TRY(Due due, core::change_due(kind, &*record.value, present != nullptr ? &*present->value : nullptr));
      TRY_VOID(take(&record, present, std::move(due)));
      if (found != there.end()) there.erase(found);
    }
    for (const auto& [name, record] : there) {
      TRY(Due due, core::change_due(kind, nullptr, &*record.value));
      TRY_VOID(take(nullptr, &record, std::move(due)));
    }
    return {};
  }

  void count(const Due& due) {
    report_.equal += due.what == Due::What::nothing ? 1 : 0;
    report_.written += due.what == Due::What::write ? 1 : 0;
    report_.removed += due.what == Due::What::remove ? 1 : 0;
  }

  /// Whether something is in the way; writes nothing.
  [[nodiscard]] Result<void> look(bool is_begin) {
    auto* const naming = dynamic_cast<store::Naming*>(&context_.to.store);
    // A register of its own is named by its pool.
    for (const Kind kind : core::kCopiedKinds | std::views::reverse) {
      if (!target_takes(kind)) continue;
      const auto take = [&](const Record* here, const Record* there, const Due& due) -> Result<void> {
        count(due);
        if (is_begin && there != nullptr && due.what != Due::What::nothing && !core::may_be_in_empty_target(kind)) {
          return fail(ErrorCode::refused_for_safety,
                      "TO has a register of its own ({}): empty it, or name another store", name_of_record(there->key));
        }
        const auto place = here != nullptr && naming != nullptr ? naming->place_of(here->key, soon()) : std::string();
        if (place) return {};
        if (place.error().code != ErrorCode::invalid_argument) return fail(place.error());
        return fail(ErrorCode::refused_for_safety,
                    "TO can have no object for {} ({}): give that node, network or container "
                    "another name, and start its pods again",
                    name_of_record(here->key), place.error().message);
      };
      TRY_VOID(compare(kind, take));
    }
    return options_.leave_behind ? Result<void>() : check_staying();
  }

  [[nodiscard]] Result<void> check_staying() {
    for (const Kind kind : core::kStayingKinds) {
      const store::Capabilities can = context_.from.store.capabilities();
      if (kind == Kind::service && can.services == core::System::kubernetes) continue;
      TRY(const auto all, read_all(context_.from.store, kind));
      if (all.empty()) continue;
      return fail(ErrorCode::refused_for_safety, "{} {} stay in FROM, as {}: --leave-behind copies the rest",
                  all.size(), core::name_of(kind), name_of_record(all.begin()->second.key));
    }
    return {};
  }

  [[nodiscard]] bool target_takes(Kind kind) const {
    return core::can_keep(kind, context_.to.store.capabilities().lacks);
  }

  /// Until a pass has nothing to do: a write that was on its way all the same, or a lost reply, costs one more.
  [[nodiscard]] Result<void> copy() {
    report_.written = report_.removed = 0;
    for (int pass = 1;; ++pass) {
      const auto changed = copy_once();
      const bool may_go_on = changed || changed.error().code == ErrorCode::conflict ||
                             changed.error().code == ErrorCode::unknown_outcome ||
                             changed.error().code == ErrorCode::too_old;
      if (!may_go_on) return fail(changed.error());
      if (changed && *changed == 0) return {};
      if (pass == kPassesMax && !changed) return fail(changed.error());
      if (pass == kPassesMax) {
        return fail(ErrorCode::refused_for_safety,
                    "TO does not become equal: {} differ after {} passes; somebody writes FROM all "
                    "the same, or TO does not keep what is written to it; `croft store resume` "
                    "opens FROM again",
                    differing_, pass);
      }
      if (pass > 1) context_.tell(changed ? "not equal yet: " + differing_ : "once more: " + changed.error().message);
    }
  }

  [[nodiscard]] Result<std::uint64_t> copy_once() {
    std::uint64_t changed = 0;
    report_.equal = 0;
    for (const Kind kind : core::kCopiedKinds) {
      if (!target_takes(kind)) continue;
      std::vector<store::Write> batch;
      const std::size_t batch_max = kind == Kind::block ? 1 : kBatchRecords;
      const auto take = [&](const Record* here, const Record* there, Due due) -> Result<void> {
        count(due);
        if (due.what == Due::What::nothing) return {};
        ++changed;
        const core::Key& key = here != nullptr ? here->key : there->key;
        differing_ = name_of_record(key);
        batch.push_back(
            {key, std::move(due.value),
             there != nullptr ? store::Condition::if_revision(there->revision) : store::Condition::if_absent()});
        return batch.size() < batch_max ? Result<void>() : write(batch);
      };
      TRY_VOID(compare(kind, take));
      TRY_VOID(write(batch));
    }
    return changed;
  }

  [[nodiscard]] Result<void> write(std::vector<store::Write>& batch) {
    const std::vector<store::Write> writes = std::exchange(batch, {});
    if (writes.empty()) return {};
    if (context_.to.store.capabilities().atomic_commit) {
      const auto done = commit_once(target_, writes, soon());
      return done ? Result<void>() : fail(done.error());
    }
    for (const auto& outcome : commit_each_once(target_, writes, soon())) {
      if (!outcome) return fail(outcome.error());
    }
    return {};
  }

  const CopyContext& context_;
  const CopyOptions& options_;
  const Context target_;
  CopyReport report_;
  std::string differing_;  ///< one of them
};

}  // namespace

Result<CopyReport> copy_store(const CopyContext& context, const CopyOptions& options) {
  return Copier(context, options).run();
}

Result<void> resume_store(store::Pausable& pausable, Deadline deadline) {
  TRY(const auto there, pausable.pause(deadline));
  if (!there) return fail(ErrorCode::not_found, "the store takes writes already: no copy of it is under way");
  if (there->pause.phase == Pause::Phase::copying) return pausable.change_pause(there, std::nullopt, deadline);
  const std::string other = echo(there->pause.other);
  if (there->pause.phase == Pause::Phase::filling) {
    return fail(ErrorCode::refused_for_safety,
                "the store holds part of a copy of {}: finish it with `croft store copy`, or resume that store", other);
  }
  return fail(ErrorCode::refused_for_safety,
              "the register was moved to {}, which may have given addresses since; the way back is `croft store copy` "
              "from there",
              other);
}

}  // namespace croft::engine
