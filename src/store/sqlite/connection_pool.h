#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "store/sqlite/commit_note.h"
#include "store/sqlite/database.h"
#include "store/sqlite/writer_gate.h"

namespace croft::store {

/// The connections of one store: the first serves whoever is inside the gate and, while it is idle, readers; a second,
/// opened when it is first needed, serves readers meanwhile. A plugin never needs the second. On a full disk, where
/// only one connection of one process can be open (Database::Mode::alone), everybody goes through the gate, and the
/// connection is closed when the gate is left; each new one tries the shared mode again.
///
/// Before each use a connection must still have the files that the path names (Database::is_current); when they were
/// replaced, or an older state was written over them (commit_mark.h), all are closed and opened anew, in a new
/// generation, and the use gets a connection of that. Where it meets
/// a page that another program copied from the log, the store is looked through, the page gets its checksum, and the
/// use begins again (adopt_copied_pages). Where one meets damage, the lock file says so from then on, and no opening
/// believes a page before all have been read (CommitNote::damaged). Safe to call from several threads.
class ConnectionPool {
 public:
  using Use = std::function<Result<void>(Database&)>;

  ConnectionPool(std::string path, const Clock& clock, WriterGate& gate)
      : path_(std::move(path)), clock_(clock), gate_(gate) {}

  /// Runs `use` on some connection, for reading. It may be run again, after it failed.
  [[nodiscard]] Result<void> read(Deadline deadline, const Use& use);

  /// Runs `use` on the first connection; the thread must be inside the gate. It may be run again, after it failed.
  [[nodiscard]] Result<void> write(Deadline deadline, const Use& use);

  /// When the note says that somebody met damage, reads every page. Error: corrupt, where there is any; else the note
  /// is mended.
  [[nodiscard]] Result<void> check_noted_damage(Database& database, const std::optional<CommitNote>& note);

  /// To be called before the gate is left.
  void before_leaving_gate();

  /// The disk failed under some connection, or something in the register is damaged: why nothing more can be believed,
  /// until the store is opened again or its files are replaced.
  [[nodiscard]] std::optional<Error> broken() const;
  /// How often the files were found replaced, or put back to an older state.
  [[nodiscard]] std::uint64_t generation() const { return generation_; }
  /// Breaks the pool from now on.
  void break_with(const Error& why);

 private:
  struct Slot {
    std::mutex mutex;  ///< guards database
    std::unique_ptr<Database> database;
  };

  /// What keeps a connection from being used, and can be mended.
  enum class Obstacle : std::uint8_t { none, replaced, page_without_sum };

  /// Runs `use`. With an obstacle what it did is void, if it was run.
  [[nodiscard]] Result<void> use_slot(Slot& slot, Deadline deadline, const Use& use, Obstacle& met);
  /// Attempts until one meets no obstacle. Errors: those of that attempt; deadline_exceeded; corrupt, when each meets
  /// one.
  [[nodiscard]] Result<void> use_current(Deadline deadline, const std::function<Result<void>(Obstacle& met)>& use);
  void close_replaced();
  [[nodiscard]] Result<void> adopt_copied(Deadline deadline);
  [[nodiscard]] Result<void> adopt_copied_inside(Deadline deadline);
  [[nodiscard]] Result<void> check_there() const;
  [[nodiscard]] Result<void> read_on_some_slot(Deadline deadline, const Use& use, Obstacle& met);
  [[nodiscard]] Result<void> open_current(Slot& slot, Deadline deadline, Obstacle& met);
  [[nodiscard]] Result<void> open(Slot& slot, Database::Mode mode, Deadline deadline, Obstacle& met);
  [[nodiscard]] Result<void> open_sound(Database& database);
  [[nodiscard]] Result<void> read_alone(Deadline deadline, const Use& use);
  [[nodiscard]] CommitMark seen() const;
  void note_seen(const CommitMark& seen);
  void note_trouble(const Database& database, const Result<void>& used, Obstacle& met);
  void note_damage(std::int64_t register_id, bool damaged);

  const std::string path_;
  const Clock& clock_;
  WriterGate& gate_;
  Slot first_;
  Slot second_;
  mutable std::mutex broken_mutex_;  ///< guards broken_
  std::optional<Error> broken_;
  std::atomic<std::uint16_t> generation_{0};
  mutable std::mutex seen_mutex_;  ///< guards seen_
  CommitMark seen_;                ///< the newest commit that any connection of this generation saw
};

}  // namespace croft::store
