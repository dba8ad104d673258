#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "store/sqlite/database.h"

namespace croft::store {

/// A 64-bit sum over several byte strings that tells damage, not attacks: any change within one 8-byte word changes it.
/// Fixed by docs/formats/records.md; stored with every record.
class Checksum {
 public:
  void add(std::uint64_t word) {
    sum_ = (sum_ ^ word) * kMultiplier;
    sum_ ^= sum_ >> 32;
  }
  /// The length, then the bytes in little-endian words, the last one filled up with zeros.
  void add(std::string_view bytes) {
    add(std::uint64_t{bytes.size()});
    for (; bytes.size() >= 8; bytes.remove_prefix(8)) add(word_of(bytes.substr(0, 8)));
    if (!bytes.empty()) add(word_of(bytes));
  }
  [[nodiscard]] std::uint64_t value() const { return sum_; }

 private:
  static constexpr std::uint64_t kStart = 0xcbf29ce484222325;
  static constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15;

  static std::uint64_t word_of(std::string_view bytes) {
    static_assert(std::endian::native == std::endian::little);
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), bytes.size());
    return word;
  }

  std::uint64_t sum_ = kStart;
};

// The lock file beside a database has one line, the note of the last durable commit: the register's id and revision.
// It is outside the log, so it tells when SQLite takes a damaged log for one that ends early, or a file was put back by
// hand. Written after each commit, without a sync: behind the register it means nothing, ahead of it that acknowledged
// commits are lost.

inline constexpr std::size_t kCommitNoteBytes = 64;

/// kCommitNoteBytes, one line of text.
[[nodiscard]] std::string encode_commit_note(const Identity& note);
/// Nothing when it is none, or a damaged one: then nothing is known.
[[nodiscard]] std::optional<Identity> decode_commit_note(std::string_view bytes);
/// The note in the lock file of a path, without a lock. Nothing when there is none.
[[nodiscard]] std::optional<Identity> read_commit_note(const std::string& database_path);

/// Compares the register with what is expected of it (Database::expect), within a transaction. A restored register also
/// fits the note of the one that it replaced. Error: corrupt, naming the runbook, when it is another register or older
/// than the note, and when database and log are not of one time.
[[nodiscard]] Result<Identity> check_identity(Database& database);

}  // namespace croft::store
