#pragma once

#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "register/test_register.h"
#include "vpc/decide/assign.h"
#include "vpc/decide/supply.h"

namespace croft::core::warm {

// For tests.

inline const net::Mac kOwnMac = net::Mac::parse("52:54:00:00:00:01").value();
inline const net::Mac kOtherMac = net::Mac::parse("52:54:00:00:00:02").value();
inline constexpr std::chrono::seconds kCooldown{30};

[[nodiscard]] inline net::Address address_of(const std::string& text) { return net::Address::parse(text).value(); }

[[nodiscard]] inline Given given(const std::string& text, bool verified = false, std::string subnet = "subnet-1") {
  Given given;
  given.address = net::Address::parse(text).value();
  given.prefix_length = given.address.is_v4() ? 24 : 64;
  given.mac = kOwnMac;
  given.vpc = "uvnet-1";
  given.subnet = std::move(subnet);
  given.verified = verified;
  return given;
}

[[nodiscard]] inline Request request_of(const std::string& container, const std::string& pod = "",
                                        const std::string& uid = "") {
  Request request;
  request.owner = {"net", container, "eth0"};
  request.pod = {pod.empty() ? container : pod, "shop", uid};
  request.netns = "/run/netns/" + container;
  request.cooldown = kCooldown;
  return request;
}

/// A stock without a store, with a clock that is moved by hand.
struct TestStock {
  ManualClock clock;
  TestRegister records;

  /// Decides by a plan with its arguments (planned).
  template <class P, class... Arguments>
  auto decide(const P& plan, const Arguments&... arguments) {
    using Planned = decltype(planned(plan, std::declval<const Snapshot&>(), clock.now(), arguments...));
    return records.decide<decltype(std::variant_alternative_t<1, Planned>::answer)>(
        [&](const Snapshot& snapshot) { return planned(plan, snapshot, clock.now(), arguments...); });
  }
  void take(const std::vector<Given>& given) {
    const auto moved = decide(plan_take, std::string(), given);
    EXPECT_TRUE(moved) << moved.error().message;
  }
  [[nodiscard]] Result<Answer> assign(const Request& request) { return decide(plan_assign, request); }
  /// Its address; empty when there is none.
  [[nodiscard]] std::string address_for(const Request& request) {
    const auto answer = assign(request);
    EXPECT_TRUE(answer) << answer.error().message;
    const auto* assigned = answer ? std::get_if<Assigned>(&*answer) : nullptr;
    return assigned != nullptr ? assigned->address.address.to_string() : "";
  }
  /// How many addresses were let go.
  std::size_t release(const Release& release) {
    const auto let_go = decide(plan_release, release);
    EXPECT_TRUE(let_go) << let_go.error().message;
    return let_go ? let_go->size() : 0;
  }
  std::size_t release(const std::string& container) { return release({{"net", container, "eth0"}, {}, {}, kCooldown}); }
  [[nodiscard]] const StockAddress* find(const std::string& text) const {
    return records.get(warm_address_key(net::Address::parse(text).value()));
  }
  [[nodiscard]] std::vector<StockAddress> all() const {
    std::vector<StockAddress> all;
    for (const auto& [key, value] : records.records()) {
      if (const auto* address = std::get_if<StockAddress>(&value)) all.push_back(*address);
    }
    return all;
  }
  [[nodiscard]] Counts counts() {
    Counts counts = counts_of(all(), clock.now());
    for (const auto& [key, value] : records.records()) {
      if (const auto* intent = std::get_if<StockIntent>(&value)) counts.asked += intent->count;
    }
    return counts;
  }
};

}  // namespace croft::core::warm
