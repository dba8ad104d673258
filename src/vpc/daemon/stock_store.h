#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

namespace croft::app {

/// The store of a node's stock of cloud addresses.
struct StockStore {
  std::unique_ptr<store::Store> store;
  /// The name now of a damaged one that was here; `-wal` and the others are called so too. Empty: there was none.
  std::string aside;
  std::string why;  ///< what opening said of that
};

/// Opens the store at `path`, read through once, or makes one. One that is damaged is set aside first: what pods have
/// is recorded anew, and what else the cloud has here is unknown (vpc/decide/reconcile.h).
///
/// Only damage is answered so: another version, missing permission, a full or read-only disk and a lock that does not
/// come free are errors, and change nothing. One set aside replaces the one before it. `clock` must outlive the store.
[[nodiscard]] Result<StockStore> open_stock_store(const std::string& path, const Clock& clock);

/// Why the files of an open store are not what they were: damaged, or gone. Nothing where they are sound, and where
/// that cannot be told now.
[[nodiscard]] std::optional<Error> loss_of(store::Store& store, const std::string& path, const Clock& clock);

}  // namespace croft::app
