#include "os/clock.h"

#include <fcntl.h>
#include <time.h>

#include <array>
#include <string>

#include "base/assert.h"
#include "base/hex.h"
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

BootId read_boot_id() {
  const FileDescriptor file(::open(kBootIdPath, O_RDONLY | O_CLOEXEC));
  std::array<char, kBootIdTextBytes> text{};
  if (!file.is_open() || ::read(file.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) return {};
  return parse_boot_id({text.data(), text.size()});
}

}  // namespace

BootId parse_boot_id(std::string_view text) {
  std::string hex(text);
  std::erase(hex, '-');
  const auto bytes = bytes_of_hex<sizeof(BootId::bytes)>(hex);
  return bytes ? BootId{*bytes} : BootId{};
}

Instant SystemClock::now() const {
  std::call_once(boot_read_, [this] { boot_ = read_boot_id(); });
  return {WallTime(read_clock(CLOCK_REALTIME)), read_clock(CLOCK_BOOTTIME), boot_};
}

}  // namespace croft::os
