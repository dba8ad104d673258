#include "os/proc_text.h"

#include <algorithm>
#include <cstddef>
#include <string>

#include <fmt/format.h>

#include "base/hex.h"

namespace croft::os {

BootId parse_boot_id(std::string_view text) {
  std::string hex(text);
  std::erase(hex, '-');
  const auto bytes = bytes_of_hex<sizeof(BootId::bytes)>(hex);
  return bytes ? BootId{*bytes} : BootId{};
}

std::string_view flock_holder(std::string_view locks, std::uint64_t inode) {
  constexpr std::string_view kWrite = " WRITE ";
  const std::string end = fmt::format(":{} 0 EOF", inode);
  while (!locks.empty()) {
    const std::string_view line = locks.substr(0, locks.find('\n'));
    locks.remove_prefix(std::min(line.size() + 1, locks.size()));
    const std::size_t write = line.find(kWrite);
    // Those that wait have an arrow before the word.
    if (line.find(": FLOCK ") == line.npos || !line.ends_with(end) || write == line.npos) continue;
    const std::string_view rest = line.substr(write + kWrite.size());
    const std::string_view pid = rest.substr(0, rest.find(' '));
    // 0 and -1: nobody that can be named here.
    const bool is_number = !pid.empty() && pid.find_first_not_of("0123456789") == pid.npos;
    if (is_number && pid.front() != '0') return pid;
  }
  return {};
}

}  // namespace croft::os
