#include "store/sqlite/set_aside.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/time_text.h"
#include "os/directory.h"
#include "os/file_lock.h"
#include "os/files.h"
#include "store/sqlite/open_store.h"
#include "store/sqlite/schema.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::store {
namespace {

constexpr std::string_view kMark = ".damaged-";
/// In the order in which they go. The database is first: without it nobody takes the rest for a store.
constexpr std::array<const char*, 6> kSuffixes{"", "-wal", "-shm", kLogAsideSuffix, kRestoreDraftSuffix, kLockSuffix};
constexpr std::size_t kNamesMax = 100'000;
// https://www.sqlite.org/fileformat.html#the_database_header
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr std::uint64_t kApplicationIdAt = 68;
/// A database whose application id differs in more bits than this was not Croft's before it was damaged.
constexpr int kDamagedBitsMax = 2;

std::string base_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

/// `20261124T223000Z`.
std::string stamp_of(WallTime time) {
  std::string text = rfc3339_rounded_up(time);
  std::erase_if(text, [](char c) { return c == '-' || c == ':'; });
  return text;
}

/// The stamps of what was set aside in a directory, the oldest first.
[[nodiscard]] Result<std::set<std::string>> stamps_beside(const std::string& path) {
  TRY(const auto names, os::list_directory(os::directory_of(path), kNamesMax));
  const std::string start = base_of(path) + std::string(kMark);
  std::set<std::string> stamps;
  for (const std::string& name : names) {
    if (!name.starts_with(start)) continue;
    std::string stamp = name.substr(start.size());
    for (const char* suffix : kSuffixes) {
      if (*suffix != '\0' && stamp.ends_with(suffix)) stamp.resize(stamp.size() - std::string_view(suffix).size());
    }
    stamps.insert(std::move(stamp));
  }
  return stamps;
}

[[nodiscard]] Result<void> refuse_what_is_no_damage(const std::string& path) {
  TRY(const auto status, os::file_status(path));
  if (!status) return {};
  const auto refuse = [&](const char* what) {
    return fail(ErrorCode::refused_by_configuration, fmt::format("store {} {}", path, what));
  };
  if (status->is_mount_point) return refuse("is mounted by itself; mount the directory it is in");
  if (status->hard_links != 1) return refuse("has several names; remove the others");
  TRY(const auto file, os::RandomAccessFile::open(path));
  std::array<char, 100> header{};
  if (!file) return {};
  TRY(const bool is_long_enough, file->read_at(0, header.data(), header.size()));
  if (!is_long_enough || std::string_view(header.data(), kMagic.size()) != kMagic) return {};
  std::uint32_t id = 0;
  for (std::size_t i = 0; i < 4; ++i) id = id << 8 | static_cast<std::uint8_t>(header.at(kApplicationIdAt + i));
  if (std::popcount(id ^ static_cast<std::uint32_t>(kApplicationId)) > kDamagedBitsMax) {
    return refuse("is a database of another program, and stays where it is; correct the path of the store");
  }
  return {};
}

/// Best effort: too many are better than none.
void forget_oldest(const std::string& path, std::set<std::string> stamps) {
  while (stamps.size() > kSetAsideKept) {
    const std::string oldest = *stamps.begin();
    stamps.erase(stamps.begin());
    for (const char* suffix : kSuffixes) {
      static_cast<void>(os::remove_file_durably(fmt::format("{}{}{}{}", path, kMark, oldest, suffix)));
    }
  }
}

}  // namespace

Result<std::optional<SetAside>> set_damaged_store_aside(const std::string& path, const Clock& clock,
                                                        Deadline deadline) {
  TRY(const std::string resolved, os::resolved_path(path));
  os::FileLock lock(resolved + kLockSuffix, {.one_name = true});
  TRY_VOID(lock.lock(clock, deadline));
  SetAside aside;
  {
    const auto opened = open_sqlite_store(resolved, {.verify = true, .lock_is_held = true}, clock, deadline);
    if (opened) return std::nullopt;
    if (opened.error().code != ErrorCode::corrupt) return fail(opened.error());
    aside.why = opened.error().message;
  }
  TRY_VOID(refuse_what_is_no_damage(resolved));
  TRY(auto stamps, stamps_beside(resolved));
  const std::string wanted = stamp_of(clock.now().wall);
  std::string stamp = wanted;
  for (int i = 2; stamps.contains(stamp); ++i) stamp = fmt::format("{}.{}", wanted, i);
  aside.path = fmt::format("{}{}{}", resolved, kMark, stamp);
  for (const char* suffix : kSuffixes) {
    TRY(const auto there, os::entry_status(resolved + suffix));
    if (there) TRY_VOID(os::rename_durably(resolved + suffix, aside.path + suffix));
  }
  stamps.insert(stamp);
  forget_oldest(resolved, std::move(stamps));
  return aside;
}

Result<bool> has_store_set_aside(const std::string& path) {
  TRY(const std::string resolved, os::resolved_path(path));
  TRY(const auto stamps, stamps_beside(resolved));
  return !stamps.empty();
}

}  // namespace croft::store
