#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "os/files.h"

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

/// An address as the kernel has it on an interface, without zone.
struct InterfaceAddress {
  std::string interface_name;
  net::Address address;
  friend bool operator==(const InterfaceAddress&, const InterfaceAddress&) = default;
};

struct NetworkNamespace {
  FileId id;
  std::string where;  ///< a path that leads there: "/run/netns/a", "/proc/17/ns/net"
  std::vector<InterfaceAddress> addresses;
};

/// The result of a look at the network namespaces of this machine.
struct NamespaceSurvey {
  std::vector<NetworkNamespace> namespaces;
  /// Why there may be more than was seen, a line each. Empty: every namespace that was there before the look began and
  /// still is has been looked at.
  std::vector<std::string> unseen;
};

/// Enters every network namespace and reads its addresses. These are the addresses of each process's namespace, of
/// those in /run/netns and /var/run/netns, and of those kept by a mount in the mount namespace of any process, as
/// container engines do. Each is entered once, in a thread made for this look: the caller's thread stays where it is.
///
/// Needs root. In a PID namespace that is not the machine's, processes outside are not seen; unless
/// `own_processes_are_all`, that is a line of `unseen` too. Namespaces that live in a file descriptor alone, or in a
/// single thread of a process, are not found.
[[nodiscard]] NamespaceSurvey addresses_of_all_namespaces(bool own_processes_are_all);

enum class NamespacePath : std::uint8_t {
  present,    ///< it names a network namespace
  gone,       ///< nothing is there
  unclear,    ///< something else is there
  unseen,     ///< it can't be looked at, or the kernel does not say what it is
  unmounted,  ///< a file is there, and no namespace is mounted on it as this process sees it
};
/// The kind of thing that a path names. Waits for nothing.
[[nodiscard]] NamespacePath look_at_namespace_path(const std::string& path);

/// Why this process does not see the machine's files, mounts and processes as the runtime does, in a container as a
/// rule: then a path that leads nowhere says nothing. Empty when it does.
[[nodiscard]] std::string why_not_the_machines_view();

}  // namespace croft::os
