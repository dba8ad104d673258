#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "register/owner.h"

namespace croft::core {

/// One attachment, as the runtime's cache has it.
struct RuntimeAttachment {
  enum class Netns : std::uint8_t {
    present,    ///< its network namespace exists
    gone,       ///< nothing is at its path
    unclear,    ///< no path, or something else is there; old runtimes write none
    unmounted,  ///< a file is there, and nothing is mounted on it: it kept a namespace once, or is seen from elsewhere
  };
  Owner owner;
  Netns netns = Netns::unclear;
  std::string netns_path;
  PodIdentity pod;
  std::vector<net::Address> addresses;  ///< of its result
  std::string file;                     ///< the path of the entry
  WallTime written{};                   ///< when the entry was; the epoch when it is not known
};

/// A file of the cache that cannot be read; as a rule power loss left it empty.
struct UnreadableEntry {
  std::string name;  ///< `<network>-<containerID>-<ifname>`
  std::string what;  ///< its path, and why
};

}  // namespace croft::core
