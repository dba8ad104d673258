#include "processes.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace croft::bench {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> result;
  for (const std::string& text : texts) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

/// A file in memory: no pipe to fill or drain while the process runs.
int memory_file(const std::string& text) {
  const int fd = ::memfd_create("croft-bench", MFD_CLOEXEC);
  if (fd < 0 || ::write(fd, text.data(), text.size()) != static_cast<ssize_t>(text.size())) std::abort();
  ::lseek(fd, 0, SEEK_SET);
  return fd;
}

/// `errors`: the descriptor for standard error, or negative for none.
pid_t start(const Call& call, int errors) {
  const int input = memory_file(call.input);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  if (errors >= 0) {
    ::posix_spawn_file_actions_adddup2(&actions, errors, STDERR_FILENO);
  } else {
    ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  }
  pid_t child = -1;
  const auto words = pointers(call.words);
  const auto environment = pointers(call.environment);
  if (::posix_spawnp(&child, words[0], &actions, nullptr, words.data(), environment.data()) != 0) std::abort();
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(input);
  return child;
}

int wait_for(pid_t child) {
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

int run(const Call& call) { return wait_for(start(call, -1)); }

int run_with_errors(const Call& call, std::string& errors) {
  const int fd = memory_file("");
  const int exit_code = wait_for(start(call, fd));
  errors.resize(static_cast<std::size_t>(::lseek(fd, 0, SEEK_END)));
  if (::pread(fd, errors.data(), errors.size(), 0) != static_cast<ssize_t>(errors.size())) std::abort();
  ::close(fd);
  return exit_code;
}

std::vector<int> run_together(const std::vector<Call>& calls) {
  std::vector<pid_t> children;
  for (const Call& call : calls) children.push_back(start(call, -1));
  std::vector<int> exit_codes;
  for (const pid_t child : children) exit_codes.push_back(wait_for(child));
  return exit_codes;
}

Milliseconds median(std::vector<Milliseconds> samples) {
  std::sort(samples.begin(), samples.end());
  return samples[samples.size() / 2];
}

}  // namespace croft::bench
