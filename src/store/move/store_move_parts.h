#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "store/move/store_move.h"
#include "store/store.h"

// What the files of a move share, and nobody else includes: store_move.cc has its steps and its seals,
// store_move_walk.cc how both stores are read side by side, store_move_copy.cc the copy and the comparison, and
// store_move_obstacles.cc what keeps a move from being begun.

namespace croft::engine {

/// The most records of a page.
inline constexpr std::size_t kMovePageRecords = 500;
/// How often a pass is made again because a reply was lost or somebody wrote meanwhile.
inline constexpr int kMovePassesMax = 8;

[[nodiscard]] inline Deadline soon(const MoveContext& context) {
  return Deadline::after(context.clock.now(), context.time_limit);
}

[[nodiscard]] std::string name_of_record(core::Kind kind, const std::string& name);

/// The records of a kind by name, a page at a time. A store that knows no such kind has none of it.
class StoreWalk {
 public:
  StoreWalk(store::Store& store, core::Kind kind, const MoveContext& context);
  /// Null at the end.
  [[nodiscard]] Result<store::Record*> current();
  void next() { ++at_; }

 private:
  void choose_next_limit();

  store::Store& store_;
  const MoveContext& context_;
  store::ListRequest request_;
  store::Page page_{{}, true, {}};
  std::size_t at_ = 0;
};

/// Calls `take(name, in_source, in_target)` for each name that one of the stores has, in order; null where it has none.
template <class Take>
[[nodiscard]] Result<void> side_by_side(const MoveContext& context, core::Kind kind, Take take) {
  StoreWalk from(context.from.store, kind, context), to(context.to.store, kind, context);
  while (true) {
    TRY(store::Record * here, from.current());
    TRY(store::Record * there, to.current());
    if (here == nullptr && there == nullptr) return {};
    const bool only_there = here == nullptr || (there != nullptr && there->key.name < here->key.name);
    const bool only_here = there == nullptr || (here != nullptr && here->key.name < there->key.name);
    const std::string name = only_there ? there->key.name : here->key.name;
    TRY_VOID(take(name, only_there ? nullptr : here, only_here ? nullptr : there));
    if (!only_there) from.next();
    if (!only_here) to.next();
  }
}

/// Whether the target keeps records of a kind.
[[nodiscard]] bool target_takes(const MoveContext& context, core::Kind kind);

/// What is to become of a name in the target.
struct Due {
  enum class What : std::uint8_t { nothing, write, remove } what = What::nothing;
  std::optional<core::Value> value;
};
[[nodiscard]] Due due_of(core::Kind kind, const store::Record* here, const store::Record* there);

/// Named ones and how many more there are.
class Names {
 public:
  void add(std::string name) {
    if (named_.size() < kNamedMax) named_.push_back(std::move(name));
    ++count_;
  }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  [[nodiscard]] std::string text() const;

 private:
  /// More are counted.
  static constexpr std::size_t kNamedMax = 5;
  std::vector<std::string> named_;
  std::uint64_t count_ = 0;
};

/// Which records of the target another program wrote while it was closed.
class Others {
 public:
  explicit Others(const core::Seal& target_seal);

  [[nodiscard]] std::uint64_t mark() const { return mark_; }

  /// Notes a record that is not as it is to be and that this move did not write. Whether it is one.
  bool note(core::Kind kind, const std::string& name, const store::Record* here, const store::Record* there);
  /// What a block is after this move wrote it, or found it as it is to be.
  void expect(const std::string& block, store::Revision revision) {
    if (!marks_) blocks_[block] = revision;
  }
  void expect_none(const std::string& block) { blocks_.erase(block); }
  void begin_pass() { names_ = {}; }
  /// A pass that saw everything is over.
  void pass_is_over() { knows_blocks_ = !marks_; }

  [[nodiscard]] bool empty() const { return names_.empty(); }
  [[nodiscard]] Error told() const;

 private:
  [[nodiscard]] bool is_anothers(core::Kind kind, const std::string& name, const store::Record* here,
                                 const store::Record& there) const;

  const std::uint64_t mark_;
  const bool marks_;
  bool knows_blocks_ = false;
  std::map<std::string, store::Revision> blocks_;
  Names names_;
};

/// The target becomes as the source is, but for what others wrote, unless that is to be overwritten; until a pass was
/// made to its end. How many records were other.
[[nodiscard]] Result<std::uint64_t> copy_register(const MoveContext& context, const MoveOptions& options,
                                                  MoveReport& report, Others& others);

/// What a target has of its own, that nobody copied.
class OwnRecords {
 public:
  void note(core::Kind kind, const std::string& name, const store::Record* here, const store::Record* there,
            Due::What due);
  /// Each is an obstacle.
  [[nodiscard]] std::vector<std::string> obstacles() const;

 private:
  Names other_, extra_;
};
[[nodiscard]] Result<std::vector<std::string>> own_records_of_target(const MoveContext& context);

/// Who wants to know of what differs; null: nobody.
struct Differences {
  Names* names = nullptr;
  Others* others = nullptr;
  OwnRecords* own = nullptr;
};
/// How both stores differ now, record by record, without writing. Error: refused_for_safety for a damaged record.
[[nodiscard]] Result<std::vector<KindDifference>> compare_registers(const MoveContext& context,
                                                                    const Differences& differences);

/// What of the source cannot move: damaged records, what the target has no name for, and kinds that stay.
[[nodiscard]] Result<void> look_at_source(const MoveContext& context, const MoveOptions& options, MovePlan& plan);

/// Which nodes the target's cluster does not have.
[[nodiscard]] Result<void> look_at_nodes(const MoveContext& context, MovePlan& plan);

}  // namespace croft::engine
