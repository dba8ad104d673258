#pragma once

#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/store.h"

namespace croft::app {

/// A damaged store's files that got other names, so that a new one could be made in their place.
struct SetAside {
  std::string path;  ///< what was `<file>` is `<file>.damaged`; so are `-wal` and the others
  std::string why;   ///< what opening said
};

/// The store of a node's stock of cloud addresses.
struct StockStore {
  std::unique_ptr<store::Store> store;
  /// The damaged one that was here, of this opening.
  std::optional<SetAside> aside;
  /// It knows nothing of what an earlier one knew: engine::begin_rebuild() was called.
  bool begins_anew = false;
};

/// Opens the store at `path`, read through once, or makes one. One that is damaged, or that was here and is gone, is
/// set aside first, and who keeps the stock finds out what was in it before any address of it is given away.
/// `was_lost`: it is known to have been here, whatever is there now.
///
/// Only damage is answered so: another version, missing permission, a full or read-only disk and a lock that does not
/// come free are errors, and change nothing. One set aside replaces the one before it. `clock` must outlive the store.
[[nodiscard]] Result<StockStore> open_stock_store(const std::string& path, bool was_lost, const Clock& clock,
                                                  Random& random);

/// Why the files of an open store are not what they were: damaged, or gone. Nothing where they are sound, and where
/// that cannot be told now.
[[nodiscard]] std::optional<Error> loss_of(store::Store& store, const std::string& path, const Clock& clock);

}  // namespace croft::app
