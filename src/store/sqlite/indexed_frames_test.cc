// The look at the index of a log, with an index that changes meanwhile. What it finds in whole and damaged ones of real
// registers is in page_damage_test.cc.

#include "store/sqlite/indexed_frames.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>
#include <thread>

#include <gtest/gtest.h>

#include "store/sqlite/page_checksum.h"

namespace croft::store {
namespace {

constexpr std::uint32_t kPage = 7;
constexpr std::array<std::uint8_t, 8> kSalt{1, 2, 3, 4, 5, 6, 7, 8};

/// A log of one frame, of page kPage, which ends a commit.
int read_frame(sqlite3_file* /*log*/, void* into, int bytes, sqlite3_int64 at) {
  std::array<std::uint8_t, kFrameHeaderBytes> header{};
  header[3] = kPage;
  header[7] = 1;
  std::copy(kSalt.begin(), kSalt.end(), header.begin() + 8);
  if (at != kLogHeaderBytes || bytes != static_cast<int>(header.size())) return SQLITE_IOERR_SHORT_READ;
  std::memcpy(into, header.data(), header.size());
  return SQLITE_OK;
}

/// Whoever begins a log anew clears the table of the index, while others look a page up in it.
TEST(IndexedFrames, ATableThatIsClearedMeanwhileIsReadOnce) {
  sqlite3_io_methods methods{};
  methods.xRead = read_frame;
  sqlite3_file log{&methods};
  // The first region of an index: the number of the first frame's page, and the slot of that page.
  const auto region = std::make_unique<std::uint16_t[]>(32768 / sizeof(std::uint16_t));
  std::memcpy(region.get() + 136 / sizeof(std::uint16_t), &kPage, sizeof(kPage));
  std::atomic_ref<std::uint16_t> slot(region[(16384 / sizeof(std::uint16_t)) + (kPage * 383U) % 8192U]);
  slot = 1;
  IndexedFrames frames;
  EXPECT_TRUE(frames.are_found(region.get(), log, kSalt, 1, 0));
  std::atomic<bool> done{false};
  std::thread other([&] {
    while (!done) slot = slot == 0 ? std::uint16_t{1} : std::uint16_t{0};
  });
  int found = 0;
  int missed = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while ((found + missed < 200'000 || found == 0 || missed == 0) && std::chrono::steady_clock::now() < end) {
    ++(frames.are_found(region.get(), log, kSalt, 1, 0) ? found : missed);
  }
  done = true;
  other.join();
  EXPECT_GT(found, 0);
  EXPECT_GT(missed, 0);
}

}  // namespace
}  // namespace croft::store
