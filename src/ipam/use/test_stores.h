#pragma once

#include "store/store.h"

namespace croft::engine {

/// The kinds of stores that there are, as far as it matters to who assigns and releases: one machine's, etcd, a
/// Kubernetes API.
inline constexpr store::Capabilities kKindsOfStores[] = {
    {.atomic_commit = true, .foreign_writers = false},
    {.atomic_commit = true, .foreign_writers = true, .late_commits = true},
    {.atomic_commit = false, .foreign_writers = true},
};

}  // namespace croft::engine
