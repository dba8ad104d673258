// The plugin through the agent and past it, in turns on one sqlite store (docs/promises.md#budget-block-add).
//
// usage: agent_bench BIN_DIR [DIRECTORY]   (the store is made in DIRECTORY, by default the current one)

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "engine/pools.h"
#include "floors.h"
#include "os/clock.h"
#include "os/random.h"
#include "processes.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::bench {
namespace {

constexpr int kRounds = 200;

[[noreturn]] void give_up(const std::string& what) {
  std::fprintf(stderr, "agent_bench: %s\n", what.c_str());
  std::exit(1);
}

/// `croftd agent`, as long as this lives.
class AgentProcess {
 public:
  AgentProcess(const std::string& bin, const std::string& store, std::string socket) : socket_(std::move(socket)) {
    const std::string program = bin + "/croftd";
    child_ = ::fork();
    if (child_ == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGTERM);  // also when this program is killed
      ::execl(program.c_str(), "croftd", "agent", "--store", store.c_str(), "--socket", socket_.c_str(), "--node",
              "bench", "--user", std::to_string(::geteuid()).c_str(), nullptr);
      ::_exit(127);
    }
    for (int i = 0; i < 1000 && !answers(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!answers()) give_up("the agent does not serve");
  }
  ~AgentProcess() {
    ::kill(child_, SIGTERM);
    ::waitpid(child_, nullptr, 0);
  }
  AgentProcess(const AgentProcess&) = delete;
  AgentProcess& operator=(const AgentProcess&) = delete;

  /// A line of /proc/<pid>/status, in KiB.
  [[nodiscard]] long memory_kib(const std::string& name) const {
    std::ifstream status(fmt::format("/proc/{}/status", child_));
    for (std::string line; std::getline(status, line);) {
      if (line.starts_with(name)) return std::atol(line.c_str() + name.size());
    }
    return 0;
  }

 private:
  [[nodiscard]] bool answers() const {
    const int probe = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::copy(socket_.begin(), socket_.end(), address.sun_path);
    const bool connected = ::connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    ::close(probe);
    return connected;
  }

  std::string socket_;
  pid_t child_ = -1;
};

class Bench {
 public:
  Bench(std::string bin, const std::filesystem::path& directory)
      : bin_(std::move(bin)), directory_(std::filesystem::absolute(directory) / "croft-agent-bench") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~Bench() { std::filesystem::remove_all(directory_); }

  void run_all() {
    make_store();
    const AgentProcess agent(bin_, "sqlite:" + path(), socket());
    fmt::print("{:<58}{:>9.3f} ms\n", "fdatasync of 4 KiB, this disk (p50)", disk_sync(directory_).count());
    fmt::print("{:<58}{:>9.3f} ms\n", "empty static process (p50)", empty_process(bin_).count());
    std::vector<Milliseconds> times[2][2];
    for (int i = 0; i < kRounds; ++i) {
      for (const bool by_agent : {i % 2 == 0, i % 2 != 0}) {
        const std::string container = fmt::format("{:064x}", 2 * i + (by_agent ? 1 : 0));
        for (const bool del : {false, true}) {
          times[by_agent][del].push_back(
              time_of([&] { must_run(call(del ? "DEL" : "ADD", container, by_agent ? socket() : "none")); }));
        }
      }
    }
    for (const bool del : {false, true}) {
      const Milliseconds alone = median(times[0][del]);
      const Milliseconds by_agent = median(times[1][del]);
      fmt::print("{:<58}{:>9.3f} ms   alone {:.3f} ms, {:.2f} x\n",
                 del ? "block DEL through the agent" : "block ADD through the agent", by_agent.count(), alone.count(),
                 by_agent / alone);
    }
    for (int i = 0; i < 110; ++i) must_run(call("ADD", fmt::format("pod-{}", i), socket()));
    fmt::print("{:<58}{:>9.2f} MiB  budget 40 (now; most so far {:.2f})\n", "memory of the agent with 110 pods",
               static_cast<double>(agent.memory_kib("VmRSS:")) / 1024.0,
               static_cast<double>(agent.memory_kib("VmHWM:")) / 1024.0);
    must_be_served_by_agent();
  }

 private:
  [[nodiscard]] std::string path() const { return (directory_ / "croft.db").string(); }
  [[nodiscard]] std::string socket() const { return (directory_ / "agent.sock").string(); }
  [[nodiscard]] std::string log() const { return (directory_ / "ipam.log").string(); }

  [[nodiscard]] Call call(const std::string& command, const std::string& container, const std::string& agent) const {
    const std::string config = fmt::format(
        R"({{"cniVersion":"1.0.0","name":"net","nodename":"bench","ipam":{{"type":"croft-ipam","store":"sqlite:{}","log_file_path":"{}","agent":"{}"}}}})",
        path(), log(), agent);
    return {{bin_ + "/croft-ipam"},
            {"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_NETNS=/var/run/netns/none",
             "CNI_IFNAME=eth0", "CNI_PATH=" + bin_, "CROFT_LOG_DIRECTORY=" + directory_.string()},
            config};
  }
  static void must_run(const Call& call) {
    if (run(call) != 0) give_up("a call of the plugin failed");
  }

  /// A measurement of calls that went past the agent would be worth nothing.
  void must_be_served_by_agent() const {
    std::ifstream lines(log());
    int by_agent = 0;
    for (std::string line; std::getline(lines, line);) by_agent += line.find("via=agent") != std::string::npos ? 1 : 0;
    if (by_agent != 2 * kRounds + 110) give_up(fmt::format("only {} calls were served by the agent", by_agent));
  }

  void make_store() const {
    const os::SystemClock clock;
    os::SystemRandom random;
    store::SqliteOptions options;
    options.create = true;
    const auto store = store::open_sqlite_store(path(), options, clock, {});
    if (!store) give_up(store.error().message);
    core::PoolSpec spec;
    spec.name = "a";
    spec.cidr = net::Prefix::parse("10.0.0.0/12").value();
    spec.cooldown = std::chrono::seconds(0);
    if (const auto made = engine::create_pool({**store, clock, random}, spec); !made) give_up(made.error().message);
  }

  std::string bin_;
  std::filesystem::path directory_;
};

}  // namespace
}  // namespace croft::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: agent_bench BIN_DIR [DIRECTORY]\n");
    return 2;
  }
  croft::bench::Bench(argv[1], argc > 2 ? argv[2] : ".").run_all();
  return 0;
}
