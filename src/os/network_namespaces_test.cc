#include "os/network_namespaces.h"

#include <linux/filter.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::os {
namespace {

/// From now on this thread's kernel does not say what kind of namespace a file is, as an old one, one of a sandbox, or
/// an emulated one.
bool hide_types_of_namespaces() {
  constexpr std::size_t kCommand = offsetof(seccomp_data, args) + sizeof(std::uint64_t);  // the low half, little-endian
  std::array<sock_filter, 6> program = {{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_ioctl, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kCommand),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NS_GET_NSTYPE, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOTTY),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog filter{program.size(), program.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

TEST(NamespacePathTest, WhatTheKernelDoesNotSayIsUnseen) {
  EXPECT_EQ(look_at_namespace_path("/proc/self/ns/net"), NamespacePath::present);
  EXPECT_EQ(look_at_namespace_path("/proc/self/ns/uts"), NamespacePath::unclear);
  EXPECT_EQ(look_at_namespace_path("/proc/self/status"), NamespacePath::unmounted);
  EXPECT_EQ(look_at_namespace_path("/proc/self/none"), NamespacePath::gone);
  // Of one thread alone.
  std::thread([] {
    ASSERT_TRUE(hide_types_of_namespaces());
    EXPECT_EQ(look_at_namespace_path("/proc/self/ns/net"), NamespacePath::unseen);
    EXPECT_EQ(look_at_namespace_path("/proc/self/none"), NamespacePath::gone);
  }).join();
}

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<NamespaceMount> mounts(std::string_view table) {
  std::vector<NamespaceMount> found;
  for_each_namespace_mount(table, [&](const NamespaceMount& mount) { found.push_back(mount); });
  return found;
}

TEST(MountTable, NetworkNamespacesOnly) {
  EXPECT_THAT(
      mounts("22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
             "585 24 0:4 net:[4026532281] /run/netns/a rw shared:300 - nsfs nsfs rw\n"
             "586 24 0:4 mnt:[4026532282] /run/mnt/a rw - nsfs nsfs rw\n"
             "587 24 0:4 net:[4026532283] /var/run/netns/b rw - nsfs nsfs rw\n"),
      ElementsAre(NamespaceMount{"4026532281", "/run/netns/a"}, NamespaceMount{"4026532283", "/var/run/netns/b"}));
}

TEST(MountTable, TheLastLineNeedsNoEnd) {
  EXPECT_THAT(mounts("1 2 0:4 net:[5] /a"), ElementsAre(NamespaceMount{"5", "/a"}));
}

TEST(MountTable, ThreeOctalDigitsAreOneByte) {
  EXPECT_THAT(mounts("1 2 0:4 net:[5] /a\\040b\\134c\\012\\011d rw\n"),
              ElementsAre(NamespaceMount{"5", "/a b\\c\n\td"}));
  EXPECT_THAT(mounts("1 2 0:4 net:[5] /\\303\\244 rw\n"), ElementsAre(NamespaceMount{"5", "/\xc3\xa4"}));
}

TEST(MountTable, OtherBackslashesStay) {
  for (const char* path : {"/\\", "/\\04", "/\\08a", "/\\400", "/\\777", "/\\x41"}) {
    EXPECT_THAT(mounts("1 2 0:4 net:[5] " + std::string(path)), ElementsAre(NamespaceMount{"5", path}));
  }
}

TEST(MountTable, WhatIsNoMountIsPassedOver) {
  EXPECT_THAT(mounts(""), IsEmpty());
  EXPECT_THAT(mounts("\n\n \n"), IsEmpty());
  for (const char* line : {"net:[5] /a", "1 2 0:4 net:[5]", "1 2 0:4 net:[5] ", "1 2 0:4 net:[5] a", "1 2 0:4 net:[ /a",
                           "1 2 0:4 net:[] /a", "1 2 0:4 net:[x] /a", "1 2 0:4 net:[5 /a", "1 2 0:4 /net:[5] /a"}) {
    EXPECT_THAT(mounts(line), IsEmpty()) << line;
  }
}

}  // namespace

}  // namespace croft::os
