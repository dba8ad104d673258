// What it costs to make a Service: at least 500 a second on a durable sqlite store, on etcd at most 1.3 times two bare
// transactions that write as much. All are measured in turns on one store, so that a busy disk is busy for all.
//
// service_bench STORE [COUNT [RANGE]]   e.g. sqlite:/var/tmp/bench.db 2000 10.96.0.0/16 or etcd:http://127.0.0.1:2379;
//                                       the store is made, and must be its own: what it holds of Services stays there

#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/stores/open_store.h"
#include "os/clock.h"
#include "report.h"
#include "services/use/service.h"

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

/// What a creation has read and written, for the bare transactions: of the values of this moment, under other keys.
class Likeness {
 public:
  explicit Likeness(const engine::Context& context) : context_(context) {}

  void take(const core::ServiceName& name) {
    const std::array<core::Key, 3> keys{core::range_allocation_key(core::kServiceIps),
                                        core::range_allocation_key(core::kServiceNodePorts), core::service_key(name)};
    const std::array<core::Key, 3> others{core::range_allocation_key("bench-serviceips"),
                                          core::range_allocation_key("bench-servicenodeports"),
                                          core::service_key(kLikeness)};
    writes_.clear();
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto record = context_.store.get(keys[i], engine::deadline_of_use_case(context_));
      check(record.has_value() && record->has_value(), "no record " + keys[i].name);
      writes_.push_back({others[i], *(*record)->value, store::Condition::always(), false});
    }
    std::get<core::Service>(writes_.back().value.value()).name = kLikeness;
  }
  /// The addresses, and then the rest.
  void commit_in_two() {
    commit({writes_.data(), 1});
    commit({writes_.data() + 1, 2});
  }
  void read_and_commit() {
    core::Missing wanted;
    for (const store::Write& write : writes_) wanted.records.insert(write.key);
    const auto answer = context_.store.read(wanted, engine::deadline_of_use_case(context_));
    check(answer.has_value(), answer ? "" : answer.error().message);
    commit(writes_);
  }

 private:
  void commit(std::span<const store::Write> writes) {
    store::WriteToken token;
    for (auto& byte : token.bytes) byte = static_cast<std::uint8_t>(context_.random.next());
    const auto done = context_.store.commit(writes, token, engine::deadline_of_use_case(context_));
    check(done.has_value(), done ? "" : done.error().message);
  }
  inline static const core::ServiceName kLikeness{"bench-likeness", "s"};
  const engine::Context& context_;
  std::vector<store::Write> writes_;
};

/// Milliseconds of the processor that this process has had.
double busy_so_far() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  const auto of = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
  };
  return of(usage.ru_utime) + of(usage.ru_stime);
}

int run(const std::string& url, int count, const std::string& range) {
  const os::SystemClock clock;
  os::SystemRandom random;
  auto opened = app::open_store(url, store::OpenMode::create, clock, {app::kubernetes_registry});
  check(opened.has_value(), opened ? "" : opened.error().message);
  const engine::Context context{**opened, clock, random};
  core::ServiceRanges ranges;
  ranges.cidrs = core::service::parse_service_cidrs(range).value();
  ranges.node_ports = core::service::parse_node_port_flag("20000-60000").value();
  ranges.may_make = true;

  Times creations, in_two, read_and_commit, deletions;
  double busy = 0;
  Likeness likeness(context);
  const auto succeeds = [](const Result<core::ServiceAnswer>& answer) {
    check(answer.has_value(), answer ? "" : answer.error().message);
    const auto* refusal = std::get_if<core::ServiceRefusal>(&*answer);
    check(refusal == nullptr, refusal != nullptr ? refusal->to_string() : "");
  };
  for (int i = 0; i < count; ++i) {
    const double before = busy_so_far();
    creations.take([&] { succeeds(engine::create_service(context, service(i), ranges)); });
    busy += busy_so_far() - before;
    likeness.take(service(i).name);
    in_two.take([&] { likeness.commit_in_two(); });
    read_and_commit.take([&] { likeness.read_and_commit(); });
  }
  for (int i = 0; i < count; ++i) {
    deletions.take([&] { succeeds(engine::delete_service(context, service(i).name)); });
  }
  creations.print(fmt::format("a Service with a node port, {}", range).c_str());
  in_two.print("two bare commits that write as much");
  read_and_commit.print("a bare read and a bare commit of as much");
  deletions.print("deleting it");
  fmt::print(
      "creations a second: {:.0f} (budget on sqlite: {:.0f}), {:.2f} ms of this processor each; ratio of the medians "
      "to "
      "two commits: {:.2f} (budget on etcd: {}), to a read and a commit: {:.2f}\n",
      count * 1000 / creations.total(), kPerSecondBudget, busy / count, creations.at(0.5) / in_two.at(0.5),
      kRatioBudget, creations.at(0.5) / read_and_commit.at(0.5));
  const bool on_etcd = url.starts_with("etcd:");
  const std::string backend = url.substr(0, url.find(':'));
  bench::record({.id = "service.create." + backend,
                 .what = "Services with a node port made, " + backend,
                 .value = count * 1000 / creations.total(),
                 .unit = "/s",
                 .limit = bench::Figure{"two bare commits that write as much", count * 1000 / in_two.total()},
                 .ratio = bench::Ratio{creations.at(0.5) / in_two.at(0.5), "two bare commits, of the median times"},
                 .budget = on_etcd ? bench::ratio_at_most(kRatioBudget) : bench::at_least(kPerSecondBudget)});
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
