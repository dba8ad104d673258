#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ipam/decide/assign.h"
#include "ipam/decide/release.h"
#include "register/snapshot.h"

namespace croft::core {

/// What an owner was just given and what the node's kernel shows to be alive.
struct FoundAlive {
  AssignedAddress assigned;
  std::string device;
};

/// Decides that what an owner was just given is nobody's: it goes from the owner to its quarantine
/// (register/quarantine.h) in one commit, so that it is free at no moment. Answers with what went. Left alone is
/// what the owner does not hold under that number any more.
[[nodiscard]] Step<std::vector<net::Address>> plan_quarantine(const Snapshot& snapshot, const Owner& owner,
                                                              const std::string& node,
                                                              const std::vector<FoundAlive>& found, const Instant& now);

/// An address in quarantine.
struct InQuarantine {
  AddressToRelease named;         ///< as a release has to name it
  std::optional<WallTime> since;  ///< as its record says
};
/// Adds what the block has in quarantine that an ADD on the node found.
void add_quarantined_by(const std::string& node, const Block& block, std::vector<InQuarantine>& found);

}  // namespace croft::core
