// Reads any bytes as a table of mounts (/proc/<pid>/mountinfo). Checked: nothing crashes; there are no more namespaces
// than lines, each with a decimal inode and an absolute path no longer than its line. Then the same bytes as the path
// of a mount, written as the kernel does: it reads back.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/assert.h"
#include "os/network_namespaces.h"

namespace {

using croft::os::NamespaceMount;

std::string escaped(std::string_view path) {
  std::string text;
  for (const char c : path) {
    const bool plain = c != ' ' && c != '\t' && c != '\n' && c != '\\';
    text += plain ? std::string(1, c) : fmt::format("\\{:03o}", static_cast<unsigned char>(c));
  }
  return text;
}

void read_any(std::string_view table) {
  std::size_t mounts = 0, bytes = 0;
  croft::os::for_each_namespace_mount(table, [&](const NamespaceMount& mount) {
    ++mounts;
    bytes += mount.inode.size() + mount.path.size();
    CROFT_ASSERT(!mount.inode.empty() && std::ranges::all_of(mount.inode, [](char c) { return c >= '0' && c <= '9'; }));
    CROFT_ASSERT(mount.path.starts_with('/'));
  });
  CROFT_ASSERT(bytes <= table.size());
  CROFT_ASSERT(mounts <= static_cast<std::size_t>(std::ranges::count(table, '\n')) + 1);
}

void read_back(std::string_view name) {
  const NamespaceMount wanted{"4026532281", "/" + std::string(name)};
  const std::string line = "585 24 0:4 net:[4026532281] " + escaped(wanted.path) + " rw shared:300 - nsfs nsfs rw\n";
  std::optional<NamespaceMount> found;
  croft::os::for_each_namespace_mount("22 28 0:20 / /sys rw - sysfs sysfs rw\n" + line,
                                      [&](const NamespaceMount& mount) {
                                        CROFT_ASSERT(!found);
                                        found = mount;
                                      });
  CROFT_ASSERT(found == wanted);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  read_any(bytes);
  read_back(bytes);
  return 0;
}
