// What it costs to make a Service: at least 500 a second on a durable sqlite store, on etcd at most 1.3 times two bare
// transactions of the same store. Both are measured in turns on one store, so that a busy disk is busy for both.
//
// service_bench STORE [COUNT [RANGE]]   e.g. sqlite:/var/tmp/bench.db 2000 10.96.0.0/16; the store is made, and must be
//                                       its own: what it holds of Services stays there

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "app/open_store.h"
#include "engine/service.h"
#include "os/clock.h"
#include "os/random.h"

namespace croft {
namespace {

using Milliseconds = std::chrono::duration<double, std::milli>;

constexpr double kPerSecondBudget = 500;
constexpr double kRatioBudget = 1.3;

void check(bool done, const std::string& why) {
  if (done) return;
  std::fprintf(stderr, "failed: %s\n", why.c_str());
  std::exit(1);
}

struct Times {
  std::vector<double> each;
  void take(const std::function<void()>& run) {
    const auto start = std::chrono::steady_clock::now();
    run();
    each.push_back(Milliseconds(std::chrono::steady_clock::now() - start).count());
  }
  [[nodiscard]] double total() const {
    double sum = 0;
    for (const double one : each) sum += one;
    return sum;
  }
  [[nodiscard]] double at(double quantile) {
    std::sort(each.begin(), each.end());
    return each[static_cast<std::size_t>(quantile * static_cast<double>(each.size() - 1))];
  }
  void print(const char* what) {
    fmt::print("{:<44} p50 {:>7.2f} ms  p99 {:>7.2f} ms  {:>7.0f}/s\n", what, at(0.5), at(0.99),
               static_cast<double>(each.size()) * 1000 / total());
  }
};

core::Service service(int i) {
  core::Service result;
  result.name = {"bench", fmt::format("s{}", i)};
  result.type = core::ServiceType::node_port;
  result.selector = {{"app", "bench"}};
  core::ServicePort port;
  port.port = 80;
  result.ports = {port};
  return result;
}

int run(const std::string& url, int count, const std::string& range) {
  const os::SystemClock clock;
  os::SystemRandom random;
  auto opened = app::open_store(url, edge::OpenMode::create, clock);
  check(opened.has_value(), opened ? "" : opened.error().message);
  const engine::Context context{**opened, clock, random};
  core::ServiceRanges ranges;
  ranges.cidrs = core::range::parse_service_cidrs(range).value();
  ranges.node_ports = core::range::parse_node_port_flag("20000-60000").value();
  ranges.may_make = true;

  Times creations, commits, deletions;
  const core::Key key = core::node_key("bench");
  const auto commit = [&] {
    const store::Write write{key, core::Node{"bench", {}, {}, {}}, store::Condition::always(), false};
    store::WriteToken token;
    for (auto& byte : token.bytes) byte = static_cast<std::uint8_t>(random.next());
    const auto done = context.store.commit({&write, 1}, token, engine::deadline_of_use_case(context));
    check(done.has_value(), done ? "" : done.error().message);
  };
  const auto succeeds = [](const Result<core::ServiceAnswer>& answer) {
    check(answer.has_value(), answer ? "" : answer.error().message);
    const auto* refusal = std::get_if<core::ServiceRefusal>(&*answer);
    check(refusal == nullptr, refusal != nullptr ? refusal->to_string() : "");
  };
  for (int i = 0; i < count; ++i) {
    creations.take([&] { succeeds(engine::create_service(context, service(i), ranges)); });
    commits.take([&] {
      commit();
      commit();
    });
  }
  for (int i = 0; i < count; ++i) {
    deletions.take([&] { succeeds(engine::delete_service(context, service(i).name)); });
  }
  creations.print(fmt::format("a Service with a node port, {}", range).c_str());
  commits.print("two bare commits of the same store");
  deletions.print("deleting it");
  const double per_second = count * 1000 / creations.total();
  fmt::print(
      "creations a second: {:.0f} (budget on sqlite: {:.0f}); ratio to two commits: {:.2f} (budget on etcd: {})\n",
      per_second, kPerSecondBudget, creations.at(0.5) / commits.at(0.5), kRatioBudget);
  return 0;
}

}  // namespace
}  // namespace croft

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: service_bench STORE [COUNT [RANGE]]\n");
    return 2;
  }
  return croft::run(argv[1], argc > 2 ? std::atoi(argv[2]) : 2000, argc > 3 ? argv[3] : "10.96.0.0/16");
}
