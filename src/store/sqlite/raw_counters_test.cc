#include "store/sqlite/raw_counters.h"

#include <fstream>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sqlite3.h>

#include "os/scratch_directory.h"

namespace croft::store {
namespace {

using Counters = std::map<std::int64_t, std::int64_t>;

std::vector<std::uint8_t> page_of(const std::string& path, const Counters& counters, int reserved_bytes) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open(path.c_str(), &db), SQLITE_OK);
  EXPECT_EQ(sqlite3_file_control(db, "main", SQLITE_FCNTL_RESERVE_BYTES, &reserved_bytes), SQLITE_OK);
  std::string script =
      "PRAGMA page_size=4096; CREATE TABLE counters(id INTEGER PRIMARY KEY, value INTEGER NOT NULL) STRICT;";
  for (const auto& [id, value] : counters) {
    script += "INSERT INTO counters VALUES(" + std::to_string(id) + "," + std::to_string(value) + ");";
  }
  EXPECT_EQ(sqlite3_exec(db, script.c_str(), nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  std::ifstream file(path, std::ios::binary);
  const std::vector<std::uint8_t> all{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(all.size(), 8192U);
  return {all.begin() + 4096, all.end()};
}

TEST(RawCounters, AreWhatSqliteWrote) {
  const os::ScratchDirectory directory;
  constexpr auto kMost = std::numeric_limits<std::int64_t>::max();
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min() + 1;
  const std::vector<Counters> cases{
      {{1, 0}, {2, 1}, {3, 127}, {4, 128}, {5, kMost}},
      {{1, 255}, {2, 32767}, {3, 32768}, {4, 1 << 23}, {5, kLeast}},
      {{1, std::int64_t{1} << 31}, {2, std::int64_t{1} << 47}, {3, -1}, {300, 70000}},
      {},
  };
  int number = 0;
  for (const Counters& counters : cases) {
    for (const int reserved : {0, 8}) {
      const auto page = page_of(directory.path() + "/" + std::to_string(number++), counters, reserved);
      EXPECT_EQ(counters_in_page(page), counters);
    }
  }
}

/// A damaged page is none, or has other numbers; nothing is read beyond it.
TEST(RawCounters, NoByteLeadsBeyondThePage) {
  const os::ScratchDirectory directory;
  const auto page = page_of(directory.path() + "/db", {{1, 70000}, {2, 3}}, 0);
  for (std::size_t i = 0; i < page.size(); ++i) {
    for (const int bit : {0, 3, 7}) {
      auto damaged = page;
      damaged[i] = static_cast<std::uint8_t>(damaged[i] ^ (1U << bit));
      static_cast<void>(counters_in_page(damaged));
    }
  }
  for (std::size_t size = 0; size < 16; ++size) {
    static_cast<void>(counters_in_page(std::span(page).first(size)));
  }
  EXPECT_FALSE(counters_in_page({}));
}

}  // namespace
}  // namespace croft::store
