#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/sqlite/database.h"
#include "store/sqlite/writer_gate.h"

namespace croft::store {

/// The connections of one store: the first serves whoever is inside the gate and, while it is idle, readers; a second,
/// opened when it is first needed, serves readers meanwhile. A plugin never needs the second. On a full disk, where
/// only one connection of one process can be open (Database::Mode::alone), everybody goes through the gate, and the
/// connection is closed when the gate is left; each new one tries the shared mode again.
///
/// Before each use a connection must still have the files that the path names (Database::is_current); when they were
/// replaced, all are closed and opened anew, in a new generation, and the use gets a connection of that. Safe to call
/// from several threads.
class ConnectionPool {
 public:
  using Use = std::function<Result<void>(Database&)>;

  ConnectionPool(std::string path, const Clock& clock, WriterGate& gate)
      : path_(std::move(path)), clock_(clock), gate_(gate) {}

  /// Runs `use` on some connection, for reading.
  [[nodiscard]] Result<void> read(Deadline deadline, const Use& use);

  /// Runs `use` on the first connection; the thread must be inside the gate.
  [[nodiscard]] Result<void> write(Deadline deadline, const Use& use);

  /// To be called before the gate is left.
  void before_leaving_gate();

  /// The disk failed under some connection, or something in the register is damaged: why nothing more can be believed,
  /// until the store is opened again or its files are replaced.
  [[nodiscard]] std::optional<Error> broken() const;
  /// How often the files were found replaced.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// Breaks the pool from now on.
  void break_with(const Error& why);

 private:
  struct Slot {
    std::mutex mutex;  ///< guards database
    std::unique_ptr<Database> database;
  };

  /// Runs `use`, or does nothing and sets `replaced`.
  [[nodiscard]] Result<void> use_slot(Slot& slot, Deadline deadline, const Use& use, bool& replaced);
  [[nodiscard]] Result<void> use_current(Deadline deadline, const std::function<Result<void>(bool& replaced)>& use);
  void close_replaced();
  [[nodiscard]] Result<void> check_there() const;
  [[nodiscard]] Result<void> read_on_some_slot(Deadline deadline, const Use& use, bool& replaced);
  [[nodiscard]] Result<void> open_current(Slot& slot, Deadline deadline, bool& replaced);
  [[nodiscard]] Result<void> open(Slot& slot, Database::Mode mode, Deadline deadline);
  [[nodiscard]] Result<void> read_alone(Deadline deadline, const Use& use);
  void note_trouble(const Slot& slot, const Result<void>& used);

  const std::string path_;
  const Clock& clock_;
  WriterGate& gate_;
  Slot first_;
  Slot second_;
  mutable std::mutex broken_mutex_;  ///< guards broken_
  std::optional<Error> broken_;
  std::atomic<std::uint16_t> generation_{0};
};

}  // namespace croft::store
