#include <charconv>
#include <string_view>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "ipam/use/commit_once.h"
#include "ipam/use/transact.h"
#include "register/stored_size.h"
#include "store/move/store_move_parts.h"

namespace croft::engine {
namespace {

using core::Kind;
using core::Seal;
using core::Value;
using store::Record;

/// Records of one commit: a block may be two operations to a store.
constexpr std::size_t kBatchRecords = 48;

/// Whether a pass that ended so may be made again.
[[nodiscard]] bool is_worth_another_pass(const Error& error) {
  return error.code == ErrorCode::conflict || error.code == ErrorCode::unknown_outcome ||
         error.code == ErrorCode::too_old;
}

/// A value of the source to be put in the place of a record, with what the target's format holds of that besides.
[[nodiscard]] Value in_place_of(Value value, const Record* there) {
  if (there == nullptr) return value;
  std::visit(
      [&](auto& record) {
        using T = std::decay_t<decltype(record)>;
        if constexpr (requires { record.rest; }) {
          if (const auto* old = std::get_if<T>(&there->value)) record.rest = old->rest;
        }
      },
      value);
  return value;
}

/// What the tokens of a move's commits begin with.
[[nodiscard]] std::uint64_t mark_of(const std::string& move) {
  std::uint64_t mark = 0;
  const std::string_view text(move);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + std::min<std::size_t>(16, text.size()), mark, 16);
  static_cast<void>(end);
  return error == std::errc() && mark != 0 ? mark : 1;
}

/// Writes what a pass finds, some records at once.
class Copier {
 public:
  Copier(const MoveContext& context, MoveReport& report, Others& others)
      : context_(context),
        target_{context.to.store, context.clock, context.random, context.time_limit},
        can_(context.to.store.capabilities()),
        report_(report),
        others_(others) {
    target_.token_mark = others.mark();
  }

  [[nodiscard]] Result<void> add(store::Write write) {
    const auto* block = write.value ? std::get_if<core::Block>(&*write.value) : nullptr;
    const std::size_t bytes = block != nullptr ? core::bytes_of(*block, core::Bound::close) : 0;
    const bool is_full =
        batch_.size() == kBatchRecords || (!batch_.empty() && bytes > 0 && bytes_ + bytes > can_.commit_bytes_max / 2);
    if (is_full) TRY_VOID(flush());
    bytes_ += bytes;
    batch_.push_back(std::move(write));
    return {};
  }

  [[nodiscard]] Result<void> flush() {
    if (batch_.empty()) return {};
    const std::vector<store::Write> batch = std::exchange(batch_, {});
    bytes_ = 0;
    if (can_.atomic_commit) {
      TRY(const store::Revision revision, commit_once(target_, batch, soon(context_)));
      for (const store::Write& write : batch) note_done(write, revision);
      return {};
    }
    const auto outcomes = commit_each_once(target_, batch, soon(context_));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      if (outcomes[i]) note_done(batch[i], *outcomes[i]);
    }
    for (const auto& outcome : outcomes) {
      if (!outcome) return fail(outcome.error());
    }
    return {};
  }

 private:
  void note_done(const store::Write& write, store::Revision revision) {
    ++(write.value ? report_.written : report_.removed);
    if (write.key.kind != Kind::block) return;
    write.value ? others_.expect(write.key.name, revision) : others_.expect_none(write.key.name);
  }

  const MoveContext& context_;
  Context target_;
  const store::Capabilities can_;
  MoveReport& report_;
  Others& others_;
  std::vector<store::Write> batch_;
  std::size_t bytes_ = 0;
};

[[nodiscard]] Error damaged_record(const Record& record, std::string_view which) {
  return {ErrorCode::refused_for_safety,
          fmt::format("{} of --{} cannot be read, so that nobody knows what it says: {}; mend it first "
                      "(docs/runbooks/damaged-records.md)",
                      name_of_record(record.key.kind, record.key.name), which, core::damage_of(record.value)->message),
          {}};
}

[[nodiscard]] Result<void> check_sound(const Record* here, const Record* there) {
  if (here != nullptr && core::damage_of(here->value) != nullptr) return fail(damaged_record(*here, "from"));
  // What a copy of ours would replace may be damaged; it is read again once it was.
  static_cast<void>(there);
  return {};
}

/// One pass over all kinds: the target becomes as the source is, but for what others wrote, unless that is to be
/// overwritten. How many records were other.
[[nodiscard]] Result<std::uint64_t> copy_once(const MoveContext& context, const MoveOptions& options,
                                              MoveReport& report, Others& others) {
  std::uint64_t changed = 0;
  others.begin_pass();
  for (const Kind kind : core::audit::kMovedKinds) {
    if (!target_takes(context, kind)) continue;
    Copier copier(context, report, others);
    std::uint64_t seen = 0, changed_here = 0;
    const auto take = [&](const std::string& name, const Record* here, const Record* there) -> Result<void> {
      TRY_VOID(check_sound(here, there));
      if (++seen % (kMovePageRecords * 10) == 0)
        context.tell(fmt::format("{}: {} looked at", core::name_of(kind), seen));
      Due due = due_of(kind, here, there);
      if (due.what == Due::What::nothing) {
        if (kind == Kind::block && there != nullptr) others.expect(name, there->revision);
        return {};
      }
      if (!options.overwrite && others.note(kind, name, here, there)) return {};
      ++changed_here;
      store::Write write{{kind, name}, std::nullopt, store::Condition::if_absent()};
      if (there != nullptr) write.condition = store::Condition::if_revision(there->revision);
      if (due.value) write.value = in_place_of(*std::move(due.value), there);
      return copier.add(std::move(write));
    };
    TRY_VOID(side_by_side(context, kind, take));
    TRY_VOID(copier.flush());
    if (changed_here > 0) context.tell(fmt::format("{}: {} copied", core::name_of(kind), changed_here));
    changed += changed_here;
  }
  others.pass_is_over();
  if (!others.empty()) return fail(others.told());
  return changed;
}

}  // namespace

Others::Others(const Seal& target_seal) : mark_(mark_of(target_seal.move)), marks_(target_seal.marks) {}

bool Others::note(Kind kind, const std::string& name, const Record* here, const Record* there) {
  if (there == nullptr || !core::audit::is_guarded(kind) || !is_anothers(kind, name, here, *there)) return false;
  const auto held =
      core::audit::held_only_there(here != nullptr ? std::optional(here->value) : std::nullopt, there->value);
  for (const core::audit::HeldOnlyThere& one : held) {
    names_.add(fmt::format("{} ({})", one.address.to_string(), one.holder));
  }
  if (held.empty()) names_.add(name_of_record(kind, name));
  return true;
}

Error Others::told() const {
  return {ErrorCode::refused_for_safety,
          fmt::format("another program wrote into the closed target: {}; the target stays closed. Stop what wrote "
                      "it, and end the pods that hold what is named, or move it into the source by hand: then "
                      "--overwrite puts the source's records in its place; `croft migrate give-up` ends the move",
                      names_.text()),
          {}};
}

bool Others::is_anothers(Kind kind, const std::string& name, const Record* here, const Record& there) const {
  if (marks_ && !bears_mark(there.token, mark_)) return true;
  if (kind != Kind::block) return false;
  if (here != nullptr && core::audit::is_no_copy(here->value, there.value)) return true;
  if (!knows_blocks_) return false;
  const auto known = blocks_.find(name);
  return known == blocks_.end() || known->second != there.revision;
}

Result<std::uint64_t> copy_register(const MoveContext& context, const MoveOptions& options, MoveReport& report,
                                    Others& others) {
  for (int pass = 1;; ++pass) {
    auto changed = copy_once(context, options, report, others);
    if (changed) return changed;
    if (pass == kMovePassesMax || !is_worth_another_pass(changed.error())) return changed;
    context.tell("once more: " + changed.error().message);
  }
}

Result<std::vector<KindDifference>> compare_registers(const MoveContext& context, const Differences& differences) {
  std::vector<KindDifference> kinds;
  for (const Kind kind : core::audit::kMovedKinds) {
    if (!target_takes(context, kind)) continue;
    KindDifference difference{kind};
    const auto take = [&](const std::string& name, const Record* here, const Record* there) -> Result<void> {
      TRY_VOID(check_sound(here, there));
      difference.in_source += here != nullptr ? 1 : 0;
      const Due due = due_of(kind, here, there);
      if (differences.own != nullptr) differences.own->note(kind, name, here, there, due.what);
      switch (due.what) {
        case Due::What::nothing:
          ++difference.same;
          return {};
        case Due::What::write:
          ++difference.to_write;
          break;
        case Due::What::remove:
          ++difference.to_remove;
          break;
      }
      if (differences.names != nullptr) differences.names->add(name_of_record(kind, name));
      if (differences.others != nullptr) differences.others->note(kind, name, here, there);
      return {};
    };
    TRY_VOID(side_by_side(context, kind, take));
    if (difference.in_source + difference.same + difference.to_write + difference.to_remove > 0) {
      kinds.push_back(difference);
    }
  }
  return kinds;
}

}  // namespace croft::engine
