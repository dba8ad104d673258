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
/// too, and the rest goes aside.
[[nodiscard]] Result<SetAside> set_aside(const std::string& path, const Error& why) {
  TRY(const std::string resolved, os::resolved_path(path));
  TRY_VOID(refuse_others(resolved));
  for (const char* suffix : {"", "-wal", "-shm", "-lock"}) {
    TRY(const auto there, os::entry_status(resolved + suffix));
    if (there) TRY_VOID(os::rename_durably(resolved + suffix, resolved + kDamaged + suffix));
  }
  return SetAside{resolved + kDamaged, engine::damage_of_stock(why)};
}

}  // namespace

Result<StockStore> open_stock_store(const std::string& path, bool was_lost, const Clock& clock, Random& random) {
  StockStore stock;
  auto opened = open_whole(path, clock);
  if (!opened && opened.error().code == ErrorCode::corrupt) {
    auto aside = set_aside(path, opened.error());
    if (!aside) return fail(aside.error().in("the store is damaged, and is not set aside: " + opened.error().message));
    stock.aside = *std::move(aside);
    opened = open_whole(path, clock);
  }
  if (!opened && stock.aside) {
    // An operator who mends the obstacle has to know where it went.
    return fail(opened.error().in("the store was damaged and is set aside as " + stock.aside->path +
                                  ", and no new one can be made"));
  }
  if (!opened) return fail(opened.error());
  stock.store = *std::move(opened);
  bool may_have_been = was_lost;
  if (!may_have_been) {
    // An agent that died between setting aside and the note that follows would else begin with nothing.
    TRY(const std::string resolved, os::resolved_path(path));
    for (const char* suffix : {"", "-wal", "-lock"}) {
      TRY(const auto there, os::entry_status(resolved + kDamaged + suffix));
      may_have_been = may_have_been || there.has_value();
    }
  }
  if (!may_have_been) return stock;
  const engine::Context context{*stock.store, clock, random};
  TRY(const auto view, engine::view_stock(context));
  if (view.node && !view.node->node.empty()) return stock;
  TRY_VOID(engine::begin_rebuild(context));
  stock.begins_anew = true;
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
