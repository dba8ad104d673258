#pragma once

#include <chrono>
#include <cstddef>
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

/// One write to a history. All of it is written, or nothing.
struct HistoryEntry {
  std::vector<core::history::Changes> changes;  ///< in their order
  std::optional<core::history::Gap> gap{};
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
  };
  virtual ~HistoryLog() = default;
  [[nodiscard]] virtual Result<State> state() = 0;
  [[nodiscard]] virtual Result<void> write(const HistoryEntry& entry) = 0;
};

/// Records what the blocks of a register say, by a watch of them, also of Calico's. After any failure everything is
/// read anew and compared with what the history has open: what changed meanwhile is known by two looks, and what came
/// and went is a gap. For one thread. References outlive it.
class Recorder {
 public:
  Recorder(const Context& context, HistoryLog& log) : context_(context), log_(log) {}

  /// Takes in what changes within a second or so; the first call, and the one after a failure, reads everything.
  [[nodiscard]] Result<void> step();

  /// That many addresses are held.
  [[nodiscard]] std::size_t open_count() const { return open_.size(); }

 private:
  [[nodiscard]] Result<void> begin();
  [[nodiscard]] Result<void> follow();
  [[nodiscard]] Result<void> read_pools();
  void take_in(const net::Prefix& range, const core::Block* block, core::history::Moment seen, HistoryEntry& entry);
  [[nodiscard]] Result<void> write(HistoryEntry& entry);

  const Context context_;
  HistoryLog& log_;
  std::unique_ptr<store::Watch> watch_;
  core::history::Open open_;
  std::map<net::Prefix, store::Revision> blocks_;  ///< as they were read last
  std::vector<std::pair<net::Prefix, std::string>> pools_;
  WallTime looked_{};  ///< everything until then has been taken in
  WallTime told_{};    ///< HistoryEntry::alive, the last
  std::chrono::nanoseconds next_uses_{0};
};

}  // namespace croft::engine
