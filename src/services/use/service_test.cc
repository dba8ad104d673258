#include "services/use/service.h"

#include <rapidcheck.h>

#include <map>
#include <thread>

#include "ipam/use/test_world.h"
#include "services/use/test_services.h"

// What ipam/scenarios/testdata/services does not say of the Service transaction; numbers in brackets are rows of
// docs/notes/service-ranges.md#cases-services.

namespace croft::engine {

namespace {

using core::IpFamilyPolicy;
using core::Service;
using core::ServiceProtocol;
using core::ServiceType;
using core::TrafficPolicy;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;
using testing::UnorderedElementsAre;
using namespace std::chrono_literals;

constexpr auto kUdp = ServiceProtocol::udp;

class ServiceEngine : public testing::Test, public Services {
 protected:
  /// After everything: what the ranges say is what the Services say, and no two say the same.
  void TearDown() override { EXPECT_EQ(taken(), held()); }

  /// A change that is refused, or a dry run, leaves every record as it was.
  template <class Do>
  std::string unchanged(Do what) {
    const std::set<std::string> before = taken();
    const auto services = list_services(context).value();
    std::string said = what();
    EXPECT_EQ(taken(), before) << said;
    const auto after = list_services(context).value();
    EXPECT_EQ(after.size(), services.size());
    for (std::size_t i = 0; i < std::min(after.size(), services.size()); ++i) {
      EXPECT_EQ(after[i].revision, services[i].revision);
    }
    return said;
  }
  std::string refused(const Service& wanted) {
    return unchanged([&] { return create(wanted); });
  }
  std::string update_refused(const Service& wanted) {
    return unchanged([&] { return update(wanted); });
  }

  static Service local_balancer(const std::string& name, std::uint16_t node_port = 0, std::uint16_t health = 0) {
    Service result = service(name, ServiceType::load_balancer, {port("", 80, node_port)});
    result.external_traffic_policy = TrafficPolicy::local;
    result.external_traffic_policy_given = true;
    result.health_check_node_port = health;
    return result;
  }
};

TEST_F(ServiceEngine, ACreationFillsInWhatKubernetesDoes) {
  ASSERT_EQ(create(service("a", ServiceType::node_port)), "ok");
  const Service made = stored("a");
  EXPECT_EQ(made, last);
  EXPECT_EQ(made.uid.size(), 36U);
  EXPECT_EQ(made.created, clock.now().wall);
  EXPECT_THAT(made.cluster_ips, ElementsAre(made.cluster_ip));
  EXPECT_THAT(made.ip_families, ElementsAre(net::Family::v4));
  EXPECT_EQ(made.ip_family_policy, IpFamilyPolicy::single_stack);
  EXPECT_EQ(made.ports[0].target_port, "80");
  EXPECT_TRUE(made.external_traffic_policy_given);
  EXPECT_THAT(taken(), UnorderedElementsAre(made.cluster_ip, std::to_string(made.ports[0].node_port)));
}

TEST_F(ServiceEngine, TcpAndUdpOfOnePortShareTheirNodePort) {  // [S2, S3]
  ASSERT_EQ(create(service("a", ServiceType::node_port, {port("t", 53), port("u", 53, 0, kUdp)})), "ok");
  EXPECT_EQ(last.ports[0].node_port, last.ports[1].node_port);
  ASSERT_EQ(create(service("b", ServiceType::node_port, {port("t", 53, 30053), port("u", 53, 30053, kUdp)})), "ok");
  ASSERT_EQ(create(service("c", ServiceType::node_port, {port("t", 93, 30093), port("u", 76, 30093, kUdp)})), "ok")
      << "as an update takes it";
  EXPECT_THAT(refused(service("d", ServiceType::node_port, {port("u", 1, 30053, kUdp)})),
              HasSubstr("provided port is already allocated"));
}

TEST_F(ServiceEngine, ALoadBalancerMayDoWithoutNodePorts) {  // [S4]
  Service wanted = service("a", ServiceType::load_balancer, {port("p", 80), port("q", 443, 30443)});
  wanted.allocate_load_balancer_node_ports = false;
  ASSERT_EQ(create(wanted), "ok");
  EXPECT_EQ(last.ports[0].node_port, 0);
  EXPECT_THAT(taken(), UnorderedElementsAre(last.cluster_ip, "30443"));
}

TEST_F(ServiceEngine, ADryRunShowsWithoutDoing) {  // [S7]
  ASSERT_EQ(create(local_balancer("a")), "ok");
  dry_run = true;
  EXPECT_EQ(unchanged([&] { return create(local_balancer("b")); }), "ok");
  EXPECT_EQ(unchanged([&] { return remove("a"); }), "ok");
  Service wanted = stored("a");
  wanted.type = ServiceType::cluster_ip;
  EXPECT_EQ(unchanged([&] { return update(wanted); }), "ok");
  EXPECT_EQ(last.health_check_node_port, 0);
  EXPECT_THAT(refused(service("c", ServiceType::node_port, {port("", 80, stored("a").ports[0].node_port)})),
              HasSubstr("provided port is already allocated"));
}

TEST_F(ServiceEngine, APutOfAManifestKeepsWhatWasAllocated) {  // [S8]
  ASSERT_EQ(create(with_ip(local_balancer("a", 30093, 30118), "10.0.0.1")), "ok");
  const std::uint64_t commits = store.counts().commit;
  ASSERT_EQ(update(local_balancer("a")), "ok");
  EXPECT_EQ(last, stored("a"));
  EXPECT_EQ(last.cluster_ip, "10.0.0.1");
  EXPECT_EQ(last.ports[0].node_port, 30093);
  EXPECT_EQ(last.health_check_node_port, 30118);
  EXPECT_EQ(store.counts().commit, commits) << "nothing changed, nothing to write";
}

TEST_F(ServiceEngine, AHealthCheckPortIsNoNodePort) {  // [S12]
  ASSERT_EQ(create(local_balancer("a", 30093, 30118)), "ok");
  EXPECT_THAT(update_refused(local_balancer("a", 30118, 30118)),
              HasSubstr("spec.healthCheckNodePort: Invalid value: 30118: provided port is already allocated"));
  ASSERT_EQ(update(local_balancer("a", 30118, 30093)), "ok");
}

TEST_F(ServiceEngine, NodePortsComeAndGoWithTheType) {  // [S13]
  ASSERT_EQ(create(service("a", ServiceType::node_port, {port("", 80, 30080)})), "ok");
  const std::string ip = last.cluster_ip;
  Service wanted = last;
  wanted.type = ServiceType::cluster_ip;
  ASSERT_EQ(update(wanted), "ok");
  EXPECT_THAT(taken(), ElementsAre(ip));
  EXPECT_FALSE(last.external_traffic_policy_given);
  ASSERT_EQ(update(service("a", ServiceType::node_port)), "ok");
  EXPECT_NE(last.ports[0].node_port, 0);
  EXPECT_EQ(last.cluster_ip, ip);
}

TEST_F(ServiceEngine, AnExternalNameHoldsNothing) {  // [S14]
  ASSERT_EQ(create(with_ip(service("a"), "10.0.0.77")), "ok");
  Service wanted = service("a", ServiceType::external_name);
  wanted.external_name = "db.example.com";
  EXPECT_THAT(update_refused(with_ip(wanted, "10.0.0.78")), HasSubstr("may not be set for ExternalName services"));
  ASSERT_EQ(update(wanted), "ok");
  EXPECT_THAT(taken(), IsEmpty());
  EXPECT_THAT(last.cluster_ips, IsEmpty());
  ASSERT_EQ(update(service("a")), "ok");
  EXPECT_THAT(taken(), ElementsAre(last.cluster_ip));
}

TEST_F(ServiceEngine, OnlyTypesWithNodePortsHaveThem) {
  Service named = service("a", ServiceType::external_name, {port("", 80, 30080)});
  named.external_name = "db.example.com";
  EXPECT_THAT(refused(named), HasSubstr("spec.ports[0].nodePort: Forbidden"));
  EXPECT_THAT(refused(service("a", ServiceType::cluster_ip, {port("", 80, 30080)})), HasSubstr("Forbidden"));
}

TEST_F(ServiceEngine, WhatConcernsPortsIsChecked) {
  struct Row {
    std::vector<core::ServicePort> ports;
    const char* said;
  };
  const Row rows[] = {{{}, "spec.ports: Required value"},
                      {{port("", 0)}, "spec.ports[0].port: Invalid value: 0"},
                      {{port("a", 80), port("", 81)}, "spec.ports[1].name: Required value"},
                      {{port("a", 80), port("a", 81)}, "spec.ports[1].name: Duplicate value: \"a\""},
                      {{port("a", 80), port("b", 80)}, "spec.ports[1]: Duplicate value: 80/TCP"}};
  for (const Row& row : rows) {
    EXPECT_THAT(refused(service("a", ServiceType::cluster_ip, row.ports)), HasSubstr(row.said));
  }
}

TEST_F(ServiceEngine, AChangeOfWhatSomebodyElseChangedIsRefused) {
  ASSERT_EQ(create(service("a")), "ok");
  const auto read = get_service(context, {"default", "a"}).value();
  Service other = read->service;
  other.labels = {{"a", "b"}};
  ASSERT_EQ(update(other), "ok");
  Service mine = read->service;
  mine.labels = {{"c", "d"}};
  EXPECT_THAT(said(update_service(context, mine, ranges, {}, read->revision)),
              HasSubstr("the object has been modified; please apply your changes to the latest version"));
  const auto again = get_service(context, {"default", "a"}).value();
  EXPECT_EQ(said(update_service(context, mine, ranges, {}, again->revision)), "ok");
  EXPECT_EQ(said(update_service(context, service("b"), ranges, {})),
            "Error from server (NotFound): services \"b\" not found");
}

TEST_F(ServiceEngine, ListsAreInOrderAndOfOneNamespaceOrAll) {
  for (const char* name : {"b", "a"}) ASSERT_EQ(create(service(name)), "ok");
  Service other = service("a");
  other.name.name_space = "kube-system";
  ASSERT_EQ(create(other), "ok");
  const auto names = [&](const std::string& name_space) {
    std::vector<std::string> result;
    const auto services = list_services(context, name_space).value();
    for (const StoredService& one : services) result.push_back(one.service.name.to_string());
    return result;
  };
  EXPECT_THAT(names(""), ElementsAre("default/a", "default/b", "kube-system/a"));
  EXPECT_THAT(names("default"), ElementsAre("default/a", "default/b"));
  EXPECT_THAT(names("kube"), IsEmpty());
  EXPECT_THAT(names("a/\n"), IsEmpty());
  EXPECT_FALSE(get_service(context, {"default", "a\n"}).value());
  EXPECT_EQ(said(delete_service(context, {"default", "a/b"})),
            "Error from server (NotFound): services \"a/b\" not found");
  EXPECT_THAT(create(service("a/b")), HasSubstr("metadata.name: Invalid value: \"a/b\": must be at most 63"));
}

// --- ranges ---

TEST_F(ServiceEngine, OnAStoreOfOthersAnAbsentRangeIsAnError) {
  ranges.may_make = false;
  EXPECT_EQ(
      refused(service("a")),
      "The Service \"a\" is invalid: spec.clusterIPs: Invalid value: [\"\"]: failed to allocate IP: cannot "
      "allocate resources of type serviceipallocations at this time: there is no record serviceips; a "
      "kube-apiserver makes it when it starts, and where there is none `croft service create --make-ranges` does");
  EXPECT_THAT(
      refused(with_ip(service("a"), "10.0.0.5")),
      HasSubstr("failed to allocate IP 10.0.0.5: cannot allocate resources of type serviceipallocations at this "
                "time"));
  EXPECT_EQ(create(with_ip(service("h"), "None")), "ok");
}

TEST_F(ServiceEngine, ARangeThatIsMadeKnowsTheServicesThatAreThere) {
  ASSERT_EQ(create(with_ip(service("a", ServiceType::node_port, {port("", 80, 30080)}), "10.0.0.5")), "ok");
  for (const auto name : {core::kServiceIps, core::kServiceNodePorts}) {
    const store::Write gone{core::range_allocation_key(name), std::nullopt, store::Condition::always()};
    ASSERT_TRUE(store.commit({&gone, 1}, {}, Deadline{}));
  }
  EXPECT_THAT(create(with_ip(service("b"), "10.0.0.5")), HasSubstr("provided IP is already allocated"));
  EXPECT_THAT(create(service("b", ServiceType::node_port, {port("", 80, 30080)})),
              HasSubstr("provided port is already allocated"));
  EXPECT_EQ(create(service("b", ServiceType::node_port)), "ok");
}

TEST_F(ServiceEngine, TheStoredRangesAreReadOnce) {
  ASSERT_EQ(create(service("a")), "ok");
  Asked asked(store);
  const Context counted{asked, clock, random};
  ASSERT_EQ(said(create_service(counted, with_ip(service("b"), "10.0.0.9"), ranges)), "ok");
  const std::size_t given = asked.requests();
  asked.forget();
  ASSERT_EQ(said(create_service(counted, with_ip(service("c"), "10.0.0.10"), core::ServiceRanges())), "ok");
  for (const auto name : {core::kServiceIps, core::kSecondaryServiceIps, core::kServiceNodePorts}) {
    EXPECT_EQ(asked.reads_of(core::range_allocation_key(name)), 1U) << name;
  }
  EXPECT_EQ(asked.requests(), given) << "together with what the change itself reads";
  asked.forget();
  ASSERT_EQ(said(update_service(counted, service("c"), core::ServiceRanges())), "ok");
  EXPECT_LE(asked.reads_of(core::range_allocation_key(core::kServiceIps)), 1U);
}

TEST_F(ServiceEngine, RecordsTellTheRanges) {
  ranges = Services("10.9.0.0/16,fd00::/112", "31000-31100").ranges;
  ASSERT_EQ(create(with_ip(service("h"), "None")), "ok");
  EXPECT_EQ(store.get(core::range_allocation_key(core::kServiceIps), Deadline{}).value(), std::nullopt);
  ASSERT_EQ(create(service("a")), "ok");  // of one family and without node ports
  ranges = {};
  Service both = service("b", ServiceType::node_port, {port("", 80, 31100)});
  both.ip_family_policy = IpFamilyPolicy::require_dual_stack;
  ASSERT_EQ(create(both), "ok");
  EXPECT_THAT(last.cluster_ips, ElementsAre(StartsWith("10.9."), StartsWith("fd00::")));
}

TEST_F(ServiceEngine, ARecordWithoutARangeIsDamage) {
  core::RangeAllocation damaged;
  damaged.range = "x";
  const store::Write write{core::range_allocation_key(core::kServiceIps), damaged, store::Condition::always()};
  ASSERT_TRUE(store.commit({&write, 1}, {}, Deadline{}));
  ranges = {};
  EXPECT_THAT(create(service("a")), HasSubstr("the range of the record serviceips"));
  const store::Write gone{core::range_allocation_key(core::kServiceIps), std::nullopt, store::Condition::always()};
  ASSERT_TRUE(store.commit({&gone, 1}, {}, Deadline{}));
}

// --- lost replies, conflicts, crashes ---

class ServiceFaults : public ServiceEngine, public testing::WithParamInterface<store::Fault> {};

TEST_P(ServiceFaults, AtEachCommitNothingIsLostOrHeldTwice) {
  const bool fails = GetParam() == store::Fault::unavailable || GetParam() == store::Fault::storage_full;
  const auto next_meets_it = [&] {
    store.set_faults(store::FaultScript().on_commit(store.counts().commit + 1, GetParam()));
  };
  next_meets_it();
  std::string said = create(local_balancer("a"));
  EXPECT_EQ(said == "ok", !fails) << said;
  EXPECT_EQ(taken(), held());
  if (fails) {
    EXPECT_THAT(taken(), IsEmpty());
    ASSERT_EQ(create(local_balancer("a")), "ok");
  }
  EXPECT_EQ(taken().size(), 3U);
  const Service before = stored("a");
  next_meets_it();
  said = update(service("a"));
  EXPECT_EQ(said == "ok", !fails) << said;
  EXPECT_EQ(taken(), held());
  if (fails) {
    EXPECT_EQ(stored("a"), before);
    ASSERT_EQ(update(service("a")), "ok");
  }
  EXPECT_EQ(taken().size(), 1U);
  next_meets_it();
  said = remove("a");
  EXPECT_EQ(taken(), held());
  if (fails) {
    EXPECT_THAT(said, testing::Not("ok"));
    ASSERT_EQ(remove("a"), "ok");
  }
  EXPECT_THAT(taken(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(All, ServiceFaults,
                         testing::Values(store::Fault::lose_reply, store::Fault::lose_request, store::Fault::conflict,
                                         store::Fault::unavailable, store::Fault::storage_full));

/// The reply of the deletion is lost, and before it is decided again another Service has the name.
TEST_F(ServiceEngine, ALateDeletionLeavesTheSuccessorAlone) {
  ASSERT_TRUE(create_service(context, service("web"), ranges));
  const std::string first = get_service(context, {"default", "web"}).value()->service.cluster_ip;
  Meddler meddled(store);
  meddled.lose_reply = true;
  meddled.after_commit = [&] { ASSERT_TRUE(create_service(context, service("web"), ranges)); };
  const auto deleted = delete_service({meddled, clock, random}, {"default", "web"}, {}).value();
  ASSERT_TRUE(std::holds_alternative<core::ServiceChanged>(deleted));
  EXPECT_EQ(std::get<core::ServiceChanged>(deleted).service.cluster_ip, first);
  EXPECT_TRUE(get_service(context, {"default", "web"}).value()) << "another's";
  meddled.lose_reply = true;
  const auto again = delete_service({meddled, clock, random}, {"default", "web"}, {}).value();
  EXPECT_TRUE(std::holds_alternative<core::ServiceChanged>(again)) << "and without a successor it is no refusal";
}

// --- several at once ---

}  // namespace

// Random histories of Services against a dumb model: who holds what, and that the ranges say just that.

namespace {

using core::IpFamilyPolicy;
using core::Service;
using core::ServiceProtocol;
using core::ServiceType;

std::string any_of(std::initializer_list<const char*> texts) {
  return *rc::gen::elementOf(std::vector<std::string>(texts.begin(), texts.end()));
}

/// Small enough that values meet: 14 addresses a family, 12 ports.
Service any_service(const std::string& name) {
  Service service;
  service.name = {"default", name};
  service.type = *rc::gen::element(ServiceType::cluster_ip, ServiceType::node_port, ServiceType::load_balancer,
                                   ServiceType::external_name);
  if (*rc::gen::arbitrary<bool>()) service.selector = {{"app", name}};
  if (service.type == ServiceType::external_name) service.external_name = "db.example.com";
  const int ports = *rc::gen::inRange(0, 4);
  for (int i = 0; i < ports; ++i) {
    core::ServicePort port;
    port.name = "p" + std::to_string(*rc::gen::inRange(0, 4));
    port.protocol = *rc::gen::element(ServiceProtocol::tcp, ServiceProtocol::udp);
    port.port = *rc::gen::element<std::uint16_t>(53, 80, 443);
    port.node_port = *rc::gen::element<std::uint16_t>(0, 0, 0, 30001, 30002, 30005, 30011, 30012);
    service.ports.push_back(port);
  }
  const int ips = *rc::gen::inRange(0, 6);
  if (ips == 1) service.cluster_ips = {"None"};
  if (ips == 2) service.cluster_ips = {any_of({"10.0.0.1", "10.0.0.14", "10.0.0.15", "10.1.0.1"})};
  if (ips == 3) service.cluster_ips = {"10.0.0.2", any_of({"fd00::1", "fd00::2", "fd00::f"})};
  if (ips == 4) service.cluster_ips = {any_of({"fd00::3", "x", "fd00::1:1"})};
  if (!service.cluster_ips.empty()) service.cluster_ip = service.cluster_ips.front();
  service.ip_family_policy = *rc::gen::element<std::optional<IpFamilyPolicy>>(
      std::nullopt, IpFamilyPolicy::single_stack, IpFamilyPolicy::prefer_dual_stack,
      IpFamilyPolicy::require_dual_stack);
  if (service.type == ServiceType::load_balancer) {
    service.allocate_load_balancer_node_ports = *rc::gen::arbitrary<bool>();
    service.external_traffic_policy_given = true;
    if (*rc::gen::arbitrary<bool>()) service.external_traffic_policy = core::TrafficPolicy::local;
    if (*rc::gen::inRange(0, 3) == 0) service.health_check_node_port = 30003;
  }
  return service;
}

/// The values of one Service, said without the product's own words for it.
std::set<std::string> values_of(const Service& service) {
  std::set<std::string> values;
  if (service.type != ServiceType::external_name) {
    for (const std::string& ip : service.cluster_ips) {
      if (ip != "None") values.insert(ip);
    }
  }
  const bool has_ports = service.type == ServiceType::node_port || service.type == ServiceType::load_balancer;
  for (const core::ServicePort& port : service.ports) {
    if (has_ports && port.node_port != 0) values.insert(std::to_string(port.node_port));
  }
  if (service.health_check_node_port != 0) values.insert(std::to_string(service.health_check_node_port));
  return values;
}

/// What must be true of one Service, whatever was asked for.
void check_shape(const Service& service) {
  const bool headless = !service.cluster_ips.empty() && service.cluster_ips.front() == "None";
  const bool external = service.type == ServiceType::external_name;
  RC_ASSERT(external == service.ip_families.empty());
  RC_ASSERT(external == service.cluster_ips.empty());
  if (!external && !headless) RC_ASSERT(service.cluster_ips.size() == service.ip_families.size());
  if (!external) RC_ASSERT(service.cluster_ip == service.cluster_ips.front());
  const bool wants_port = service.type == ServiceType::node_port ||
                          (service.type == ServiceType::load_balancer && *service.allocate_load_balancer_node_ports);
  std::set<std::pair<ServiceProtocol, int>> seen;
  for (const core::ServicePort& port : service.ports) {
    if (wants_port) RC_ASSERT(port.node_port != 0);
    const bool is_new = port.node_port == 0 || seen.emplace(port.protocol, port.node_port).second;
    RC_ASSERT(is_new);
  }
  const bool local = service.external_traffic_policy_given &&
                     service.external_traffic_policy == core::TrafficPolicy::local &&
                     service.type == ServiceType::load_balancer;
  RC_ASSERT(local == (service.health_check_node_port != 0));
}

store::Fault any_fault() {
  return *rc::gen::element(store::Fault::lose_reply, store::Fault::lose_request, store::Fault::conflict,
                           store::Fault::unavailable, store::Fault::storage_full);
}

TEST(ServiceProperty, RangesSayWhatServicesHoldAfterAnyHistory) {
  EXPECT_TRUE(rc::check([] {
    Services world("10.0.0.0/28,fd00::/124", "30001-30012");
    std::map<std::string, Service> model;
    const int steps = *rc::gen::inRange(1, 50);
    for (int i = 0; i < steps; ++i) {
      const std::string name = "s" + std::to_string(*rc::gen::inRange(0, 8));
      const bool faulty = *rc::gen::inRange(0, 5) == 0;
      if (faulty) {
        world.store.set_faults(store::FaultScript().on_commit(world.store.counts().commit + 1, any_fault()));
      }
      world.dry_run = *rc::gen::inRange(0, 8) == 0;
      const int what = *rc::gen::inRange(0, 5);
      const bool existed = model.contains(name);
      std::string said;
      if (what == 0) {
        said = world.remove(name);
        if (said == "ok" && !world.dry_run) model.erase(name);
      } else {
        said = what < 3 ? world.create(any_service(name)) : world.update(any_service(name));
        if (said == "ok" && !world.dry_run) model[name] = world.last;
      }
      const bool is_kept = said != "ok" || (what != 1 && what != 2) || !existed;
      RC_ASSERT(is_kept);
      world.store.set_faults({});
      world.dry_run = false;
      if (faulty && said != "ok") {
        // A fault may have come after the decision was on disk: what is stored counts.
        model.clear();
        const auto stored = list_services(world.context).value();
        for (const StoredService& one : stored) model[one.service.name.name] = one.service;
      }
      std::set<std::string> held;
      for (const auto& [its_name, service] : model) {
        RC_ASSERT(world.stored(its_name) == service);
        check_shape(service);
        for (const std::string& value : values_of(service)) {
          const bool is_alone = held.insert(value).second;
          RC_ASSERT(is_alone);
        }
      }
      RC_ASSERT(list_services(world.context)->size() == model.size());
      RC_ASSERT(world.taken() == held);
    }
  }));
}

}  // namespace

}  // namespace croft::engine
