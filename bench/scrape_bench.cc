// What a scrape of a controller with 1,000 pools costs, over HTTP on the loopback (budget: 50 ms). Pools are counted
// before: a scrape asks no store.
//
// scrape_bench [POOLS]

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "agent/metrics/metrics.h"
#include "agent/metrics/web_server.h"
#include "report.h"

namespace croft {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr double kMillisecondsBudget = 50;
constexpr int kRuns = 20;
constexpr std::uint16_t kPort = 29610;

std::vector<core::PoolFill> fills(std::size_t count) {
  std::vector<core::PoolFill> pools;
  for (std::size_t i = 0; i < count; ++i) {
    core::PoolFill fill;
    fill.pool.name = fmt::format("pool-of-team-{:04}", i);
    fill.pool.cidr = net::Prefix::parse(fmt::format("10.{}.{}.0/24", i / 256, i % 256)).value();
    fill.pool.block_length = 26;
    fill.capacity = net::Count::of(fill.pool.cidr);
    fill.held = 100 + i % 100;
    fill.cooling = i % 7;
    fill.blocks = 4;
    fill.owned_blocks = 3;
    pools.push_back(std::move(fill));
  }
  return pools;
}

/// How many bytes came; 0: none.
std::size_t scrape() {
  const int socket = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = ::htons(kPort);
  at.sin_addr.s_addr = ::htonl(INADDR_LOOPBACK);
  std::size_t bytes = 0;
  constexpr std::string_view kAsk = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n";
  if (::connect(socket, reinterpret_cast<const sockaddr*>(&at), sizeof(at)) == 0 &&
      ::send(socket, kAsk.data(), kAsk.size(), 0) > 0) {
    std::array<char, 65536> part{};
    for (ssize_t size = 1; (size = ::recv(socket, part.data(), part.size(), 0)) > 0;) {
      bytes += static_cast<std::size_t>(size);
    }
  }
  ::close(socket);
  return bytes;
}

int run(std::size_t count) {
  edge::ControllerMetrics metrics;
  metrics.count(fills(count));
  const auto server = edge::serve_metrics([&] { return metrics.text(); }, {*net::parse_address("127.0.0.1"), kPort});
  if (!server) {
    fmt::print(stderr, "{}\n", server.error().message);
    return 1;
  }
  std::vector<double> took;
  std::size_t bytes = 0;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    bytes = scrape();
    took.push_back(Milliseconds(std::chrono::steady_clock::now() - start).count());
    if (bytes == 0) return 1;
  }
  std::sort(took.begin(), took.end());
  const double median = took[took.size() / 2];
  bench::Row row{"scrape.pools", fmt::format("a scrape of a controller with {} pools", count), median, "ms"};
  row.budget = bench::at_most(kMillisecondsBudget);
  if (count != 1000) row.not_judged = "another number of pools";
  row.note = fmt::format("{} kB; the slowest of {} took {:.1f} ms", bytes / 1000, kRuns, took.back());
  bench::report(fmt::format("scrape of {} pools: {:.1f} ms, {} kB", count, median, bytes / 1000), row);
  return 0;
}

}  // namespace
}  // namespace croft

int main(int argc, char** argv) {
  const std::size_t pools = argc > 1 ? static_cast<std::size_t>(std::atoll(argv[1])) : 1000;
  return croft::run(pools);
}
