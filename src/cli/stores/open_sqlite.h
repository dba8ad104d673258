#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/printable.h"
#include "base/result.h"
#include "store/sqlite/sqlite_store.h"
#include "store/store.h"
#include "store/store_url.h"

namespace croft::app {

/// The error of a URL that names no store.
[[nodiscard]] inline Error unknown_store(const std::string& url) {
  return invalid_argument("store " + echo(store::without_user(url)) +
                          " is not a store this version knows: give sqlite:/absolute/path.db, "
                          "etcd:https://10.0.0.1:2379,… or kube:/path/kubeconfig");
}

/// Opens the file of a `sqlite:/absolute/path.db`. Errors: not_found for an absent one with OpenMode::existing, else
/// those of the backend. `clock` must outlive the store.
/// Error also: invalid_argument, of a URL without an absolute path.
[[nodiscard]] inline Result<std::unique_ptr<store::Store>> open_sqlite(const std::string& url, store::OpenMode mode,
                                                                       const Clock& clock) {
  constexpr std::chrono::seconds kOpenLimit{10};
  const bool is_file = store::scheme_of(url) == store::Scheme::sqlite && store::behind_scheme(url).starts_with('/');
  if (!is_file) return fail(unknown_store(url));
  store::SqliteOptions options;
  options.create = mode == store::OpenMode::create;
  const std::string path(store::behind_scheme(url));
  TRY(std::unique_ptr<store::Store> opened,
      store::open_sqlite_store(path, options, clock, Deadline::after(clock.now(), kOpenLimit)));
  return opened;
}

}  // namespace croft::app
