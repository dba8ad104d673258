#pragma once

#include <sys/types.h>

#include <string>

namespace croft::bench {

/// Ends the program: what it measures would be worth nothing.
[[noreturn]] void give_up(const char* program, const std::string& what);

/// `croftd agent`, as long as this lives.
class AgentProcess {
 public:
  /// Returns when it answers.
  AgentProcess(const std::string& bin, const std::string& store, std::string socket, const std::string& node);
  ~AgentProcess();
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  /// A line of /proc/<pid>/status, in KiB.
  [[nodiscard]] long memory_kib(const std::string& name) const;
  /// Of the processors, by all its threads; counted in hundredths of a second.
  [[nodiscard]] double used_seconds() const;

 private:
  [[nodiscard]] bool answers() const;

  std::string socket_;
  pid_t child_ = -1;
};

}  // namespace croft::bench
