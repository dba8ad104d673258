#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "base/net/address.h"
#include "base/result.h"
#include "collector/decide/facts.h"
#include "ipam/audit/runtime_comparison.h"
#include "ipam/use/inspect.h"
#include "ipam/use/transact.h"

namespace croft::engine {

/// The signs of life that a command could learn outside the register. Any of it may be missing.
struct LifeKnown {
  core::audit::Runtime runtime{};                  ///< what a node's runtime knows, and the running pods of a cluster
  std::map<net::Address, std::string> configured;  ///< on interfaces of this machine, and where
  /// Asks a cluster for one pod, as new as can be; null where there is none.
  std::function<Result<std::optional<core::collect::PodFact>>(const std::string& namespace_name,
                                                              const std::string& name)>
      find_pod{};
  /// The nodes of that cluster, by a list that has all; absent where they are not known.
  std::optional<core::collect::Facts> nodes{};
};

/// Whether the holder of an address lives.
struct HolderLife {
  enum class State : std::uint8_t {
    gone,     ///< proven: its address may be given to others
    unknown,  ///< nothing proves it
    lives,    ///< something shows that the address is in use
  } state = State::unknown;
  /// A clause. With `unknown`: why nothing proves it, empty where nobody was asked. With `lives`: the statement about
  /// the address, "is configured on eth0". Empty for `gone`.
  std::string why{};
};

/// Judges an address that is held. The holder lives when the address is on an interface or reported by a pod, when the
/// runtime has its container, or when its pod is there. It is gone when the runtime does not know its container, or
/// only with a network namespace that is gone. It is gone when an operator removed its node since, or when its pod is
/// not there, was evicted or has another UID. A tunnel's address is gone when the cluster does not have its node. The
/// runtime outweighs the other proofs. Errors: of the store, and of `find_pod`.
[[nodiscard]] Result<HolderLife> life_of_holder(const Context& context, const AddressView& held,
                                                const LifeKnown& known);

}  // namespace croft::engine
