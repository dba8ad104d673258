#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "cli/stores/open_store.h"
#include "ipam/use/test_world.h"
#include "os/clock.h"
#include "os/scratch_directory.h"
#include "services/use/range_repair.h"
#include "services/use/service.h"
#include "store/test_records.h"

// Services on the store that they are really on; the rules are tested in services/use.

namespace croft::app {

namespace {

class ServicesOnSqlite : public testing::Test {
 protected:
  std::unique_ptr<store::Store> open() {
    auto opened = open_store("sqlite:" + scratch_.file("croft.db"), store::OpenMode::create, clock_);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  static core::ServiceRanges ranges(const char* cidrs) {
    core::ServiceRanges result;
    result.cidrs = core::service::parse_service_cidrs(cidrs).value();
    result.node_ports = core::service::parse_node_port_flag("").value();
    result.may_make = true;
    return result;
  }
  static core::Service service(const std::string& name) {
    core::Service result;
    result.name = {"default", name};
    core::ServicePort port;
    port.port = 80;
    result.ports = {port};
    return result;
  }

  os::ScratchDirectory scratch_;
  os::SystemClock clock_;
};

TEST_F(ServicesOnSqlite, TenThousandCreationsOnARangeOf254) {
  constexpr int kWanted = 10'000;
  std::atomic<int> next = 0, made = 0, full = 0;
  std::vector<std::string> others;
  std::mutex mutex;
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const auto store = open();
      SeededRandom random(static_cast<std::uint64_t>(t) + 1);
      const engine::Context context{*store, clock_, random, std::chrono::seconds(60)};
      for (int i = next++; i < kWanted; i = next++) {
        const auto answer = engine::create_service(context, service("s" + std::to_string(i)), ranges("10.0.0.0/24"));
        const auto* refusal = answer ? std::get_if<core::ServiceRefusal>(&*answer) : nullptr;
        if (answer && refusal == nullptr) {
          ++made;
        } else if (refusal != nullptr && refusal->message.ends_with("range is full")) {
          ++full;
        } else {
          const std::lock_guard lock(mutex);
          others.push_back(refusal != nullptr ? refusal->to_string() : answer.error().message);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 254);
  EXPECT_EQ(full, kWanted - 254);
  EXPECT_THAT(others, testing::IsEmpty());

  const auto store = open();
  SeededRandom random(9);
  const auto services = engine::list_services({*store, clock_, random});
  ASSERT_TRUE(services);
  std::set<std::string> addresses;
  for (const engine::StoredService& one : *services) addresses.insert(one.service.cluster_ip);
  EXPECT_EQ(addresses.size(), 254U);
}

/// Two writers: one makes and deletes Services, the other repairs.
TEST_F(ServicesOnSqlite, ARepairBesideABusyWriterLosesNothing) {
  const auto store = open();
  const auto other_store = open();
  SeededRandom random(1);
  SeededRandom other_random(2);
  const engine::Context repairing{*store, clock_, random};
  const engine::Context other{*other_store, clock_, other_random};
  const auto create = [&](const std::string& name) {
    core::Service wanted = service(name);
    wanted.type = core::ServiceType::node_port;
    const auto answer = engine::create_service(other, wanted, ranges("10.96.0.0/24"));
    EXPECT_TRUE(answer && std::holds_alternative<core::ServiceChanged>(*answer)) << name;
  };
  const auto repair = [&](engine::RangeRepairMemory& memory) {
    auto report = engine::repair_ranges(repairing, {{}, true}, memory);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *std::move(report) : engine::RangeRepairReport{};
  };
  create("first");
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    for (int i = 0; i < 60; ++i) {
      const std::string name = "s" + std::to_string(i);
      create(name);
      if (i % 3 == 0) continue;
      EXPECT_TRUE(engine::delete_service(other, {"default", name})) << name;
    }
    ended = true;
  });
  engine::RangeRepairMemory memory;
  while (!ended) static_cast<void>(repair(memory));
  writer.join();
  engine::RangeRepairMemory fresh;
  const auto after = repair(fresh);
  EXPECT_THAT(after.findings(), testing::IsEmpty());
  EXPECT_EQ(after.services.size(), 21U);
}

}  // namespace

}  // namespace croft::app
