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
constexpr std::string_view kNextMark = "next  ";

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

}  // namespace

std::string encode_commit_note(const CommitNote& note) { return encode(kMark, note.register_id, note.revision); }
std::string encode_file_note(const CommitNote& note) { return encode(kFileMark, note.register_id, note.in_file); }

std::string encode_next_note(const CommitNote& note) { return encode(kNextMark, note.next_id, note.next_revision); }

std::optional<CommitNote> CommitNote::of(std::int64_t id) const {
  if (id == register_id) return *this;
  if (id != next_id || id == 0) return std::nullopt;
  return CommitNote{next_id, next_revision, /*in_file=*/next_revision};
}

std::optional<CommitNote> decode_commit_note(std::string_view bytes) {
  const auto line = [&](std::size_t number) { return bytes.substr(std::min(number * kCommitNoteBytes, bytes.size())); };
  auto note = decode(kMark, line(0));
  if (!note) return note;
  const auto of_file = decode(kFileMark, line(1));
  if (of_file && of_file->register_id == note->register_id) note->in_file = of_file->revision;
  if (const auto next = decode(kNextMark, line(2))) {
    note->next_id = next->register_id;
    note->next_revision = next->revision;
  }
  return note;
}

std::optional<CommitNote> read_commit_note(const std::string& database_path) {
  constexpr std::size_t kBytesMax = 1U << 16;
  const auto bytes = os::read_file(database_path + kLockSuffix, kBytesMax);
  return bytes ? decode_commit_note(*bytes) : std::nullopt;
}

namespace {

Error commits_lost(const Database& database, std::int64_t revision, std::int64_t acknowledged,
                   std::string_view witness) {
  return {
      ErrorCode::corrupt,
      fmt::format("{0} is at revision {1}, but revision {2} was acknowledged ({0}{3} says so): commits are lost, and "
                  "nothing is handed out. Its log {0}-wal is damaged, or a file was put back by hand. Restore a "
                  "backup with \"croft store restore BACKUP\", or what is left with \"croft store restore {0}\"",
                  database.path(), revision, acknowledged, witness),
      {}};
}

Error another_register(const Database& database, const CommitNote& note) {
  return {ErrorCode::corrupt,
          fmt::format("{0} is not the register that was here: that one is named in {0}{1} and was at revision {2}. A "
                      "file was put back by hand, and nothing is handed out. Restore a backup with \"croft store "
                      "restore BACKUP\", or this one with \"croft store restore {0}\"; where nothing that the other "
                      "gave out is in use, remove {0}{1}",
                      database.path(), kLockSuffix, note.revision),
          {}};
}

/// The file is read once on opening, and again when it must have more than was seen.
Result<void> check_file(Database& database, std::int64_t last, std::int64_t by_log, std::int64_t by_note) {
  const std::int64_t expected = std::max(by_log, by_note);
  if (expected <= database.expected_in_file()) return {};
  const auto in_file = database.revision_in_file(expected);
  if (in_file && *in_file < expected) {
    return fail(commits_lost(database, *in_file, expected, by_log == expected ? "-wal" : kLockSuffix));
  }
  if (in_file && *in_file > last) {
    TRY(const std::int64_t now, database.last_revision());  // unless somebody has committed meanwhile
    if (*in_file > now) return fail(commits_lost(database, now, *in_file, ""));
  }
  database.expect_in_file(expected);
  return {};
}

}  // namespace

Result<void> check_against(Database& database, const std::optional<CommitNote>& note) {
  std::int64_t in_file_by_log = 0;
  {
    TRY(const auto row, database.prepare(Sql::register_id));
    TRY(const bool found, row->step());
    database.set_register_id(found ? row->number(0) : 0);
    if (found) in_file_by_log = row->number(1);
  }
  TRY(const std::int64_t last, database.last_revision());
  const auto known = note ? note->of(database.register_id()) : std::nullopt;
  if (note && !known) return fail(another_register(database, *note));
  if (known && last < known->revision) return fail(commits_lost(database, last, known->revision, kLockSuffix));
  return check_file(database, last, in_file_by_log, known ? known->in_file : 0);
}

Result<void> open_checked(Database& database) {
  const auto note = read_commit_note(database.path());
  TRY_VOID(database.open());
  auto checked = check_against(database, note);
  // A restore may have ended between the two.
  if (!checked && note && !note->of(database.register_id())) {
    checked = check_against(database, read_commit_note(database.path()));
  }
  return checked;
}

}  // namespace croft::store
