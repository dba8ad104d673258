#include "os/mount_table.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace croft::os {
namespace {

/// The kernel has blanks, line feeds and backslashes of a path as three octal digits.
std::string unescaped(std::string_view field) {
  std::string path;
  for (std::size_t i = 0; i < field.size(); ++i) {
    const auto digit = [&](std::size_t at, char most) { return field[at] >= '0' && field[at] <= most; };
    if (field[i] == '\\' && i + 3 < field.size() && digit(i + 1, '3') && digit(i + 2, '7') && digit(i + 3, '7')) {
      path += static_cast<char>((field[i + 1] - '0') * 64 + (field[i + 2] - '0') * 8 + (field[i + 3] - '0'));
      i += 3;
    } else {
      path += field[i];
    }
  }
  return path;
}

std::string_view next_field(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view field = line.substr(0, end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return field;
}

std::optional<NamespaceMount> namespace_mount(std::string_view line) {
  for (int i = 0; i < 3; ++i) next_field(line);
  const std::string_view root = next_field(line);
  constexpr std::string_view kStart = "net:[";
  if (!root.starts_with(kStart) || !root.ends_with(']')) return std::nullopt;
  const std::string_view inode = root.substr(kStart.size(), root.size() - kStart.size() - 1);
  if (inode.empty() || inode.find_first_not_of("0123456789") != std::string_view::npos) return std::nullopt;
  const std::string_view path = next_field(line);
  if (!path.starts_with('/')) return std::nullopt;
  return NamespaceMount{std::string(inode), unescaped(path)};
}

}  // namespace

void for_each_namespace_mount(std::string_view table, const std::function<void(const NamespaceMount& mount)>& visit) {
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    if (const auto mount = namespace_mount(table.substr(0, end))) visit(*mount);
    table.remove_prefix(std::min(end + 1, table.size()));
  }
}

}  // namespace croft::os
