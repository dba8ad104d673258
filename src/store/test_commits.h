#pragma once

#include <optional>
#include <utility>

#include "store/store.h"

namespace croft::store {

// For tests: commit() of one record.

[[nodiscard]] inline Result<Revision> create_if_absent(Store& store, const Key& key, Value value,
                                                       const WriteToken& token, Deadline deadline) {
  const Write write{key, std::move(value), Condition::if_absent(), false};
  return store.commit({&write, 1}, token, deadline);
}
[[nodiscard]] inline Result<Revision> update_if_revision(Store& store, const Key& key, Value value, Revision revision,
                                                         const WriteToken& token, Deadline deadline) {
  const Write write{key, std::move(value), Condition::if_revision(revision), false};
  return store.commit({&write, 1}, token, deadline);
}
[[nodiscard]] inline Result<Revision> delete_if_revision(Store& store, const Key& key, Revision revision,
                                                         const WriteToken& token, Deadline deadline) {
  const Write write{key, std::nullopt, Condition::if_revision(revision), false};
  return store.commit({&write, 1}, token, deadline);
}

}  // namespace croft::store
