#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace croft::store {

/// How many damaged stores are kept beside a path; older ones are removed.
inline constexpr std::size_t kSetAsideKept = 3;

struct SetAside {
  std::string path;  ///< what was `<file>` is `<file>.damaged-20261124T223000Z`; so are `-wal` and the others
  std::string why;   ///< what opening said
};

/// Gives the files of a damaged store other names, so that a new one can be made in their place: for who can find out
/// elsewhere what was in it. Takes the store's lock, looks at all of the store again under it, and does nothing where
/// it is sound: the answer is nothing then. What goes last is the lock file, whose note tells that a store was here:
/// after a crash in between the next look is corrupt too, and the rest goes aside.
///
/// `clock` is for the names too. Errors: those of opening but `corrupt`; refused_by_configuration where it is no damage
/// but a path that is wrong: another program's database, a file with several names, or one that is mounted by itself;
/// those of renaming.
[[nodiscard]] Result<std::optional<SetAside>> set_damaged_store_aside(const std::string& path, const Clock& clock,
                                                                      Deadline deadline);

/// Whether a store was ever set aside here, and is still kept.
[[nodiscard]] Result<bool> has_store_set_aside(const std::string& path);

}  // namespace croft::store
