#pragma once

#include <cstdint>

namespace croft::store {

/// How a call needs its store.
enum class OpenMode : std::uint8_t {
  existing,  ///< an absent store is not_found, and nothing is made but lock files
  create,    ///< an absent store is made, durably
};

}  // namespace croft::store
