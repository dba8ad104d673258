#include "agent/metrics/metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "services/use/test_services.h"
#include "store/test_records.h"

namespace croft::edge {
namespace {

using std::chrono::microseconds;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using Type = core::audit::RepairFinding::Type;

/// Services on a store in memory, a repair of their ranges, and what it has told.
struct World : engine::Services {
  using Services::Services;
  engine::RangeRepairOptions repair_options{{}, true};
  engine::RangeRepairMemory memory;
  ControllerMetrics metrics;

  void repair() {
    const auto report = engine::repair_ranges(context, repair_options, memory);
    ASSERT_TRUE(report) << report.error().message;
    metrics.count(*report);
  }
  /// Changes the range of addresses behind the Services' back.
  template <class F>
  void damage(F f) {
    const store::Key key = core::range_allocation_key(core::kServiceIps);
    const auto record = store.get(key, Deadline{}).value();
    auto range = std::get<core::RangeAllocation>(*record->value);
    auto bits = core::service::range_from<core::service::ServiceCidr>(range)->range;
    f(bits);
    range.data = bits.snapshot().data;
    EXPECT_TRUE(store::update_if_revision(store, key, range, record->revision, {}, Deadline{}));
  }
  void leak(const char* address) {
    damage([&](auto& bits) { EXPECT_TRUE(bits.take(*net::parse_address(address))); });
  }
  void lose(const char* address) {
    damage([&](auto& bits) { EXPECT_TRUE(bits.give_back(*net::parse_address(address))); });
  }
  /// The value of a sample, as it is written.
  [[nodiscard]] std::string value(const std::string& sample) const {
    const std::string text = "\n" + metrics.text();
    const std::size_t at = text.find("\n" + sample + " ");
    if (at == text.npos) return "none";
    const std::size_t begin = at + sample.size() + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
};

constexpr const char* kLeaks = "apiserver_clusterip_repair_ip_errors_total{type=\"leak\"}";
constexpr const char* kAllocated = "kube_apiserver_clusterip_allocator_allocated_ips{cidr=\"10.0.0.0/24\"}";
constexpr const char* kAvailable = "kube_apiserver_clusterip_allocator_available_ips{cidr=\"10.0.0.0/24\"}";
constexpr const char* kIpReconcileErrors = "apiserver_clusterip_repair_reconcile_errors_total";
constexpr const char* kPortReconcileErrors = "apiserver_nodeport_repair_reconcile_errors_total";

TEST(ControllerMetrics, WhatWasNotLookedAtHasNoSamples) { EXPECT_EQ(ControllerMetrics().text(), ""); }

TEST(ControllerMetrics, WhoLeads) {
  ControllerMetrics metrics;
  metrics.set_leading("croftd-controller", false);
  EXPECT_THAT(metrics.text(), HasSubstr("\nleader_election_master_status{name=\"croftd-controller\"} 0\n"));
  metrics.set_leading("croftd-controller", true);
  EXPECT_THAT(metrics.text(), HasSubstr("\nleader_election_master_status{name=\"croftd-controller\"} 1\n"));
}

TEST(ControllerMetrics, APassOfTheRepair) {
  World world("10.0.0.0/24,fd00::/112");
  EXPECT_EQ(world.create(World::with_ip(World::service("a", core::ServiceType::node_port), "10.0.0.7")), "ok");
  EXPECT_EQ(world.create(World::with_ip(World::service("b"), "10.0.0.8")), "ok");
  world.lose("10.0.0.8");
  world.repair();
  EXPECT_EQ(world.metrics.text(),
            R"(# HELP kube_apiserver_clusterip_allocator_allocated_ips Number of allocated IPs for Services
# TYPE kube_apiserver_clusterip_allocator_allocated_ips gauge
kube_apiserver_clusterip_allocator_allocated_ips{cidr="10.0.0.0/24"} 2
kube_apiserver_clusterip_allocator_allocated_ips{cidr="fd00::/112"} 0
# HELP kube_apiserver_clusterip_allocator_available_ips Number of available IPs for Services
# TYPE kube_apiserver_clusterip_allocator_available_ips gauge
kube_apiserver_clusterip_allocator_available_ips{cidr="10.0.0.0/24"} 252
kube_apiserver_clusterip_allocator_available_ips{cidr="fd00::/112"} 65535
# HELP kube_apiserver_nodeport_allocator_allocated_ports Number of allocated NodePorts for Services
# TYPE kube_apiserver_nodeport_allocator_allocated_ports gauge
kube_apiserver_nodeport_allocator_allocated_ports 1
# HELP kube_apiserver_nodeport_allocator_available_ports Number of available NodePorts for Services
# TYPE kube_apiserver_nodeport_allocator_available_ports gauge
kube_apiserver_nodeport_allocator_available_ports 2767
# HELP apiserver_clusterip_repair_ip_errors_total Number of errors detected on clusterips by the repair loop, by type
# TYPE apiserver_clusterip_repair_ip_errors_total counter
apiserver_clusterip_repair_ip_errors_total{type="leak"} 0
apiserver_clusterip_repair_ip_errors_total{type="repair"} 1
apiserver_clusterip_repair_ip_errors_total{type="full"} 0
apiserver_clusterip_repair_ip_errors_total{type="outOfRange"} 0
apiserver_clusterip_repair_ip_errors_total{type="duplicate"} 0
apiserver_clusterip_repair_ip_errors_total{type="invalid"} 0
apiserver_clusterip_repair_ip_errors_total{type="unknown"} 0
# HELP apiserver_nodeport_repair_port_errors_total Number of errors detected on ports by the repair loop, by type
# TYPE apiserver_nodeport_repair_port_errors_total counter
apiserver_nodeport_repair_port_errors_total{type="leak"} 0
apiserver_nodeport_repair_port_errors_total{type="repair"} 0
apiserver_nodeport_repair_port_errors_total{type="full"} 0
apiserver_nodeport_repair_port_errors_total{type="outOfRange"} 0
apiserver_nodeport_repair_port_errors_total{type="duplicate"} 0
apiserver_nodeport_repair_port_errors_total{type="unknown"} 0
# HELP apiserver_clusterip_repair_reconcile_errors_total Number of reconciliation failures of the clusterip repair loop
# TYPE apiserver_clusterip_repair_reconcile_errors_total counter
apiserver_clusterip_repair_reconcile_errors_total 0
# HELP apiserver_nodeport_repair_reconcile_errors_total Number of reconciliation failures of the nodeport repair loop
# TYPE apiserver_nodeport_repair_reconcile_errors_total counter
apiserver_nodeport_repair_reconcile_errors_total 0
)");
}

TEST(ControllerMetrics, ALeakCountsWhenItIsFreed) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.leak("10.0.0.9");
  for (int pass = 1; pass <= 2; ++pass) {
    world.repair();
    EXPECT_EQ(world.value(kLeaks), "0") << pass;
    EXPECT_EQ(world.value(kAllocated), "2") << pass;
  }
  world.repair();
  EXPECT_EQ(world.value(kLeaks), "1");
  EXPECT_EQ(world.value(kAllocated), "1") << "as the pass left it";
  EXPECT_EQ(world.value(kAvailable), "253");
  world.repair();
  EXPECT_EQ(world.value(kLeaks), "1");
}

TEST(ControllerMetrics, WhatADryRunDoesNotFreeDoesNotCount) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.leak("10.0.0.9");
  world.lose("10.0.0.7");
  world.repair_options.write = false;
  for (int pass = 1; pass <= 7; ++pass) world.repair();
  EXPECT_EQ(world.value(kLeaks), "0");
  EXPECT_EQ(world.value("apiserver_clusterip_repair_ip_errors_total{type=\"repair\"}"), "7") << "found, each time";
  EXPECT_EQ(world.value(kAllocated), "1") << "as it is read";
}

TEST(ControllerMetrics, TriesThatFail) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.lose("10.0.0.7");
  const auto next = world.store.counts().commit + 1;
  world.store.set_faults(
      store::FaultScript().on_commit(next, store::Fault::conflict).on_commit(next + 1, store::Fault::storage_full));
  world.repair();
  EXPECT_EQ(world.value(kIpReconcileErrors), "2");
  EXPECT_EQ(world.value(kPortReconcileErrors), "0");
  EXPECT_EQ(world.value(kAllocated), "0") << "nothing was written";
  world.metrics.count_failed_repair();
  EXPECT_EQ(world.value(kIpReconcileErrors), "3");
  EXPECT_EQ(world.value(kPortReconcileErrors), "1");
  EXPECT_EQ(world.value(kAllocated), "0") << "as seen last";
}

TEST(ControllerMetrics, ARangeThatIsGoneHasNoGauge) {
  World world;
  EXPECT_EQ(world.create(World::with_ip(World::service("a"), "10.0.0.7")), "ok");
  world.repair();
  EXPECT_EQ(world.value(kAllocated), "1");
  world.repair_options.cidrs = core::service::parse_service_cidrs("10.0.0.0/22").value();
  world.repair();
  EXPECT_EQ(world.value(kAllocated), "none");
  EXPECT_EQ(world.value("kube_apiserver_clusterip_allocator_available_ips{cidr=\"10.0.0.0/22\"}"), "1021");
}

core::ClusterCidrUse use_of(const char* cidr, std::uint32_t size, std::uint32_t taken) {
  return {{prefix(cidr), 24}, size, taken, 0};
}

TEST(ControllerMetrics, PassesOverNodeRanges) {
  ControllerMetrics metrics;
  engine::NodeRangesReconciled pass;
  pass.seen.use = {use_of("10.244.0.0/16", 256, 60)};
  pass.counts[prefix("10.244.0.0/16")] = {0, {0, 1, 6, 700}};
  metrics.count(pass);
  EXPECT_EQ(metrics.text(), R"(# HELP node_ipam_controller_cidrset_cidrs_allocations_total Number of node CIDRs taken
# TYPE node_ipam_controller_cidrset_cidrs_allocations_total counter
node_ipam_controller_cidrset_cidrs_allocations_total{clusterCIDR="10.244.0.0/16"} 64
# HELP node_ipam_controller_cidrset_cidrs_releases_total Number of node CIDRs given back
# TYPE node_ipam_controller_cidrset_cidrs_releases_total counter
node_ipam_controller_cidrset_cidrs_releases_total{clusterCIDR="10.244.0.0/16"} 0
# HELP node_ipam_controller_cidrset_usage_cidrs Taken node CIDRs as a part of all, 0 to 1
# TYPE node_ipam_controller_cidrset_usage_cidrs gauge
node_ipam_controller_cidrset_usage_cidrs{clusterCIDR="10.244.0.0/16"} 0.25
# HELP node_ipam_controller_cirdset_max_cidrs Number of node CIDRs there can be
# TYPE node_ipam_controller_cirdset_max_cidrs gauge
node_ipam_controller_cirdset_max_cidrs{clusterCIDR="10.244.0.0/16"} 256
# HELP node_ipam_controller_cidrset_allocation_tries_per_request Number of taken node CIDRs that were passed over
# TYPE node_ipam_controller_cidrset_allocation_tries_per_request histogram
node_ipam_controller_cidrset_allocation_tries_per_request_count{clusterCIDR="10.244.0.0/16"} 4
node_ipam_controller_cidrset_allocation_tries_per_request_sum{clusterCIDR="10.244.0.0/16"} 707
node_ipam_controller_cidrset_allocation_tries_per_request_bucket{clusterCIDR="10.244.0.0/16",le="1"} 2
node_ipam_controller_cidrset_allocation_tries_per_request_bucket{clusterCIDR="10.244.0.0/16",le="5"} 2
node_ipam_controller_cidrset_allocation_tries_per_request_bucket{clusterCIDR="10.244.0.0/16",le="25"} 3
node_ipam_controller_cidrset_allocation_tries_per_request_bucket{clusterCIDR="10.244.0.0/16",le="125"} 3
node_ipam_controller_cidrset_allocation_tries_per_request_bucket{clusterCIDR="10.244.0.0/16",le="625"} 3
node_ipam_controller_cidrset_allocation_tries_per_request_bucket{clusterCIDR="10.244.0.0/16",le="+Inf"} 4
)");

  // Somebody else gave out two and takes one back; this pass takes back three.
  engine::NodeRangesReconciled second;
  second.seen.use = {use_of("10.244.0.0/16", 256, 66), use_of("fd00:244::/48", 65536, 1)};
  metrics.count(second);
  second.seen.use[0].taken = 65;
  second.counts[prefix("10.244.0.0/16")] = {3, {}};
  metrics.count(second);
  const std::string text = metrics.text();
  EXPECT_THAT(text, AllOf(HasSubstr("allocations_total{clusterCIDR=\"10.244.0.0/16\"} 66\n"),
                          HasSubstr("releases_total{clusterCIDR=\"10.244.0.0/16\"} 4\n"),
                          HasSubstr("usage_cidrs{clusterCIDR=\"10.244.0.0/16\"} 0.2421875\n"),
                          HasSubstr("allocations_total{clusterCIDR=\"fd00:244::/48\"} 1\n"),
                          HasSubstr("cirdset_max_cidrs{clusterCIDR=\"fd00:244::/48\"} 65536\n")));

  engine::NodeRangesReconciled third;
  third.seen.use = {use_of("fd00:244::/48", 65536, 1)};
  metrics.count(third);
  EXPECT_THAT(metrics.text(), Not(HasSubstr("10.244.0.0/16"))) << "no cluster CIDR any more";
}

TEST(ControllerMetrics, PoolsByStateAddUpToTheirCapacity) {
  ControllerMetrics metrics;
  EXPECT_EQ(metrics.text(), "");
  core::PoolFill fill;
  fill.pool.name = "web";
  fill.pool.cidr = prefix("10.1.0.0/24");
  fill.pool.block_length = 26;
  fill.capacity = 256;
  fill.held = 100;
  fill.cooling = 20;
  fill.reserved = 6;
  fill.blocks = 3;
  fill.owned_blocks = 2;
  fill.borrowed = 5;
  fill.stranded = 30;
  core::PoolFill wide;
  wide.pool.name = "wide";
  wide.pool.cidr = prefix("fd00::/64");
  wide.pool.block_length = 122;
  wide.pool.disabled = true;
  wide.capacity = net::Count::of(wide.pool.cidr);
  metrics.count(std::vector{fill, wide});
  const std::string text = metrics.text();
  for (const char* line : {"croft_pool_addresses{pool=\"web\",family=\"IPv4\",state=\"held\"} 100\n",
                           "croft_pool_addresses{pool=\"web\",family=\"IPv4\",state=\"cooling\"} 20\n",
                           "croft_pool_addresses{pool=\"web\",family=\"IPv4\",state=\"reserved\"} 6\n",
                           "croft_pool_addresses{pool=\"web\",family=\"IPv4\",state=\"free\"} 100\n",
                           "croft_pool_addresses{pool=\"web\",family=\"IPv4\",state=\"stranded\"} 30\n",
                           "croft_pool_capacity{pool=\"web\",family=\"IPv4\"} 256\n",
                           "croft_pool_blocks{pool=\"web\",family=\"IPv4\",state=\"owned\"} 2\n",
                           "croft_pool_blocks{pool=\"web\",family=\"IPv4\",state=\"ownerless\"} 1\n",
                           "croft_pool_blocks{pool=\"web\",family=\"IPv4\",state=\"unclaimed\"} 1\n",
                           "croft_pool_borrowed_addresses{pool=\"web\",family=\"IPv4\"} 5\n",
                           "croft_pool_disabled{pool=\"web\",family=\"IPv4\"} 0\n",
                           "croft_pool_disabled{pool=\"wide\",family=\"IPv6\"} 1\n",
                           "croft_pool_capacity{pool=\"wide\",family=\"IPv6\"} 1.844674407370955e+19\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  metrics.count(std::vector{wide});
  EXPECT_THAT(metrics.text(), Not(HasSubstr("pool=\"web\"")));
  metrics.forget_pools();
  EXPECT_EQ(metrics.text(), "");
}

TEST(ControllerMetrics, PassesOfTheCollector) {
  ControllerMetrics metrics;
  metrics.count_failed_pass();
  EXPECT_THAT(metrics.text(), Not(HasSubstr("croft_leak_candidates")));
  engine::SweepReport report;
  report.candidates = 7;
  report.released.resize(2);
  metrics.count(report);
  report.dry_run = true;
  report.failure = Error{ErrorCode::unavailable, "away", {}};
  report.candidates = 5;
  metrics.count(report);
  const std::string text = metrics.text();
  for (const char* line : {"croft_leak_candidates 5\n", "croft_collector_passes_total{outcome=\"ok\"} 1\n",
                           "croft_collector_passes_total{outcome=\"failed\"} 2\n",
                           "croft_collector_released_total{what=\"address\"} 2\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  metrics.forget_pools();
  EXPECT_THAT(metrics.text(), Not(HasSubstr("croft_leak_candidates")));
  EXPECT_THAT(metrics.text(), HasSubstr("croft_collector_passes_total"));
}

core::AssignAnswer refused(std::vector<core::PoolVerdict> considered, core::RefusalCause cause) {
  core::Refusal refusal;
  refusal.considered = std::move(considered);
  refusal.cause = cause;
  return refusal;
}

TEST(AgentMetrics, CountsAddsByHowTheyEnded) {
  AgentMetrics metrics;
  EXPECT_THAT(metrics.text(), HasSubstr("croft_agent_add_duration_seconds_count{outcome=\"ok\"} 0\n"));
  core::Assigned assigned;
  assigned.addresses.resize(2);
  assigned.addresses[0].borrowed = true;
  core::AssignAnswer ok = assigned;
  metrics.count(microseconds(300), &ok);
  assigned.addresses[0].held_before = true;  // asked again: nothing was borrowed anew
  ok = assigned;
  metrics.count(microseconds(100), &ok);
  metrics.count(microseconds(100), nullptr);
  const std::string text = metrics.text();
  for (const char* line : {"croft_agent_add_duration_seconds_count{outcome=\"ok\"} 2\n",
                           "croft_agent_add_duration_seconds_bucket{outcome=\"ok\",le=\"0.00025\"} 1\n",
                           "croft_agent_add_duration_seconds_bucket{outcome=\"ok\",le=\"0.0005\"} 2\n",
                           "croft_agent_add_duration_seconds_bucket{outcome=\"ok\",le=\"+Inf\"} 2\n",
                           "croft_agent_add_duration_seconds_count{outcome=\"failed\"} 1\n",
                           "croft_agent_add_duration_seconds_count{outcome=\"refused\"} 0\n",
                           "croft_agent_borrowed_addresses_total 1\n"}) {
    EXPECT_THAT(text, HasSubstr(line));
  }
  EXPECT_THAT(text, Not(HasSubstr("croft_agent_refusals_total")));
}

TEST(AgentMetrics, ARefusalCountsForEachPoolThatMightHaveServed) {
  AgentMetrics metrics;
  const net::Prefix cidr = prefix("10.0.0.0/24");
  const auto full = refused({{"one", cidr, "its blocks are full", true},
                             {"two", cidr, "its blocks are full", true},
                             {"off", cidr, "disabled", false}},
                            core::RefusalCause::full);
  metrics.count(microseconds(10), &full);
  metrics.count(microseconds(10), &full);
  const auto none = refused({{"off", cidr, "disabled", false}}, core::RefusalCause::no_pool_enabled);
  metrics.count(microseconds(10), &none);
  const std::string text = metrics.text();
  EXPECT_THAT(text, HasSubstr("croft_agent_refusals_total{pool=\"one\",reason=\"full\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("croft_agent_refusals_total{pool=\"two\",reason=\"full\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("croft_agent_refusals_total{pool=\"\",reason=\"no_pool_enabled\"} 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("pool=\"off\"")));
  EXPECT_THAT(text, HasSubstr("croft_agent_add_duration_seconds_count{outcome=\"refused\"} 3\n"));
}

}  // namespace
}  // namespace croft::edge
