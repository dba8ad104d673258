// What a pass of the repair of Service ranges costs in a large cluster: 100,000 Services on 10.96.0.0/12, each with an
// address, 2,000 of them with a node port (budget: 1 s). The pass alone, which decides, and the whole with the store in
// memory: read, decide, and write the range that lacked a tenth of them.
//
// range_repair_bench [SERVICES]

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/clock.h"
#include "report.h"
#include "services/use/range_repair.h"
#include "store/memory/memory_store.h"
#include "store/test_records.h"

namespace croft {
namespace {

namespace audit = core::audit;
using Seconds = std::chrono::duration<double>;

constexpr double kSecondsBudget = 1;
constexpr int kRuns = 5;
constexpr std::size_t kNodePorts = 2000;

core::Service service_at(std::size_t number, const core::service::ServiceCidr& cidr) {
  core::Service service;
  service.name = {fmt::format("team-{}", number % 100), fmt::format("service-{:06}", number)};
  service.uid = fmt::format("{:08x}-0000-4000-8000-000000000000", number);
  service.cluster_ip =
      cidr.value_at(core::service::Ordinal{static_cast<std::uint32_t>(number * 10 % cidr.size())}).to_string();
  service.cluster_ips = {service.cluster_ip};
  service.selector = {{"app", service.name.name}};
  core::ServicePort port;
  port.port = 80;
  if (number < kNodePorts) {
    service.type = core::ServiceType::node_port;
    port.node_port = static_cast<std::uint16_t>(30000 + number);
  }
  service.ports = {port};
  return service;
}

template <class Run>
double best_of(Run run) {
  double best = 1e9;
  for (int i = 0; i < kRuns; ++i) {
    const auto start = std::chrono::steady_clock::now();
    run();
    best = std::min(best, Seconds(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

[[nodiscard]] Result<int> measure(std::size_t count) {
  TRY(const auto cidr, core::service::ServiceCidr::parse("10.96.0.0/12"));
  TRY(const auto ports, core::service::parse_node_port_flag(""));
  store::MemoryStore store;
  std::vector<audit::ServiceUse> uses;
  core::service::ServiceAddresses nine_tenths(cidr);
  for (std::size_t i = 0; i < count; ++i) {
    const core::Service service = service_at(i, cidr);
    uses.push_back(audit::use_of(service));
    if (i % 10 != 0) TRY_VOID(nine_tenths.take(*net::parse_address(service.cluster_ip)));
    TRY_VOID(store::create_if_absent(store, core::service_key(service.name), service, {}, Deadline{}));
  }
  const core::RangeAllocation lacking = nine_tenths.snapshot();

  std::size_t found = 0;
  const double pure = best_of([&] {
    const audit::AddressRangeSeen addresses{std::string(core::kServiceIps), lacking, cidr, {}};
    const audit::PortRangeSeen node_ports{std::string(core::kServiceNodePorts), {}, ports, {}};
    found = audit::repair_addresses({&addresses, 1}, uses).front().findings.size() +
            audit::repair_node_ports(node_ports, uses).findings.size();
  });

  const ManualClock clock;
  SeededRandom random(1);
  const engine::Context context{store, clock, random};
  engine::RangeRepairOptions options;
  options.cidrs = core::service::ServiceCidrs{cidr.cidr(), {}};
  options.node_ports = ports;
  options.write = true;
  const store::Key key = core::range_allocation_key(core::kServiceIps);
  bool failed = false;
  std::size_t mended = 0;
  double whole = 1e9;
  for (int i = 0; i < kRuns && !failed; ++i) {
    const store::Write damage{key, lacking, store::Condition::always(), false};
    TRY_VOID(store.commit({&damage, 1}, {}, Deadline{}));
    engine::RangeRepairMemory memory;
    const auto start = std::chrono::steady_clock::now();
    const auto report = engine::repair_ranges(context, options, memory);
    whole = std::min(whole, Seconds(std::chrono::steady_clock::now() - start).count());
    failed = !report || !report->failures.empty();
    if (report) mended = report->ranges.front().findings.size();
  }
  if (failed) return fail(ErrorCode::internal, "a repair failed");
  std::printf("%s", fmt::format("{} services, {} values not allocated\n"
                                "one pass, decided:                  {:8.3f} s\n"
                                "read, decided, {} mended, written: {:8.3f} s (budget {} s)\n",
                                count, found, pure, mended, whole, kSecondsBudget)
                        .c_str());
  bench::record({.id = "range_repair.pass",
                 .what = "a repair of Service ranges: read, decided, written",
                 .value = whole,
                 .unit = "s",
                 .budget = bench::at_most(kSecondsBudget),
                 .note = fmt::format("{} Services; decided alone in {:.3f} s", count, pure)});
  return 0;
}

}  // namespace
}  // namespace croft

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoul(argv[1], nullptr, 10) : 100'000;
  const auto code = croft::measure(count);
  if (!code) std::fprintf(stderr, "range_repair_bench: %s\n", code.error().message.c_str());
  return code ? *code : 1;
}
