#include "store/move/store_move.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "ipam/use/audit.h"
#include "store/move/store_move_parts.h"
#include "store/store_url.h"

namespace croft::engine {
namespace {

using core::Kind;
using core::Seal;
using core::audit::GiveUpStep;
using core::audit::MoveStep;
using store::StoredSeal;

struct BothSeals {
  std::optional<StoredSeal> source, target;
  [[nodiscard]] core::audit::Seals values(const MoveContext& context) const {
    core::audit::Seals seals;
    if (source) {
      seals.source = source->seal;
      seals.source_names_target = store::name_one_store(source->seal.other, context.to.url);
    }
    if (target) {
      seals.target = target->seal;
      seals.target_names_source = store::name_one_store(target->seal.other, context.from.url);
    }
    return seals;
  }
};

[[nodiscard]] Result<BothSeals> read_seals(const MoveContext& context) {
  BothSeals seals;
  TRY(seals.source, context.from.seal.seal(soon(context)));
  TRY(seals.target, context.to.seal.seal(soon(context)));
  return seals;
}

[[nodiscard]] std::string new_move_id(Random& random) {
  return fmt::format("{:016x}{:016x}", random.next(), random.next());
}

/// Puts a seal, and settles it when the reply was lost.
[[nodiscard]] Result<void> put_seal(const MoveContext& context, const MoveEnd& end,
                                    const std::optional<StoredSeal>& there, Seal seal) {
  seal.since = context.clock.now().wall;
  auto put = end.seal.put_seal(there, seal, soon(context));
  if (put || put.error().code != ErrorCode::unknown_outcome) return put;
  TRY(const auto now, end.seal.seal(soon(context)));
  if (now && now->seal == seal) return {};
  return put;  // the same call again looks at what is there then
}

[[nodiscard]] Result<void> remove_seal(const MoveContext& context, const MoveEnd& end, const StoredSeal& there) {
  auto removed = end.seal.remove_seal(there, soon(context));
  if (removed || removed.error().code != ErrorCode::unknown_outcome) return removed;
  TRY(const auto now, end.seal.seal(soon(context)));
  if (!now) return {};
  return removed;
}

[[nodiscard]] Result<void> settle(const MoveContext& context, const MoveEnd& end, std::string_view which) {
  const std::chrono::seconds span = end.seal.settling();
  if (span.count() == 0) return {};
  context.tell(fmt::format("{} s until writes to the {} that are on their way are over", span.count(), which));
  return context.wait(span);
}

/// Where a move works under its seal; a call that ends leaves the object as it was.
class Worker {
 public:
  Worker(const MoveEnd& end, const std::string& move) : end_(end) { end_.seal.work_under(move); }
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;
  ~Worker() { end_.seal.work_under(""); }

 private:
  const MoveEnd& end_;
};

[[nodiscard]] Error refused(std::vector<std::string> reasons, std::string_view what) {
  return {ErrorCode::refused_for_safety, fmt::format("{}: {}", what, reasons.front()),
          fmt::format("{}", fmt::join(reasons, "\n"))};
}

[[nodiscard]] std::string text_of(const core::audit::Finding& finding) {
  return fmt::format("{} {}: {}", core::audit::name_of(finding.kind), finding.subject, finding.what);
}

/// What the audit of the target finds. Error: refused_for_safety for what the source does not have too.
[[nodiscard]] Result<std::vector<std::string>> audit_target(const MoveContext& context) {
  const auto audit_of = [&](store::Store& store) {
    return audit({store, context.clock, context.random,
                  std::max<std::chrono::nanoseconds>(context.time_limit, std::chrono::minutes(10))},
                 std::nullopt);
  };
  TRY(const AuditReport there, audit_of(context.to.store));
  std::vector<std::string> all;
  for (const auto& finding : there.findings) all.push_back(text_of(finding));
  if (all.empty()) return all;
  TRY(const AuditReport here, audit_of(context.from.store));
  std::set<std::pair<core::audit::Finding::Kind, std::string>> known;
  for (const auto& finding : here.findings) known.emplace(finding.kind, finding.subject);
  std::vector<std::string> fresh;
  for (const auto& finding : there.findings) {
    if (!known.contains({finding.kind, finding.subject})) fresh.push_back(text_of(finding));
  }
  if (!fresh.empty()) {
    return fail(refused(std::move(fresh),
                        "the copy is equal, but its audit finds what that of the source does not; the target stays "
                        "closed (`croft migrate give-up` opens the source again)"));
  }
  return all;
}

class Mover {
 public:
  Mover(const MoveContext& context, const MoveOptions& options) : context_(context), options_(options) {}

  [[nodiscard]] Result<MoveReport> run() {
    // One step a round; each ends with a seal that says so, or with the end.
    for (bool is_done = false; !is_done;) {
      TRY(const BothSeals seals, read_seals(context_));
      TRY(const MoveStep step, core::audit::next_step(seals.values(context_)));
      switch (step) {
        case MoveStep::begin:
          TRY_VOID(begin());
          break;
        case MoveStep::look:
          TRY_VOID(look(seals));
          break;
        case MoveStep::take_over:
          TRY_VOID(take_over(seals));
          break;
        case MoveStep::copy:
          TRY_VOID(copy_open_source(seals));
          break;
        case MoveStep::finish:
          TRY_VOID(finish(seals));
          break;
        case MoveStep::open:
          TRY_VOID(remove_seal(context_, context_.to, *seals.target));
          context_.tell("the target is open");
          is_done = true;
          break;
        case MoveStep::done:
          report_.was_done = true;
          is_done = true;
          break;
      }
    }
    return std::move(report_);
  }

 private:
  [[nodiscard]] Seal target_seal(std::string move, Seal::Phase phase) const {
    return {Seal::End::target, phase, std::move(move), context_.from.url, {}};
  }

  [[nodiscard]] Result<void> check_obstacles() {
    MovePlan plan;
    TRY_VOID(look_at_source(context_, options_, plan));
    if (!plan.obstacles.empty()) return fail(refused(std::move(plan.obstacles), "nothing was moved"));
    return {};
  }

  [[nodiscard]] Result<void> begin() {
    TRY_VOID(check_obstacles());
    TRY(auto obstacles, own_records_of_target(context_));
    if (!obstacles.empty()) return fail(refused(std::move(obstacles), "nothing was changed"));
    TRY_VOID(put_seal(context_, context_.to, std::nullopt,
                      target_seal(new_move_id(context_.random), Seal::Phase::preparing)));
    context_.tell("the target is closed");
    return {};
  }

  /// Once nobody else can write it any more, the target is looked at for good.
  [[nodiscard]] Result<void> look(const BothSeals& seals) {
    TRY_VOID(settle(context_, context_.to, "target"));
    TRY(auto obstacles, own_records_of_target(context_));
    if (!obstacles.empty()) {
      return fail(refused(std::move(obstacles),
                          "the target was written before it was closed, and stays closed (`croft migrate give-up` "
                          "opens it)"));
    }
    Seal copying = target_seal(seals.target->seal.move, Seal::Phase::copying);
    // Only a store that writes one record at a time keeps tokens with records of every kind.
    copying.marks = !context_.to.store.capabilities().atomic_commit;
    return put_seal(context_, context_.to, seals.target, std::move(copying));
  }

  /// What the target holds is of this register: an earlier copy, or where it came from. It is made equal.
  [[nodiscard]] Result<void> take_over(const BothSeals& seals) {
    TRY_VOID(check_obstacles());
    context_.tell("the target holds what an earlier move left; it is made equal to the source");
    return put_seal(context_, context_.to, seals.target,
                    target_seal(new_move_id(context_.random), Seal::Phase::copying));
  }

  /// Most of the work, while the source serves everybody; then that is over.
  [[nodiscard]] Result<void> copy_open_source(const BothSeals& seals) {
    TRY_VOID(check_obstacles());
    const std::string move = seals.target->seal.move;
    {
      const Worker worker(context_.to, move);
      TRY_VOID(copy_register(context_, options_, report_, others_of(seals)));
    }
    TRY_VOID(put_seal(context_, context_.from, std::nullopt,
                      {Seal::End::source, Seal::Phase::copying, move, context_.to.url, {}}));
    context_.tell("the source is closed: from now on ADDs are refused until the target is open");
    return {};
  }

  [[nodiscard]] Result<void> finish(const BothSeals& seals) {
    TRY_VOID(settle(context_, context_.from, "source"));
    const Worker worker(context_.to, seals.target->seal.move);
    for (int pass = 1;; ++pass) {
      TRY_VOID(copy_register(context_, options_, report_, others_of(seals)));
      Names differing;
      TRY(const auto kinds, compare_registers(context_, {.names = &differing}));
      if (differing.empty()) {
        report_.compared = 0;
        for (const KindDifference& kind : kinds) report_.compared += kind.same;
        break;
      }
      if (pass == kMovePassesMax) {
        return fail(ErrorCode::refused_for_safety,
                    fmt::format("the copy does not become equal to the source: {}; either somebody writes the source "
                                "who does not know that it is closed, or the target does not keep what is written to "
                                "it (definitions of an older version, or an admission policy); the target stays "
                                "closed (`croft migrate give-up` opens the source again)",
                                differing.text()));
      }
      context_.tell("not equal yet, once more: " + differing.text());
    }
    context_.tell(fmt::format("{} records are equal in both", report_.compared));
    TRY(report_.findings, audit_target(context_));
    Seal moved = seals.source->seal;
    moved.phase = Seal::Phase::moved;
    return put_seal(context_, context_.from, seals.source, std::move(moved));
  }

  /// Of one move: what is known by what it wrote goes on from step to step.
  [[nodiscard]] Others& others_of(const BothSeals& seals) {
    if (!others_) others_.emplace(seals.target->seal);
    return *others_;
  }

  const MoveContext& context_;
  const MoveOptions& options_;
  MoveReport report_;
  std::optional<Others> others_;
};

}  // namespace

Result<MovePlan> plan_store_move(const MoveContext& context, const MoveOptions& options) {
  MovePlan plan;
  TRY(const BothSeals seals, read_seals(context));
  const core::audit::Seals values = seals.values(context);
  plan.source_seal = values.source;
  plan.target_seal = values.target;
  TRY(plan.step, core::audit::next_step(values));
  plan.source_settling = context.from.seal.settling();
  plan.target_settling = context.to.seal.settling();
  if (plan.step == MoveStep::done || plan.step == MoveStep::open) return plan;
  if (!context.to.store.capabilities().foreign_writers) {
    // A store of one machine needs the hints that stores of clusters may lack.
    plan.obstacles.emplace_back("the target is a store of one machine: a register of a cluster cannot move into it");
  }
  TRY_VOID(look_at_source(context, options, plan));
  std::optional<OwnRecords> own;
  if (plan.step == MoveStep::begin || plan.step == MoveStep::look) own.emplace();
  std::optional<Others> others;
  const bool is_filling = plan.step == MoveStep::copy || plan.step == MoveStep::finish;
  if (is_filling && !options.overwrite) others.emplace(*values.target);
  // One look at both for all that is asked: each reads two registers.
  auto kinds = compare_registers(context, {.others = others ? &*others : nullptr, .own = own ? &*own : nullptr});
  if (kinds) {
    plan.kinds = *std::move(kinds);
    if (own) std::ranges::move(own->obstacles(), std::back_inserter(plan.obstacles));
    if (others && !others->empty()) plan.obstacles.push_back(others->told().message);
  } else if (kinds.error().code != ErrorCode::refused_for_safety) {
    return fail(kinds.error());
  } else if (own) {
    // It ended at a damaged record.
    TRY(auto obstacles, own_records_of_target(context));
    std::ranges::move(obstacles, std::back_inserter(plan.obstacles));
  }
  TRY_VOID(look_at_nodes(context, plan));
  return plan;
}

Result<MoveReport> move_store(const MoveContext& context, const MoveOptions& options) {
  if (!context.to.store.capabilities().foreign_writers) {
    return fail(
        ErrorCode::refused_for_safety,
        "the target is a store of one machine: a register of a cluster cannot move into it; for another machine "
        "take `croft store backup`");
  }
  return Mover(context, options).run();
}

Result<bool> give_up_store_move(const MoveContext& context) {
  for (bool did_something = false;; did_something = true) {
    TRY(const BothSeals seals, read_seals(context));
    TRY(const GiveUpStep step, core::audit::next_step_back(seals.values(context)));
    switch (step) {
      case GiveUpStep::mark_target: {
        Seal marked = seals.target->seal;
        marked.phase = Seal::Phase::given_up;
        TRY_VOID(put_seal(context, context.to, seals.target, std::move(marked)));
        context.tell("the target is marked as given up and stays closed: it may hold part of a copy");
        break;
      }
      case GiveUpStep::open_target:
        TRY_VOID(remove_seal(context, context.to, *seals.target));
        context.tell("the target is open: nothing was copied into it");
        break;
      case GiveUpStep::open_source:
        TRY_VOID(remove_seal(context, context.from, *seals.source));
        context.tell("the source is open");
        break;
      case GiveUpStep::done:
        return did_something;
    }
  }
}

}  // namespace croft::engine