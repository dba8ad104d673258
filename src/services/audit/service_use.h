#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/family.h"
#include "register/service.h"

namespace croft::core::audit {

/// What a repair needs of a Service: a hundred thousand of them are kept at once.
struct ServiceUse {
  struct NodePort {
    ServiceProtocol protocol = ServiceProtocol::tcp;
    std::uint16_t number = 0;
  };
  ServiceName name;
  WallTime created{};
  ServiceType type = ServiceType::cluster_ip;
  std::vector<std::string> cluster_ips;  ///< as written, `None` left out: maybe no addresses at all
  std::vector<NodePort> node_ports;      ///< of its ports, in their order; those without a number are left out
  std::uint16_t health_check_node_port = 0;
  /// Croft's own beside a Kubernetes: where addresses are IPAddress objects none can be its.
  bool beside_kubernetes = false;
  std::string uid{};
};

[[nodiscard]] ServiceUse use_of(const Service& service);

/// Whether a text that is no address may stand for one of the family: which one nobody can tell, so nothing of the
/// family is freed. `None` and the empty text stand for nothing.
[[nodiscard]] bool may_mean_one_of(net::Family family, const std::string& unreadable);

/// The numbers that count as its own (docs/notes/service-ranges.md#repair-ports). One that two protocols share
/// occurs once; one that it has twice in the same protocol occurs twice. The health check's is TCP: next to a port of
/// another protocol with that number it is left out.
[[nodiscard]] std::vector<std::uint16_t> collect_node_ports(const ServiceUse& use);

}  // namespace croft::core::audit
