// Many pods at once on one node: the agent at its socket, and whole plugins through it, with the commits they cost
// (docs/promises.md#budgets).
//
// usage: burst_bench BIN_DIR [DIRECTORY [STORE_URL]]   a store on sqlite is made in DIRECTORY, by default the current
//                                                      one; STORE_URL names another one, which must be empty

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "agent_process.h"
#include "app/open_store.h"
#include "engine/pools.h"
#include "floors.h"
#include "os/clock.h"
#include "os/endpoint.h"
#include "os/grpc_frame.h"
#include "os/http2_connection.h"
#include "os/random.h"
#include "os/transport.h"
#include "processes.h"
#include "wire/agent/messages.h"

namespace croft::bench {
namespace {

namespace agent = wire::agent;
using std::chrono::seconds;

constexpr int kPods = 110;
constexpr int kCallers = 64;
constexpr const char* kNode = "bench";

[[noreturn]] void give_up(const std::string& what) { bench::give_up("burst_bench", what); }

/// One plugin at the socket: a connection of its own, one call at a time. Nothing of a plugin's other work is in it.
class Caller {
 public:
  Caller(const std::string& socket, std::string store, const Clock& clock) : store_(std::move(store)), clock_(clock) {
    os::Endpoint endpoint;
    endpoint.kind = os::Endpoint::Kind::unix_socket;
    endpoint.path = socket;
    auto transport = os::connect_transport(endpoint, nullptr, clock, soon());
    if (!transport) give_up(transport.error().message);
    connection_ = os::Http2Connection::make(*std::move(transport), "the agent", {}, clock);
    if (const auto ready = connection_->wait_until_ready(soon()); !ready) give_up(ready.error().message);
  }

  void begin_add(const std::string& container) {
    agent::AssignCall call;
    call.caller = caller();
    call.request.owner = {"net", container, "eth0"};
    call.request.node = {core::AffinityOwner::Type::host, kNode};
    begin(agent::kAssignMethod, agent::encode(call));
  }
  void begin_del(const std::string& container) {
    begin(agent::kReleaseMethod, agent::encode(agent::ReleaseCall{caller(), core::Owner{"net", container, "eth0"}}));
  }
  void end_add() {
    const auto outcome = agent::decode_assign_outcome(end());
    if (!outcome || !std::holds_alternative<core::Assigned>(*outcome)) give_up("an ADD was not served");
  }
  void end_del() {
    const auto outcome = agent::decode_release_outcome(end());
    const auto* released = outcome ? std::get_if<std::vector<net::Address>>(&*outcome) : nullptr;
    if (released == nullptr || released->size() != 1) give_up("a DEL was not served");
  }

 private:
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), seconds(20)); }
  [[nodiscard]] agent::Caller caller() const { return {store_, kNode, clock_.now().boot, soon(), {}}; }
  void begin(const char* method, const std::string& message) {
    const std::vector<os::Http2Header> headers = {{":method", "POST"}, {":scheme", "http"},
                                                  {":path", method},   {":authority", "localhost"},
                                                  {"te", "trailers"},  {"content-type", "application/grpc"}};
    auto stream = connection_->open(headers, os::grpc_framed(message), true, 1 << 20);
    if (!stream) give_up(stream.error().message);
    stream_ = *std::move(stream);
  }
  [[nodiscard]] std::string end() {
    const auto received = stream_->read_all(soon());
    if (!received.ended) give_up("no answer");
    os::GrpcUnframer unframer(1 << 20, received.bytes);
    const auto message = unframer.next();
    if (!message || !*message) give_up("a call was refused");
    return **message;
  }

  const std::string store_;
  const Clock& clock_;
  std::shared_ptr<os::Http2Connection> connection_;
  std::shared_ptr<os::Http2Stream> stream_;
};

class Bench {
 public:
  Bench(std::string bin, const std::filesystem::path& directory, const std::string& store)
      : bin_(std::move(bin)),
        directory_(std::filesystem::absolute(directory) / "croft-burst-bench"),
        url_(store.empty() ? "sqlite:" + (directory_ / "croft.db").string() : store) {
    std::filesystem::remove_all(directory_);
    std::filesystem::create_directories(directory_);
    make_store();
  }
  ~Bench() { std::filesystem::remove_all(directory_); }

  void run_all() {
    const AgentProcess agent(bin_, url_, socket(), kNode);
    const Milliseconds sync = disk_sync(directory_);
    const Milliseconds empty = empty_process(bin_);
    fmt::print("{:<58}{:>9.3f} ms\n", "fdatasync of 4 KiB, this disk (p50)", sync.count());
    fmt::print("{:<58}{:>9.3f} ms\n", "empty static process (p50)", empty.count());
    std::vector<std::unique_ptr<Caller>> callers;
    for (int i = 0; i < kPods; ++i) callers.push_back(std::make_unique<Caller>(socket(), url_, clock_));
    lone(*callers.front());
    at_once(callers);
    sustained(callers, agent);
    callers.clear();
    whole_plugins(empty);
    fmt::print("{:<58}{:>9.2f} MiB\n", "memory of the agent (most so far)",
               static_cast<double>(agent.memory_kib("VmHWM:")) / 1024.0);
  }

 private:
  [[nodiscard]] std::string socket() const { return (directory_ / "agent.sock").string(); }
  [[nodiscard]] std::string next_name() { return fmt::format("{:064x}", ++names_); }

  /// Commits so far, by whoever.
  [[nodiscard]] std::uint64_t commits() const {
    const auto position = store_->position(Deadline::after(clock_.now(), seconds(20)));
    if (!position) give_up(position.error().message);
    return position->value;
  }

  void lone(Caller& caller) {
    for (const int idle_ms : {0, 1000}) {
      std::vector<Milliseconds> times;
      for (int i = 0; i < (idle_ms == 0 ? 200 : 10); ++i) {
        std::this_thread::sleep_for(std::chrono::milliseconds(idle_ms));
        const std::string name = next_name();
        times.push_back(time_of([&] {
          caller.begin_add(name);
          caller.end_add();
        }));
        caller.begin_del(name);
        caller.end_del();
      }
      fmt::print("{:<58}{:>9.3f} ms\n",
                 idle_ms == 0 ? "a lone ADD at the socket, back to back" : "  after 1 s of idleness",
                 median(times).count());
    }
  }

  void at_once(std::vector<std::unique_ptr<Caller>>& callers) {
    std::vector<Milliseconds> times;
    std::vector<std::uint64_t> cost;
    for (int round = 0; round < 9; ++round) {
      std::vector<std::string> names;
      for (int i = 0; i < kPods; ++i) names.push_back(next_name());
      const std::uint64_t before = commits();
      times.push_back(time_of([&] {
        for (std::size_t i = 0; i < callers.size(); ++i) callers[i]->begin_add(names[i]);
        for (const auto& caller : callers) caller->end_add();
      }));
      cost.push_back(commits() - before);
      for (std::size_t i = 0; i < callers.size(); ++i) callers[i]->begin_del(names[i]);
      for (const auto& caller : callers) caller->end_del();
    }
    std::sort(cost.begin(), cost.end());
    fmt::print("{:<58}{:>9.3f} ms   {} commits (most {})\n", fmt::format("{} ADDs at once, to the last answer", kPods),
               median(times).count(), cost[cost.size() / 2], cost.back());
  }

  /// Each caller adds and deletes, one after the other, for two seconds.
  void sustained(std::vector<std::unique_ptr<Caller>>& callers, const AgentProcess& agent) {
    const double used_before = agent.used_seconds();
    const auto began = std::chrono::steady_clock::now();
    const std::uint64_t before = commits();
    std::uint64_t adds = 0;
    std::vector<std::string> names(kCallers);
    while (std::chrono::steady_clock::now() - began < seconds(2)) {
      for (std::size_t i = 0; i < kCallers; ++i) callers[i]->begin_add(names[i] = next_name());
      for (std::size_t i = 0; i < kCallers; ++i) callers[i]->end_add();
      adds += kCallers;
      for (std::size_t i = 0; i < kCallers; ++i) callers[i]->begin_del(names[i]);
      for (std::size_t i = 0; i < kCallers; ++i) callers[i]->end_del();
    }
    const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
    fmt::print("{:<58}{:>9.0f} /s   and as many DELs; {:.1f} calls a commit\n",
               fmt::format("ADDs at the socket, {} callers", kCallers), static_cast<double>(adds) / took,
               2.0 * static_cast<double>(adds) / static_cast<double>(commits() - before));
    fmt::print("{:<58}{:>9.1f} us\n", "  the agent's processor time for each call",
               (agent.used_seconds() - used_before) * 1e6 / (2.0 * static_cast<double>(adds)));
  }

  void whole_plugins(Milliseconds empty) {
    std::vector<Milliseconds> plugins, floor;
    std::vector<std::uint64_t> cost;
    for (int round = 0; round < 5; ++round) {
      std::vector<Call> adds, dels, nothing;
      for (int i = 0; i < kPods; ++i) {
        const std::string name = next_name();
        adds.push_back(plugin("ADD", name));
        dels.push_back(plugin("DEL", name));
        nothing.push_back({{bin_ + "/../bench/empty_process"}, {}, ""});
      }
      const std::uint64_t before = commits();
      plugins.push_back(time_of([&] { must_succeed(run_together(adds)); }));
      cost.push_back(commits() - before);
      must_succeed(run_together(dels));
      floor.push_back(time_of([&] { must_succeed(run_together(nothing)); }));
    }
    std::sort(cost.begin(), cost.end());
    fmt::print("{:<58}{:>9.3f} ms   {:.2f} x {} empty static processes ({:.3f} ms); {} commits\n",
               fmt::format("{} plugins at once through the agent", kPods), median(plugins).count(),
               median(plugins) / median(floor), kPods, median(floor).count(), cost[cost.size() / 2]);
    static_cast<void>(empty);
  }

  static void must_succeed(const std::vector<int>& codes) {
    for (const int code : codes) {
      if (code != 0) give_up("a program failed");
    }
  }

  [[nodiscard]] Call plugin(const std::string& command, const std::string& container) const {
    const std::string config = fmt::format(
        R"({{"cniVersion":"1.0.0","name":"net","nodename":"{}","ipam":{{"type":"croft-ipam","store":"{}","log_file_path":"{}","agent":"{}"}}}})",
        kNode, url_, (directory_ / "ipam.log").string(), socket());
    return {{bin_ + "/croft-ipam"},
            {"CNI_COMMAND=" + command, "CNI_CONTAINERID=" + container, "CNI_NETNS=/var/run/netns/none",
             "CNI_IFNAME=eth0", "CNI_PATH=" + bin_, "CROFT_LOG_DIRECTORY=" + directory_.string()},
            config};
  }

  void make_store() {
    auto store = app::open_store(url_, store::OpenMode::create, clock_);
    if (!store) give_up(store.error().message);
    store_ = *std::move(store);
    core::PoolSpec spec;
    spec.name = "a";
    spec.cidr = net::Prefix::parse("10.0.0.0/12").value();
    spec.cooldown = seconds(0);
    if (const auto made = engine::create_pool({*store_, clock_, random_}, spec); !made) give_up(made.error().message);
  }

  const os::SystemClock clock_;
  os::SystemRandom random_;
  const std::string bin_;
  const std::filesystem::path directory_;
  const std::string url_;
  std::unique_ptr<store::Store> store_;
  std::uint64_t names_ = 0;
};

}  // namespace
}  // namespace croft::bench

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: burst_bench BIN_DIR [DIRECTORY [STORE_URL]]\n");
    return 2;
  }
  croft::bench::Bench(argv[1], argc > 2 ? argv[2] : ".", argc > 3 ? argv[3] : "").run_all();
  return 0;
}
