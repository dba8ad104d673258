#pragma once

#include <concepts>
#include <cstdint>
#include <optional>

#include "base/net/ordinal.h"

namespace croft::core::space {

using net::Ordinal;

/// The common operations of every space. A space is the ordinals 0 to size() - 1, each of them free or taken. The
/// meaning of an ordinal outside (an address, a port, a node's prefix) is its owner's affair. Not synchronised: one
/// thread at a time, or a copy each. An ordinal given in must be below size(); anything else is a programmer's error
/// and stops the process.
///
///   size()             the number of ordinals, free and taken
///   free_count()       the number of free ones, in O(1)
///   is_free(o)         true when `o` is free
///   take(o)            makes `o` taken; false, and nothing changes, when it was taken already
///   give_back(o)       makes `o` free; false, and nothing changes, when it was free already
///   take_next()        takes the free ordinal that is next in the form's own order; nullopt when none is free
///   for_each_taken(f)  calls f(Ordinal) for each taken ordinal, ascending; `f` must not change the space
///
/// Which form to take: DenseBitmap where the range is known, up to a few million and any ordinal may be asked for;
/// OrderedFreeList where the longest idle ordinal is to go first and there are a few thousand at most.
template <class S>
concept Space = std::copyable<S> && requires(S& space, const S& looked_at, Ordinal ordinal, void (*visit)(Ordinal)) {
  { looked_at.size() } -> std::same_as<std::uint32_t>;
  { looked_at.free_count() } -> std::same_as<std::uint32_t>;
  { looked_at.is_free(ordinal) } -> std::same_as<bool>;
  { space.take(ordinal) } -> std::same_as<bool>;
  { space.give_back(ordinal) } -> std::same_as<bool>;
  { space.take_next() } -> std::same_as<std::optional<Ordinal>>;
  { looked_at.for_each_taken(visit) } -> std::same_as<void>;
};

}  // namespace croft::core::space
