#pragma once

#include <string>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "os/ip_bytes.h"
#include "os/neighbour_probe.h"
#include "vpc/use/warm_ports.h"

namespace croft::edge {

/// Asks the Ethernet of one interface of this host (os/neighbour_probe.h). Needs CAP_NET_RAW, and the host's network
/// namespace.
class WireProbe final : public engine::AddressProbe {
 public:
  /// `clock` and `random` outlive it; `random` may be drawn from several threads.
  WireProbe(std::string interface_name, const os::ProbeTiming& timing, const Clock& clock, Random& random)
      : interface_name_(std::move(interface_name)), timing_(timing), clock_(clock), random_(random) {}

  /// Takes one window at most, beside what a slow interface needs. More than os::kProbedMax are asked for in
  /// several windows, one after the other. Errors also: invalid_argument, not_found, deadline_exceeded, as
  /// os::probe_neighbours() has them; nothing is known of any of them then either.
  [[nodiscard]] Result<std::vector<Answer>> probe(const std::vector<net::Address>& addresses,
                                                  Deadline deadline) override;
  /// Waits between one saying and the next, `timing.announce_interval`: to be called where that is no harm.
  void announce(const std::vector<net::Address>& addresses) override;

 private:
  const std::string interface_name_;
  const os::ProbeTiming timing_;
  const Clock& clock_;
  Random& random_;
};

/// The same address as packets carry it. It must be valid.
[[nodiscard]] os::IpBytes to_bytes(const net::Address& address);
[[nodiscard]] net::Address from_bytes(const os::IpBytes& bytes);

}  // namespace croft::edge
