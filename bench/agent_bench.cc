// The plugin through the agent and past it, in turns on one sqlite store (docs/promises.md#budget-block-add).
//
// usage: agent_bench BIN_DIR [DIRECTORY]   (the store is made in DIRECTORY, by default the current one)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <fmt/format.h>

#include "agent_process.h"
#include "engine/pools.h"
#include "floors.h"
#include "os/clock.h"
#include "os/random.h"
#include "processes.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::bench {
namespace {

constexpr int kRounds = 200;

[[noreturn]] void give_up(const std::string& what) { bench::give_up("agent_bench", what); }

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
    const AgentProcess agent(bin_, "sqlite:" + path(), socket(), "bench");
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
