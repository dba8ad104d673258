#include "os/network_namespaces.h"

#include <linux/filter.h>
#include <linux/nsfs.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <thread>

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

}  // namespace
}  // namespace croft::os
