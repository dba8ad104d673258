#pragma once

#include <cstddef>
#include <cstdint>

namespace croft::fuzz {

/// What a fuzzer gives, read as the choices of a history. Behind its end everything is 0.
class Bytes {
 public:
  Bytes(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  [[nodiscard]] bool empty() const { return size_ == 0; }
  std::uint8_t byte() {
    if (size_ == 0) return 0;
    --size_;
    return *data_++;
  }
  std::uint32_t pair() {
    const std::uint32_t high = byte();
    return high << 8 | byte();
  }
  std::uint64_t wide() {
    std::uint64_t value = 0;
    for (int i = 0; i < 8; ++i) value = value << 8 | byte();
    return value;
  }
  /// Less than `end`: of one byte where that is enough, else of two.
  std::uint32_t below(std::uint32_t end) { return (end > 256 ? pair() : byte()) % end; }
  bool one_in(std::uint32_t n) { return byte() % n == n - 1; }

 private:
  const std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace croft::fuzz
