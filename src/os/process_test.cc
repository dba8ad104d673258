#include "os/process.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "os/file_descriptor.h"
#include "os/scratch_directory.h"

namespace croft::os {
namespace {

/// In a child process: its exit code.
template <class Act>
int in_a_child(Act act) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(act());
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(StandardStreams, ThatAreMissingAreNobodyElses) {
  for (unsigned closed = 0; closed < 8; ++closed) {
    const int code = in_a_child([&] {
      for (int fd = 0; fd < 3; ++fd) {
        if ((closed >> fd & 1U) != 0) ::close(fd);
      }
      fill_standard_streams();
      const int next = ::open("/dev/null", O_RDWR | O_CLOEXEC);
      if (next < 3) return 1;
      char byte = 0;
      if ((closed & 1U) != 0 && ::read(STDIN_FILENO, &byte, 1) != 0) return 2;
      if ((closed & 2U) != 0 && write_standard_output("x")) return 3;
      if ((closed & 4U) != 0 && !write_standard_error("x")) return 4;
      return 0;
    });
    EXPECT_EQ(code, 0) << "closed: " << closed;
  }
}

/// A socket as systemd's; `name` as NOTIFY_SOCKET has it.
class Manager {
 public:
  explicit Manager(const std::string& name) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name.data(), name.size());
    if (name.front() == '@') at.sun_path[0] = '\0';
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() { ::unsetenv("NOTIFY_SOCKET"); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  /// The next datagram; empty when there is none.
  [[nodiscard]] std::string heard() const {
    std::array<char, 64> text{};
    const auto size = ::recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
  }

 private:
  const FileDescriptor socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST(ServiceManager, HearsByFileAndByAbstractName) {
  const std::string path = testing::TempDir() + "croft-notify-" + std::to_string(own_process());
  for (const std::string& name : {path, "@croft-notify-" + std::to_string(own_process())}) {
    const Manager manager(name);
    tell_service_manager("READY=1");
    tell_service_manager("WATCHDOG=1");
    EXPECT_EQ(manager.heard(), "READY=1") << name;
    EXPECT_EQ(manager.heard(), "WATCHDOG=1") << name;
    EXPECT_EQ(manager.heard(), "");
  }
  ::unlink(path.c_str());
}

TEST(ServiceManager, NobodyThereIsNoMatter) {
  tell_service_manager("READY=1");
  for (const char* name : {"", "@", "vsock:2:1234", "/nonexistent/notify"}) {
    ::setenv("NOTIFY_SOCKET", name, 1);
    tell_service_manager("READY=1");
  }
  ::setenv("NOTIFY_SOCKET", std::string(200, '/').c_str(), 1);
  tell_service_manager("READY=1");
  ::unsetenv("NOTIFY_SOCKET");
}

using namespace std::chrono_literals;

TEST(StopSignalTest, IsFalseWithoutASignalAndTrueForEverAfterOne) {
  StopSignal stop(24h);
  EXPECT_FALSE(stop.wait_for(0ns));
  EXPECT_FALSE(stop.wait_for(1ms));
  ::kill(::getpid(), SIGHUP);
  EXPECT_FALSE(stop.wait_for(1ms));
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(stop.wait_for(24h));
  EXPECT_TRUE(stop.wait_for(0ns));
}

/// Whatever the work is, be it a loop without an end, the process ends.
TEST(StopSignalDeathTest, EndsAProcessThatDoesNotEndByItself) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const ScratchDirectory scratch;
  // The child has a scratch directory of its own, which nobody removes: it is ended.
  EXPECT_EXIT(
      {
        const std::string& left = scratch.path();
        StopSignal stop(50ms);
        stop.before_forced_end([&] { std::filesystem::remove_all(left); });
        ::kill(::getpid(), SIGTERM);
        for (volatile bool for_ever = true; for_ever;) {
        }
      },
      ::testing::ExitedWithCode(1), "cut off");
}

TEST(StopSignalDeathTest, WhatOnlyReadsMayBeCutOff) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        StopSignal stop(50ms);
        stop.before_forced_end({}, StopSignal::CutsOff::reading);
        ask_to_end();
        for (volatile bool for_ever = true; for_ever;) {
        }
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace

}  // namespace croft::os
