// Assigns and releases for many nodes through Croft's engine, in this process, and prints one line of JSON.
//
// usage: cluster_load STORE HOSTS PODS WORKERS [release] [agent] [prefix=P]
//   agent: each worker keeps the memory of a node's agent (WORKERS must be HOSTS)
//   STORE: memory: (with a pool of its own, 10.0.0.0/8 in blocks of 26) or etcd:http://…:2379 (pools as they are there)
//   HOSTS nodes get PODS addresses each; worker i acts for the nodes i mod WORKERS, over a client of its own
// With PODS 1 every assignment is a claim.

#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "cli/stores/open_store.h"
#include "ipam/use/assign.h"
#include "ipam/use/pools.h"
#include "ipam/use/release.h"
#include "ipam/use/test_batch_of_one.h"
#include "os/clock.h"
#include "store/cached/cached_store.h"
#include "store/memory/memory_store.h"

namespace croft::bench {
namespace {

using Microseconds = std::vector<double>;

struct Load {
  std::string store;
  int hosts = 0, pods = 0, workers = 1;
  bool release = false;
  bool agent = false;
  std::string prefix = "n";
};

struct Outcome {
  Microseconds assign, release;
  std::string failure;
};

double at(Microseconds& sorted, double share) {
  if (sorted.empty()) return 0;
  std::sort(sorted.begin(), sorted.end());
  return sorted[std::min(sorted.size() - 1, static_cast<std::size_t>(share * static_cast<double>(sorted.size())))];
}

core::AssignRequest request(const Load& load, int host, int pod) {
  core::AssignRequest wanted;
  wanted.owner = {"k8s-pod-network", fmt::format("{}{:05}{:058x}", load.prefix, host, pod), "eth0"};
  wanted.pod = {fmt::format("checkout-service-7d9f8b6c5-{:05}", pod), "production", ""};
  wanted.node = {core::AffinityOwner::Type::host, fmt::format("{}{}", load.prefix, host)};
  wanted.default_block_limit = core::kCalicoBlockLimit;
  return wanted;
}

template <class Call>
bool timed(Microseconds& times, Call call) {
  const auto start = std::chrono::steady_clock::now();
  const bool done = call();
  times.push_back(std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count());
  return done;
}

/// As a lone plugin does it, or as an agent, which has the node's blocks in memory.
Result<core::AssignAnswer> assigned(const engine::Context& context, const core::AssignRequest& wanted) {
  auto* cached = dynamic_cast<store::CachedStore*>(&context.store);
  if (cached == nullptr) return engine::assign(context, wanted);
  const engine::Context direct{cached->uncached(), context.clock, context.random, context.time_limit};
  return engine::assign_by_memory(direct, *cached, wanted).answer;
}
Result<core::Released> released_by(const engine::Context& context, const core::Owner& owner) {
  auto* cached = dynamic_cast<store::CachedStore*>(&context.store);
  if (cached == nullptr) return engine::release_owner(context, owner);
  const engine::Context direct{cached->uncached(), context.clock, context.random, context.time_limit};
  return engine::release_by_memory(direct, *cached, owner).answer;
}

void assign_all(const engine::Context& context, const Load& load, int worker, Outcome& outcome) {
  for (int pod = 0; pod < load.pods && outcome.failure.empty(); ++pod) {
    for (int host = worker; host < load.hosts; host += load.workers) {
      timed(outcome.assign, [&] {
        const auto answer = assigned(context, request(load, host, pod));
        if (!answer) outcome.failure = answer.error().message;
        if (answer && std::holds_alternative<core::Refusal>(*answer)) {
          outcome.failure = std::get<core::Refusal>(*answer).summary;
        }
        return answer.has_value();
      });
    }
  }
}

void release_all(const engine::Context& context, const Load& load, int worker, Outcome& outcome) {
  for (int host = worker; host < load.hosts && outcome.failure.empty(); host += load.workers) {
    for (int pod = 0; pod < load.pods; ++pod) {
      timed(outcome.release, [&] {
        const auto released = released_by(context, request(load, host, pod).owner);
        if (!released || released->addresses.size() != 1) outcome.failure = "a release failed";
        return released.has_value();
      });
    }
  }
}

/// Runs `work(context, worker, outcome)` on all workers at once; the seconds it took.
template <class Work>
double run_workers(const Load& load, std::vector<std::unique_ptr<store::Store>>& stores, std::vector<Outcome>& outcomes,
                   Work work) {
  const os::SystemClock clock;
  const auto start = std::chrono::steady_clock::now();
  std::vector<std::thread> threads;
  for (int worker = 0; worker < load.workers; ++worker) {
    threads.emplace_back([&, worker] {
      os::SystemRandom random;
      const auto i = static_cast<std::size_t>(worker);
      const engine::Context context{*stores[i], clock, random};
      work(context, load, worker, outcomes[i]);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

long peak_kib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

Microseconds merged(const std::vector<Outcome>& outcomes, Microseconds Outcome::*part) {
  Microseconds all;
  for (const Outcome& outcome : outcomes) all.insert(all.end(), (outcome.*part).begin(), (outcome.*part).end());
  return all;
}

/// The agents have long been there.
constexpr int kFollowedMax = 300;
bool is_followed(const std::vector<std::unique_ptr<store::Store>>& stores) {
  const auto all = [&] {
    return std::ranges::all_of(stores, [](const auto& store) {
      const auto* cached = dynamic_cast<const store::CachedStore*>(store.get());
      return cached != nullptr && cached->state().in_use;
    });
  };
  for (int waited_ms = 0; !all(); waited_ms += 50) {
    if (waited_ms > kFollowedMax * 1000) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  std::this_thread::sleep_for(std::chrono::seconds(1));
  return true;
}

int run(const Load& load) {
  const os::SystemClock clock;
  os::SystemRandom random;
  // In this order, so that a memory ends before the store beneath it, and what follows changes before both.
  std::vector<std::unique_ptr<store::Store>> beneath;
  std::vector<std::unique_ptr<store::Store>> stores;
  std::vector<std::unique_ptr<store::CacheFollower>> followers;
  std::vector<store::MemoryStore*> memories;
  const auto shared = load.store == "memory:" ? std::make_shared<store::MemoryStore>() : nullptr;
  for (int i = 0; i < load.workers; ++i) {
    if (shared) {
      auto memory = std::make_unique<store::MemoryStore>(shared->data());
      memories.push_back(memory.get());
      stores.push_back(std::move(memory));
      continue;
    }
    auto opened = app::open_store(load.store, store::OpenMode::existing, clock);
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      return 1;
    }
    stores.push_back(*std::move(opened));
  }
  if (load.agent) {
    for (int i = 0; i < load.workers; ++i) {
      const auto node = request(load, i, 0).node;
      beneath.push_back(std::move(stores[static_cast<std::size_t>(i)]));
      auto cache = std::make_unique<store::CachedStore>(*beneath.back(), node, clock);
      followers.push_back(std::make_unique<store::CacheFollower>(*cache, clock));
      stores[static_cast<std::size_t>(i)] = std::move(cache);
    }
    if (!is_followed(stores)) {
      std::fprintf(stderr, "the agents' memory was not filled in %d s\n", kFollowedMax);
      return 1;
    }
  }
  const engine::Context first{*stores.front(), clock, random};
  if (shared) {
    const core::PoolSpec spec{"a", net::Prefix::parse("10.0.0.0/8").value(), 26, {}, std::chrono::seconds{0}, {}};
    if (!engine::create_pool(first, spec)) return 1;
  }
  std::vector<Outcome> outcomes(static_cast<std::size_t>(load.workers));
  const double assign_seconds = run_workers(load, stores, outcomes, assign_all);
  const long peak_with_all = peak_kib();
  store::CallCounts counts{};
  for (const store::MemoryStore* memory : memories) {
    const store::CallCounts one = memory->counts();
    counts.read += one.read;
    counts.list += one.list;
    counts.commit += one.commit;
  }
  double release_seconds = 0;
  if (load.release) release_seconds = run_workers(load, stores, outcomes, release_all);
  for (const Outcome& outcome : outcomes) {
    if (outcome.failure.empty()) continue;
    std::fprintf(stderr, "%s\n", outcome.failure.c_str());
    return 1;
  }
  Microseconds assign = merged(outcomes, &Outcome::assign), released = merged(outcomes, &Outcome::release);
  std::string text = fmt::format(
      R"({{"assigned":{},"seconds":{:.3f},"per_second":{:.0f},"p50_us":{:.0f},"p99_us":{:.0f},"peak_kib":{})",
      assign.size(), assign_seconds, static_cast<double>(assign.size()) / assign_seconds, at(assign, 0.5),
      at(assign, 0.99), peak_with_all);
  if (shared) {
    const auto calls = counts.read + counts.list;
    text += fmt::format(R"(,"reads_per_add":{:.2f},"lists":{},"commits_per_add":{:.3f})",
                        static_cast<double>(calls) / static_cast<double>(assign.size()), counts.list,
                        static_cast<double>(counts.commit) / static_cast<double>(assign.size()));
  }
  if (load.release) {
    text += fmt::format(R"(,"release_seconds":{:.3f},"releases_per_second":{:.0f},"release_p50_us":{:.0f})",
                        release_seconds, static_cast<double>(released.size()) / release_seconds, at(released, 0.5));
  }
  std::printf("%s}\n", text.c_str());
  return 0;
}

}  // namespace
}  // namespace croft::bench

int main(int argc, char** argv) {
  croft::bench::Load load;
  if (argc < 5) {
    std::fprintf(stderr, "usage: cluster_load STORE HOSTS PODS WORKERS [release] [agent] [prefix=P]\n");
    return 2;
  }
  load.store = argv[1];
  load.hosts = std::atoi(argv[2]);
  load.pods = std::atoi(argv[3]);
  load.workers = std::atoi(argv[4]);
  for (int i = 5; i < argc; ++i) {
    const std::string option = argv[i];
    if (option == "release") load.release = true;
    if (option == "agent") load.agent = true;
    if (option.starts_with("prefix=")) load.prefix = option.substr(7);
  }
  return croft::bench::run(load);
}
