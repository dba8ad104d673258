// Bursts in a cluster: a `croftd agent` for each of some nodes, all on one store, and callers at their sockets that ask
// one after the other. Prints one line of JSON.
//
// usage: agents_load BIN_DIR STORE NODES CALLERS PODS PREFIX   (pools and nodes as they are in STORE)
//   each of CALLERS callers of a node gets PODS addresses and then gives them back; nodes are n0, n1, ...
//   PREFIX begins the names of the containers, so that a second run has others

#include <stdlib.h>

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "agent_caller.h"
#include "agent_process.h"
#include "cli/stores/open_store.h"
#include "os/clock.h"
#include "processes.h"

namespace croft::bench {
namespace {

struct Load {
  std::string bin, store;
  std::size_t nodes = 0, callers = 0, pods = 0;
  std::string prefix;
};

std::uint64_t commits(store::Store& store, const Clock& clock) {
  const auto position = store.position(Deadline::after(clock.now(), std::chrono::seconds(20)));
  if (!position) give_up("agents_load", position.error().message);
  return position->value;
}

void run(const Load& load, const std::filesystem::path& directory) {
  const os::SystemClock clock;
  const auto store = app::open_store(load.store, store::OpenMode::existing, clock);
  if (!store) give_up("agents_load", store.error().message);
  std::vector<std::unique_ptr<AgentProcess>> agents;
  std::vector<std::unique_ptr<AgentCaller>> callers;
  for (std::size_t node = 0; node < load.nodes; ++node) {
    const std::string name = fmt::format("n{}", node);
    const std::string socket = directory / (name + ".sock");
    agents.push_back(std::make_unique<AgentProcess>(load.bin, load.store, socket, name));
    for (std::size_t i = 0; i < load.callers; ++i) {
      callers.push_back(std::make_unique<AgentCaller>(socket, load.store, name, clock));
    }
  }
  // Agents have long been there when a burst comes.
  std::this_thread::sleep_for(std::chrono::seconds(1));
  std::vector<std::vector<Milliseconds>> times(callers.size());
  const std::uint64_t before = commits(**store, clock);
  std::uint64_t cost = 0;
  std::chrono::steady_clock::time_point began, ended;
  int meetings = 0;
  // All begin together; the releases begin when the last address has been assigned.
  std::barrier together(static_cast<std::ptrdiff_t>(callers.size()), [&]() noexcept {
    if (meetings++ == 0) {
      began = std::chrono::steady_clock::now();
    } else {
      ended = std::chrono::steady_clock::now();
      cost = commits(**store, clock) - before;
    }
  });
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < callers.size(); ++i) {
    threads.emplace_back([&, i] {
      const auto name = [&](std::size_t pod) { return fmt::format("{}{:04}{:050x}", load.prefix, i, pod); };
      together.arrive_and_wait();
      for (std::size_t pod = 0; pod < load.pods; ++pod) {
        times[i].push_back(time_of([&] {
          callers[i]->begin_add(name(pod));
          callers[i]->end_add();
        }));
      }
      together.arrive_and_wait();
      for (std::size_t pod = 0; pod < load.pods; ++pod) {
        callers[i]->begin_del(name(pod));
        callers[i]->end_del();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::vector<Milliseconds> all;
  for (const auto& one : times) all.insert(all.end(), one.begin(), one.end());
  const double took = std::chrono::duration<double>(ended - began).count();
  fmt::print(R"({{"assigned":{},"seconds":{:.3f},"per_second":{:.0f},"p50_us":{:.0f},"adds_a_transaction":{:.2f}}})"
             "\n",
             all.size(), took, static_cast<double>(all.size()) / took, median(all).count() * 1000,
             static_cast<double>(all.size()) / static_cast<double>(std::max<std::uint64_t>(cost, 1)));
}

}  // namespace
}  // namespace croft::bench

int main(int argc, char** argv) {
  using namespace croft::bench;
  if (argc != 7) {
    std::fprintf(stderr, "usage: agents_load BIN_DIR STORE NODES CALLERS PODS PREFIX\n");
    return 2;
  }
  const Load load{argv[1], argv[2], std::stoul(argv[3]), std::stoul(argv[4]), std::stoul(argv[5]), argv[6]};
  if (load.nodes == 0 || load.callers == 0 || load.pods == 0) return 2;
  std::string directory = std::filesystem::temp_directory_path() / "croft-agents-load-XXXXXX";
  if (::mkdtemp(directory.data()) == nullptr) give_up("agents_load", "no directory for the sockets");
  run(load, directory);
  std::filesystem::remove_all(directory);
  return 0;
}
