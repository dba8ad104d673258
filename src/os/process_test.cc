#include "os/process.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

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

TEST(Process, IsKnownByItsNumberAndItsBeginning) {
  const ProcessName own = own_process();
  EXPECT_NE(own.id, 0U);
  EXPECT_NE(own.began, 0U);
  EXPECT_TRUE(is_running(own));
  EXPECT_FALSE(is_running({own.id, own.began + 1})) << "one of the same number, later";
  EXPECT_FALSE(is_running({4'000'000'000U, own.began}));
  EXPECT_FALSE(is_running({}));
}

}  // namespace
}  // namespace croft::os
