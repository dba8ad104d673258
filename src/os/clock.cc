#include "os/clock.h"

#include <fcntl.h>
#include <time.h>

#include <array>
#include <string_view>

#include "base/assert.h"
#include "os/file_descriptor.h"

namespace croft::os {
namespace {

constexpr const char* kBootIdPath = "/proc/sys/kernel/random/boot_id";
constexpr std::size_t kBootIdTextBytes = 36;  // 8-4-4-4-12 hex digits

std::chrono::nanoseconds read_clock(clockid_t id) {
  timespec t{};
  CROFT_ASSERT(::clock_gettime(id, &t) == 0);
  return std::chrono::seconds{t.tv_sec} + std::chrono::nanoseconds{t.tv_nsec};
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

/// The 32 hex digits of a UUID text; all zero when it is anything else.
BootId parse_boot_id(std::string_view text) {
  BootId id;
  std::size_t digits = 0;
  for (const char c : text) {
    if (c == '-') continue;
    const int value = hex_value(c);
    if (value < 0 || digits == 2 * id.bytes.size()) return {};
    std::uint8_t& byte = id.bytes[digits / 2];
    byte = static_cast<std::uint8_t>((byte << 4) | value);
    ++digits;
  }
  return digits == 2 * id.bytes.size() ? id : BootId{};
}

BootId read_boot_id() {
  const FileDescriptor file(::open(kBootIdPath, O_RDONLY | O_CLOEXEC));
  std::array<char, kBootIdTextBytes> text{};
  if (!file.is_open() || ::read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return {};
  return parse_boot_id({text.data(), text.size()});
}

}  // namespace

Instant SystemClock::now() const {
  std::call_once(boot_read_, [this] { boot_ = read_boot_id(); });
  return {WallTime(read_clock(CLOCK_REALTIME)), read_clock(CLOCK_BOOTTIME), boot_};
}

}  // namespace croft::os
