#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "os/files.h"
#include "store/sqlite/commit_queue.h"
#include "store/sqlite/database.h"
#include "store/sqlite/identity.h"

namespace croft::store {

/// The connections of one store: the first serves whoever is inside the gate and, while it is idle, readers; a second,
/// opened when it is first needed, serves readers meanwhile. A plugin never needs the second. On a full disk, where
/// only one connection of one process can be open (Database::Mode::alone), everybody goes through the gate, and the
/// connection is closed when the gate is left; each new one tries the shared mode again.
///
/// Each use compares the files with those that the path names (Database::is_current), and in its transaction the
/// register with the note in the lock file and with what was seen last (check_identity). When files were replaced, or
/// an older state was written over them, all connections are closed, since SQLite keeps one mapping of the index for a
/// whole process, and opened anew in a new generation, and the use is run again. Safe to call from several threads.
class ConnectionPool {
 public:
  using Use = std::function<Result<void>(Database&)>;

  ConnectionPool(std::string path, const Clock& clock, WriterGate& gate)
      : path_(std::move(path)), clock_(clock), gate_(gate) {}

  /// Runs `use` on some connection, in a read transaction: all of it sees one moment. It may be run again, after it
  /// failed.
  [[nodiscard]] Result<void> read(Deadline deadline, const Use& use);

  /// Runs `use` on the first connection, outside a transaction; the thread must be inside the gate. It may be run
  /// again, after it failed, and calls check_identity() in its transaction.
  [[nodiscard]] Result<void> write(Deadline deadline, const Use& use);
  /// The register as a transaction saw or committed it.
  void note_seen(const Identity& seen);

  /// To be called before the gate is left.
  void before_leaving_gate();

  /// How often the files were found replaced, or put back to an older state.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// After a failure of the disk: nothing more can be believed until the store is opened again or its files are
  /// replaced.
  void break_with(const Error& why);

 private:
  struct Slot {
    std::mutex mutex;  ///< guards database
    std::unique_ptr<Database> database;
  };

  /// Runs `use`. `replaced`: the connection must not be used any more, and what the use did is void.
  [[nodiscard]] Result<void> use_slot(Slot& slot, Deadline deadline, const Use& use, bool& replaced);
  [[nodiscard]] Result<void> use_current(Deadline deadline, const std::function<Result<void>(bool& replaced)>& use);
  void close_all(std::uint16_t generation);
  [[nodiscard]] Result<void> check_there(const std::optional<os::FileStatus>& there) const;
  [[nodiscard]] Result<void> open(Slot& slot, Database::Mode mode, Deadline deadline, bool& replaced);
  [[nodiscard]] Result<void> read_alone(Deadline deadline, const Use& use);

  const std::string path_;
  const Clock& clock_;
  WriterGate& gate_;
  Slot first_;
  Slot second_;
  std::atomic<std::uint16_t> generation_{0};
  mutable std::mutex mutex_;  ///< guards all below
  std::optional<Error> broken_;
  Identity seen_;  ///< the newest that any connection of this generation saw
};

}  // namespace croft::store
