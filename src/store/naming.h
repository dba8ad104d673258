#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "register/records.h"

namespace croft::store {

/// A store that cannot keep every record that others can: one whose records are objects with names of its own rules.
/// A backend of Store that is one says so by dynamic_cast; one that is none takes every key.
class Naming {
 public:
  virtual ~Naming() = default;

  /// Where a record of this key would lie. Two keys with one place cannot both be there. Errors: invalid_argument,
  /// saying why there is no place for it; those of every call of a Store.
  [[nodiscard]] virtual Result<std::string> place_of(const core::Key& key, Deadline deadline) = 0;
};

}  // namespace croft::store
