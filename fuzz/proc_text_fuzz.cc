// Reads any bytes as the other texts of /proc. Checked: nothing crashes; a boot id that is known has the digits of its
// text; the holder of a lock is a decimal number out of a line that names the inode.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"
#include "os/clock.h"
#include "os/file_lock.h"

namespace {

void read_boot_id(std::string_view text) {
  const croft::BootId id = croft::os::parse_boot_id(text);
  if (id == croft::BootId{}) return;
  std::string digits;
  for (const std::uint8_t byte : id.bytes) digits += fmt::format("{:02x}", byte);
  std::string given(text);
  std::erase(given, '-');
  CROFT_ASSERT(given == digits);
}

void read_locks(std::string_view text) {
  for (const std::uint64_t inode : {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{4711}, ~std::uint64_t{0}}) {
    const std::string_view pid = croft::os::flock_holder(text, inode);
    if (pid.empty()) continue;
    CROFT_ASSERT(pid.front() != '0' && std::ranges::all_of(pid, [](char c) { return c >= '0' && c <= '9'; }));
    CROFT_ASSERT(text.find(fmt::format(":{} 0 EOF", inode)) != text.npos);
    CROFT_ASSERT(pid.data() >= text.data() && pid.data() + pid.size() <= text.data() + text.size());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_boot_id(bytes);
  read_locks(bytes);
  return 0;
}
