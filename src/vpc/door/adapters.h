#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "collector/decide/facts.h"
#include "os/neighbour_probe.h"
#include "vpc/use/stock_sources.h"

namespace croft::edge {

/// Asks the Ethernet of one interface of this host (os/neighbour_probe.h). Needs CAP_NET_RAW, and the host's network
/// namespace.
class WireProbe final : public engine::AddressProbe {
 public:
  struct Wire {
    std::string interface;  ///< its name; empty: the one with the MAC that `mac` tells
    std::function<Result<net::Mac>(Deadline deadline)> mac{};
    std::chrono::milliseconds unit{1000};  ///< PROBE_WAIT of RFC 5227; scales the whole window
  };
  /// `clock` and `random` outlive it; `random` may be drawn from several threads.
  WireProbe(Wire wire, const Clock& clock, Random& random) : wire_(std::move(wire)), clock_(clock), random_(random) {}

  /// Takes one window at most, beside what a slow interface needs. More than os::kProbedMax are asked for in
  /// several windows, one after the other. Errors also: invalid_argument, not_found, deadline_exceeded, as
  /// os::probe_neighbours() has them; nothing is known of any of them then either.
  [[nodiscard]] Result<std::vector<core::warm::Probed>> probe(const std::vector<net::Address>& addresses,
                                                              Deadline deadline) override;
  /// Waits between one saying and the next: to be called where that is no harm.
  void announce(const std::vector<net::Address>& addresses) override;

 private:
  [[nodiscard]] Result<std::string> name(Deadline deadline) const;
  [[nodiscard]] os::ProbeTiming timing() const;

  const Wire wire_;
  const Clock& clock_;
  Random& random_;
};

/// The addresses that the kernel of this host has (os/interfaces.h). Needs CAP_SYS_ADMIN, the host's network
/// namespace, and its /run/netns. Errors: permission_denied, unavailable, deadline_exceeded.
[[nodiscard]] Result<engine::HostUse> host_use(const Clock& clock, Deadline deadline);

/// Lists pods, as store::kube::for_each_pod_of_node() does: `begin` once a list begins (anew), `take` for each.
using ListPods = std::function<Result<void>(const std::function<void()>& begin,
                                            const std::function<void(const core::collect::PodFact&)>& take)>;
/// Such a list as the stock's keeper needs it. Addresses that cannot be understood, as an annotation may hold any, are
/// left out; the pod is not. Errors: of the list.
[[nodiscard]] Result<std::vector<core::warm::LivePod>> live_pods(const ListPods& list);

}  // namespace croft::edge
