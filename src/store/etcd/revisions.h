#pragma once

#include "store/etcd/kv.h"
#include "store/store.h"

// The contract's revisions: etcd's, with the connection they came over in front, so that two that are equal are of one
// history. One process compares them; what it prints is etcd's own as long as its first connection holds.
namespace croft::store::etcd {

inline constexpr int kRevisionBits = 44;
static_assert(wire::etcd::kRevisionMax == (Revision{1} << kRevisionBits) - 1);
static_assert(kLineMax == (std::uint64_t{1} << (64 - kRevisionBits)) - 1);

/// `revision` is 0 to kRevisionMax, as every answer that was decoded has it.
[[nodiscard]] constexpr store::Revision on_line(Line line, Revision revision) {
  return store::Revision(std::uint64_t{line} << kRevisionBits | static_cast<std::uint64_t>(revision));
}
[[nodiscard]] constexpr Line line_of(store::Revision revision) {
  return static_cast<Line>(revision.value >> kRevisionBits);
}
[[nodiscard]] constexpr Revision in_etcd(store::Revision revision) {
  return static_cast<Revision>(revision.value & static_cast<std::uint64_t>(wire::etcd::kRevisionMax));
}

}  // namespace croft::store::etcd
