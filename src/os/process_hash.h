#pragma once

#include <cstdint>
#include <string_view>

namespace croft::os {

/// Stands for bytes that others choose, within this process: keyed_hash() by a key that is drawn at the first call.
/// Safe to call from several threads.
[[nodiscard]] std::uint64_t process_hash(std::string_view bytes);

}  // namespace croft::os
