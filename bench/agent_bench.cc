// The plugin through the agent and past it, in turns on one sqlite store (docs/promises.md#budget-block-add).
//
// usage: agent_bench BIN_DIR [DIRECTORY]   (the store is made in DIRECTORY, by default the current one)

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>

#include <fmt/format.h>

#include "agent_process.h"
#include "daemon_commit.h"
#include "floors.h"
#include "ipam/use/pools.h"
#include "os/clock.h"
#include "processes.h"
#include "report.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::bench {
namespace {

constexpr int kRounds = 200;
constexpr int kIdleRounds = 15;
constexpr double kAddBudget = 1.5;

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
    const Milliseconds empty = empty_process(bin_);
    fmt::print("{:<58}{:>9.3f} ms\n", "fdatasync of 4 KiB, this disk (p50)", disk_sync(directory_).count());
    fmt::print("{:<58}{:>9.3f} ms\n", "empty static process (p50)", empty.count());
    std::vector<Milliseconds> times[2][2], commits, idle, idle_commits;
    for (int i = 0; i < kRounds; ++i) {
      for (const bool by_agent : {i % 2 == 0, i % 2 != 0}) {
        const std::string container = fmt::format("{:064x}", 2 * i + (by_agent ? 1 : 0));
        for (const bool del : {false, true}) times[by_agent][del].push_back(timed(del, container, by_agent));
      }
      commits.push_back(bare_->once());
    }
    for (int i = 0; i < kIdleRounds; ++i) {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      const std::string container = fmt::format("idle-{}", i);
      idle.push_back(timed(false, container, true));
      must_run(call("DEL", container, socket()));
      idle_commits.push_back(bare_->once());
    }
    const auto limit = [&](const std::vector<Milliseconds>& bare) {
      return Figure{"an empty static process and a bare commit", (empty + median(bare)).count()};
    };
    show("add", "block ADD through the agent", median(times[1][0]), median(times[0][0]), limit(commits));
    show("del", "block DEL through the agent", median(times[1][1]), median(times[0][1]), {});
    show("add.idle", "block ADD through the agent, after 1 s of idleness", median(idle), {}, limit(idle_commits));
    for (int i = 0; i < 110; ++i) must_run(call("ADD", fmt::format("pod-{}", i), socket()));
    const Row memory{.id = "agent.memory",
                     .what = "memory of the agent with 110 pods",
                     .value = static_cast<double>(agent.memory_kib("VmRSS:")) / 1024.0,
                     .unit = "MiB",
                     .budget = at_most(40)};
    report(fmt::format("{:<58}{:>9.2f} MiB  budget 40 (now; most so far {:.2f})", memory.what, memory.value,
                       static_cast<double>(agent.memory_kib("VmHWM:")) / 1024.0),
           memory);
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
  Milliseconds timed(bool del, const std::string& container, bool by_agent) const {
    const Call one = call(del ? "DEL" : "ADD", container, by_agent ? socket() : "none");
    return time_of([&] { must_run(one); });
  }
  static void show(const std::string& id, const std::string& what, Milliseconds by_agent,
                   std::optional<Milliseconds> alone, const std::optional<Figure>& limit) {
    Row row{.id = "agent." + id, .what = what, .value = by_agent.count(), .unit = "ms", .limit = limit};
    std::string line = fmt::format("{:<58}{:>9.3f} ms", what, row.value);
    if (alone) {
      row.note = fmt::format("{:.2f} x without the agent", by_agent / *alone);
      line += fmt::format("   alone {:.3f} ms, {:.2f} x", alone->count(), by_agent / *alone);
    }
    if (limit) {
      row.ratio = ratio_to(row, *limit);
      row.budget = ratio_at_most(kAddBudget);
      line +=
          fmt::format("   {:.2f} x {} ({:.3f} ms), budget {}", row.ratio->value, limit->name, limit->value, kAddBudget);
    }
    report(line, row);
  }
  static void must_run(const Call& call) {
    if (run(call) != 0) give_up("a call of the plugin failed");
  }

  /// A measurement of calls that went past the agent would be worth nothing.
  void must_be_served_by_agent() const {
    std::ifstream lines(log());
    int by_agent = 0;
    for (std::string line; std::getline(lines, line);) by_agent += line.find("via=agent") != std::string::npos ? 1 : 0;
    if (by_agent != 2 * kRounds + 2 * kIdleRounds + 110)
      give_up(fmt::format("only {} calls were served by the agent", by_agent));
  }

  void make_store() {
    os::SystemRandom random;
    store::SqliteOptions options;
    options.create = true;
    const auto store = store::open_sqlite_store(path(), options, clock_, {});
    if (!store) give_up(store.error().message);
    core::PoolSpec spec;
    spec.name = "a";
    spec.cidr = net::Prefix::parse("10.0.0.0/12").value();
    spec.cooldown = std::chrono::seconds(0);
    if (const auto made = engine::create_pool({**store, clock_, random}, spec); !made) give_up(made.error().message);
    auto bare = store::open_sqlite_store((directory_ / "bare.db").string(), options, clock_, {});
    if (!bare) give_up(bare.error().message);
    bare_store_ = *std::move(bare);
    bare_ = bare_commit(*bare_store_, clock_);
  }

  std::string bin_;
  std::filesystem::path directory_;
  const os::SystemClock clock_;
  std::unique_ptr<store::Store> bare_store_;
  std::unique_ptr<BareCommit> bare_;
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
