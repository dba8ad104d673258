#include "core/range/range_data.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <vector>

namespace croft::core::range {
namespace {

constexpr std::size_t kWordBytes = 8;

/// The word whose lowest byte is the last of `tail`, of which up to eight bytes count.
std::uint64_t word_at_end(std::string_view tail) {
  if (tail.size() > kWordBytes) tail.remove_prefix(tail.size() - kWordBytes);
  std::uint64_t word = 0;
  for (const char byte : tail) word = word << 8 | static_cast<unsigned char>(byte);
  return word;
}

}  // namespace

DecodedBits decode_bits(std::uint32_t size, std::string_view data) {
  std::vector<std::uint64_t> words;
  words.reserve((data.size() + kWordBytes - 1) / kWordBytes);
  std::uint64_t set = 0;
  for (std::string_view rest = data; !rest.empty(); rest.remove_suffix(std::min(kWordBytes, rest.size()))) {
    words.push_back(word_at_end(rest));
    set += static_cast<std::uint64_t>(std::popcount(words.back()));
  }
  space::DenseBitmap bits = space::DenseBitmap::from_words(size, words);
  const std::uint64_t taken = size - bits.free_count();
  return {std::move(bits), set - taken};
}

std::string encode_bits(const space::DenseBitmap& bits) {
  std::size_t words = bits.word_count();
  while (words > 0 && bits.taken_word(words - 1) == 0) --words;
  if (words == 0) return {};

  const std::uint64_t top = bits.taken_word(words - 1);
  const auto top_bytes = static_cast<std::size_t>(std::bit_width(top) + 7) / 8;
  std::string data((words - 1) * kWordBytes + top_bytes, '\0');
  std::size_t at = data.size();
  for (std::size_t i = 0; i < words; ++i) {
    std::uint64_t word = bits.taken_word(i);
    for (std::size_t byte = 0; byte < kWordBytes && at > 0; ++byte, word >>= 8) data[--at] = static_cast<char>(word);
  }
  return data;
}

}  // namespace croft::core::range
