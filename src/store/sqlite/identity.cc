#include "store/sqlite/identity.h"

#include <charconv>

#include <fmt/format.h>

#include "os/files.h"

namespace croft::store {
namespace {

constexpr std::size_t kLockFileBytesMax = 1U << 16;

/// "croft ", 16 hexadecimal digits, a space, 20 decimal ones, a space, 16 hexadecimal ones of the checksum of all
/// before that space, spaces, a newline.
constexpr std::string_view kMark = "croft ";
constexpr std::size_t kIdAt = 6;
constexpr std::size_t kRevisionAt = 23;
constexpr std::size_t kSummed = 43;

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

Error refused(const Database& database, const std::string& why) {
  return {ErrorCode::corrupt,
          fmt::format("{0} {1}. Nothing is handed out; follow docs/runbooks/backup-and-restore.md: \"croft --store "
                      "sqlite:{0} store restore BACKUP --cni-cache /var/lib/cni\"",
                      database.path(), why),
          {}};
}

}  // namespace

std::string encode_commit_note(const Identity& note) {
  const std::string text = fmt::format("{}{:016x} {:020}", kMark, note.register_id, note.revision);
  return fmt::format("{:<{}}\n", fmt::format("{} {:016x}", text, sum_of(text)), kCommitNoteBytes - 1);
}

std::optional<Identity> decode_commit_note(std::string_view bytes) {
  if (bytes.size() < kCommitNoteBytes || !bytes.starts_with(kMark)) return std::nullopt;
  Identity note;
  std::uint64_t sum = 0;
  const bool read = read_number(bytes.substr(kIdAt, 16), 16, note.register_id) &&
                    read_number(bytes.substr(kRevisionAt, 20), 10, note.revision) &&
                    read_number(bytes.substr(kSummed + 1, 16), 16, sum);
  if (!read || sum != sum_of(bytes.substr(0, kSummed))) return std::nullopt;
  return note;
}

std::optional<Identity> read_commit_note(const std::string& database_path) {
  const auto bytes = os::read_file(database_path + "-lock", kLockFileBytesMax);
  return bytes ? decode_commit_note(*bytes) : std::nullopt;
}

Result<Identity> check_identity(Database& database) {
  TRY(const Identity now, database.identity());
  TRY(const bool fits, database.fits_its_log());
  const std::optional<Identity>& note = database.expected();
  if (!fits) return fail(refused(database, "and its log -wal are of two times: one of them was put back by hand"));
  if (note && note->register_id != now.register_id && note->register_id != now.replaced) {
    return fail(
        refused(database, fmt::format("is not the register that was here, which {}-lock names", database.path())));
  }
  if (note && now.revision < note->revision) {
    return fail(refused(database, fmt::format("is at revision {}, but {}-lock says that revision {} was acknowledged: "
                                              "commits are lost, as its log is damaged or a file was put back by hand",
                                              now.revision, database.path(), note->revision)));
  }
  return now;
}

}  // namespace croft::store
