#include "os/network_namespaces.h"

#include <dirent.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <system_error>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "os/file_descriptor.h"

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

constexpr std::size_t kMountTableBytesMax = std::size_t{64} << 20;
constexpr std::size_t kUnseenLinesMax = 8;
constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO; part of the kernel's interface by now

/// An entry that had gone when it was looked at is no gap.
bool means_gone(int error_number) { return error_number == ENOENT || error_number == ESRCH || error_number == ENOTDIR; }

std::optional<net::Address> address_of(const sockaddr* address) {
  std::array<std::uint8_t, 16> bytes{};
  if (address != nullptr && address->sa_family == AF_INET) {
    std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, 4);
    return net::Address::of_bytes(std::span(bytes).first(4));
  }
  if (address == nullptr || address->sa_family != AF_INET6) return std::nullopt;
  std::memcpy(bytes.data(), &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, bytes.size());
  return net::Address::of_bytes(bytes);
}

/// The addresses of the namespace this thread is in; false when the kernel did not say.
bool read_addresses(std::vector<InterfaceAddress>& out) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return false;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owner(list, &::freeifaddrs);
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (const auto address = address_of(entry->ifa_addr)) out.push_back({entry->ifa_name, *address});
  }
  return true;
}

void for_each_entry(const std::string& path, const std::function<void(std::string_view name)>& f) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), &::closedir);
  if (!directory) return;
  while (const dirent* entry = ::readdir(directory.get())) {
    if (entry->d_name[0] != '.') f(entry->d_name);
  }
}

class Survey {
 public:
  explicit Survey(bool own_processes_are_all) : own_processes_are_all_(own_processes_are_all) {}

  NamespaceSurvey run() {
    check_process_view();
    enter("/proc/self/ns/net");
    for (const char* folder : {"/run/netns/", "/var/run/netns/"}) {
      for_each_entry(folder, [&](std::string_view name) { enter_file(folder + std::string(name)); });
    }
    bool any = false;
    for_each_entry("/proc", [&](std::string_view name) {
      if (name.find_first_not_of("0123456789") != std::string_view::npos) return;
      any = true;
      look_at_process(fmt::format("/proc/{}", name));
    });
    if (!any) miss("/proc has no processes; mount it");
    if (missed_ > kUnseenLinesMax) found_.unseen.push_back(fmt::format("and {} more", missed_ - kUnseenLinesMax));
    return std::move(found_);
  }

 private:
  void miss(std::string why) {
    if (++missed_ <= kUnseenLinesMax) found_.unseen.push_back(std::move(why));
  }
  void miss(const std::string& path, int error_number) {
    miss(fmt::format("{}: {}", path, std::generic_category().message(error_number)));
  }

  void check_process_view() {
    struct stat status {};
    if (own_processes_are_all_) return;
    if (::stat("/proc/self/ns/pid", &status) != 0) return miss("/proc/self/ns/pid", errno);
    if (status.st_ino != kInitialPidNamespace) miss("processes outside this container's own PID namespace");
  }

  void look_at_process(const std::string& process) {
    enter(process + "/ns/net");
    struct stat mounts {};
    if (::stat((process + "/ns/mnt").c_str(), &mounts) != 0) {
      if (!means_gone(errno)) miss(process + "/ns/mnt", errno);
      return;
    }
    if (mount_tables_.insert({mounts.st_dev, mounts.st_ino}).second) look_at_mounts(process);
  }

  void look_at_mounts(const std::string& process) {
    const auto table = read_file(process + "/mountinfo", kMountTableBytesMax);
    if (!table) {
      // A process that has just ended answers EINVAL.
      if (::access((process + "/ns/mnt").c_str(), F_OK) == 0) miss(table.error().message);
      return;
    }
    for_each_namespace_mount(*table, [&](const NamespaceMount& mount) {
      if (!inodes_.contains(mount.inode)) enter_file(process + "/root" + mount.path);
    });
  }

  /// A file that may be any file: only a namespace is entered.
  void enter_file(const std::string& path) {
    switch (look_at_namespace_path(path)) {
      case NamespacePath::present:
        return enter(path);
      case NamespacePath::unseen:
        return miss(path + ": whether it is a network namespace can't be seen");
      case NamespacePath::gone:
      case NamespacePath::unclear:
      case NamespacePath::unmounted:
        return;
    }
  }

  void enter(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) {
      if (!means_gone(errno)) miss(path, errno);
      return;
    }
    if (seen_.contains({status.st_dev, status.st_ino})) return;
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open() || ::fstat(file.get(), &status) != 0) {
      if (!means_gone(errno)) miss(path, errno);
      return;
    }
    seen_.insert({status.st_dev, status.st_ino});
    inodes_.insert(std::to_string(status.st_ino));
    NetworkNamespace found{{status.st_dev, status.st_ino}, path, {}};
    if (::setns(file.get(), CLONE_NEWNET) != 0 || !read_addresses(found.addresses)) return miss(path, errno);
    found_.namespaces.push_back(std::move(found));
  }

  bool own_processes_are_all_;
  NamespaceSurvey found_;
  std::size_t missed_ = 0;
  std::set<std::pair<dev_t, ino_t>> seen_, mount_tables_;
  std::set<std::string> inodes_;
};

}  // namespace

void for_each_namespace_mount(std::string_view table, const std::function<void(const NamespaceMount& mount)>& visit) {
  while (!table.empty()) {
    const std::size_t end = std::min(table.find('\n'), table.size());
    if (const auto mount = namespace_mount(table.substr(0, end))) visit(*mount);
    table.remove_prefix(std::min(end + 1, table.size()));
  }
}

NamespaceSurvey addresses_of_all_namespaces(bool own_processes_are_all) {
  NamespaceSurvey survey;
  try {
    std::thread([&] { survey = Survey(own_processes_are_all).run(); }).join();
  } catch (const std::system_error& error) {
    survey.unseen.push_back(fmt::format("no thread to enter namespaces in: {}", error.what()));
  }
  return survey;
}

std::string why_not_the_machines_view() {
  struct stat status {};
  if (::stat("/proc/self/ns/pid", &status) != 0) return "/proc/self/ns/pid: " + std::generic_category().message(errno);
  if (status.st_ino != kInitialPidNamespace) return "this is a container: it has a PID namespace of its own";
  struct stat own {};
  struct stat machines {};
  if (::stat("/proc/self/ns/mnt", &own) != 0 || ::stat("/proc/1/ns/mnt", &machines) != 0) {
    return "/proc/1/ns/mnt: " + std::generic_category().message(errno) + "; run as root";
  }
  if (own.st_ino != machines.st_ino) return "this process has a mount namespace of its own";
  return {};
}

NamespacePath look_at_namespace_path(const std::string& path) {
  const auto failed = [] { return means_gone(errno) ? NamespacePath::gone : NamespacePath::unseen; };
  struct statfs file_system {};
  if (::statfs(path.c_str(), &file_system) != 0) return failed();
  if (file_system.f_type != NSFS_MAGIC) {
    struct stat status {};
    const bool is_file = ::stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
    return is_file ? NamespacePath::unmounted : NamespacePath::unclear;
  }
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.is_open()) return failed();
  // Unmounted since the first look.
  if (::fstatfs(file.get(), &file_system) != 0 || file_system.f_type != NSFS_MAGIC) return NamespacePath::unmounted;
  const int type = ::ioctl(file.get(), NS_GET_NSTYPE);
  if (type < 0) return NamespacePath::unseen;
  return type == CLONE_NEWNET ? NamespacePath::present : NamespacePath::unclear;
}

}  // namespace croft::os
