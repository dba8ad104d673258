#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"
#include "register/foreign_rest.h"

namespace croft::core {

/// The holder of an address: one interface of one container in one network (CNI's attachment; docs/promises.md#owner).
struct Owner {
  std::string network;
  std::string container_id;
  std::string interface_name;
  friend auto operator<=>(const Owner&, const Owner&) = default;
};

/// The pod behind an owner, as far as the runtime said; empty members are unknown.
struct PodIdentity {
  std::string name;
  std::string namespace_name;
  std::string uid;
  friend bool operator==(const PodIdentity&, const PodIdentity&) = default;
};

// Keys of the owner metadata of an allocation (docs/notes/calico-ipam.md#attributes, `secondary`).
inline constexpr const char* kNodeKey = "node";
inline constexpr const char* kTimestampKey = "timestamp";
inline constexpr const char* kPodKey = "pod";
inline constexpr const char* kNamespaceKey = "namespace";
/// Not among Calico's keys, which leaves keys that it does not know alone.
inline constexpr const char* kPodUidKey = "pod-uid";
inline constexpr const char* kInterfaceKey = "ifname";
/// Written only when the network name contains a dot: `<network>.<containerID>` alone would not tell ("a.b","c") from
/// ("a","b.c").
inline constexpr const char* kNetworkKey = "network";

/// The handle of an owner: `<network>.<containerID>` (docs/notes/calico-ipam.md#handles). All interfaces of a
/// container share it.
[[nodiscard]] std::string handle_of(const Owner& owner);

/// Whether an allocation with this handle and these attributes is the owner's. An allocation without the interface
/// attribute matches any interface (docs/promises.md#owner).
[[nodiscard]] bool matches(const Owner& owner, const std::string& handle_id,
                           const std::map<std::string, std::string>& secondary);

/// The owner behind an allocation, read back from handle and attributes. The interface is empty when not recorded.
/// Absent when the handle is not of the form `<network>.<containerID>` (a tunnel address, for example), and when
/// another system wrote it with several dots: "a.b.c" may be of network "a" or "a.b".
[[nodiscard]] std::optional<Owner> owner_of(const std::string& handle_id,
                                            const std::map<std::string, std::string>& secondary);

/// Index "blocks that hold addresses of this handle", with counts (docs/notes/calico-ipam.md#handle). Never counts
/// too few.
struct Handle {
  std::string id;
  std::map<std::string, std::uint32_t> blocks;  ///< block CIDR as text -> number of addresses
  bool deleted = false;
  ForeignRestPtr rest{};
  friend bool operator==(const Handle&, const Handle&) = default;
};

struct HandleBlock {
  net::Prefix cidr;
  std::uint32_t count = 0;  ///< of addresses, as the handle counts; the block may hold fewer
  std::string name;         ///< the CIDR as the handle writes it
};
/// The blocks that a handle names, in the order of its record.
[[nodiscard]] std::vector<HandleBlock> blocks_of(const Handle& handle);

/// The rule of every handle of a register: its blocks are named by their CIDRs. Error: corrupt. Formats ask it.
[[nodiscard]] Result<void> check_block_names(const Handle& handle);

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
