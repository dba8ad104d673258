#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "core/register/owner.h"
#include "engine/transact.h"
#include "wire/tombstone/tombstone.h"

// What DELs leave on the disk of their node while neither agent nor store can be reached: a file for each owner, by
// which the release is made up for later (docs/formats/tombstones.md, docs/promises.md#promise-3).
//
// A DEL can't read the sequence number of what it would release: the store is away. So a tombstone is of an owner, and
// an ADD of that owner makes it void before it asks for anything. Who replays one holds the lock of the directory from
// looking whether it is there until it is gone; an ADD that finds one waits for that lock. A DEL that hangs may leave
// one only after such an ADD looked: so a tombstone says when its DEL began, and what was made since stays.
namespace croft::edge {

inline constexpr const char* kDefaultTombstones = "/var/lib/croft/tombstones";
/// In place of a directory: none are left, and a DEL fails while the store is away.
inline constexpr const char* kNoTombstones = "none";
/// How many a node keeps.
inline constexpr std::size_t kTombstonesMax = 10'000;

/// Which of the failures of a release may be gone later by themselves or by what somebody does to the store: those that
/// the runtime is told to try again after.
[[nodiscard]] bool can_be_made_up_for(ErrorCode code);

/// One directory. Safe to use from several threads and processes at once. Nothing there is an empty one.
class Tombstones {
 public:
  /// Of an empty directory, or kNoTombstones, none are kept.
  Tombstones(std::string directory, const Clock& clock);

  /// Leaves one, durably, in place of an earlier one of the owner, with the later of the two beginnings; `left_at` is
  /// set here, and so is `began_at` where it is not given. The directory is made when it is missing. Errors:
  /// refused_by_configuration when none are kept; exhausted beyond kTombstonesMax; the file system's.
  [[nodiscard]] Result<void> leave(wire::Tombstone tombstone) const;

  /// To be called before an ADD of the owner asks anybody: an earlier DEL must not take what it gets. Whether there was
  /// a tombstone. Errors, none of which may be passed over: deadline_exceeded while it is being replayed; the file
  /// system's. Where this user may not even look there can be none of its own.
  [[nodiscard]] Result<bool> lift(const core::Owner& owner, Deadline deadline) const;

  struct Waiting {
    std::string path;
    /// Or why it can't be read. What was set aside as damaged is corrupt, whatever it holds by now.
    Result<wire::Tombstone> content;
  };
  /// All that are there now, those that were set aside too, by path. Takes no lock and changes nothing. Errors: the
  /// file system's, where the directory can't be listed.
  [[nodiscard]] Result<std::vector<Waiting>> waiting() const;

  struct Replay {
    /// Which stores are meant; others' tombstones are left to others.
    std::function<bool(std::string_view url)> is_ours;
    /// Takes a line for the log, without newline, for each that was replayed or set aside; never fails.
    std::function<void(const std::string& line)> log;
    std::size_t count_max = 4;
    Deadline deadline;
    /// Those that are younger are left alone.
    std::chrono::seconds age_min{0};
    /// Into how many files it looks, whoever they are for.
    std::size_t looks_max = 256;
  };
  struct Replayed {
    std::size_t done = 0;
    bool is_store_away = false;  ///< the last one failed in a way that may pass: it stays
  };
  /// Releases for those who could not, as far as it gets; never fails. What can't be read is set aside with the ending
  /// `.damaged`. The context's store is the one that is_ours means; its limits are cut to the deadline.
  Replayed replay(const engine::Context& context, const Replay& what) const;

  /// Whether a replay could have the directory's lock. Errors: invalid_argument, naming it, where something else is in
  /// its place; deadline_exceeded while another has it; the file system's.
  [[nodiscard]] Result<void> try_lock(Deadline deadline) const;

 private:
  [[nodiscard]] bool are_kept() const { return !directory_.empty(); }
  [[nodiscard]] std::string path_of(std::string_view name) const;
  enum class Outcome { done, left, away };
  [[nodiscard]] Outcome replay_one(const std::string& name, const engine::Context& context, const Replay& what) const;

  std::string directory_;
  const Clock& clock_;
};

}  // namespace croft::edge
