#pragma once

#include <memory>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"
#include "store/store_url.h"

namespace croft::app {

/// Opens the file of a `sqlite:/absolute/path.db`. Errors: not_found for an absent one with OpenMode::existing, else
/// those of the backend. `clock` must outlive the store.
/// Error also: invalid_argument, of a URL without an absolute path.
[[nodiscard]] Result<std::unique_ptr<store::Store>> open_sqlite(const std::string& url, store::OpenMode mode,
                                                                const Clock& clock);

/// The error of a URL that names none.
[[nodiscard]] Error unknown_store(const std::string& url);

}  // namespace croft::app
