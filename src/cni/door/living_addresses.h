#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/decide/assign.h"
#include "store/store.h"

// After the register was put back to an older state it has as free what living pods have. The kernel of the node knows
// those of its own: an ADD asks it of each address that it got, and puts what lives in quarantine
// (register/quarantine.h).

namespace croft::edge {

/// What a personality has to ask with; `app` fills it in.
struct LivingProbe {
  /// The device that leads to somebody who lives with the address on this node (os/host_route.h); nothing: nobody is
  /// seen. Empty: nobody is asked.
  std::function<Result<std::optional<std::string>>(const net::Address& address)> device_of = nullptr;
  /// How a pause is made; empty: the thread sleeps.
  std::function<void(std::chrono::nanoseconds)> pause_by = nullptr;
};

/// An answer to an ADD, and what is known of its making.
struct AssignedOnce {
  core::Assigned assigned;
  /// An earlier part of the same call may have assigned it: then nobody knows of what is held before the call.
  bool may_be_of_this_call = false;
};

/// An ADD with everything that it takes to make it, and make it again.
struct LivingAdd {
  const LivingProbe& probe;
  const Clock& clock;
  Random& random;
  core::Owner owner;
  std::string node;
  std::vector<net::Address> wanted;  ///< exactly, as far as known here
  std::function<Result<AssignedOnce>()> assign;
  std::function<Result<std::unique_ptr<store::Store>>()> open_store;
  std::function<void(const std::string& what)> warn;
  /// Whether the node's agent answered: then it looks after what is in quarantine (ipam/use/quarantine.h).
  std::function<bool()> has_agent;
};

/// How many addresses one ADD passes over. Each of them is in quarantine then, so that the next ADD goes on behind
/// them.
inline constexpr int kLivingMax = 16;
/// How long a route is looked at before it counts: of an address that was just released it goes a moment later.
inline constexpr std::chrono::milliseconds kLivingLookTime{500};

/// Assigns what nobody lives with on this node, as far as its kernel knows: where it knows of nobody, that is one
/// question an address and nothing else. What was held before the call is not asked about: it may be the caller's own.
/// Where the kernel can't be asked it goes on without, and warns.
/// Where no address is left, and there is no agent, what this node put in quarantine engine::kQuarantineHold ago and
/// nobody lives with any more is given back, once, and it goes on.
/// Errors: those of the assignment; unavailable, naming address, device and what to do, when a wanted address lives,
/// when more than kLivingMax do, or one can't be put in quarantine. What else this call assigned is given back then.
[[nodiscard]] Result<core::Assigned> assign_past_living(const LivingAdd& add);

}  // namespace croft::edge
