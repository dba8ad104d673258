#include "collector/use/sweep.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/planted.h"
#include "base/printable.h"
#include "ipam/decide/affinity_changes.h"
#include "ipam/decide/draft.h"
#include "ipam/decide/release.h"
#include "ipam/use/transact.h"

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

Result<RegisterLook> read_register_view(const Context& context, bool may_lack) {
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
  TRY_VOID(for_each_in_any_order(context, {Kind::block, "", kBlocksPage}, take_block, OnDamage::visit));
  const auto pass_over = [&](Kind kind, const Result<void>& read) -> Result<void> {
    if (read || !may_lack || read.error().code != ErrorCode::permission_denied) return read;
    look.not_allowed.emplace(kind, read.error());
    return {};
  };
  // A damaged claim is nobody's to judge: it stays, and its block, which is judged by itself.
  TRY_VOID(pass_over(Kind::affinity, for_each_in_any_order(
                                         context, {Kind::affinity, "", store::kListLimitMax},
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
                        context, {Kind::handle, "", store::kListLimitMax, true},
                        [&](const store::Record& record) { look.view.add_handle(record.key.name); }, OnDamage::visit)));
  return look;
}

namespace {

using core::Snapshot;
using core::Step;
using core::collect::Alarm;
using core::collect::Evidence;
using core::collect::Leak;

/// In batches, so that no commit outgrows its limit of records: each address may bring a handle.
constexpr std::size_t kLeaksBatch = 48;

/// The outcome for one batch of a block's leaks.
struct Batch {
  std::vector<Evidence> released;
  std::size_t changed_meanwhile = 0;
  std::map<std::string, Error> unwritable;  ///< handles whose records are damaged: what they hold stays held
};

/// The answers for pods and nodes that were asked for by themselves.
struct Asked {
  core::collect::Facts facts;
  std::set<std::pair<std::string, std::string>> pods;  ///< by namespace and name
  std::set<std::string> nodes;

  [[nodiscard]] bool confirms(const Evidence& by_list, const Leak& leak, const core::Block& block,
                              const core::collect::Facts& listed, const Instant& now) const {
    const bool pod_is_asked =
        by_list.pod.empty() || !listed.pods_known() || pods.contains({by_list.namespace_name, by_list.pod});
    const bool node_is_asked = by_list.node.empty() || listed.has_node(by_list.node) || nodes.contains(by_list.node);
    return pod_is_asked && node_is_asked && is_confirmed(by_list, leak, block, listed, facts, now);
  }
};

/// Decides the release of leaks of one block: each is proven again in the block as it is now. One whose handle's record
/// is damaged is left out, so that it does not keep what others hold in the block. A dry run only proves: `asked` is
/// null before pods were asked for one by one.
Step<Batch> plan_leaks(const Snapshot& snapshot, const std::vector<Leak>& leaks, const core::collect::Facts& facts,
                       const Asked* asked, bool dry_run, bool sees_handles, const Instant& now) {
  core::Reader reader(snapshot);
  const net::Prefix cidr = leaks.front().block;
  const auto* block = reader.get(core::block_key(cidr));
  if (!reader.is_all_read()) return reader.missing();
  Batch batch;
  std::vector<core::AddressToRelease> wanted, addresses;
  std::vector<Evidence> proven;
  for (const Leak& leak : leaks) {
    auto evidence = block != nullptr ? prove(leak, *block, facts, now) : std::nullopt;
    if (!evidence || (asked != nullptr && !asked->confirms(*evidence, leak, *block, facts, now))) {
      ++batch.changed_meanwhile;
      continue;
    }
    if (asked != nullptr) evidence->facts.emplace_back("asked for by itself, it is so");
    if (sees_handles) reader.ask(core::handle_key(evidence->handle));
    proven.push_back(*std::move(evidence));
    addresses.push_back({leak.address, proven.back().handle, leak.sequence});
  }
  if (!reader.is_all_read()) return reader.missing();
  for (std::size_t i = 0; i < proven.size(); ++i) {
    const Error* damage = sees_handles ? reader.damage(core::handle_key(proven[i].handle)) : nullptr;
    if (damage != nullptr) {
      batch.unwritable.emplace(proven[i].handle, *damage);
      continue;
    }
    wanted.push_back(std::move(addresses[i]));
    batch.released.push_back(std::move(proven[i]));
  }
  if (wanted.empty() || dry_run) return core::Plan<Batch>{std::move(batch), {}};
  auto step = core::plan_release_addresses(snapshot, cidr, wanted, now);
  if (auto* missing = std::get_if<core::Missing>(&step)) return std::move(*missing);
  if (auto* error = std::get_if<Error>(&step)) return std::move(*error);
  auto& plan = std::get<core::Plan<core::AddressReleases>>(step);
  // The same block was just proven to hold them so.
  CROFT_ASSERT(plan.answer.released.size() == wanted.size());
  return core::Plan<Batch>{std::move(batch), std::move(plan.writes)};
}

constexpr std::size_t kNotDoneNamedMax = 20;
/// How many pods and nodes that are asked for by themselves may get no answer: in a row, and in a pass. An answer is
/// awaited for 15 seconds, and a controller that is stuck for minutes is ended.
constexpr std::size_t kSilentInARowMax = 3, kSilentMax = 5;
constexpr std::string_view kRemedy = "; `croft check` names the record that is in the way, and its remedy";
constexpr std::string_view kReplaced =
    "the register is another than in the look before, or was put back to an older state: what looked dead or gone in "
    "looks at that one does not count, the grace begins anew";

/// A claim is dropped only while its block is not the owner's: it may have come about since it was looked at.
Step<bool> plan_stray_affinity(const Snapshot& snapshot, const core::Affinity& stray, const Instant& now) {
  core::Reader reader(snapshot);
  const auto* block = reader.get(core::block_key(stray.cidr));
  const auto* row = reader.get(core::affinity_key(stray.owner, stray.cidr));
  if (!reader.is_all_read()) return reader.missing();
  const bool is_owners = block != nullptr && block->affinity == stray.owner;
  if (is_owners || row == nullptr || row->state != stray.state) return core::Plan<bool>{false, {}};
  auto step = core::plan_release_affinity(snapshot, {stray.owner, stray.cidr, true, {}}, now);
  if (auto* missing = std::get_if<core::Missing>(&step)) return std::move(*missing);
  if (auto* error = std::get_if<Error>(&step)) return std::move(*error);
  return core::Plan<bool>{true, std::move(std::get<core::Plan<core::AffinityOutcome>>(step).writes)};
}

/// One pass, after the facts came.
class Pass {
 public:
  Pass(const Context& context, FactSource& source, const core::collect::Facts& facts, const SweepOptions& options,
       SweepReport& report)
      : context_(context), source_(source), facts_(facts), dry_run_(options.dry_run), report_(report) {}

  void run(const core::collect::Verdict& verdict) {
    release_leaks(verdict.leaks);
    for (const auto& block : verdict.blocks) {
      release(evidence_of(block, facts_, now()), [&]() -> Result<bool> {
        TRY(const auto outcome, decided(context_, core::plan_release_affinity, block.release));
        return outcome == core::AffinityOutcome::released;
      });
    }
    for (const auto& stray : verdict.affinities) {
      release(evidence_of(stray, now()), [&] { return decided(context_, plan_stray_affinity, stray.affinity); });
    }
    for (const auto& stray : first_of(verdict.handles, kSweepHandlesMax)) {
      release(evidence_of(stray, now()), [&] { return decided(context_, core::plan_mend_handle, stray.id); });
    }
    if (!dry_run_) free_cooled(first_of(verdict.cooled, kSweepBlocksMax));
    if (not_done_ > kNotDoneNamedMax) tell_not_done(fmt::format("and {} more", not_done_ - kNotDoneNamedMax));
  }

  /// Writes of no consequence: what was said of them is done.
  void forget_removed(const std::vector<core::RemovedNode>& spent) {
    if (dry_run_) return;
    for (std::size_t i = 0; i < spent.size() && !failed(); ++i) {
      const auto done = decided(context_, core::plan_forget_removed, spent[i]);
      if (!done) note(done.error(), "removed node " + spent[i].node);
    }
  }

 private:
  template <class T>
  static std::span<const T> first_of(const std::vector<T>& all, std::size_t most) {
    return std::span(all).first(std::min(all.size(), most));
  }

  void tell_not_done(std::string text) { report_.alarms.push_back({Alarm::Kind::not_done, std::move(text)}); }
  /// An error of one record stays there; a store that is away ends the pass.
  void note(const Error& error, const std::string& subject) {
    const bool is_about_the_record = error.code == ErrorCode::corrupt || error.code == ErrorCode::invalid_argument ||
                                     error.code == ErrorCode::internal || error.code == ErrorCode::newer_version;
    if (++not_done_ <= kNotDoneNamedMax) {
      tell_not_done(fmt::format("{}: {}{}", subject, error.message, is_about_the_record ? kRemedy : ""));
    }
    if (!is_about_the_record) report_.failure = error;
  }
  /// The API gave an odd answer, or none, about one pod or node that was asked for by itself, which stays unsure. Where
  /// it says nothing several times in a row, or may not be asked, the pass ends.
  void note_unsure(const Error& error, const std::string& subject) {
    const bool is_silent = error.code == ErrorCode::unavailable || error.code == ErrorCode::deadline_exceeded;
    silent_in_a_row_ = is_silent ? silent_in_a_row_ + 1 : 0;
    silent_ += is_silent ? 1 : 0;
    const bool is_about_all = silent_in_a_row_ == kSilentInARowMax || error.code == ErrorCode::permission_denied;
    if (++not_done_ <= kNotDoneNamedMax) {
      tell_not_done(fmt::format("{}: {}; what is held for it is kept{}", subject, error.message,
                                is_about_all ? "" : ": look at what answers as the API when this one is asked for"));
    }
    if (is_about_all) report_.failure = error;
  }
  /// Whether the next one may be asked for: each that is not answered for costs the time of an answer.
  [[nodiscard]] bool may_ask() {
    if (silent_ < kSilentMax) return true;
    if (!std::exchange(is_told_silent_, true)) {
      tell_not_done(
          fmt::format("{} pods and nodes were not answered for; the rest is not asked for in this "
                      "pass, and what is held for it is kept",
                      silent_));
    }
    return false;
  }
  [[nodiscard]] bool failed() const { return report_.failure.has_value(); }
  [[nodiscard]] Instant now() const { return context_.clock.now(); }

  void release_leaks(const std::vector<Leak>& leaks) {
    std::map<net::Prefix, std::vector<Leak>> by_block;
    for (const Leak& leak : leaks) by_block[leak.block].push_back(leak);
    ask_one_by_one(by_block);
    for (const auto& [cidr, all] : by_block) {
      for (std::size_t at = 0; at < all.size() && !failed(); at += kLeaksBatch) {
        const std::size_t end = std::min(at + kLeaksBatch, all.size());
        release_batch({all.begin() + static_cast<std::ptrdiff_t>(at), all.begin() + static_cast<std::ptrdiff_t>(end)});
      }
    }
  }

  /// The lists have named them; nothing is freed by these alone. Each pod and node is asked for once in a pass.
  void ask_one_by_one(const std::map<net::Prefix, std::vector<Leak>>& by_block) {
    if (!source_.answers_one_by_one() || is_planted("pods_not_asked")) return;
    std::map<std::pair<std::string, std::string>, std::vector<Evidence>> by_pod;
    std::set<std::string> nodes;
    for (const auto& [cidr, leaks] : by_block) {
      if (failed()) return;
      auto proven = transact(context_, TurnTaking::before_writing, [&](const Snapshot& snapshot, const Instant& at) {
        return plan_leaks(snapshot, leaks, facts_, nullptr, true, false, at);
      });
      if (!proven) {
        note(proven.error(), "block " + cidr.to_string());
        continue;
      }
      for (Evidence& evidence : proven->released) {
        if (!evidence.node.empty() && !facts_.has_node(evidence.node)) nodes.insert(evidence.node);
        by_pod[{evidence.namespace_name, evidence.pod}].push_back(std::move(evidence));
      }
    }
    asked_.emplace(Asked{facts_.with_nodes_alone(), {}, {}});
    for (const std::string& node : nodes) {
      if (failed() || !may_ask()) break;
      const auto is_there = source_.has_node(node);
      if (!is_there) {
        note_unsure(is_there.error(), "node " + node);
        continue;
      }
      silent_in_a_row_ = 0;
      asked_->nodes.insert(node);
      if (*is_there) asked_->facts.add_node({node, {}, {}});
    }
    if (facts_.pods_known()) {
      asked_->facts.set_pods_known();
      ask_for_pods(by_pod);
    }
    asked_->facts.freeze();
  }

  void ask_for_pods(const std::map<std::pair<std::string, std::string>, std::vector<Evidence>>& by_pod) {
    std::string left_out;
    std::size_t count = 0;
    for (const auto& [name, addresses] : by_pod) {
      if (name.second.empty()) continue;  // of a node
      if (failed() || !may_ask()) break;
      const auto pod = source_.pod(name.first, name.second);
      if (!pod) {
        note_unsure(pod.error(), fmt::format("pod {}/{}", name.first, name.second));
        continue;
      }
      silent_in_a_row_ = 0;
      asked_->pods.insert(name);
      if (!*pod) continue;
      asked_->facts.add_pod(**pod);
      const bool is_one = std::ranges::any_of(addresses, [&](const Evidence& one) { return is_left_out(one, **pod); });
      if (is_one && ++count <= kNotDoneNamedMax) left_out += fmt::format(" {}/{}", name.first, name.second);
    }
    if (count == 0) return;
    report_.alarms.push_back(
        {Alarm::Kind::pods_differ,
         fmt::format(
             "{} pods are not in the list of pods, and there when they are asked for one by one; what they hold "
             "is kept; look at what answers as the API, and at caches before it:{}",
             count, left_out)});
  }

  void release_batch(const std::vector<Leak>& batch) {
    auto done = transact(context_, TurnTaking::before_writing, [&](const Snapshot& snapshot, const Instant& at) {
      return plan_leaks(snapshot, batch, facts_, asked_ ? &*asked_ : nullptr, dry_run_,
                        !report_.not_allowed.contains(core::Kind::handle), at);
    });
    if (!done) {
      note(done.error(), "block " + batch.front().block.to_string());
      return;
    }
    report_.changed_meanwhile += done->changed_meanwhile;
    for (const auto& [handle, error] : done->unwritable) {
      note(error,
           fmt::format("addresses of handle {} in block {} stay held", echo(handle), batch.front().block.to_string()));
    }
    std::ranges::move(done->released, std::back_inserter(report_.released));
  }

  /// `decide` tells whether it is released; false: it is not proven any more.
  template <class Decide>
  void release(Evidence evidence, Decide decide) {
    if (failed()) return;
    const Result<bool> done = dry_run_ ? Result<bool>(true) : decide();
    if (!done) {
      note(done.error(), std::string(name_of(evidence.what)) + " " + evidence.subject);
    } else if (*done) {
      report_.released.push_back(std::move(evidence));
    } else {
      ++report_.changed_meanwhile;
    }
  }

  void free_cooled(std::span<const net::Prefix> blocks) {
    for (const net::Prefix& block : blocks) {
      if (failed()) return;
      const auto done = decided(context_, core::plan_free_cooled, block);
      if (!done) note(done.error(), "block " + block.to_string());
      if (done && *done) ++report_.cooled_blocks;
    }
  }

  const Context& context_;
  FactSource& source_;
  const core::collect::Facts& facts_;
  std::optional<Asked> asked_;  ///< absent: the source can't be asked so
  const bool dry_run_;
  SweepReport& report_;
  std::size_t not_done_ = 0;
  std::size_t silent_ = 0, silent_in_a_row_ = 0;  ///< that were asked for by themselves
  bool is_told_silent_ = false;
};

}  // namespace

Result<SweepReport> sweep(const Context& context, FactSource& source, core::collect::Memory& memory,
                          const SweepOptions& options) {
  SweepReport report;
  report.dry_run = options.dry_run;
  report.began = context.clock.now();
  const std::uint64_t epoch_before = context.store.epoch();
  TRY(RegisterLook look, read_register_view(context, options.dry_run));
  report.not_allowed = std::move(look.not_allowed);
  const Instant register_read = context.clock.now();
  TRY(const core::collect::Facts facts, source.facts());
  const Instant now = context.clock.now();
  const std::uint64_t epoch = context.store.epoch();
  const bool is_first_look = !memory.last_look.has_value();
  if (memory.epoch != epoch || epoch_before != epoch) {
    memory = {};
    memory.epoch = epoch;
    if (!is_first_look) report.alarms.push_back({Alarm::Kind::register_replaced, std::string(kReplaced)});
    // Half of this look may have been at the one before.
    if (epoch_before != epoch) {
      report.ended = context.clock.now();
      return report;
    }
  }
  core::collect::Verdict verdict = judge(look.view, facts, memory, options.settings, register_read, now);

  report.blocks = look.view.blocks().size();
  report.held = look.view.held().size();
  report.nodes = facts.node_count();
  report.pods = facts.pod_count();
  report.pods_known = facts.pods_known();
  report.candidates = verdict.candidates;
  report.confirmed = verdict.confirmed;
  report.waiting_for_handle = verdict.waiting_for_handle;
  report.kept_by_brake = verdict.kept_by_brake;
  std::ranges::move(look.alarms, std::back_inserter(report.alarms));
  std::ranges::move(verdict.alarms, std::back_inserter(report.alarms));
  memory = std::move(verdict.memory);
  memory.epoch = epoch;
  Pass pass(context, source, facts, options, report);
  pass.run(verdict);
  pass.forget_removed(look.spent);
  report.ended = context.clock.now();
  return report;
}

}  // namespace croft::engine
