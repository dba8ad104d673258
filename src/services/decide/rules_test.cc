#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/decide/cluster_ips.h"
#include "services/decide/node_port_rules.h"
#include "services/decide/questions.h"
#include "services/decide/test_service.h"
#include "services/decide/type_changes.h"

// Addresses, node ports and what a change keeps or wipes (docs/notes/service-ranges.md#service). Names in brackets
// are rows of docs/notes/service-ranges.md#cases-services.

namespace croft::core {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Ips = std::vector<std::string>;
using Ports = std::vector<std::uint16_t>;

const std::vector<net::Family> kDual{net::Family::v4, net::Family::v6};

std::string text_of(const std::optional<ServiceRefusal>& refusal) { return refusal ? refusal->to_string() : "taken"; }

Service node_port(std::vector<ServicePort> ports) {
  Service service = service_of(ServiceType::node_port);
  service.ports = std::move(ports);
  apply_defaults(service);
  return service;
}

Service load_balancer(std::vector<ServicePort> ports, bool allocate = true) {
  Service service = service_of(ServiceType::load_balancer);
  service.ports = std::move(ports);
  service.allocate_load_balancer_node_ports = allocate;
  apply_defaults(service);
  return service;
}

struct Take {
  explicit Take(Service wanted, std::set<std::uint16_t> taken = {}) : service(std::move(wanted)), allocators(kDual) {
    allocators.ports = std::move(taken);
    text = text_of(take_node_ports(service, allocators));
  }
  Service service;
  TestAllocators allocators;
  std::string text;
};

struct Change {
  Change(const Service& before, Service wanted, std::set<std::uint16_t> taken = {})
      : service(std::move(wanted)), allocators(kDual) {
    allocators.ports = std::move(taken);
    for (const std::uint16_t port : node_ports_of(before)) allocators.ports.insert(port);
    if (before.health_check_node_port != 0) allocators.ports.insert(before.health_check_node_port);
    text = text_of(change_node_ports(service, before, allocators));
  }
  Service service;
  TestAllocators allocators;
  std::string text;
};

// --- addresses ---

TEST(cluster_ips, a_new_service_names_one_or_both) {
  struct Row {
    const char* singular;
    Ips plural;
    Ips becomes;
  };
  const Row rows[] = {{"", {}, {}},
                      {"10.0.0.5", {}, {"10.0.0.5"}},
                      {"", {"10.0.0.5"}, {"10.0.0.5"}},
                      {"FD00:0::5", {}, {"fd00::5"}},
                      {"None", {}, {"None"}},
                      {"10.0.0.5", {"10.0.0.6"}, {"10.0.0.6"}}};
  for (const Row& row : rows) {
    Service service = service_of();
    service.cluster_ip = row.singular;
    service.cluster_ips = row.plural;
    normalize_cluster_ips(service, nullptr);
    EXPECT_EQ(service.cluster_ips, row.becomes) << row.singular;
  }
}

TEST(cluster_ips, a_change_names_one_or_both) {
  Service before = service_of();
  before.cluster_ip = "10.0.0.5";
  before.cluster_ips = {"10.0.0.5", "fd00::5"};
  struct Row {
    const char* singular;
    Ips plural;
    Ips becomes;
  };
  const Row rows[] = {{"10.0.0.5", {}, {"10.0.0.5", "fd00::5"}},
                      {"", {"10.0.0.5", "fd00::5"}, {}},
                      {"10.0.0.6", {"10.0.0.5", "fd00::5"}, {"10.0.0.6"}},
                      {"10.0.0.6", {"10.0.0.6", "fd00::5"}, {"10.0.0.6", "fd00::5"}},
                      {"10.0.0.5", {"10.0.0.5"}, {"10.0.0.5"}}};
  for (const Row& row : rows) {
    Service service = service_of();
    service.cluster_ip = row.singular;
    service.cluster_ips = row.plural;
    normalize_cluster_ips(service, &before);
    EXPECT_EQ(service.cluster_ips, row.becomes) << row.singular;
  }
}

TEST(cluster_ips, taken_by_name_or_the_next) {
  Service service = service_of();
  service.ip_families = kDual;
  service.cluster_ip = "10.0.0.9";
  service.cluster_ips = {"10.0.0.9"};
  TestAllocators allocators(kDual);
  EXPECT_EQ(text_of(take_cluster_ips(service, allocators)), "taken");
  EXPECT_EQ(service.cluster_ip, "10.0.0.9");
  EXPECT_THAT(service.cluster_ips, ElementsAre("10.0.0.9", "fd00::1"));
}

TEST(cluster_ips, none_for_headless_and_external_name) {
  TestAllocators allocators(kDual);
  Service headless = service_of();
  headless.cluster_ip = "None";
  headless.cluster_ips = {"None"};
  headless.ip_families = kDual;
  EXPECT_EQ(text_of(take_cluster_ips(headless, allocators)), "taken");
  Service external = service_of(ServiceType::external_name);
  EXPECT_EQ(text_of(take_cluster_ips(external, allocators)), "taken");
  EXPECT_THAT(allocators.taken, IsEmpty());
}

TEST(cluster_ips, refusals) {
  TestAllocators allocators(kDual);
  allocators.taken = {"10.0.0.5"};
  Service service = service_of();
  service.ip_families = {net::Family::v4};
  service.cluster_ip = "10.0.0.5";
  service.cluster_ips = {"10.0.0.5"};
  EXPECT_EQ(text_of(take_cluster_ips(service, allocators)),
            "The Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"10.0.0.5\"]: failed to allocate IP "
            "10.0.0.5: provided IP is already allocated");
  allocators.full = true;
  service.cluster_ips.clear();
  const auto refusal = take_cluster_ips(service, allocators);
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->status, 500);
  EXPECT_EQ(refusal->to_string(),
            "Error from server (InternalError): Internal error occurred: failed to allocate a serviceIP for Service "
            "\"a\": range is full");
}

// --- node ports of a new Service ---

TEST(node_ports, both_protocols_of_a_port_share_one) {  // [S2]
  const Take unset(node_port({port_of("t", kTcp, 53), port_of("u", kUdp, 53)}));
  EXPECT_EQ(unset.text, "taken");
  EXPECT_THAT(node_ports_of(unset.service), ElementsAre(30000, 30000));
  const Take named(node_port({port_of("t", kTcp, 53, 30053), port_of("u", kUdp, 53, 30053)}));
  EXPECT_EQ(named.text, "taken");
  EXPECT_THAT(named.allocators.ports, ElementsAre(30053));
  const Take one_named(node_port({port_of("t", kTcp, 53), port_of("u", kUdp, 53, 30053)}));
  EXPECT_THAT(node_ports_of(one_named.service), ElementsAre(30053, 30053));
  const Take different(node_port({port_of("t", kTcp, 53, 30053), port_of("u", kUdp, 53, 30054)}));
  EXPECT_THAT(different.allocators.ports, ElementsAre(30053, 30054));
}

/// kubernetes/kubernetes#135439: what an update takes can be made again from its own manifest.
TEST(node_ports, ports_of_two_protocols_may_share_a_number) {
  const Take shared(node_port({port_of("a", kTcp, 93, 30093), port_of("b", kUdp, 76, 30093)}));
  EXPECT_EQ(shared.text, "taken");
  EXPECT_THAT(node_ports_of(shared.service), ElementsAre(30093, 30093));
  EXPECT_THAT(shared.allocators.ports, ElementsAre(30093));
  const Take of_another(node_port({port_of("a", kTcp, 93, 30093), port_of("b", kUdp, 76, 30093)}), {30093});
  EXPECT_THAT(of_another.text, testing::HasSubstr("provided port is already allocated"));
}

TEST(node_ports, another_port_with_the_same_number_is_refused) {  // [S1, S3]
  const Take same_protocol(node_port({port_of("a", kTcp, 80, 30080), port_of("b", kTcp, 443, 30080)}));
  EXPECT_EQ(same_protocol.text,
            "The Service \"a\" is invalid: spec.ports[1].nodePort: Invalid value: 30080: provided port is already "
            "allocated");
}

TEST(node_ports, of_a_load_balancer_without_them) {  // [S4]
  const Take take(load_balancer({port_of("a", kTcp, 80), port_of("b", kTcp, 443, 30443)}, false));
  EXPECT_EQ(take.text, "taken");
  EXPECT_EQ(take.service.ports[0].node_port, 0);
  EXPECT_THAT(take.allocators.ports, ElementsAre(30443));
}

TEST(node_ports, none_for_other_types) {
  Service service = service_of();
  service.ports[0].node_port = 30080;
  const Take take(service);
  EXPECT_THAT(take.allocators.ports, IsEmpty());
}

TEST(node_ports, the_health_check_has_one_of_its_own) {
  Service service = load_balancer({port_of("a", kTcp, 80, 30080)});
  service.external_traffic_policy = TrafficPolicy::local;
  EXPECT_EQ(Take(service).service.health_check_node_port, 30000);
  service.health_check_node_port = 30118;
  EXPECT_THAT(Take(service).allocators.ports, ElementsAre(30080, 30118));
  service.health_check_node_port = 30080;
  EXPECT_EQ(Take(service).text,
            "Error from server (InternalError): Internal error occurred: failed to allocate requested HealthCheck "
            "NodePort 30080: provided port is already allocated");
}

TEST(node_ports, a_full_range_is_nobodys_fault) {
  Service service = node_port({port_of("a", kTcp, 80)});
  TestAllocators allocators(kDual);
  allocators.full = true;
  EXPECT_EQ(text_of(take_node_ports(service, allocators)),
            "Error from server (InternalError): Internal error occurred: failed to allocate a nodePort: range is full");
}

// --- node ports of a changed Service ---

TEST(node_ports, a_change_shares_nothing_new) {
  const Service before = node_port({port_of("x", kTcp, 9, 30009)});
  const Change unset(before, node_port({port_of("t", kTcp, 53), port_of("u", kUdp, 53)}));
  EXPECT_THAT(node_ports_of(unset.service), ElementsAre(30000, 30001));
  EXPECT_THAT(unset.allocators.given_back_ports, ElementsAre(30009));
  const Change named(before, node_port({port_of("t", kTcp, 53, 30053), port_of("u", kUdp, 54, 30053)}));
  EXPECT_EQ(named.text, "taken");
  const Change twice(before, node_port({port_of("t", kTcp, 53, 30053), port_of("u", kTcp, 54, 30053)}));
  EXPECT_EQ(twice.text, "Error from server: duplicate nodePort: {TCP 30053}");
}

TEST(node_ports, a_change_keeps_what_it_names) {
  const Service before = node_port({port_of("a", kTcp, 80, 30080), port_of("b", kTcp, 443, 30443)});
  const Change change(before, node_port({port_of("b", kTcp, 443, 30080), port_of("c", kTcp, 1, 30001)}));
  EXPECT_EQ(change.text, "taken");
  EXPECT_THAT(change.allocators.given_back_ports, ElementsAre(30443));
  const Change others(before, node_port({port_of("a", kTcp, 80, 30005)}), {30005});
  EXPECT_EQ(others.text,
            "The Service \"a\" is invalid: spec.ports[0].nodePort: Invalid value: 30005: provided port is already "
            "allocated");
}

TEST(node_ports, a_health_check_port_is_not_a_node_port) {  // [S12]
  Service before = load_balancer({port_of("", kTcp, 80, 30080)});
  before.external_traffic_policy = TrafficPolicy::local;
  before.health_check_node_port = 30118;
  Service wanted = before;
  wanted.ports[0].node_port = 30118;
  EXPECT_EQ(Change(before, wanted).text,
            "The Service \"a\" is invalid: spec.ports[0].nodePort: Invalid value: 30118: provided port is already "
            "allocated");
}

TEST(node_ports, a_health_check_comes_and_goes) {
  const Service cluster = load_balancer({port_of("", kTcp, 80, 30080)});
  Service local = cluster;
  local.external_traffic_policy = TrafficPolicy::local;
  const Change comes(cluster, local);
  EXPECT_EQ(comes.service.health_check_node_port, 30000);
  const Change goes(comes.service, cluster);
  EXPECT_THAT(goes.allocators.given_back_ports, ElementsAre(30000));
}

TEST(node_ports, a_type_without_them_gives_them_back) {
  const Service before = node_port({port_of("a", kTcp, 80, 30080), port_of("b", kUdp, 80, 30080)});
  Service wanted = service_of();
  EXPECT_THAT(Change(before, wanted).allocators.given_back_ports, ElementsAre(30080));
  wanted.type = ServiceType::external_name;
  EXPECT_THAT(Change(before, wanted).allocators.given_back_ports, ElementsAre(30080));
}

TEST(node_ports, a_load_balancer_that_stops_taking_them_keeps_them) {
  const Service before = load_balancer({port_of("a", kTcp, 80, 30080)});
  Service wanted = load_balancer({port_of("a", kTcp, 80, 30080)}, false);
  EXPECT_THAT(Change(before, wanted).allocators.given_back_ports, IsEmpty());
  wanted.ports[0].node_port = 0;
  keep_allocated_values(wanted, before);
  EXPECT_EQ(wanted.ports[0].node_port, 0);
  EXPECT_THAT(Change(before, wanted).allocators.given_back_ports, ElementsAre(30080));
}

// --- what stays ---

TEST(kept, values_that_a_manifest_does_not_name) {  // [S8]
  Service before = load_balancer({port_of("", kTcp, 80, 30093)});
  before.external_traffic_policy = TrafficPolicy::local;
  before.health_check_node_port = 30118;
  before.cluster_ip = "10.0.0.1";
  before.cluster_ips = {"10.0.0.1"};
  Service wanted = load_balancer({port_of("", kTcp, 80)});
  wanted.external_traffic_policy = TrafficPolicy::local;
  keep_allocated_values(wanted, before);
  EXPECT_EQ(wanted, before);
}

TEST(kept, node_ports_by_the_names_of_their_ports) {  // [S9, S10]
  const Service before = node_port({port_of("p", kTcp, 93, 30093), port_of("q", kTcp, 76, 30076)});
  Service swapped = node_port({port_of("q", kTcp, 76), port_of("p", kTcp, 93)});
  keep_allocated_values(swapped, before);
  EXPECT_THAT(node_ports_of(swapped), ElementsAre(30076, 30093));
  Service taken_over = node_port({port_of("p", kTcp, 93, 30076), port_of("q", kTcp, 76)});
  keep_allocated_values(taken_over, before);
  EXPECT_EQ(taken_over.ports[1].node_port, 0);
  const Change change(before, taken_over);
  EXPECT_THAT(node_ports_of(change.service), ElementsAre(30076, 30000));
  EXPECT_THAT(change.allocators.given_back_ports, ElementsAre(30093));
}

TEST(kept, nothing_by_a_type_that_has_no_use_for_it) {
  const Service before = node_port({port_of("", kTcp, 80, 30080)});
  Service wanted = service_of();
  keep_allocated_values(wanted, before);
  EXPECT_EQ(wanted.ports[0].node_port, 0);
}

// --- what goes ---

TEST(dropped, by_a_change_to_external_name) {
  Service before = load_balancer({port_of("", kTcp, 80, 30093)});
  before.external_traffic_policy = TrafficPolicy::local;
  before.health_check_node_port = 30118;
  before.load_balancer_class = "example.com/class";
  before.cluster_ip = "10.0.0.1";
  before.cluster_ips = {"10.0.0.1"};
  before.ip_families = {net::Family::v4};
  before.ip_family_policy = IpFamilyPolicy::single_stack;
  Service wanted = before;
  wanted.type = ServiceType::external_name;
  drop_values_of_type(wanted, before);
  Service expected = service_of(ServiceType::external_name);
  EXPECT_EQ(wanted, expected);
}

TEST(dropped, not_what_was_changed_at_the_same_time) {
  Service before = node_port({port_of("", kTcp, 80, 30093)});
  before.cluster_ip = "10.0.0.1";
  before.cluster_ips = {"10.0.0.1"};
  before.ip_families = {net::Family::v4};
  Service wanted = before;
  wanted.type = ServiceType::external_name;
  wanted.cluster_ip = "10.0.0.2";
  wanted.cluster_ips = {"10.0.0.2"};
  wanted.ip_families = {net::Family::v6};
  wanted.ports[0].node_port = 30094;
  wanted.external_traffic_policy = TrafficPolicy::local;
  const Service untouched = wanted;
  drop_values_of_type(wanted, before);
  EXPECT_EQ(wanted, untouched);
}

TEST(dropped, by_a_change_from_load_balancer_to_node_port) {
  Service before = load_balancer({port_of("", kTcp, 80, 30093)});
  before.external_traffic_policy = TrafficPolicy::local;
  before.health_check_node_port = 30118;
  Service wanted = before;
  wanted.type = ServiceType::node_port;
  drop_values_of_type(wanted, before);
  EXPECT_EQ(wanted.ports[0].node_port, 30093);
  EXPECT_EQ(wanted.health_check_node_port, 0);
  EXPECT_FALSE(wanted.allocate_load_balancer_node_ports);
  EXPECT_EQ(wanted.external_traffic_policy, TrafficPolicy::local);
}

}  // namespace
}  // namespace croft::core
