// Callers of a node's agent of VPC addresses (`croftd vpc-agent`), as its plugins call it. Prints one line of JSON.
// bench/vpc_bench.py runs it.
//
// usage: vpc_load SOCKET lone ROUNDS STORE   one caller: in turns an empty call, an ADD, a DEL, and a bare commit on
// STORE,
//                                            which must be for this alone and on the same disk
//        vpc_load SOCKET ping CALLERS ROUNDS
//        vpc_load SOCKET churn CALLERS ROUNDS   each caller adds and deletes a pod ROUNDS times
//        vpc_load SOCKET burst CALLERS          an ADD of each, all at once; they are not deleted

#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>

#include "agent_process.h"
#include "cli/stores/open_store.h"
#include "daemon_commit.h"
#include "http/grpc_channel.h"
#include "http/transport.h"
#include "os/clock.h"
#include "processes.h"
#include "vpc/format/messages.h"

namespace croft::bench {
namespace {

namespace vpc = wire::vpc;

class Caller {
 public:
  Caller(const std::string& socket, const Clock& clock) : clock_(clock) {
    os::Endpoint endpoint;
    endpoint.kind = os::Endpoint::Kind::unix_socket;
    endpoint.path = socket;
    auto channel = os::GrpcChannel::connect(endpoint, nullptr, {}, clock, soon());
    if (!channel) give_up("vpc_load", channel.error().message);
    channel_ = *std::move(channel);
    if (const auto ready = channel_->wait_until_ready(soon()); !ready) give_up("vpc_load", ready.error().message);
  }
  void ping() { static_cast<void>(call(vpc::Method::ping, {})); }
  std::string add(const std::string& sandbox) {
    vpc::AddPodNetworkRequest request;
    request.pod_name = "pod-" + sandbox;
    request.pod_namespace = "default";
    request.sandbox_id = sandbox;
    request.netns = "/run/netns/" + sandbox;
    request.interface_name = "eth0";
    const auto answer = vpc::decode<vpc::NetworkAnswer>(call(vpc::Method::add_pod_network, vpc::encode(request)));
    if (!answer || !answer->network) give_up("vpc_load", "an ADD brought no address");
    return answer->network->ip;
  }
  void del(const std::string& sandbox, const std::string& ip) {
    vpc::DelPodNetworkRequest request;
    request.pod_network.emplace();
    request.pod_network->pod_name = "pod-" + sandbox;
    request.pod_network->pod_namespace = "default";
    request.pod_network->sandbox_id = sandbox;
    request.pod_network->ip = ip;
    static_cast<void>(call(vpc::Method::del_pod_network, vpc::encode(request)));
  }

 private:
  [[nodiscard]] Deadline soon() const { return Deadline::after(clock_.now(), std::chrono::seconds(60)); }
  std::string call(vpc::Method method, const std::string& message) {
    auto reply = channel_->call(vpc::path_of(method), message, soon());
    if (!reply.status.ok()) give_up("vpc_load", fmt::format("{}: {}", vpc::path_of(method), reply.status.message));
    return std::move(reply.message);
  }

  const Clock& clock_;
  std::shared_ptr<os::GrpcChannel> channel_;
};

double micro(std::vector<Milliseconds> samples) { return median(std::move(samples)).count() * 1000; }

void lone(const std::string& socket, std::size_t rounds, const std::string& store_url) {
  const os::SystemClock clock;
  const auto store = app::open_store(store_url, store::OpenMode::create, clock);
  if (!store) give_up("vpc_load", store.error().message);
  const auto commit = bare_commit(**store, clock);
  Caller caller(socket, clock);
  std::vector<Milliseconds> pings, adds, dels, commits;
  // In turns: how fast a disk and a machine are changes from minute to minute.
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::string sandbox = fmt::format("{:064x}", i);
    std::string ip;
    pings.push_back(time_of([&] { caller.ping(); }));
    adds.push_back(time_of([&] { ip = caller.add(sandbox); }));
    commits.push_back(commit->once());
    dels.push_back(time_of([&] { caller.del(sandbox, ip); }));
  }
  fmt::print(R"({{"ping_us":{:.1f},"add_us":{:.1f},"del_us":{:.1f},"commit_us":{:.1f}}})"
             "\n",
             micro(pings), micro(adds), micro(dels), micro(commits));
}

void many(const std::string& socket, const std::string& what, std::size_t callers, std::size_t rounds) {
  const os::SystemClock clock;
  std::vector<std::unique_ptr<Caller>> all;
  for (std::size_t i = 0; i < callers; ++i) all.push_back(std::make_unique<Caller>(socket, clock));
  std::vector<std::vector<Milliseconds>> times(callers);
  std::chrono::steady_clock::time_point began;
  std::barrier together(static_cast<std::ptrdiff_t>(callers),
                        [&]() noexcept { began = std::chrono::steady_clock::now(); });
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] {
      together.arrive_and_wait();
      for (std::size_t round = 0; round < rounds; ++round) {
        const std::string sandbox = fmt::format("{}{:04}{:055x}", what, i, round);
        std::string ip;
        times[i].push_back(time_of([&] {
          if (what == "ping") {
            all[i]->ping();
          } else {
            ip = all[i]->add(sandbox);
          }
        }));
        if (what == "churn") all[i]->del(sandbox, ip);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const double took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  std::vector<Milliseconds> whole;
  for (const auto& one : times) whole.insert(whole.end(), one.begin(), one.end());
  const double calls = static_cast<double>(whole.size()) * (what == "churn" ? 2 : 1);
  fmt::print(R"({{"p50_us":{:.1f},"seconds":{:.4f},"per_second":{:.0f}}})"
             "\n",
             micro(whole), took, calls / took);
}

}  // namespace
}  // namespace croft::bench

int main(int argc, char** argv) {
  using namespace croft::bench;
  const std::vector<std::string> words(argv + 1, argv + argc);
  const auto number = [&](std::size_t i) {
    const std::size_t value = std::stoul(words.at(i));
    if (value == 0 || value > 100'000) give_up("vpc_load", words.at(i) + ": from 1 to 100000");
    return value;
  };
  if (words.size() == 4 && words[1] == "lone") {
    lone(words[0], number(2), words[3]);
  } else if (words.size() == 4 && (words[1] == "ping" || words[1] == "churn")) {
    many(words[0], words[1], number(2), number(3));
  } else if (words.size() == 3 && words[1] == "burst") {
    many(words[0], words[1], number(2), 1);
  } else {
    std::fprintf(
        stderr,
        "usage: vpc_load SOCKET lone ROUNDS STORE | ping CALLERS ROUNDS | churn CALLERS ROUNDS | burst CALLERS\n");
    return 2;
  }
  return 0;
}
