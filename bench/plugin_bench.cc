// The budgets that concern the plugin on sqlite (docs/promises.md#budget-block-add), measured side by side in one run.
//
// usage: plugin_bench BIN_DIR [DIRECTORY]   (the store is made in DIRECTORY, by default the current one)

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/format.h>

#include "commit_sample.h"
#include "daemon_commit.h"
#include "floors.h"
#include "ipam/decide/assign.h"
#include "ipam/decide/draft.h"
#include "ipam/use/pools.h"
#include "os/clock.h"
#include "processes.h"
#include "report.h"
#include "store/sqlite/sqlite_store.h"

namespace croft::bench {
namespace {

constexpr int kRounds = 200;
constexpr int kTogether = 64;
constexpr double kAddBudget = 1.5;
const core::AffinityOwner kNode{core::AffinityOwner::Type::host, "bench"};

void must(bool condition, const std::string& what) {
  if (condition) return;
  std::fprintf(stderr, "plugin_bench: %s\n", what.c_str());
  std::exit(1);
}

template <class T>
T must(Result<T> result, const char* what) {
  must(result.has_value(), fmt::format("{}: {}", what, result ? "" : result.error().message));
  return *std::move(result);
}

class Bench {
 public:
  Bench(std::string bin, const std::filesystem::path& directory)
      : bin_(std::move(bin)), directory_(directory / "croft-bench") {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
  }
  ~Bench() { std::filesystem::remove_all(directory_); }

  void run_all() {
    const Milliseconds sync = bench::disk_sync(directory_);
    const Milliseconds empty = bench::empty_process(bin_);
    make_store();
    const Milliseconds daemon = commit_of_daemon(*open(), clock_);
    const Milliseconds floor = commit_alone();
    show_floor("empty", "an empty static process", empty);
    show_floor("sync", "fdatasync of 4 KiB, this disk", sync);
    show_floor("commit.daemon", "one commit of the same store, in a process that goes on", daemon);
    show_floor("commit.alone", "one commit of the same store, as a static process alone", floor);
    remove_sample();
    const Milliseconds first = add_and_del("0", "block ADD, 0 held", floor, empty + daemon, {});
    fill(100'000);
    add_and_del("100000", "block ADD, 100,000 held", floor, empty + daemon, first);
    together(floor - empty, daemon);
    sizes();
    syncs();
  }

 private:
  [[nodiscard]] std::string path() const { return (directory_ / "croft.db").string(); }

  Call call(const std::string& command, const std::string& container) const {
    const std::string config = fmt::format(
        R"({{"cniVersion":"1.0.0","name":"net","nodename":"bench","ipam":{{"type":"croft-ipam","store":"sqlite:{}","log_file_path":"{}"}}}})",
        path(), (directory_ / "ipam.log").string());
    return {{bin_ + "/croft-ipam"},
            {"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_NETNS=/var/run/netns/none",
             "CNI_IFNAME=eth0", "CNI_PATH=" + bin_, "CROFT_AGENT=none", "CROFT_LOG_DIRECTORY=" + directory_.string()},
            config};
  }

  std::unique_ptr<store::SqliteStore> open(bool create = false) const {
    store::SqliteOptions options;
    options.create = create;
    return must(store::open_sqlite_store(path(), options, clock_, {}), "open");
  }

  void make_store() {
    const auto store = open(true);
    core::PoolSpec spec;
    spec.name = "a";
    spec.cidr = must(net::Prefix::parse("10.0.0.0/12"), "cidr");
    spec.cooldown = std::chrono::seconds(0);
    must(engine::create_pool({*store, clock_, random_}, spec), "pool");
  }

  static void show_floor(const std::string& id, const std::string& what, Milliseconds time) {
    report(fmt::format("{:<58}{:>9.3f} ms", what + " (p50)", time.count()),
           {.id = "floor." + id, .what = what, .value = time.count(), .unit = "ms"});
  }

  /// Made by a static process of its own, as a plugin without daemon has to: its whole time.
  Milliseconds commit_alone() {
    std::vector<Milliseconds> samples;
    for (int i = 0; i < kRounds; ++i) {
      const Call commit{{bin_ + "/../bench/one_commit_process", path(), fmt::format("{:064x}", i)}, {}, ""};
      samples.push_back(time_of([&] { must(run(commit) == 0, "one commit"); }));
    }
    return median(samples);
  }

  /// The block of the sample is in no pool: it goes before anything looks at the store.
  void remove_sample() {
    const auto store = open();
    const store::Write gone{commit_sample(clock_.now(), "").front().key, std::nullopt, store::Condition::always(),
                            false};
    must(store->commit({&gone, 1}, {}, {}), "commit");
  }

  static bool nothing_reserved(const net::Address&) { return false; }

  /// `floor`: an empty static process and one commit made alone. `with_daemon`: the same with a commit that opens
  /// nothing.
  Milliseconds add_and_del(const std::string& id, const std::string& what, Milliseconds floor, Milliseconds with_daemon,
                           std::optional<Milliseconds> base) {
    std::vector<Milliseconds> adds, dels;
    for (int i = 0; i < kRounds; ++i) {
      const std::string container = fmt::format("{:064x}", 0xabc000 + i);
      adds.push_back(time_of([&] { must(run(call("ADD", container)) == 0, "ADD"); }));
      dels.push_back(time_of([&] { must(run(call("DEL", container)) == 0, "DEL"); }));
    }
    const Milliseconds add = median(adds);
    Row row{.id = "plugin.add." + id,
            .what = what,
            .value = add.count(),
            .unit = "ms",
            .limit = Figure{"an empty static process and one commit of a lone process", floor.count()},
            .budget = ratio_at_most(kAddBudget),
            .note = base ? fmt::format("{:.2f} x at 0 held", add / *base) : ""};
    row.ratio = ratio_to(row, *row.limit);
    report(fmt::format("{:<58}{:>9.3f} ms   {:.2f} x (empty + commit alone), budget {}; {:.2f} x (empty + commit of a "
                       "daemon){}; DEL {:.3f} ms",
                       what, add.count(), row.ratio->value, kAddBudget, add / with_daemon, base ? "; " + row.note : "",
                       median(dels).count()),
           row);
    record({.id = "plugin.del." + id,
            .what = "block DEL" + what.substr(what.find(',')),
            .value = median(dels).count(),
            .unit = "ms"});
    return add;
  }

  /// Full blocks with their claims and handles, written directly in large commits.
  void fill(int addresses) {
    const auto store = open();
    std::vector<store::Write> batch;
    const auto add = [&](const core::Key& key, core::Value value) {
      batch.push_back({key, std::move(value), store::Condition::always(), false});
      if (batch.size() == store::kCommitWritesMax) flush(*store, batch);
    };
    const std::uint64_t start = core::rotation_start(kNode) % (1U << 14);
    int made = 0;
    net::Prefix cidr;
    for (std::uint64_t index = start + 2; made < addresses; ++index) {
      cidr = must(net::Prefix::parse("10.0.0.0/12"), "cidr").subprefix(index % (1U << 14), 26);
      core::Block block = core::new_block(cidr, kNode, clock_.now(), {});
      for (int i = 0; i < 64 && made < addresses; ++i, ++made) {
        const std::string container = fmt::format("{:064x}", made);
        auto taken = core::take_next(block, holder(container, clock_.now()), nothing_reserved);
        must(taken.has_value(), "fill");
        block = std::move(taken->block);
        add(core::handle_key("net." + container), core::Handle{"net." + container, {{cidr.to_string(), 1}}, false});
      }
      add(core::affinity_key(kNode, cidr), core::Affinity{kNode, cidr, core::AffinityState::confirmed, false});
      add(core::block_key(cidr), block);
    }
    flush(*store, batch);
  }

  static void flush(store::Store& store, std::vector<store::Write>& batch) {
    if (!batch.empty()) must(store.commit(batch, {}, {}), "fill");
    batch.clear();
  }

  void together(Milliseconds commit, Milliseconds daemon) {
    std::vector<Call> empty(kTogether, Call{{bin_ + "/../bench/empty_process"}, {}, ""});
    std::vector<Milliseconds> empties, adds;
    for (int round = 0; round < 9; ++round) {
      empties.push_back(time_of([&] { static_cast<void>(run_together(empty)); }));
      std::vector<Call> calls;
      for (int i = 0; i < kTogether; ++i) calls.push_back(call("ADD", fmt::format("together-{}-{}", round, i)));
      adds.push_back(time_of([&] {
        for (const int exit_code : run_together(calls)) must(exit_code == 0, "an ADD of 64 at once failed");
      }));
    }
    const Milliseconds floor = median(empties) + kTogether * commit;
    Row row{.id = "plugin.together",
            .what = fmt::format("{} ADD processes at once, 100,000 held", kTogether),
            .value = median(adds).count(),
            .unit = "ms",
            .limit = Figure{"as many empty processes at once, and as many commits alone", floor.count()},
            .budget = ratio_at_most(kAddBudget)};
    row.ratio = ratio_to(row, *row.limit);
    report(
        fmt::format("{:<58}{:>9.1f} ms   {:.2f} x (64 empty processes {:.1f} ms + 64 commits alone {:.1f} ms), budget "
                    "{}; with commits of a daemon ({:.1f} ms) {:.2f} x",
                    row.what, row.value, row.ratio->value, median(empties).count(), (kTogether * commit).count(),
                    kAddBudget, (kTogether * daemon).count(), median(adds) / (median(empties) + kTogether * daemon)),
        row);
  }

  void sizes() const {
    long peak = 0;
    for (int i = 0; i < 5; ++i) {
      Call measured = call("ADD", fmt::format("peak-{}", i));
      measured.words.insert(measured.words.begin(), bin_ + "/../bench/peak_memory");
      std::string kib;
      must(run_with_errors(measured, kib) == 0, "ADD");
      peak = std::max(peak, std::atol(kib.c_str()));
    }
    const Row size{.id = "plugin.size",
                   .what = "size of croft-ipam",
                   .value = static_cast<double>(std::filesystem::file_size(bin_ + "/croft-ipam")) / 1e6,
                   .unit = "MB",
                   .budget = at_most(4)};
    const Row sibling{.id = "plugin.sibling_size",
                      .what = "size of croft-ipam-cluster",
                      .value = static_cast<double>(std::filesystem::file_size(bin_ + "/croft-ipam-cluster")) / 1e6,
                      .unit = "MB",
                      .budget = at_most(9.5)};
    const Row memory{.id = "plugin.memory",
                     .what = "peak memory of an ADD",
                     .value = static_cast<double>(peak) / 1024.0,
                     .unit = "MiB",
                     .budget = at_most(6)};
    report(fmt::format("{:<58}{:>9.2f} MB   budget {}", size.what, size.value, size.budget->limit), size);
    report(fmt::format("{:<58}{:>9.2f} MB   budget {}", sibling.what, sibling.value, sibling.budget->limit), sibling);
    report(fmt::format("{:<58}{:>9.2f} MiB  budget {}", memory.what, memory.value, memory.budget->limit), memory);
  }

  /// Counted by strace, over many calls: now and then the log is written back, which costs syncs of its own.
  void syncs() const {
    constexpr int kCalls = 100;
    for (const char* command : {"ADD", "DEL"}) {
      int count = 0;
      for (int i = 0; i < kCalls; ++i) {
        Call traced = call(command, fmt::format("sync-{}", i));
        const std::string trace = (directory_ / "trace").string();
        traced.words = {
            "strace", "-f", "-o", trace, "-e", "trace=fsync,fdatasync,sync_file_range,msync", bin_ + "/croft-ipam"};
        if (run(traced) != 0) {
          not_measured("plugin.syncs", "syncs of a lone call", "strace is not installed or may not trace");
          return;
        }
        std::ifstream lines(trace);
        for (std::string line; std::getline(lines, line);) count += line.find("sync") != std::string::npos ? 1 : 0;
      }
      const Row row{.id = fmt::format("plugin.syncs.{}", command),
                    .what = fmt::format("syncs a lone {} (mean of {})", command, kCalls),
                    .value = static_cast<double>(count) / kCalls,
                    .unit = "syncs"};
      report(fmt::format("{:<58}{:>9.2f}", row.what, row.value), row);
    }
  }

  std::string bin_;
  std::filesystem::path directory_;
  os::SystemClock clock_;
  os::SystemRandom random_;
};

}  // namespace
}  // namespace croft::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: plugin_bench BIN_DIR [DIRECTORY]\n");
    return 2;
  }
  croft::bench::Bench(argv[1], argc > 2 ? argv[2] : ".").run_all();
  return 0;
}
