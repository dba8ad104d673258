#pragma once

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "os/clock.h"
#include "os/file_descriptor.h"

namespace croft::os {

inline const SystemClock kClock;

/// A shell command of a test, which has to succeed.
inline void shell(const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; }

/// Runs a test in a child process with a network namespace and a /run of its own, so that nothing of it is seen on the
/// machine, and all of it is gone when it ends. Needs root and iproute2, else skips.
inline void in_private_network(const std::function<void()>& test) {
  if (::geteuid() != 0) GTEST_SKIP() << "needs root to make network namespaces";
  if (std::system("ip -V >/dev/null 2>&1") != 0) GTEST_SKIP() << "needs ip of iproute2";
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    if (::unshare(CLONE_NEWNET | CLONE_NEWNS) != 0) ::_exit(77);
    if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) ::_exit(77);
    if (::mount("croft-test", "/run", "tmpfs", 0, nullptr) != 0 || ::mkdir("/run/netns", 0755) != 0) ::_exit(77);
    test();
    std::fflush(nullptr);
    ::_exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) GTEST_SKIP() << "this machine lets nobody make namespaces";
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "the child process failed; see above";
}

/// Runs `f` in a thread that is in a named network namespace.
[[nodiscard]] inline std::thread thread_in(const std::string& name, std::function<void()> f) {
  return std::thread([name, f = std::move(f)] {
    const FileDescriptor file(::open(("/run/netns/" + name).c_str(), O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(::setns(file.get(), CLONE_NEWNET), 0) << name;
    f();
  });
}
inline void in_namespace(const std::string& name, std::function<void()> f) { thread_in(name, std::move(f)).join(); }

/// A switch with the hosts a, b and c on it, a namespace each, whose eth0 have the MACs 02:00:00:00:00:0a to :0c.
inline void make_switch() {
  shell("ip link add sw type bridge && ip link set sw up");
  for (const std::string host : {"a", "b", "c"}) {
    shell("ip netns add " + host + " && ip link add to_" + host + " type veth peer name eth0 address 02:00:00:00:00:0" +
          host + " netns " + host + " && ip link set to_" + host + " master sw up && ip -n " + host +
          " link set lo up && ip -n " + host + " link set eth0 up");
  }
}

}  // namespace croft::os
