#include "store/sqlite/page_checksum.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string_view>

#include "store/sqlite/checksum.h"

namespace croft::store {
namespace {

constexpr std::size_t kContentBytes = kPageBytes - kPageSumBytes;
constexpr std::size_t kFrameSumAt = 16;
constexpr std::size_t kSectorBytes = 512;

/// Never zero, nor one bit away from it.
std::uint64_t sum_of(std::uint32_t page, const std::uint8_t* bytes) {
  constexpr std::uint64_t kAlwaysSet = 0x8000000000000001;
  Checksum sum;
  sum.add(std::uint64_t{page});
  sum.add(std::string_view(reinterpret_cast<const char*>(bytes), kContentBytes));
  return sum.value() | kAlwaysSet;
}

std::uint64_t stored_sum(const std::uint8_t* bytes) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < kPageSumBytes; ++i) sum |= std::uint64_t{bytes[kContentBytes + i]} << (8 * i);
  return sum;
}

/// The page of a table or an index whose last sector, where the first cell is, came to be zeros with the checksum.
bool has_lost_its_end(std::uint32_t page, const std::uint8_t* bytes) {
  const std::uint8_t* const header = bytes + (page == 1 ? 100 : 0);
  const bool is_tree = header[0] == 2 || header[0] == 5 || header[0] == 10 || header[0] == 13;
  const bool has_cells = header[3] != 0 || header[4] != 0;
  return is_tree && has_cells &&
         std::all_of(bytes + kPageBytes - kSectorBytes, bytes + kPageBytes, [](std::uint8_t b) { return b == 0; });
}

std::uint32_t in_native_order(const std::uint8_t* at) {
  std::uint32_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

using FrameSum = std::array<std::uint32_t, 2>;

template <class Read>
void add(FrameSum& sum, const std::uint8_t* bytes, std::size_t count, Read read) {
  for (std::size_t at = 0; at < count; at += 8) {
    sum[0] += read(bytes + at) + sum[1];
    sum[1] += read(bytes + at + 4) + sum[0];
  }
}

template <class Read>
bool has_frame_sum(const std::uint8_t* before, const std::uint8_t* frame, Read read) {
  FrameSum sum{big_endian(before), big_endian(before + 4)};
  add(sum, frame, 8, read);
  add(sum, frame + kFrameHeaderBytes, kPageBytes, read);
  return sum == FrameSum{big_endian(frame + kFrameSumAt), big_endian(frame + kFrameSumAt + 4)};
}

}  // namespace

void put_page_sum(std::uint32_t page, std::array<std::uint8_t, kPageBytes>& bytes) {
  const std::uint64_t sum = sum_of(page, bytes.data());
  for (std::size_t i = 0; i < kPageSumBytes; ++i) {
    bytes[kContentBytes + i] = static_cast<std::uint8_t>(sum >> (8 * i) & 0xff);
  }
}

PageSum page_sum_of(std::uint32_t page, const std::uint8_t* bytes) {
  const std::uint64_t stored = stored_sum(bytes);
  if (stored == 0) {
    if (has_lost_its_end(page, bytes)) return PageSum::wrong;
    const bool is_empty = std::all_of(bytes, bytes + kPageBytes, [](std::uint8_t b) { return b == 0; });
    return is_empty ? PageSum::empty : PageSum::none;
  }
  return stored == sum_of(page, bytes) ? PageSum::right : PageSum::wrong;
}

bool is_right_frame(const std::uint8_t* before, const std::uint8_t* frame) {
  // A log is written in the byte order of the machine that began it: almost always this one.
  const auto swapped = [](const std::uint8_t* at) { return __builtin_bswap32(in_native_order(at)); };
  return has_frame_sum(before, frame, in_native_order) || has_frame_sum(before, frame, swapped);
}

}  // namespace croft::store
