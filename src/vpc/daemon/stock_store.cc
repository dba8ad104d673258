#include "vpc/daemon/stock_store.h"

#include <chrono>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "os/directory.h"
#include "os/files.h"
#include "store/sqlite/sqlite_store.h"
#include "vpc/use/stock_calls.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kOpenLimit{10};
constexpr std::chrono::seconds kLookLimit{1};
constexpr const char* kDamaged = ".damaged";

[[nodiscard]] Result<std::unique_ptr<store::SqliteStore>> open_whole(const std::string& path, const Clock& clock) {
  const Deadline soon = Deadline::after(clock.now(), kOpenLimit);
  TRY(auto opened, store::open_sqlite_store(path, {.create = true}, clock, soon));
  TRY_VOID(store::check_sqlite_pages(path, clock, soon));
  return opened;
}

/// Another program's database stays where it is: the path is wrong.
/// https://www.sqlite.org/fileformat.html#the_database_header
[[nodiscard]] Result<void> refuse_others(const std::string& path) {
  constexpr std::string_view kMagic("SQLite format 3\0", 16), kOurs = "Crof";
  constexpr std::size_t kApplicationIdAt = 68;
  TRY(const auto file, os::RandomAccessFile::open(path));
  std::string header(kApplicationIdAt + kOurs.size(), '\0');
  TRY(const bool is_long_enough, file ? file->read_at(0, header.data(), header.size()) : Result<bool>(false));
  if (!is_long_enough || !header.starts_with(kMagic) || header.ends_with(kOurs)) return {};
  return fail(ErrorCode::refused_by_configuration,
              fmt::format("store {} is a database of another program; correct the path of the store", path));
}

/// The lock file goes last. Its note tells that a store was here: after a crash in between the next opening is corrupt
/// too, and the rest goes aside. The answer is the path's new name.
[[nodiscard]] Result<std::string> set_aside(const std::string& path) {
  TRY(const std::string resolved, os::resolved_path(path));
  TRY_VOID(refuse_others(resolved));
  for (const char* suffix : {"", "-wal", "-shm", "-lock"}) {
    TRY(const auto there, os::entry_status(resolved + suffix));
    if (there) TRY_VOID(os::rename_durably(resolved + suffix, resolved + kDamaged + suffix));
  }
  return resolved + kDamaged;
}

}  // namespace

Result<StockStore> open_stock_store(const std::string& path, const Clock& clock) {
  StockStore stock;
  auto opened = open_whole(path, clock);
  if (!opened && opened.error().code == ErrorCode::corrupt) {
    auto aside = set_aside(path);
    if (!aside) return fail(aside.error().in("the store is damaged, and is not set aside: " + opened.error().message));
    stock.aside = *std::move(aside);
    stock.why = engine::damage_of_stock(opened.error());
    opened = open_whole(path, clock);
    // An operator who mends the obstacle has to know where it went.
    if (!opened) {
      return fail(opened.error().in("the store was damaged and is set aside as " + stock.aside +
                                    ", and no new one can be made"));
    }
  }
  if (!opened) return fail(opened.error());
  stock.store = *std::move(opened);
  return stock;
}

std::optional<Error> loss_of(store::Store& store, const std::string& path, const Clock& clock) {
  auto position = store.position(Deadline::after(clock.now(), kLookLimit));
  if (position) return std::nullopt;
  const ErrorCode code = position.error().code;
  const auto there = os::file_status(path);
  const bool is_gone = there && !*there;
  if (code != ErrorCode::corrupt && !is_gone) return std::nullopt;
  return std::move(position.error());
}

}  // namespace croft::app
