#pragma once

#include <array>
#include <cstdint>

namespace croft::store {

// What tells damage of a page in the two files of a database. Fixed by docs/formats/records.md and by SQLite's format
// of the log (sqlite.org/walformat.html). All sums find any change within one 8-byte word; none withstands intent.

inline constexpr std::int64_t kPageBytes = 4096;
/// At the end of each page of the database file, where SQLite leaves room for others ("reserved bytes").
inline constexpr std::int64_t kPageSumBytes = 8;
/// The user_version of a database whose pages have checksums (schema.h).
inline constexpr std::uint8_t kVersionWithPageSums = 3;

/// How both files have their numbers.
[[nodiscard]] constexpr std::uint32_t big_endian(const std::uint8_t* at) {
  return std::uint32_t{at[0]} << 24 | std::uint32_t{at[1]} << 16 | std::uint32_t{at[2]} << 8 | std::uint32_t{at[3]};
}

enum class PageSum : std::uint8_t {
  right,
  /// The whole page is zeros: it was never written.
  empty,
  /// Zeros in its place: a program that knows no checksums wrote the page. A plain SQLite that somebody looked with
  /// copies the log into the database when it ends.
  none,
  wrong,
};

/// Pages count from 1. `bytes`: the whole page.
void put_page_sum(std::uint32_t page, std::array<std::uint8_t, kPageBytes>& bytes);
[[nodiscard]] PageSum page_sum_of(std::uint32_t page, const std::uint8_t* bytes);

inline constexpr std::int64_t kLogHeaderBytes = 32;
inline constexpr std::int64_t kFrameHeaderBytes = 24;
inline constexpr std::int64_t kFrameBytes = kFrameHeaderBytes + kPageBytes;

/// Whether a frame of the log, header and page, is the one that was written behind the other: `before` are the last 8
/// bytes of the log's header, for the first frame, or of the part of the frame before it that holds its checksum.
[[nodiscard]] bool is_right_frame(const std::uint8_t* before, const std::uint8_t* frame);

}  // namespace croft::store
