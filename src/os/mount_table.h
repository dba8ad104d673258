#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace croft::os {

/// A network namespace that a mount keeps.
struct NamespaceMount {
  std::string inode;  ///< decimal, as in "net:[4026532281]"
  std::string path;   ///< where it is mounted, seen from the root of the process whose table it is; begins with a slash
  friend bool operator==(const NamespaceMount&, const NamespaceMount&) = default;
};

/// The mounts of network namespaces in the text of /proc/<pid>/mountinfo (proc_pid_mountinfo(5)), in its order, one by
/// one: a table may be of many megabytes. All other lines are passed over, those that are no mount's too.
void for_each_namespace_mount(std::string_view table, const std::function<void(const NamespaceMount& mount)>& visit);

}  // namespace croft::os
