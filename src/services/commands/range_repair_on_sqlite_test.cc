#include <atomic>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "cli/stores/open_store.h"
#include "ipam/use/test_meddler.h"
#include "os/clock.h"
#include "os/scratch_directory.h"
#include "services/use/range_repair.h"
#include "services/use/service.h"
#include "store/test_commits.h"

// Two writers on the store that Services are really on: one makes and deletes them, the other repairs. The rules are
// tested in services/use.

namespace croft::app {
namespace {

using ::testing::IsEmpty;

class RangeRepairOnSqlite : public testing::Test {
 protected:
  RangeRepairOnSqlite() {
    ranges_.cidrs = core::service::parse_service_cidrs("10.96.0.0/24").value();
    ranges_.node_ports = core::service::parse_node_port_flag("").value();
    ranges_.may_make = true;
  }
  std::unique_ptr<store::Store> open() {
    auto opened = open_store("sqlite:" + scratch_.file("croft.db"), store::OpenMode::create, clock_);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? *std::move(opened) : nullptr;
  }
  void create(const engine::Context& context, const std::string& name, const std::string& ip = {}) const {
    core::Service service;
    service.name = {"default", name};
    service.type = core::ServiceType::node_port;
    service.cluster_ip = ip;
    core::ServicePort port;
    port.port = 80;
    service.ports = {port};
    const auto answer = engine::create_service(context, service, ranges_);
    EXPECT_TRUE(answer && std::holds_alternative<core::ServiceChanged>(*answer)) << name;
  }
  static void remove(const engine::Context& context, const std::string& name) {
    EXPECT_TRUE(engine::delete_service(context, {"default", name})) << name;
  }
  static engine::RangeRepairReport repair(const engine::Context& context, engine::RangeRepairMemory& memory) {
    const engine::RangeRepairOptions options{{}, {}, true};
    auto report = engine::repair_ranges(context, options, memory);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *std::move(report) : engine::RangeRepairReport{};
  }
  static void leak(store::Store& store, const char* address) {
    const auto key = core::range_allocation_key(core::kServiceIps);
    const auto record = store.get(key, Deadline{}).value();
    auto range = std::get<core::RangeAllocation>(*record->value);
    auto bits = core::service::range_from<core::service::ServiceCidr>({range.range, range.data})->range;
    ASSERT_TRUE(bits.take(*net::parse_address(address)));
    range.data = bits.snapshot().data;
    ASSERT_TRUE(store::update_if_revision(store, key, range, record->revision, {}, Deadline{}));
  }

  os::ScratchDirectory scratch_;
  os::SystemClock clock_;
  core::ServiceRanges ranges_;
};

TEST_F(RangeRepairOnSqlite, WhatIsMadeAndDeletedBetweenSnapshotAndWriteIsRight) {
  const auto store = open();
  const auto other_store = open();
  SeededRandom random(1);
  SeededRandom other_random(2);
  const engine::Context other{*other_store, clock_, other_random};
  engine::Meddler meddler(*store);
  const engine::Context repairing{meddler, clock_, random};
  create(other, "goes", "10.96.0.10");
  leak(*other_store, "10.96.0.20");

  engine::RangeRepairMemory memory;
  for (int pass = 1; pass <= 2; ++pass) static_cast<void>(repair(repairing, memory));
  // The third pass has decided to free .20: a Service takes .30, another gives .10 back.
  meddler.before_commit = [&] {
    create(other, "comes", "10.96.0.30");
    remove(other, "goes");
  };
  const auto third = repair(repairing, memory);
  EXPECT_GE(third.failed_tries.at(std::string(core::kServiceIps)), 1U);
  EXPECT_THAT(third.failures, IsEmpty());

  engine::RangeRepairMemory fresh;
  const auto after = repair(repairing, fresh);
  EXPECT_THAT(after.findings(), IsEmpty()) << "the one made has its bit, the one deleted has none";
  EXPECT_EQ(after.ranges.front().in_static.used + after.ranges.front().in_dynamic.used, 1U);
}

TEST_F(RangeRepairOnSqlite, ARepairBesideABusyWriterLosesNothing) {
  const auto store = open();
  const auto other_store = open();
  SeededRandom random(1);
  SeededRandom other_random(2);
  const engine::Context repairing{*store, clock_, random};
  const engine::Context other{*other_store, clock_, other_random};
  create(other, "first");
  std::atomic<bool> ended = false;
  std::thread writer([&] {
    for (int i = 0; i < 60; ++i) {
      create(other, "s" + std::to_string(i));
      if (i % 3 != 0) remove(other, "s" + std::to_string(i));
    }
    ended = true;
  });
  engine::RangeRepairMemory memory;
  while (!ended) static_cast<void>(repair(repairing, memory));
  writer.join();
  engine::RangeRepairMemory fresh;
  const auto after = repair(repairing, fresh);
  EXPECT_THAT(after.findings(), IsEmpty());
  EXPECT_EQ(after.services.size(), 21U);
}

}  // namespace
}  // namespace croft::app
