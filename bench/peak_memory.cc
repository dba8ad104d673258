// Runs a program and prints its peak resident memory in KiB on standard error, then its page faults, minor and major.
// Small and static on purpose: Linux counts what the parent occupied at the moment of the spawn to the child's peak.

#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <cstdio>

extern char** environ;

int main(int argc, char** argv) {
  pid_t child = -1;
  if (argc < 2 || ::posix_spawn(&child, argv[1], nullptr, nullptr, argv + 1, environ) != 0) return 127;
  int status = 0;
  rusage usage{};
  while (::wait4(child, &status, 0, &usage) < 0) {
  }
  std::fprintf(stderr, "%ld %ld %ld\n", usage.ru_maxrss, usage.ru_minflt, usage.ru_majflt);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 126;
}
