#include "store/sqlite/indexed_frames.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "store/sqlite/page_checksum.h"

namespace croft::store {
namespace {

// The first region: 136 bytes of headers, the page numbers of the frames, a table of hashes with the numbers of frames.
constexpr std::size_t kFirstPageNumber = 136 / sizeof(std::uint32_t);
constexpr std::size_t kFirstSlot = 16384 / sizeof(std::uint16_t);
constexpr std::uint32_t kSlots = 8192;
constexpr std::uint32_t kHashFactor = 383;

/// As SQLite looks for a page among the first frames: the last one in its row of slots, from 1; 0 for none.
std::uint32_t look_up(const volatile std::uint32_t* numbers, const volatile std::uint16_t* slots, std::uint32_t page,
                      std::uint32_t frames) {
  std::uint32_t found = 0;
  std::uint32_t at = (page * kHashFactor) % kSlots;
  for (std::uint32_t i = 0; i < kSlots; ++i, at = (at + 1) % kSlots) {
    // Read once: whoever begins the log anew clears the table meanwhile.
    const std::uint32_t frame = slots[at];
    if (frame == 0) break;
    if (frame <= frames && numbers[frame - 1] == page) found = frame;
  }
  return found;
}

}  // namespace

bool IndexedFrames::read_new(sqlite3_file& log, std::uint32_t frames) {
  while (frames_.size() < frames) {
    std::array<std::uint8_t, kFrameHeaderBytes> header{};
    const sqlite3_int64 at = kLogHeaderBytes + static_cast<sqlite3_int64>(frames_.size()) * kFrameBytes;
    if (log.pMethods->xRead(&log, header.data(), kFrameHeaderBytes, at) != SQLITE_OK) return false;
    if (std::memcmp(header.data() + 8, salt_.data(), salt_.size()) != 0) return false;
    frames_.push_back({big_endian(header.data()), big_endian(header.data() + 4) != 0});
    newest_[frames_.back().page] = static_cast<std::uint32_t>(frames_.size());
  }
  return true;
}

bool IndexedFrames::are_found(const volatile void* memory, sqlite3_file& log, const std::array<std::uint8_t, 8>& salt,
                              std::uint32_t frames, std::uint32_t copied) {
  const std::uint32_t known = std::min(frames, kFramesMax);
  if (salt != salt_ || known < frames_.size()) {
    salt_ = salt;
    frames_.clear();
    newest_.clear();
  }
  if (!read_new(log, known) || copied > frames) return false;
  if (copied > 0 && copied <= known && !frames_[copied - 1].ends_commit) return false;
  const auto* const numbers = static_cast<const volatile std::uint32_t*>(memory) + kFirstPageNumber;
  const auto* const slots = static_cast<const volatile std::uint16_t*>(memory) + kFirstSlot;
  for (std::uint32_t i = 0; i < known; ++i) {
    if (numbers[i] != frames_[i].page) return false;
  }
  return std::all_of(newest_.begin(), newest_.end(), [&](const auto& page_and_frame) {
    const auto& [page, frame] = page_and_frame;
    return frame <= copied || look_up(numbers, slots, page, known) == frame;
  });
}

std::optional<std::uint32_t> IndexedFrames::newest(std::uint32_t page, std::uint32_t frames) const {
  for (std::uint32_t i = std::min(frames, static_cast<std::uint32_t>(frames_.size())); i > 0; --i) {
    if (frames_[i - 1].page == page) return i;
  }
  return std::nullopt;
}

}  // namespace croft::store
