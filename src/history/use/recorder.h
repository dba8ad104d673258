#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/net/prefix.h"
#include "history/decide/holding.h"
#include "ipam/use/transact.h"
#include "store/store.h"

namespace croft::engine {

/// How many addresses of a pool were in use.
struct PoolUse {
  std::string pool;
  double used = 0;  ///< held, or resting
  double room = 0;  ///< that there are, without those kept out of use
};

/// A time in which not every state of a block was seen.
struct UnseenBlock {
  net::Prefix block;
  WallTime from{};
  WallTime until{};  ///< kNotOver: it is not readable
};

/// One write to a history. All of it is written, or nothing.
struct HistoryEntry {
  std::vector<core::history::Changes> changes;  ///< in their order
  std::vector<UnseenBlock> unseen{};
  std::optional<core::history::Gap> gap{};  ///< one that begins at the same time becomes longer
  bool begins = false;                      ///< an UnseenBlock that is not over ends with the gap
  std::vector<PoolUse> uses{};
  WallTime at{};                    ///< of the uses
  std::optional<WallTime> alive{};  ///< everything until then is recorded
};

/// A history that is written by one recorder. Errors of every call: as a store's.
class HistoryLog {
 public:
  struct State {
    std::optional<WallTime> alive;  ///< absent: it is new
    core::history::Open open;
    WallTime latest{};  ///< of what is recorded; it may be later than `alive`
  };
  virtual ~HistoryLog() = default;
  [[nodiscard]] virtual Result<State> state() = 0;
  [[nodiscard]] virtual Result<void> write(const HistoryEntry& entry) = 0;
};

/// Records what the blocks of a register say, by a watch of them, also of Calico's. It is as far as the store says that
/// the watch is complete (store::Watch::is_complete_up_to), and no further. After any failure, and where the store has
/// not said so for minutes, everything is read anew and compared with what the history has open: what changed meanwhile
/// is known by two looks, and what came and went is a gap. For one thread. References outlive it.
class Recorder {
 public:
  /// `is_ending`: the caller waits for the end of a step. Empty: it never does. `last`: that of the recorder before, in
  /// this process; it tells whether the clock was set back since.
  Recorder(const Context& context, HistoryLog& log, std::function<bool()> is_ending = {}, const Instant& last = {})
      : context_(context), log_(log), is_ending_(std::move(is_ending)), last_(last) {}

  /// Takes in what changes within half a second or so; the first call, and the one after a failure, reads everything.
  [[nodiscard]] Result<void> step();

  /// When it last stepped.
  [[nodiscard]] const Instant& last_step() const { return last_; }
  /// That many addresses are held.
  [[nodiscard]] std::size_t open_count() const { return open_.size(); }

 private:
  /// A block as it was taken in last.
  struct Known {
    store::Revision revision{};
    core::SequenceNumber sequence{};  ///< one more with each write of it
    /// It could not be read since.
    std::optional<WallTime> unreadable_since{};
  };
  /// A position that everything made before `at` is up to.
  struct Asked {
    WallTime at{};
    store::Revision position{};
  };

  [[nodiscard]] Result<void> begin();
  [[nodiscard]] Result<void> follow();
  [[nodiscard]] Result<void> take(const store::Change& change, const core::history::Moment& seen, HistoryEntry& entry);
  [[nodiscard]] Result<void> read_pools();
  /// As it is in the list of all; null: it cannot be read, and holds what it held.
  void take_listed(const net::Prefix& range, const core::Block* block, const core::history::Moment& seen,
                   HistoryEntry& entry);
  void take_in(const net::Prefix& range, const core::Block* block, const core::history::Moment& seen,
               HistoryEntry& entry);
  void count_uses(const Instant& now, HistoryEntry& entry);
  [[nodiscard]] Result<void> write(HistoryEntry& entry);
  /// The same where it has become large.
  [[nodiscard]] Result<void> write_some(HistoryEntry& entry);

  const Context context_;
  HistoryLog& log_;
  const std::function<bool()> is_ending_;
  std::unique_ptr<store::Watch> watch_;
  std::vector<store::Change> early_;  ///< those that came before the list was read
  core::history::Open open_;
  std::map<net::Prefix, Known> blocks_;
  std::vector<std::pair<net::Prefix, std::string>> pools_;
  WallTime looked_{};        ///< everything until then has been taken in
  WallTime told_{};          ///< HistoryEntry::alive, the last
  Instant last_;             ///< of the last step
  std::deque<Asked> asked_;  ///< and not yet passed, ascending
  std::chrono::nanoseconds next_question_{0}, proven_{0}, next_uses_{0};
};

}  // namespace croft::engine
