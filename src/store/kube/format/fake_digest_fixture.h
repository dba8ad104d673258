#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace croft::wire::kube {

/// 32 bytes that are as good as a digest's where only names have to differ.
[[nodiscard]] inline std::string fake_digest(std::string_view text) {
  std::string digest;
  for (std::uint64_t part = 0; part < 4; ++part) {
    std::uint64_t sum = 0xcbf29ce484222325ULL ^ part;
    for (const char c : text) sum = (sum ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
    for (int shift = 0; shift < 64; shift += 8) digest += static_cast<char>(sum >> shift);
  }
  return digest;
}

}  // namespace croft::wire::kube
