#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/result.h"
#include "register/owner.h"
#include "register/stock.h"
#include "store/store.h"
#include "vpc/decide/reconcile.h"
#include "vpc/provider.h"

// The keeper's needs from outside, beside the cloud (vpc/provider.h). Adapters are in vpc/door. Each may be called from
// several threads unless it says otherwise.

namespace croft::engine {

/// Asks the wire whether somebody uses an address: RFC 5227 probes for IPv4, RFC 4862 duplicate address detection for
/// IPv6 (docs/notes/warm-pool.md#arp-probe).
class AddressProbe {
 public:
  virtual ~AddressProbe() = default;

  /// Tells who has each of them, or asks for it at the same time: all of them together, in one window of time however
  /// many they are; in their order. Error: unavailable, permission_denied: nothing is known of any of them.
  [[nodiscard]] virtual Result<std::vector<core::warm::Probed>> probe(const std::vector<net::Address>& addresses,
                                                                      Deadline deadline) = 0;
  /// Says twice that they are here now (RFC 5227 §2.3, unsolicited neighbour advertisements), so that nobody goes by
  /// what was true before. Best effort.
  virtual void announce(const std::vector<net::Address>& addresses) = 0;
};

/// Another node's agent.
struct Peer {
  std::string node;
  std::string address;     ///< `10.0.0.2:7312`
  std::uint32_t free = 0;  ///< addresses in its stock, as it said last
};

/// The agents of the other nodes.
struct PeerAgents {
  /// Those that say they are of a subnet, but this node's own; also those that have none free.
  std::function<Result<std::vector<Peer>>(const std::string& subnet, Deadline deadline)> list;
  /// Asks one for an address, which becomes `mac`'s. `request` names this request: the same one gets the same address.
  /// Errors: exhausted (it has none to spare), unavailable (it did not answer at all), unknown_outcome (the cloud may
  /// have been told to move one), and what it says.
  std::function<Result<cloud::CloudAddress>(const Peer& peer, const net::Mac& mac, const std::string& subnet,
                                            const std::string& request, Deadline deadline)>
      borrow;
};

/// All pods of this node but those in its own network, apart from the stock's own records, from a source that is no
/// older than the call. An error: nothing is known.
using NodePods = std::function<Result<std::vector<core::warm::LivePod>>(Deadline deadline)>;

/// The addresses that interfaces of the host have, or that a route of it leads to by itself (a /32, a /128), by who
/// says so: a pod that may change its own namespace says there what it likes.
struct HostUse {
  std::vector<net::Address> own;                      ///< of the host's namespace
  std::vector<std::vector<net::Address>> namespaces;  ///< of each of those below `/run/netns`
};
/// Error: it could not be looked at; then nothing is known.
using HostAddresses = std::function<Result<HostUse>(Deadline deadline)>;

/// Which pods keep their address by name, and which one it is: VpcIpClaims (docs/notes/warm-pool.md#fixed-addresses).
class FixedAddresses {
 public:
  virtual ~FixedAddresses() = default;

  /// A pod's annotations.
  struct Wish {
    bool is_fixed = false;
    std::string release_time;  ///< how long it is kept after its pod's end, as Go writes a duration, or "Never"
    std::string uid{};         ///< the pod's; empty: the API does not know the pod
  };
  /// From memory where that is current, so that no API is waited for. Errors: conflict, the pod of this name is another
  /// one by now, and keeps the address; refused_by_configuration, it wants what is not served; any other: nothing is
  /// known of this pod.
  [[nodiscard]] virtual Result<Wish> wish_of(const core::PodIdentity& pod, Deadline deadline) = 0;

  struct Promise {
    net::Address address;
    std::string subnet{};           ///< empty: not said
    std::optional<net::Mac> mac{};  ///< of the interface where the pod had it last; absent: not said
  };
  /// Nothing: none was made yet. Errors: those of the API; corrupt where it names no address; not_found where the
  /// cluster has not the kind.
  [[nodiscard]] virtual Result<std::optional<Promise>> promise_to(const core::PodIdentity& pod, Deadline deadline) = 0;
  /// Says that the pod has it now; makes the promise where there is none. Errors: conflict when another address is
  /// promised to it by now; those of the API.
  [[nodiscard]] virtual Result<void> attach(const core::StockAddress& held, const Wish& wish, Deadline deadline) = 0;
  /// All addresses that are promised, whether their pods run or not, of the whole cluster. A cluster that knows no
  /// promises has none. An error: nothing is known.
  [[nodiscard]] virtual Result<std::vector<net::Address>> all_fixed(Deadline deadline) = 0;
  /// The pods of the whole cluster that live and say that they have this address, but those in their node's network. An
  /// error: nothing is known.
  [[nodiscard]] virtual Result<std::vector<core::PodIdentity>> living_with(const net::Address& address,
                                                                           Deadline deadline) = 0;
};

/// The keeper's world. References and pointers outlive it; null: there is no such thing here.
struct KeeperWorld {
  store::Store& store;
  const Clock& clock;
  Random& random;  ///< safe to call from several threads
  cloud::Provider& cloud;
  AddressProbe* probe = nullptr;  ///< null: what the cloud gives is taken for good
  PeerAgents peers{};
  NodePods pods = nullptr;
  HostAddresses host = nullptr;
  FixedAddresses* fixed = nullptr;
  /// One line for each thing that happens, without newline; never fails. From several threads.
  std::function<void(const std::string& line)> log = nullptr;
  std::function<void(const std::string& line)> warn = nullptr;  ///< the same, for troubles; null: log takes them
  /// Somebody else answers for an address of the cloud's; told once it is quarantined, `other_mac` says who. Never
  /// blocks. May be null.
  std::function<void(const core::StockAddress& address)> conflicted = nullptr;
};

}  // namespace croft::engine
