// What a pass of the collector costs in a large cluster: 500,000 addresses on 5,000 nodes
// (docs/promises.md#budget-collector: at most 2 s and 256 MiB). Asks how long a pass takes and how much memory it adds,
// beside what reading the store in memory alone takes; a store elsewhere adds its own reading.
//
// collector_bench [NODES [ADDRESSES-A-NODE]]

#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "collector/use/sweep.h"
#include "history/door/history_file.h"
#include "history/use/recorder.h"
#include "os/scratch_directory.h"
#include "report.h"
#include "store/memory/memory_store.h"

namespace croft {
namespace {

using Seconds = std::chrono::duration<double>;

constexpr int kBlockLength = 26;
constexpr int kPerBlock = 50;
constexpr double kSecondsBudget = 2;
constexpr double kMegabytesBudget = 256;

double status_megabytes(const std::string& name) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(name)) return std::strtod(line.c_str() + name.size() + 1, nullptr) / 1024;
  }
  return 0;
}

struct Figures {
  double seconds = 0;    ///< that passed
  double processor = 0;  ///< seconds of the processor: what a quiet machine would show
  double megabytes = 0;  ///< by which memory grew at its peak
};

template <class Run>
Figures measured(Run run) {
  ::malloc_trim(0);
  std::ofstream("/proc/self/clear_refs") << "5";  // the peak begins here
  const double before = status_megabytes("VmRSS:");
  const auto start = std::chrono::steady_clock::now();
  const std::clock_t processor = std::clock();
  run();
  return {Seconds(std::chrono::steady_clock::now() - start).count(),
          static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC, status_megabytes("VmHWM:") - before};
}

template <class Run>
Figures report(const char* what, Run run) {
  const Figures figures = measured(run);
  fmt::print("{:<58} {:>7.3f} s  {:>7.3f} s of processor  {:>5.0f} MiB at most\n", what, figures.seconds,
             figures.processor, figures.megabytes);
  std::fflush(stdout);
  return figures;
}

void check(bool done, const char* what) {
  if (done) return;
  fmt::print("failed: {}\n", what);
  std::exit(1);
}

std::string node_name(int node) { return fmt::format("ip-10-0-{}-{}.compute.internal", node / 256, node % 256); }
std::string pod_name(int node, int pod) { return fmt::format("deployment-7d9f8b6c5d-{:04d}-{:03d}", node, pod); }
std::string handle_id(int node, int pod) { return fmt::format("k8s-pod-network.{:032x}{:032x}", node, pod); }

struct Cluster {
  int nodes = 5000;
  int per_node = 100;
  int dead_per_hundred = 0;  ///< pods that ended without a DEL

  [[nodiscard]] bool is_dead(int node, int pod) const { return (node * 31 + pod) % 100 < dead_per_hundred; }
};

net::Address address_of(const Cluster& cluster, int node, int pod) {
  const int blocks = (cluster.per_node + kPerBlock - 1) / kPerBlock;
  const auto block = static_cast<std::uint32_t>(node * blocks + pod / kPerBlock);
  return net::Address::v4((10U << 24) + block * 64 + static_cast<std::uint32_t>(pod % kPerBlock));
}

class BenchFacts final : public engine::FactSource {
 public:
  BenchFacts(const Cluster& cluster, const Clock& clock) : cluster_(cluster), clock_(clock) {}

  [[nodiscard]] Result<core::collect::Facts> facts() override {
    core::collect::Facts facts;
    facts.taken_at = clock_.now();
    facts.set_pods_known();
    for (int node = 0; node < cluster_.nodes; ++node) {
      const std::string on = node_name(node);
      facts.add_node({on, {}, {}});
      for (int pod = 0; pod < cluster_.per_node; ++pod) {
        if (cluster_.is_dead(node, pod)) continue;
        facts.add_pod(
            {"namespace", pod_name(node, pod), "", on, "Running", "", {address_of(cluster_, node, pod)}, false});
      }
    }
    facts.complete = true;
    facts.freeze();
    return facts;
  }

 private:
  const Cluster& cluster_;
  const Clock& clock_;
};

void put(store::Store& store, core::Key key, core::Value value) {
  const store::Write write{std::move(key), std::move(value), store::Condition::always()};
  check(store.commit({&write, 1}, {}, Deadline{}).has_value(), "filling the store");
}

void fill(store::Store& store, const Cluster& cluster, const Instant& now) {
  core::Pool pool;
  pool.name = "a";
  pool.cidr = net::Prefix::parse("10.0.0.0/8").value();
  pool.block_length = kBlockLength;
  put(store, core::pool_key(pool.name), pool);
  for (int node = 0; node < cluster.nodes; ++node) {
    const core::AffinityOwner owner{core::AffinityOwner::Type::host, node_name(node)};
    std::optional<core::Block> block;
    for (int pod = 0; pod < cluster.per_node; ++pod) {
      const net::Address address = address_of(cluster, node, pod);
      const net::Prefix cidr = net::Prefix::containing(address, kBlockLength);
      if (!block) block = core::new_block(cidr, owner, now, {});
      core::Attribute attribute;
      attribute.handle_id = handle_id(node, pod);
      attribute.secondary = {{"node", owner.name},
                             {"namespace", "namespace"},
                             {"pod", pod_name(node, pod)},
                             {"timestamp", "2026-01-15 10:00:00 +0000 UTC"},
                             {"ifname", "eth0"}};
      block = core::with_next_sequence_number(core::take_address(*std::move(block), address, attribute).value().block);
      put(store, core::handle_key(*attribute.handle_id),
          core::Handle{*attribute.handle_id, {{cidr.to_string(), 1}}, false});
      if (pod % kPerBlock != kPerBlock - 1 && pod != cluster.per_node - 1) continue;
      put(store, core::affinity_key(owner, cidr), core::Affinity{owner, cidr, core::AffinityState::confirmed, false});
      put(store, core::block_key(cidr), *std::move(block));
      block = std::nullopt;
    }
  }
}

void page_through(store::Store& store) {
  const auto each = [&](const store::ListRequest& request) {
    return store
        .for_each(
            request, [] { return Deadline{}; }, [](auto&) { return Result<void>(); })
        .has_value();
  };
  for (const core::Kind kind : {core::Kind::block, core::Kind::affinity}) {
    check(each({kind, "", 50}), "list");
  }
  check(each({core::Kind::handle, "", store::kListLimitMax, true}), "list of keys");
}

int run(int argc, char** argv) {
  Cluster cluster;
  if (argc > 1) cluster.nodes = std::atoi(argv[1]);
  if (argc > 2) cluster.per_node = std::atoi(argv[2]);
  if (cluster.nodes < 1 || cluster.per_node < 1 || cluster.nodes > 50'000 || cluster.per_node > 1000) return 2;
  store::MemoryStore store;
  ManualClock clock;
  SeededRandom random(1);
  const engine::Context context{store, clock, random};
  BenchFacts source(cluster, clock);
  fmt::print("{} nodes, {} addresses\n", cluster.nodes, cluster.nodes * cluster.per_node);
  report("filling the store (its own memory, not the collector's)", [&] { fill(store, cluster, clock.now()); });
  report("reading the store alone, page by page", [&] { page_through(store); });
  report("making the facts alone", [&] { check(source.facts().has_value(), "facts"); });

  report("looking at the register alone",
         [&] { check(engine::read_register_view(context, false).has_value(), "a look"); });

  const Figures history = report("the first look of a history (--history)", [&] {
    const os::ScratchDirectory directory;
    const auto file = edge::HistoryFile::open(directory.file("history.db"), {});
    check(file.has_value(), "a history");
    engine::Recorder recorder(context, **file);
    check(recorder.step().has_value() && recorder.step().has_value(), "recording");
    check(recorder.open_count() == static_cast<std::size_t>(cluster.nodes * cluster.per_node), "what is recorded");
  });
  bench::record(
      {.id = "collector.history",
       .what = "the most memory that a history's first look adds",
       .value = history.megabytes,
       .unit = "MiB",
       .note = fmt::format("{} addresses; it took {:.1f} s", cluster.nodes * cluster.per_node, history.seconds)});

  core::collect::Memory memory;
  engine::SweepOptions options;
  Figures most;
  const auto pass = [&](const char* what, std::size_t expected) {
    const Figures figures = report(what, [&] {
      const auto done = engine::sweep(context, source, memory, options);
      check(done.has_value() && !done->failure, "a pass");
      check(done->released.size() == expected, "what the pass released");
    });
    most.seconds = std::max(most.seconds, figures.seconds);
    most.processor = std::max(most.processor, figures.processor);
    most.megabytes = std::max(most.megabytes, figures.megabytes);
  };
  pass("first look, all alive", 0);
  cluster.dead_per_hundred = 1;
  clock.advance(std::chrono::minutes(15));
  pass("a look that finds 1 % dead", 0);
  clock.advance(std::chrono::minutes(15));
  const auto dead = static_cast<std::size_t>(cluster.nodes) * static_cast<std::size_t>(cluster.per_node) / 100;
  options.dry_run = true;
  pass("the second look at them, a dry run: all proven", dead);
  options.dry_run = false;
  report("the same with their release", [&] {
    const auto done = engine::sweep(context, source, memory, options);
    check(done.has_value() && done->released.size() == dead, "the release");
  });
  const bool within = most.seconds <= kSecondsBudget && most.megabytes <= kMegabytesBudget;
  fmt::print(
      "a pass: {:.3f} s ({:.3f} s of processor) of {:.0f} s, {:.0f} MiB of {:.0f} MiB, facts and reading a store "
      "in memory included: {}\n",
      most.seconds, most.processor, kSecondsBudget, most.megabytes, kMegabytesBudget,
      within ? "within the budget" : "OVER THE BUDGET");
  bench::record({.id = "collector.pass",
                 .what = "the slowest pass of the collector",
                 .value = most.seconds,
                 .unit = "s",
                 .budget = bench::at_most(kSecondsBudget),
                 .note = fmt::format("{} addresses on {} nodes", cluster.nodes * cluster.per_node, cluster.nodes)});
  bench::record({.id = "collector.memory",
                 .what = "the most memory that a pass of the collector adds",
                 .value = most.megabytes,
                 .unit = "MiB",
                 .budget = bench::at_most(kMegabytesBudget)});
  return 0;
}

}  // namespace
}  // namespace croft

int main(int argc, char** argv) { return croft::run(argc, argv); }
