#pragma once

#include <cstdint>
#include <vector>

#include <sqlite3.h>

#include "base/error.h"
#include "base/result.h"

namespace croft::store {

/// Takes every record that can be read from a damaged database into a new one that has none, and the last revision as
/// far as both counters and records tell. A row that can't be read keeps nothing from being read but itself.
///
/// The checksum decides first: a whole row stands before a damaged one of its name, and of two whole ones the later. A
/// row whose name is damaged has the one that the index has for it. What is damaged, or can't be read and is in the
/// index, goes along as a damaged record of that name, if nothing else has it: so it is set aside. The answer: what
/// could not go along, each named as well as it can be.
///
/// Errors: corrupt, where not one record can be read, or it is no register; those of the disk.
[[nodiscard]] Result<std::vector<Error>> take_records(sqlite3* damaged, sqlite3* fresh);

}  // namespace croft::store
