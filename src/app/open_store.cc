#include "app/open_store.h"

#include <string_view>

#include "net/echo.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::app {
namespace {

constexpr std::string_view kSqliteScheme = "sqlite:";
constexpr std::chrono::seconds kOpenLimit{10};

}  // namespace

Result<std::unique_ptr<store::Store>> open_store(const std::string& url, edge::OpenMode mode, const Clock& clock) {
  if (!url.starts_with(kSqliteScheme) || url.size() <= kSqliteScheme.size() || url[kSqliteScheme.size()] != '/') {
    return fail(ErrorCode::invalid_argument,
                "store " + net::echo(url) + " is not a store this version knows: give sqlite:/absolute/path.db");
  }
  store::SqliteOptions options;
  options.create = mode == edge::OpenMode::create;
  const std::string path = url.substr(kSqliteScheme.size());
  TRY(std::unique_ptr<store::Store> opened,
      store::open_sqlite_store(path, options, clock, Deadline::after(clock.now(), kOpenLimit)));
  return opened;
}

}  // namespace croft::app
