#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/net/address.h"
#include "ipam/decide/quarantine.h"
#include "ipam/use/transact.h"
#include "register/affinity.h"
#include "register/block.h"

namespace croft::engine {

/// How long nobody must have been seen with an address in quarantine before it is given back, if nobody says otherwise.
inline constexpr std::chrono::minutes kQuarantineHold{15};

/// What an ADD on the node found and the node's own blocks have in quarantine. A block that is damaged is passed over:
/// others tell of it.
[[nodiscard]] Result<std::vector<core::InQuarantine>> quarantined_by(const Context& context,
                                                                     const core::AffinityOwner& node);

/// Gives back what is in quarantine (register/quarantine.h) once nobody lives with it any more. Only the node that
/// found it can tell: no list of pods has a pod's second interface, a static pod without a mirror, or what a kubelet
/// that is away leaves running.
class QuarantineKeeper {
 public:
  /// The device that leads to somebody who lives with an address on this node, as its kernel says; nothing: nobody is
  /// seen.
  using DeviceOf = std::function<Result<std::optional<std::string>>(const net::Address& address)>;

  /// `hold`: how long nobody must have been seen with it, in each look of all that time.
  QuarantineKeeper(core::AffinityOwner node, std::chrono::nanoseconds hold) : node_(std::move(node)), hold_(hold) {}

  /// One look at what this node found and its own blocks have; what it found in another node's block is not seen. It
  /// reads what `memory` has of the context's store, which may be behind: a release says whose and which it means.
  /// Answers with what was given back. Errors: those of the store and of `device_of`; what the looks before saw is kept
  /// then, and what this one saw counts.
  [[nodiscard]] Result<std::vector<net::Address>> look(const Context& context, store::Store& memory,
                                                       const DeviceOf& device_of);

 private:
  struct Unseen {
    core::SequenceNumber sequence;
    std::chrono::nanoseconds since_boot{};
  };
  const core::AffinityOwner node_;
  const std::chrono::nanoseconds hold_;
  std::map<net::Address, Unseen> unseen_;  ///< since when nobody is seen
};

}  // namespace croft::engine
