#include "store/sqlite/raw_counters.h"

#include <array>
#include <chrono>
#include <cstddef>
#include <thread>

#include "store/sqlite/page_checksum.h"

namespace croft::store {
namespace {

constexpr std::uint8_t kTableLeaf = 0x0d;
constexpr std::size_t kPageHeaderBytes = 8;
constexpr std::size_t kCountersMax = 64;

/// Reads within bounds; once something is beyond them, everything is 0 and `ok` false.
class Bytes {
 public:
  explicit Bytes(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] std::size_t at() const { return at_; }
  void seek(std::size_t at) { at_ = at; }

  [[nodiscard]] std::uint64_t big_endian(std::size_t size) {
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < size; ++i) value = value << 8 | byte();
    return value;
  }
  /// SQLite's varint: seven bits a byte, the ninth has eight.
  [[nodiscard]] std::uint64_t varint() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) {
      const std::uint8_t one = byte();
      value = value << 7 | (one & 0x7fU);
      if ((one & 0x80U) == 0) return value;
    }
    return value << 8 | byte();
  }

 private:
  std::uint8_t byte() {
    if (at_ >= bytes_.size()) ok_ = false;
    return ok_ ? bytes_[at_++] : std::uint8_t{0};
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t at_ = 0;
  bool ok_ = true;
};

/// The integer of a serial type; nothing for a type that is none.
std::optional<std::int64_t> integer(Bytes& bytes, std::uint64_t type) {
  constexpr std::array<std::size_t, 7> kSizes{0, 1, 2, 3, 4, 6, 8};
  if (type == 8 || type == 9) return static_cast<std::int64_t>(type - 8);
  if (type >= kSizes.size()) return {};
  const std::size_t size = kSizes[type];
  if (size == 0) return {};
  const std::uint64_t value = bytes.big_endian(size);
  const int unused = static_cast<int>(64 - 8 * size);
  return static_cast<std::int64_t>(value << unused) >> unused;
}

}  // namespace

std::optional<std::map<std::int64_t, std::int64_t>> counters_in_page(std::span<const std::uint8_t> page) {
  Bytes bytes(page);
  const std::uint64_t type = bytes.big_endian(1);
  bytes.seek(3);
  const std::uint64_t cells = bytes.big_endian(2);
  if (!bytes.ok() || type != kTableLeaf || cells > kCountersMax) return {};
  std::map<std::int64_t, std::int64_t> counters;
  for (std::size_t i = 0; i < cells; ++i) {
    bytes.seek(kPageHeaderBytes + 2 * i);
    bytes.seek(bytes.big_endian(2));
    static_cast<void>(bytes.varint());  // the size of what follows the row id
    const auto id = static_cast<std::int64_t>(bytes.varint());
    const std::size_t record = bytes.at();
    const std::uint64_t header_bytes = bytes.varint();
    const std::uint64_t type_of_id = bytes.varint();  // NULL: it is the row id
    const std::uint64_t type_of_value = bytes.varint();
    if (!bytes.ok() || type_of_id != 0 || header_bytes != bytes.at() - record) return {};
    const auto value = integer(bytes, type_of_value);
    if (!value || !bytes.ok() || !counters.emplace(id, *value).second) return {};
  }
  return counters;
}

std::optional<std::int64_t> revision_in_file(sqlite3_file* file, std::uint32_t page, std::int64_t expected) {
  constexpr int kTries = 5;
  if (file == nullptr || page == 0) return {};
  std::optional<std::int64_t> found;
  for (int i = 0; i < kTries && (!found || *found < expected); ++i) {
    if (i > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::array<std::uint8_t, kPageBytes> bytes{};
    const sqlite3_int64 at = (sqlite3_int64{page} - 1) * kPageBytes;
    if (file->pMethods->xRead(file, bytes.data(), kPageBytes, at) != SQLITE_OK) continue;
    const auto counters = counters_in_page(bytes);
    if (!counters) continue;
    if (const auto revision = counters->find(1); revision != counters->end()) found = revision->second;
  }
  return found;
}

}  // namespace croft::store
