#include "engine/store_move.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/hex.h"
#include "core/register/stored_size.h"
#include "engine/audit.h"
#include "engine/commit_once.h"
#include "engine/transact.h"
#include "net/echo.h"
#include "store/naming.h"
#include "store/store_url.h"

namespace croft::engine {
namespace {

using core::Kind;
using core::Seal;
using core::Value;
using core::audit::GiveUpStep;
using core::audit::MoveStep;
using store::Record;
using store::StoredSeal;

/// A page begins small and grows as long as its records are: a handle of tens of thousands of blocks, or a block with
/// as many attributes as somebody wrote by hand, is megabytes.
constexpr std::size_t kFirstPageRecords = 4;
constexpr std::size_t kPageRecords = 500;
/// Parts of a page's records, by which what they take in memory is measured: some 100 to 300 bytes each.
constexpr std::size_t kPageParts = 20'000;
/// Records of one commit: a block may be two operations to a store.
constexpr std::size_t kBatchRecords = 48;
/// How often a pass is made again because a reply was lost or somebody wrote meanwhile.
constexpr int kPassesMax = 8;
/// Obstacles of one sort that are named; more are counted.
constexpr std::size_t kNamedMax = 5;

[[nodiscard]] Deadline soon(const MoveContext& context) {
  return Deadline::after(context.clock.now(), context.time_limit);
}

[[nodiscard]] std::string name_of_record(Kind kind, const std::string& name) {
  return fmt::format("{} {}", core::name_of(kind), net::echo(name));
}

/// Whether a pass that ended so may be made again.
[[nodiscard]] bool is_worth_another_pass(const Error& error) {
  return error.code == ErrorCode::conflict || error.code == ErrorCode::unknown_outcome ||
         error.code == ErrorCode::too_old;
}

/// The records of a kind by name, a page at a time. A store that knows no such kind has none of it.
class Walk {
 public:
  Walk(store::Store& store, Kind kind, const MoveContext& context) : store_(store), context_(context) {
    request_.kind = kind;
    request_.limit = kFirstPageRecords;
  }
  /// Null at the end.
  [[nodiscard]] Result<Record*> current() {
    while (at_ == page_.records.size()) {
      if (!page_.more) return nullptr;
      auto page = store_.list(request_, soon(context_));
      if (!page && page.error().code == ErrorCode::invalid_argument) {
        page_ = {};
        at_ = 0;
        return nullptr;
      }
      if (!page) return fail(page.error());
      page_ = *std::move(page);
      at_ = 0;
      if (page_.records.empty()) page_.more = false;
      choose_next_limit();
      if (!page_.records.empty()) request_.after = page_.records.back().key.name;
    }
    return &page_.records[at_];
  }
  void next() { ++at_; }

 private:
  [[nodiscard]] static std::size_t parts_of(const Record& record) {
    if (const auto* handle = std::get_if<core::Handle>(&record.value)) return handle->blocks.size();
    if (const auto* block = std::get_if<core::Block>(&record.value)) return block->attributes.size();
    return 1;
  }
  void choose_next_limit() {
    std::size_t parts = 0;
    for (const Record& record : page_.records) parts += parts_of(record);
    if (parts > kPageParts) {
      request_.limit = std::max<std::size_t>(1, request_.limit * kPageParts / parts);
    } else if (parts <= kPageParts / 4) {
      request_.limit = std::min(kPageRecords, request_.limit * 2);
    }
  }

  store::Store& store_;
  const MoveContext& context_;
  store::ListRequest request_;
  store::Page page_{{}, true, {}};
  std::size_t at_ = 0;
};

/// Calls `take(name, in_source, in_target)` for each name that one of the stores has, in order; null where it has none.
template <class Take>
[[nodiscard]] Result<void> side_by_side(const MoveContext& context, Kind kind, Take take) {
  Walk from(context.from.store, kind, context), to(context.to.store, kind, context);
  while (true) {
    TRY(Record * here, from.current());
    TRY(Record * there, to.current());
    if (here == nullptr && there == nullptr) return {};
    const bool only_there = here == nullptr || (there != nullptr && there->key.name < here->key.name);
    const bool only_here = there == nullptr || (here != nullptr && here->key.name < there->key.name);
    const std::string name = only_there ? there->key.name : here->key.name;
    TRY_VOID(take(name, only_there ? nullptr : here, only_here ? nullptr : there));
    if (!only_there) from.next();
    if (!only_here) to.next();
  }
}

[[nodiscard]] bool target_takes(const MoveContext& context, Kind kind) {
  const store::Capabilities can = context.to.store.capabilities();
  // A Kubernetes API has its nodes itself.
  return core::audit::takes(kind, can.keeps_hints, can.has_namespaces);
}

/// What is to become of a name in the target.
struct Due {
  enum class What : std::uint8_t { nothing, write, remove } what = What::nothing;
  std::optional<Value> value;
};

[[nodiscard]] Due due_of(Kind kind, const Record* here, const Record* there) {
  const auto value_of = [](const Record* record) {
    return record != nullptr ? std::optional(core::audit::portable(record->value)) : std::nullopt;
  };
  const std::optional<Value> mine = value_of(here);
  const std::optional<Value> present = value_of(there);
  std::optional<Value> wanted = core::audit::due(kind, mine, present);
  if (wanted == present) return {};
  if (!wanted) return {Due::What::remove, std::nullopt};
  return {Due::What::write, std::move(wanted)};
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

/// Named ones and how many more there are.
class Names {
 public:
  void add(std::string name) {
    if (named_.size() < kNamedMax) named_.push_back(std::move(name));
    ++count_;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::string text() const {
    std::string text = fmt::format("{}", fmt::join(named_, ", "));
    if (count_ > named_.size()) text += fmt::format(" and {} more", count_ - named_.size());
    return text;
  }

 private:
  std::vector<std::string> named_;
  std::uint64_t count_ = 0;
};

/// What the tokens of a move's commits begin with.
[[nodiscard]] std::uint64_t mark_of(const std::string& move) {
  std::uint64_t mark = 0;
  const std::string_view text(move);
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + std::min<std::size_t>(16, text.size()), mark, 16);
  static_cast<void>(end);
  return error == std::errc() && mark != 0 ? mark : 1;
}

/// Which records of the target another program wrote while it was closed.
class Others {
 public:
  explicit Others(const Seal& target_seal) : mark_(mark_of(target_seal.move)), marks_(target_seal.marks) {}

  [[nodiscard]] std::uint64_t mark() const { return mark_; }

  /// Notes a record that is not as it is to be and that this move did not write. Whether it is one.
  bool note(Kind kind, const std::string& name, const Record* here, const Record* there) {
    if (there == nullptr || !core::audit::is_guarded(kind) || !is_anothers(kind, name, here, *there)) return false;
    const auto held =
        core::audit::held_only_there(here != nullptr ? std::optional(here->value) : std::nullopt, there->value);
    for (const core::audit::HeldOnlyThere& one : held) {
      names_.add(fmt::format("{} ({})", one.address.to_string(), one.holder));
    }
    if (held.empty()) names_.add(name_of_record(kind, name));
    return true;
  }
  /// What a block is after this move wrote it, or found it as it is to be.
  void expect(const std::string& block, store::Revision revision) {
    if (!marks_) blocks_[block] = revision;
  }
  void expect_none(const std::string& block) { blocks_.erase(block); }
  void begin_pass() { names_ = {}; }
  /// A pass that saw everything is over.
  void pass_is_over() { knows_blocks_ = !marks_; }

  [[nodiscard]] bool empty() const { return names_.empty(); }
  [[nodiscard]] Error told() const {
    return {ErrorCode::refused_for_safety,
            fmt::format("another program wrote into the closed target: {}; the target stays closed. Stop what wrote "
                        "it, and end the pods that hold what is named, or move it into the source by hand: then "
                        "--overwrite puts the source's records in its place; `croft migrate give-up` ends the move",
                        names_.text()),
            {}};
  }

 private:
  [[nodiscard]] bool is_anothers(Kind kind, const std::string& name, const Record* here, const Record& there) const {
    if (marks_ && !bears_mark(there.token, mark_)) return true;
    if (kind != Kind::block) return false;
    if (here != nullptr && core::audit::is_no_copy(here->value, there.value)) return true;
    if (!knows_blocks_) return false;
    const auto known = blocks_.find(name);
    return known == blocks_.end() || known->second != there.revision;
  }

  const std::uint64_t mark_;
  const bool marks_;
  bool knows_blocks_ = false;
  std::map<std::string, store::Revision> blocks_;
  Names names_;
};

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
      if (++seen % (kPageRecords * 10) == 0) context.tell(fmt::format("{}: {} looked at", core::name_of(kind), seen));
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

/// The same until a pass was made to its end.
[[nodiscard]] Result<std::uint64_t> copy(const MoveContext& context, const MoveOptions& options, MoveReport& report,
                                         Others& others) {
  for (int pass = 1;; ++pass) {
    auto changed = copy_once(context, options, report, others);
    if (changed) return changed;
    if (pass == kPassesMax || !is_worth_another_pass(changed.error())) return changed;
    context.tell("once more: " + changed.error().message);
  }
}

/// How both stores differ now, record by record, without writing. Error: refused_for_safety for a damaged record.
[[nodiscard]] Result<std::vector<KindDifference>> compare(const MoveContext& context, Names* differing,
                                                          Others* others = nullptr) {
  std::vector<KindDifference> kinds;
  for (const Kind kind : core::audit::kMovedKinds) {
    if (!target_takes(context, kind)) continue;
    KindDifference difference{kind};
    const auto take = [&](const std::string& name, const Record* here, const Record* there) -> Result<void> {
      TRY_VOID(check_sound(here, there));
      difference.in_source += here != nullptr ? 1 : 0;
      const Due due = due_of(kind, here, there);
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
      if (differing != nullptr) differing->add(name_of_record(kind, name));
      if (others != nullptr) others->note(kind, name, here, there);
      return {};
    };
    TRY_VOID(side_by_side(context, kind, take));
    if (difference.in_source + difference.same + difference.to_write + difference.to_remove > 0) {
      kinds.push_back(difference);
    }
  }
  return kinds;
}

/// What a target has of its own, that nobody copied: each is an obstacle.
[[nodiscard]] Result<std::vector<std::string>> own_records_of_target(const MoveContext& context) {
  Names other, extra;
  for (const Kind kind : core::audit::kMovedKinds) {
    if (!target_takes(context, kind) || core::audit::may_be_there_before(kind)) continue;
    const auto take = [&](const std::string& name, const Record* here, const Record* there) -> Result<void> {
      if (there == nullptr) return {};
      if (here == nullptr) {
        extra.add(name_of_record(kind, name));
      } else if (due_of(kind, here, there).what != Due::What::nothing) {
        other.add(name_of_record(kind, name));
      }
      return {};
    };
    TRY_VOID(side_by_side(context, kind, take));
  }
  std::vector<std::string> obstacles;
  if (!extra.empty()) {
    obstacles.push_back(fmt::format(
        "the target has records that the source does not have: {}; a register cannot be moved into another: "
        "empty the target, or name another",
        extra.text()));
  }
  if (!other.empty()) {
    obstacles.push_back(
        fmt::format("the target has other records under the same names: {}; delete them there, or make "
                    "them equal",
                    other.text()));
  }
  return obstacles;
}

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

/// What of the source cannot move: damaged records, what the target has no name for, and kinds that stay.
[[nodiscard]] Result<void> look_at_source(const MoveContext& context, const MoveOptions& options, MovePlan& plan) {
  Names damaged, not_allocatable;
  Unnameable unnameable(context);
  for (const Kind kind : core::audit::kMovedKinds) {
    Walk walk(context.from.store, kind, context);
    while (true) {
      TRY(const Record* record, walk.current());
      if (record == nullptr) break;
      if (core::damage_of(record->value) != nullptr) damaged.add(name_of_record(kind, record->key.name));
      const auto* pool = std::get_if<core::Pool>(&record->value);
      if (pool != nullptr && !pool->allocatable) not_allocatable.add(name_of_record(kind, record->key.name));
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
        fmt::format("Calico says that nothing may be assigned from {}, which the target could not record: finish the "
                    "deletion of the pool, or end its overlap",
                    not_allocatable.text()));
  }
  unnameable.tell(plan.obstacles);
  const bool from_cluster = context.from.store.capabilities().kubernetes_services;
  for (const Kind kind : core::audit::kStayingKinds) {
    if (kind == Kind::service && from_cluster) continue;  // Kubernetes' own
    Names staying;
    Walk walk(context.from.store, kind, context);
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

[[nodiscard]] Result<void> look_at_nodes(const MoveContext& context, MovePlan& plan) {
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
    copying.marks = context_.to.store.capabilities().keeps_tokens;
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
      TRY_VOID(copy(context_, options_, report_, others_of(seals)));
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
      TRY_VOID(copy(context_, options_, report_, others_of(seals)));
      Names differing;
      TRY(const auto kinds, compare(context_, &differing));
      if (differing.empty()) {
        report_.compared = 0;
        for (const KindDifference& kind : kinds) report_.compared += kind.same;
        break;
      }
      if (pass == kPassesMax) {
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
  if (plan.step == MoveStep::begin || plan.step == MoveStep::look) {
    TRY(auto obstacles, own_records_of_target(context));
    std::ranges::move(obstacles, std::back_inserter(plan.obstacles));
  }
  TRY_VOID(look_at_nodes(context, plan));
  std::optional<Others> others;
  const bool is_filling = plan.step == MoveStep::copy || plan.step == MoveStep::finish;
  if (is_filling && !options.overwrite) others.emplace(*values.target);
  if (auto kinds = compare(context, nullptr, others ? &*others : nullptr)) {
    plan.kinds = *std::move(kinds);
    if (others && !others->empty()) plan.obstacles.push_back(others->told().message);
  } else if (kinds.error().code != ErrorCode::refused_for_safety) {
    return fail(kinds.error());
  }
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
