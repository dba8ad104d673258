#include "store/sqlite/commit_note.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "os/files.h"
#include "store/sqlite/checksum.h"
#include "store/sqlite/open_store.h"

namespace croft::store {
namespace {

constexpr std::string_view kMark = "croft ";
constexpr std::string_view kFileMark = "file  ";
constexpr std::string_view kDamageMark = "damage";
constexpr std::string_view kNextMark = "next  ";
constexpr std::string_view kReplacedMark = "before";
constexpr std::size_t kLockFileBytesMax = 1U << 16;

std::uint64_t sum_of(std::string_view text) {
  Checksum sum;
  sum.add(text);
  return sum.value();
}

template <class Number>
bool read_number(std::string_view text, int base, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

/// "croft ", 16 hexadecimal digits, a space, 20 decimal ones, a space, 16 hexadecimal ones of the checksum of all
/// before that space, spaces, a newline.
constexpr std::size_t kIdAt = 6;
constexpr std::size_t kRevisionAt = 23;
constexpr std::size_t kSummed = 43;

}  // namespace

namespace {

std::string encode(std::string_view mark, std::int64_t id, std::int64_t revision) {
  const std::string text = fmt::format("{}{:016x} {:020}", mark, id, revision);
  return fmt::format("{:<{}}\n", fmt::format("{} {:016x}", text, sum_of(text)), kCommitNoteBytes - 1);
}

std::optional<CommitNote> decode(std::string_view mark, std::string_view bytes) {
  if (bytes.size() < kCommitNoteBytes || !bytes.starts_with(mark)) return std::nullopt;
  CommitNote note;
  std::uint64_t sum = 0;
  const bool read = read_number(bytes.substr(kIdAt, 16), 16, note.register_id) &&
                    read_number(bytes.substr(kRevisionAt, 20), 10, note.revision) &&
                    read_number(bytes.substr(kSummed + 1, 16), 16, sum);
  if (!read || sum != sum_of(bytes.substr(0, kSummed))) return std::nullopt;
  return note;
}

Error commits_lost(const Database& database, std::int64_t revision, std::int64_t acknowledged,
                   std::string_view witness) {
  return {
      ErrorCode::corrupt,
      fmt::format("{0} is at revision {1}, but revision {2} was acknowledged ({0}{3} says so): commits are lost, and "
                  "nothing is handed out. Its log {0}-wal is damaged, or a file was put back by hand. Restore a "
                  "backup with \"croft --store sqlite:{0} store restore BACKUP\", or what is left with \"croft --store "
                  "sqlite:{0} store "
                  "restore {0}\"",
                  database.path(), revision, acknowledged, witness),
      {}};
}

Error another_register(const Database& database, const CommitNote& note) {
  return {ErrorCode::corrupt,
          fmt::format("{0} is not the register that was here: that one is named in {0}{1} and was at revision {2}. A "
                      "file was put back by hand, and nothing is handed out. Restore a backup with \"croft --store "
                      "sqlite:{0} store restore BACKUP\", or this one with \"croft --store sqlite:{0} store restore "
                      "{0}\"; where nothing that the other "
                      "gave out is in use, remove {0}{1}",
                      database.path(), kLockSuffix, note.revision),
          {}};
}

Error log_is_older(const Database& database, std::int64_t in_file, std::int64_t with_log) {
  return {
      ErrorCode::corrupt,
      fmt::format(
          "{0} itself has revision {1}, but with its log {0}-wal it is at revision {2}: a log of an earlier "
          "time was put back by hand. Nothing is handed out: restore a backup with \"croft --store sqlite:{0} store "
          "restore BACKUP\", or what is left with \"croft --store sqlite:{0} store restore {0} --force --cni-cache "
          "/var/lib/cni\"",
          database.path(), in_file, with_log),
      {}};
}

}  // namespace

std::string encode_commit_note(const CommitNote& note) { return encode(kMark, note.register_id, note.revision); }
std::string encode_file_note(const CommitNote& note) { return encode(kFileMark, note.register_id, note.in_file); }
std::string encode_damage_note(const CommitNote& note) {
  return encode(kDamageMark, note.register_id, note.damaged ? 1 : 0);
}

std::string encode_next_note(const CommitNote& note) { return encode(kNextMark, note.next_id, note.next_revision); }

std::optional<CommitNote> CommitNote::of(std::int64_t id) const {
  if (id == register_id) return *this;
  if (id != next_id || id == 0) return std::nullopt;
  return CommitNote{next_id, next_revision, /*in_file=*/next_revision};
}

std::optional<CommitNote> decode_commit_note(std::string_view bytes) {
  auto note = decode(kMark, bytes);
  if (!note) return note;
  // The number of a line that is of this register too.
  const auto number = [&](std::string_view mark, std::size_t at) {
    const auto line = bytes.size() < at ? std::nullopt : decode(mark, bytes.substr(at));
    return line && line->register_id == note->register_id ? line->revision : 0;
  };
  note->in_file = number(kFileMark, kFileNoteAt);
  note->damaged = number(kDamageMark, kDamageNoteAt) != 0;
  const auto next = bytes.size() < kNextNoteAt ? std::nullopt : decode(kNextMark, bytes.substr(kNextNoteAt));
  if (next) {
    note->next_id = next->register_id;
    note->next_revision = next->revision;
  }
  return note;
}

std::optional<CommitNote> read_commit_note(const std::string& database_path) {
  const auto bytes = os::read_file(database_path + kLockSuffix, kLockFileBytesMax);
  return bytes ? decode_commit_note(*bytes) : std::nullopt;
}

std::string encode_replaced(const std::vector<std::int64_t>& register_ids) {
  std::string lines;
  for (const std::int64_t id : register_ids) {
    if (lines.size() < kReplacedMax * kCommitNoteBytes) lines += encode(kReplacedMark, id, 0);
  }
  return lines;
}

std::vector<std::int64_t> read_replaced(const std::string& database_path) {
  std::vector<std::int64_t> ids;
  const auto bytes = os::read_file(database_path + kLockSuffix, kLockFileBytesMax);
  if (!bytes) return ids;
  for (std::size_t at = kReplacedNotesAt; at < bytes->size() && ids.size() < kReplacedMax; at += kCommitNoteBytes) {
    const auto line = decode(kReplacedMark, std::string_view(*bytes).substr(at));
    if (line) ids.push_back(line->register_id);
  }
  return ids;
}

Result<void> check_against(Database& database, const std::optional<CommitNote>& note) {
  std::int64_t in_file_by_log = 0;
  {
    TRY(const auto row, database.prepare(Sql::register_id));
    TRY(const bool found, row->step());
    database.set_register_id(found ? row->number(0) : 0);
    if (found) in_file_by_log = row->number(1);
  }
  const auto known = note ? note->of(database.register_id()) : std::nullopt;
  const std::int64_t expected = std::max(in_file_by_log, known ? known->in_file : 0);
  const std::int64_t acknowledged = known ? known->revision : 0;
  // Once on opening, and again when it must have more than was seen; before the revision on top of it, which only
  // grows.
  std::optional<std::int64_t> in_file;
  if (expected > database.expected_in_file()) in_file = database.revision_in_file(expected);
  TRY(const std::int64_t last, database.last_revision());
  if (note && !known) return fail(another_register(database, *note));
  if (in_file && *in_file > last) return fail(log_is_older(database, *in_file, last));
  if (last < acknowledged) return fail(commits_lost(database, last, acknowledged, kLockSuffix));
  if (in_file && *in_file < expected) {
    return fail(commits_lost(database, *in_file, expected, in_file_by_log == expected ? "-wal" : kLockSuffix));
  }
  database.expect_in_file(expected);
  return {};
}

Result<std::optional<CommitNote>> open_checked(Database& database) {
  auto note = read_commit_note(database.path());
  TRY_VOID(database.open());
  TRY_VOID(refuse_unfinished_restore(database.path()));
  auto checked = check_against(database, note);
  if (!checked && note && !note->of(database.register_id())) {
    // A restore may have ended between the two.
    note = read_commit_note(database.path());
    checked = check_against(database, note);
  }
  if (!checked) return fail(checked.error());
  return note;
}

}  // namespace croft::store
