#pragma once

#include <cstdint>
#include <string_view>

namespace croft {

/// SipHash-2-4 (Aumasson and Bernstein, 2012): of bytes that others choose, who do not know the key and so find no two
/// of one hash. Not for what is kept.
[[nodiscard]] std::uint64_t keyed_hash(std::uint64_t k0, std::uint64_t k1, std::string_view bytes);

}  // namespace croft
