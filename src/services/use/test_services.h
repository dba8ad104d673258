#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "register/service.h"
#include "services/use/service.h"
#include "store/memory/memory_store.h"

namespace croft::engine {

/// A store in memory with ranges for Services, and short words for what tests do with them.
struct Services {
  explicit Services(const char* cidrs = "10.0.0.0/24", const char* ports = "30000-32767") {
    ranges.cidrs = core::service::parse_service_cidrs(cidrs).value();
    ranges.node_ports = core::service::NodePortRange::parse(ports).value();
    ranges.may_make = true;
  }
  store::MemoryStore store;
  ManualClock clock;
  SeededRandom random{1};
  Context context{store, clock, random};
  core::ServiceRanges ranges;
  bool dry_run = false;
  core::Service last;              ///< of the last change that was "ok"
  std::vector<std::string> notes;  ///< likewise

  static core::ServicePort port(const std::string& name, std::uint16_t number, std::uint16_t node_port = 0,
                                core::ServiceProtocol protocol = core::ServiceProtocol::tcp) {
    core::ServicePort result;
    result.name = name;
    result.protocol = protocol;
    result.port = number;
    result.node_port = node_port;
    return result;
  }
  static core::Service service(const std::string& name, core::ServiceType type = core::ServiceType::cluster_ip,
                               std::vector<core::ServicePort> ports = {port("", 80)}) {
    core::Service result;
    result.name = {"default", name};
    result.type = type;
    result.selector = {{"app", name}};
    result.ports = std::move(ports);
    return result;
  }
  static core::Service with_ip(core::Service service, const std::string& ip) {
    service.cluster_ip = ip;
    return service;
  }

  /// "ok", or the refusal as kubectl prints it, or "CODE: message" of a fault.
  std::string said(const Result<core::ServiceAnswer>& answer) {
    if (!answer) return std::string(name_of(answer.error().code)) + ": " + answer.error().message;
    if (const auto* refusal = std::get_if<core::ServiceRefusal>(&*answer)) return refusal->to_string();
    last = std::get<core::ServiceChanged>(*answer).service;
    notes = std::get<core::ServiceChanged>(*answer).notes;
    return "ok";
  }
  std::string create(const core::Service& wanted) { return said(create_service(context, wanted, ranges, dry_run)); }
  std::string update(const core::Service& wanted) { return said(update_service(context, wanted, ranges, dry_run)); }
  std::string remove(const std::string& name) { return said(delete_service(context, {"default", name}, dry_run)); }

  core::Service stored(const std::string& name) {
    const auto found = get_service(context, {"default", name}).value();
    EXPECT_TRUE(found) << name;
    return found ? found->service : core::Service();
  }

  template <class M>
  std::set<std::string> taken_in(std::string_view name) {
    std::set<std::string> result;
    const auto record = store.get(core::range_allocation_key(name), Deadline{}).value();
    if (!record) return result;
    const auto& range = std::get<core::RangeAllocation>(*record->value);
    const auto restored = core::service::range_from<M>(range);
    EXPECT_TRUE(restored) << range.range;
    if (!restored) return result;
    EXPECT_EQ(restored->beyond, 0U);
    restored->range.for_each_taken([&](const auto& value) {
      if constexpr (std::is_same_v<std::decay_t<decltype(value)>, int>) {
        result.insert(std::to_string(value));
      } else {
        result.insert(value.to_string());
      }
    });
    return result;
  }
  /// All that the three ranges say is taken.
  std::set<std::string> taken() {
    std::set<std::string> all = taken_in<core::service::ServiceCidr>(core::kServiceIps);
    all.merge(taken_in<core::service::ServiceCidr>(core::kSecondaryServiceIps));
    all.merge(taken_in<core::service::NodePortRange>(core::kServiceNodePorts));
    return all;
  }
  /// What the Services say they hold; fails when two hold the same.
  std::set<std::string> held() {
    std::set<std::string> all;
    const auto services = list_services(context);
    EXPECT_TRUE(services);
    for (const StoredService& one : *services) {
      for (const auto& address : core::addresses_of(one.service)) {
        EXPECT_TRUE(all.insert(address.to_string()).second) << address.to_string() << " is held twice";
      }
      for (const auto number : core::held_node_ports_of(one.service)) {
        EXPECT_TRUE(all.insert(std::to_string(number)).second) << number << " is held twice";
      }
    }
    return all;
  }
};

}  // namespace croft::engine
