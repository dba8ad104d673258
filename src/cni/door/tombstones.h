#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "cni/door/cni_call.h"
#include "cni/format/tombstone.h"
#include "ipam/use/transact.h"
#include "os/file_lock.h"
#include "register/owner.h"

// The files that DELs leave on the disk of their node while neither agent nor store can be reached. Each owner has one,
// by which the release is made up for later (docs/formats/tombstones.md, docs/promises.md#promise-3).
//
// A DEL can't read the sequence number of what it would release: the store is away. So a tombstone is of an owner, and
// an ADD of that owner removes it, durably, before it asks for anything. A replay holds the lock of the directory from
// looking whether a tombstone is there until it is gone; an ADD that finds one waits for that lock.

namespace croft::edge {

inline constexpr const char* kDefaultTombstones = "/var/lib/croft/tombstones";
/// In place of a directory: none are left, and a DEL fails while the store is away.
inline constexpr const char* kNoTombstones = "none";
/// How many a node keeps of owners whose ADD succeeded, as the runtime says: a node has not so many pods. None of them
/// is ever dropped.
inline constexpr std::size_t kTombstonesMax = 10'000;
/// How many of others. Beyond that the oldest goes: the collector finds what its owner may hold.
inline constexpr std::size_t kUnsureMax = 1'000;

/// The failures of a release that may be gone later by themselves, or by a mended store: those after which the runtime
/// is told to try again.
[[nodiscard]] bool can_be_replayed_later(ErrorCode code);

/// One directory. Safe to use from several threads and processes at once. Nothing there is an empty one.
class Tombstones {
 public:
  /// With an empty directory, or kNoTombstones, none are kept.
  Tombstones(std::string directory, const Clock& clock);

  /// A DEL's knowledge of an ADD of its owner: the runtime hands over the result of one that succeeded, or does not.
  enum class Sign : std::uint8_t { none, result };
  /// Leaves one, durably, in place of an earlier one of the owner; `left_at` is set here. The directory is made when it
  /// is missing. Answers how many of others, likewise without a sign, had to go for it. Errors:
  /// refused_by_configuration when none are kept; exhausted beyond kTombstonesMax; the file system's.
  [[nodiscard]] Result<std::size_t> leave(wire::Tombstone tombstone, Sign sign = Sign::none) const;

  /// To be called before an ADD of the owner asks anybody: an earlier DEL must not take what it gets. Whether there was
  /// a tombstone. Errors, none of which may be passed over: deadline_exceeded while it is being replayed; the file
  /// system's. Where this user may not even look there can be none of its own.
  [[nodiscard]] Result<bool> lift(const core::Owner& owner, Deadline deadline) const;

  struct Waiting {
    std::string path;
    /// Or why it can't be read. A file that was set aside as damaged is corrupt, whatever it holds by now.
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
    /// Into how many files it looks, whoever they are for.
    std::size_t looks_max = 256;
  };
  struct Replayed {
    std::size_t done = 0;
    bool is_store_away = false;  ///< the last one failed in a way that may pass: it stays
  };
  /// Releases for those who could not, as far as it gets, those with a sign first; never fails. A file that can't be
  /// read is set aside with the ending `.damaged`. The context's store is the one that is_ours means; its limits are
  /// cut to the deadline.
  Replayed replay(const engine::Context& context, const Replay& what) const;

 private:
  [[nodiscard]] bool are_kept() const { return !directory_.empty(); }
  [[nodiscard]] std::string path_of(std::string_view name) const;
  enum class Outcome { done, left, away };
  [[nodiscard]] Result<std::size_t> make_room_for(const std::string& unsure) const;
  [[nodiscard]] Outcome replay_one(const std::string& name, const engine::Context& context, const Replay& what) const;

  std::string directory_;
  const Clock& clock_;
};

// The common part of the personalities on a cluster's register: the queue of a node's calls, and DELs that wait for a
// store.

/// The turn of a call among those of its node that go to the store themselves: 110 at once are a queue then, and no
/// race for one block. The kernel drops it with the process. Nothing rests on it: who can't have it until `deadline`
/// goes on without, and a line in the log says why. The file's directory is made when it is missing.
/// `before_waiting` is called once where another has the turn: for what then need not be done in it.
class NodeTurn {
 public:
  NodeTurn(const CniCall& call, const Clock& clock, std::string lock_file, Deadline deadline,
           const std::function<void()>& before_waiting = {});

 private:
  os::FileLock lock_;
};

/// The answer of a DEL that failed with `why`: left for later, where that failure may pass and a tombstone could be
/// left, else the failure. `sign` as Tombstones::leave has it.
[[nodiscard]] Result<GivenBack> defer_release(const Tombstones& tombstones, wire::Tombstone tombstone,
                                              Tombstones::Sign sign, const Error& why);

/// At the begin of an ADD (Tombstones::lift).
[[nodiscard]] Result<bool> lift_tombstone(const Tombstones& tombstones, const core::Owner& owner, const Clock& clock);
/// The words about it for the log; mostly none.
[[nodiscard]] std::string lifted_text(bool was_lifted);

/// Makes up for a few earlier DELs once a call has opened the store with this URL and done its own work.
void replay_some(const Tombstones& tombstones, const engine::Context& context, const std::string& store_url,
                 const CniCall::WriteLine& write);

}  // namespace croft::edge
