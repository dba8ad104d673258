#include "agent_process.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace croft::bench {

void give_up(const char* program, const std::string& what) {
  std::fprintf(stderr, "%s: %s\n", program, what.c_str());
  std::exit(1);
}

AgentProcess::AgentProcess(const std::string& bin, const std::string& store, std::string socket,
                           const std::string& node)
    : socket_(std::move(socket)) {
  const std::string program = bin + "/croftd";
  child_ = ::fork();
  if (child_ == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // also when this program is killed
    ::execl(program.c_str(), "croftd", "agent", "--store", store.c_str(), "--socket", socket_.c_str(), "--node",
            node.c_str(), "--user", std::to_string(::geteuid()).c_str(), nullptr);
    ::_exit(127);
  }
  for (int i = 0; i < 1000 && !answers(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!answers()) give_up("bench", "the agent does not serve");
}

AgentProcess::~AgentProcess() {
  ::kill(child_, SIGTERM);
  ::waitpid(child_, nullptr, 0);
}

long AgentProcess::memory_kib(const std::string& name) const {
  std::ifstream status(fmt::format("/proc/{}/status", child_));
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::atol(line.c_str() + name.size());
  }
  return 0;
}

double AgentProcess::used_seconds() const {
  std::ifstream file(fmt::format("/proc/{}/stat", child_));
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  std::string skipped;
  for (int i = 0; i < 11; ++i) fields >> skipped;
  double user = 0, system = 0;
  fields >> user >> system;
  return (user + system) / static_cast<double>(::sysconf(_SC_CLK_TCK));
}

bool AgentProcess::answers() const {
  const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::copy(socket_.begin(), socket_.end(), address.sun_path);
  const bool connected = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  ::close(probe);
  return connected;
}

}  // namespace croft::bench
