#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "register/owner.h"

// The file that a DEL leaves on its node's disk while neither agent nor store can be reached
// (docs/formats/tombstones.md, docs/promises.md#promise-3).

namespace croft::wire {

struct Tombstone {
  std::string store;   ///< the URL, as the plugin's configuration has it
  core::Owner owner;   ///< who is to lose all; the container ID is never empty
  WallTime left_at{};  ///< for people

  friend bool operator==(const Tombstone&, const Tombstone&) = default;
};

inline constexpr std::size_t kTombstoneBytesMax = std::size_t{64} << 10;

/// One JSON object with a newline. A store's URL is left whole: it holds no secrets, only the files they are in.
[[nodiscard]] std::string encode(const Tombstone& tombstone);

/// Errors: corrupt, naming the member, for what is not such an object whole; newer_version.
[[nodiscard]] Result<Tombstone> decode_tombstone(std::string_view bytes);

}  // namespace croft::wire
