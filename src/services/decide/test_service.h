#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "register/service.h"
#include "services/decide/allocators.h"
#include "services/decide/service_refusal.h"

namespace croft::core {

inline constexpr auto kTcp = ServiceProtocol::tcp;
inline constexpr auto kUdp = ServiceProtocol::udp;

/// Allocators that count up and remember: 10.0.0.1 and fd00::1 first, ports from 30000.
class TestAllocators : public Allocators {
 public:
  explicit TestAllocators(std::vector<net::Family> families) : families_(std::move(families)) {}

  [[nodiscard]] const std::vector<net::Family>& families() const override { return families_; }
  [[nodiscard]] std::optional<NotTaken> take(const net::Address& address) override {
    if (taken.insert(address.to_string()).second) return std::nullopt;
    return NotTaken{"provided IP is already allocated"};
  }
  [[nodiscard]] TakenOr<net::Address> take_next(net::Family family) override {
    if (full) return NotTaken{"range is full", true};
    const net::Address base =
        family == net::Family::v4 ? net::Address::v4(0x0a000001) : net::parse_address("fd00::1").value();
    for (std::uint64_t i = 0;; ++i) {
      const net::Address address = base.offset_by(i).value();
      if (taken.insert(address.to_string()).second) return address;
    }
  }
  void give_back(const net::Address& address) override { given_back.insert(address.to_string()); }
  [[nodiscard]] std::optional<NotTaken> take_port(std::uint16_t port) override {
    if (ports.insert(port).second) return std::nullopt;
    return NotTaken{"provided port is already allocated"};
  }
  [[nodiscard]] TakenOr<std::uint16_t> take_next_port() override {
    if (full) return NotTaken{"range is full", true};
    std::uint16_t port = 30000;
    while (!ports.insert(port).second) ++port;
    return port;
  }
  void give_back_port(std::uint16_t port) override { given_back_ports.insert(port); }

  bool full = false;
  std::set<std::string> taken, given_back;
  std::set<std::uint16_t> ports, given_back_ports;

 private:
  std::vector<net::Family> families_;
};

[[nodiscard]] inline Service service_of(ServiceType type = ServiceType::cluster_ip) {
  Service service;
  service.name = {"default", "a"};
  service.type = type;
  service.selector = {{"app", "a"}};
  ServicePort port;
  port.port = 80;
  port.target_port = "80";
  service.ports = {port};
  return service;
}

[[nodiscard]] inline ServicePort port_of(const std::string& name, ServiceProtocol protocol, std::uint16_t port,
                                         std::uint16_t node_port = 0) {
  ServicePort result;
  result.name = name;
  result.protocol = protocol;
  result.port = port;
  result.target_port = std::to_string(port);
  result.node_port = node_port;
  return result;
}

[[nodiscard]] inline std::vector<std::string> texts(const FieldErrors& errors) {
  std::vector<std::string> result;
  for (const FieldError& error : errors) result.push_back(error.to_string());
  return result;
}

}  // namespace croft::core
