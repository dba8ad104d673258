#include "services/decide/changes.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "base/manual_clock.h"
#include "base/net/test_values.h"
#include "register/test_register.h"
#include "services/decide/mapped_range.h"
#include "services/decide/test_service.h"

namespace croft::core {
namespace {

/// What is said of a Service: "ok", "Invalid", "InternalError", … or an error's code.
std::string said(const Result<Plan<ServiceAnswer>>& plan) {
  if (!plan) return std::string(name_of(plan.error().code));
  const auto* refusal = std::get_if<ServiceRefusal>(&plan->answer);
  return refusal != nullptr ? refusal->reason : "ok";
}

/// A cluster with 10.96.0.0/28 and the ports 30000 to 30003, whose ranges are made by their first use.
class ServiceChanges : public testing::Test {
 protected:
  ServiceChanges() {
    ranges.cidrs.primary = prefix("10.96.0.0/28");
    ranges.node_ports = service::NodePortRange::parse("30000-30003").value();
    ranges.may_make = true;
  }
  static Service named(const char* name, ServiceType type = ServiceType::cluster_ip) {
    Service service = service_of(type);
    service.name.name = name;
    return service;
  }
  static Service with_ip(Service service, const char* address) {
    service.cluster_ip = address;
    return service;
  }
  static Service with_port(Service service, std::uint16_t node_port) {
    service.ports.front().node_port = node_port;
    return service;
  }
  Result<Plan<ServiceAnswer>> create(const Service& wanted) {
    return reg.plan<ServiceAnswer>(
        [&](const Snapshot& s) { return plan_create_service(s, wanted, ranges, options, clock.now(), random); });
  }
  Result<Plan<ServiceAnswer>> update(const Service& wanted, const std::optional<Service>& as_read = {}) {
    return reg.plan<ServiceAnswer>(
        [&](const Snapshot& s) { return plan_update_service(s, wanted, as_read, ranges, options, random); });
  }
  Result<Plan<ServiceAnswer>> drop(const ServiceName& name) {
    return reg.plan<ServiceAnswer>([&](const Snapshot& s) { return plan_delete_service(s, name, options, random); });
  }
  void make(const Service& wanted) {
    const auto plan = create(wanted);
    ASSERT_EQ(said(plan), "ok");
    reg.apply(plan->writes);
  }
  [[nodiscard]] const Service& stored(const char* name) const { return *reg.get(service_key({"default", name})); }
  template <class M>
  [[nodiscard]] std::set<std::string> taken(std::string_view name) const {
    std::set<std::string> result;
    const auto* record = reg.get(range_allocation_key(name));
    if (record == nullptr) return result;
    const auto restored = service::range_from<M>({record->range, record->data});
    EXPECT_TRUE(restored);
    restored->range.for_each_taken([&](const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int>) {
        result.insert(std::to_string(value));
      } else {
        result.insert(value.to_string());
      }
    });
    return result;
  }
  /// What the ranges say is taken is what the Services hold.
  void expect_ranges_agree(const std::string& where) const {
    std::set<std::string> addresses, ports;
    for (const auto& [key, value] : reg.records()) {
      const auto* service = std::get_if<Service>(&value);
      if (service == nullptr) continue;
      for (const std::string& one : service->cluster_ips) {
        if (one != kHeadless) addresses.insert(one);
      }
      for (const ServicePort& port : service->ports) {
        if (port.node_port != 0) ports.insert(std::to_string(port.node_port));
      }
    }
    EXPECT_EQ(taken<service::ServiceCidr>(kServiceIps), addresses) << where;
    EXPECT_EQ(taken<service::NodePortRange>(kServiceNodePorts), ports) << where;
  }

  TestRegister reg;
  ManualClock clock;
  SeededRandom random{1};
  ServiceRanges ranges;
  ServiceOptions options;
};

TEST_F(ServiceChanges, AServiceIsMadeTogetherWithWhatItHolds) {
  using Type = ServiceType;
  struct Row {
    const char* what;
    Service wanted;
    bool may_make;
    const char* dry;  ///< said of a dry run, which sees addresses as Kubernetes shows them to one
    const char* said;
    std::size_t writes;  ///< the Service, and ranges
  };
  const Row rows[] = {
      {"an address", named("a"), true, "ok", "ok", 2},
      {"an address and a port", named("a", Type::node_port), true, "ok", "ok", 3},
      {"this address", with_ip(named("a"), "10.96.0.9"), true, "ok", "ok", 2},
      {"an address somebody has", with_ip(named("a"), "10.96.0.3"), true, "ok", "Invalid", 0},
      {"an address of elsewhere", with_ip(named("a"), "10.97.0.1"), true, "Invalid", "Invalid", 0},
      {"this port", with_port(named("a", Type::node_port), 30002), true, "ok", "ok", 3},
      {"a port somebody has", with_port(named("a", Type::node_port), 30001), true, "Invalid", "Invalid", 0},
      {"headless", with_ip(named("a"), "None"), true, "ok", "ok", 1},
      {"a name that is there", named("held"), true, "AlreadyExists", "AlreadyExists", 0},
      {"a name that is none", named("-"), true, "Invalid", "Invalid", 0},
      {"a range that is not made here", named("a"), false, "ok", "Invalid", 0},
  };
  for (const Row& row : rows) {
    reg = TestRegister();
    ranges.may_make = true;
    options = {};
    if (row.may_make) make(with_port(with_ip(named("held", Type::node_port), "10.96.0.3"), 30001));
    ranges.may_make = row.may_make;
    options.dry_run = true;
    const auto dry = create(row.wanted);
    EXPECT_EQ(said(dry), row.dry) << row.what;
    if (dry) {
      EXPECT_TRUE(dry->writes.empty()) << row.what;
    }
    options.dry_run = false;
    const auto plan = create(row.wanted);
    EXPECT_EQ(said(plan), row.said) << row.what;
    if (!plan) continue;
    EXPECT_EQ(plan->writes.size(), row.writes) << row.what;
    reg.apply(plan->writes);
    expect_ranges_agree(row.what);
  }
}

TEST_F(ServiceChanges, AReplacedServiceKeepsWhatItDoesNotName) {
  using Type = ServiceType;
  struct Row {
    const char* what;
    Service wanted;
    bool stale;
    const char* said;
    std::size_t writes;
  };
  Service other_port = named("a", Type::node_port);
  other_port.ports.front().port = 81;
  Service labelled = named("a", Type::node_port);
  labelled.labels = {{"x", "y"}};
  const Row rows[] = {
      {"unknown", named("b"), false, "NotFound", 0},
      {"as it is", named("a", Type::node_port), false, "ok", 0},
      {"a label", labelled, false, "ok", 1},
      {"read before somebody changed it", labelled, true, "Conflict", 0},
      {"another address", with_ip(named("a", Type::node_port), "10.96.0.9"), false, "Invalid", 0},
      {"another node port", with_port(named("a", Type::node_port), 30003), false, "ok", 2},
      {"no node port any more", named("a"), false, "ok", 2},
      {"no address any more",
       [] {
         Service service = named("a", Type::external_name);
         service.external_name = "x.example";
         return service;
       }(),
       false, "ok", 3},
  };
  for (const Row& row : rows) {
    reg = TestRegister();
    make(with_port(with_ip(named("a", Type::node_port), "10.96.0.3"), 30001));
    const Service before = stored("a");
    std::optional<Service> as_read;
    if (row.stale) {
      as_read = before;
      as_read->labels = {{"old", ""}};
    }
    const auto plan = update(row.wanted, as_read);
    EXPECT_EQ(said(plan), row.said) << row.what;
    if (!plan) continue;
    EXPECT_EQ(plan->writes.size(), row.writes) << row.what;
    reg.apply(plan->writes);
    EXPECT_EQ(stored("a").uid, before.uid) << row.what;
    expect_ranges_agree(row.what);
  }
}

TEST_F(ServiceChanges, ADeletedServiceGivesBackWhatItHoldsAndNothingElse) {
  using Type = ServiceType;
  struct Row {
    const char* what;
    ServiceName name;
    bool dry_run;
    const char* said;
    std::size_t writes;
  };
  const Row rows[] = {{"an address and a port", {"default", "a"}, false, "ok", 3},
                      {"only told", {"default", "a"}, true, "ok", 0},
                      {"an address", {"default", "b"}, false, "ok", 2},
                      {"nothing", {"default", "headless"}, false, "ok", 1},
                      {"unknown", {"default", "c"}, false, "NotFound", 0},
                      {"no name", {"default", "../a"}, false, "NotFound", 0}};
  for (const Row& row : rows) {
    reg = TestRegister();
    options = {};
    make(named("a", Type::node_port));
    make(named("b"));
    make(with_ip(named("headless"), "None"));
    options.dry_run = row.dry_run;
    const auto plan = drop(row.name);
    EXPECT_EQ(said(plan), row.said) << row.what;
    if (!plan) continue;
    EXPECT_EQ(plan->writes.size(), row.writes) << row.what;
    reg.apply(plan->writes);
    expect_ranges_agree(row.what);
  }
}

TEST_F(ServiceChanges, KubernetesOwnServiceComesWithTheRange) {
  options.with_kubernetes_service = true;
  make(named("a"));
  EXPECT_EQ(stored("kubernetes").cluster_ip, "10.96.0.1");
  expect_ranges_agree("with the first");
  make(named("b"));
  expect_ranges_agree("and not again");
}

}  // namespace
}  // namespace croft::core
