#include "cli/stores/open_sqlite.h"

#include <chrono>

#include "base/net/echo.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::app {
namespace {

constexpr std::chrono::seconds kSqliteOpenLimit{10};

}  // namespace

Result<std::unique_ptr<store::Store>> open_sqlite(const std::string& url, store::OpenMode mode, const Clock& clock) {
  const bool is_file = store::scheme_of(url) == store::Scheme::sqlite && store::behind_scheme(url).starts_with('/');
  if (!is_file) return fail(unknown_store(url));
  store::SqliteOptions options;
  options.create = mode == store::OpenMode::create;
  const std::string path(store::behind_scheme(url));
  TRY(std::unique_ptr<store::Store> opened,
      store::open_sqlite_store(path, options, clock, Deadline::after(clock.now(), kSqliteOpenLimit)));
  return opened;
}

Error unknown_store(const std::string& url) {
  return invalid_argument("store " + net::echo(store::without_user(url)) +
                          " is not a store this version knows: give sqlite:/absolute/path.db, "
                          "etcd:https://10.0.0.1:2379,… or kube:/path/kubeconfig");
}

}  // namespace croft::app
