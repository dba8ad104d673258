#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/sightings.h"
#include "collector/decide/facts.h"
#include "collector/decide/register_view.h"
#include "ipam/decide/affinity_changes.h"
#include "register/block.h"

namespace croft::core::collect {

/// The memory that earlier looks leave to the next one. It has not the register, only what looked dead or left over in
/// it, and which nodes the list of nodes has had. Kept by one process; a collector that starts anew starts with its
/// first look, and knows of no node that it is gone but those an operator removed (RemovedNode). About 100 bytes an
/// entry.
struct Memory {
  using Allocation = std::pair<SequenceNumber, std::uint64_t>;  ///< with handle_identity()
  /// Allocations that look dead, and all of nodes that are absent.
  Sightings<net::Address, Allocation> suspects;
  Sightings<net::Address, Allocation> dead;  ///< those of them that look dead
  Sightings<std::string> absent_nodes;
  /// Nodes that some list had, as far as the last one has them or the register names them. Only of these does absence
  /// say that they are gone: one that was never listed may live on under another name, or where nobody keeps records.
  std::unordered_set<std::string> listed_nodes;
  Sightings<net::Prefix, SequenceNumber> empty_blocks;
  Sightings<std::string> stray_affinities;  ///< by the name of their key
  Sightings<std::uint64_t> stray_handles;   ///< by handle_identity()

  /// The epoch of the register (store::Store::epoch) that all this was seen in.
  std::uint64_t epoch = 0;

  /// The look before, if it counted.
  std::optional<Instant> last_look;
  std::size_t node_count = 0;
  std::size_t bound_pod_count = 0;
  std::optional<std::uint64_t> pods_revision{};  ///< Facts::pods_revision
};

/// Something a person should look at: the collector held back.
struct Alarm {
  enum class Kind : std::uint8_t {
    lists_do_not_fit,   ///< cut, old, empty, suddenly short or another cluster's: nothing is concluded from them
    nodes_unknown,      ///< addresses are held on nodes that were never in the list
    pods_differ,        ///< it leaves out pods that are there when they are asked for one by one
    clock_step,         ///< the wall clock was set, or the machine restarted, since the look before
    register_replaced,  ///< the register is another, or older, than in the look before
    too_many,           ///< more is dead than one pass may free
    block_corrupt,      ///< a block contradicts itself; it was left alone
    not_done,           ///< something could not be released or mended; the next pass tries again
  } kind;
  std::string text;
};
/// Stable lower-case name: "too_many".
[[nodiscard]] std::string_view name_of(Alarm::Kind kind);

/// Why nothing at all is concluded from these lists.
struct Distrust {
  std::string why;
  /// The lists are not whole, or old: the memory stays as it was. Else it begins anew.
  bool proves_nothing = false;
};
/// Absent: they may be judged.
[[nodiscard]] std::optional<Distrust> distrust(const RegisterView& view, const Facts& facts, const Memory& before,
                                               const Instant& register_read);

/// Whether somebody set the wall clock between two readings, or the boots differ. Slewing is no step.
[[nodiscard]] bool clock_stepped(const Instant& before, const Instant& now);

struct Leak;
struct BlockToRelease;
struct StrayAffinity;
struct StrayHandle;

/// Why something was collected: enough to judge it later without the register of that day. Goes with every release.
struct Evidence {
  enum class What : std::uint8_t { address, block, affinity, handle } what = What::address;
  std::string subject;  ///< "10.1.0.3", "10.1.0.0/26", "host/node-a/ipv4/10.1.0.0/26", a handle
  std::string reason;   ///< "pod_gone", "node_gone", "surplus" …: stable, for scripts
  std::string handle;   ///< of an address
  std::string node, namespace_name, pod;
  std::string uid{};               ///< of the pod
  SequenceNumber sequence;         ///< of the allocation or block, the same in both looks
  Sighting first_look, last_look;  ///< the first and the last time it was seen so
  std::vector<std::string> facts;  ///< sentences: what proved it
};
/// Stable lower-case name: "address".
[[nodiscard]] std::string_view name_of(Evidence::What what);
/// One line for a log.
[[nodiscard]] std::string to_string(const Evidence& evidence);

/// Looks at one leak again, in the block as it is now and by names instead of numbers. Nothing when it isn't proven any
/// more: released meanwhile, held by a successor, or alive after all.
[[nodiscard]] std::optional<Evidence> prove(const Leak& leak, const Block& block, const Facts& facts,
                                            const Instant& now);

/// Whether a list's proof stands when each pod and node in question was asked for by itself. `asked` has these pods
/// alone, and the nodes of the list with those that turned out to be there. A list may be older than it seems, or leave
/// something out.
[[nodiscard]] bool is_confirmed(const Evidence& by_list, const Leak& leak, const Block& block, const Facts& facts,
                                const Facts& asked, const Instant& now);
/// Whether a pod, asked for by itself, is the one that an address was held for, though the list had it not.
[[nodiscard]] bool is_left_out(const Evidence& by_list, const PodFact& pod);

/// The clause of a list about a pod whose address looks dead: "pod ns/a is not among 3 pods".
[[nodiscard]] std::string pod_fact(const AllocationOwner& owner, const Facts::Pod& pod, const Facts& facts);
[[nodiscard]] std::string addresses_text(std::span<const net::Address> addresses);

[[nodiscard]] Evidence evidence_of(const BlockToRelease& block, const Facts& facts, const Instant& now);
[[nodiscard]] Evidence evidence_of(const StrayAffinity& affinity, const Instant& now);
[[nodiscard]] Evidence evidence_of(const StrayHandle& handle, const Instant& now);

struct Settings {
  /// How far the two looks are apart that something must look dead in (docs/notes/calico-ipam.md#collector:
  /// leakGracePeriod). 0: nothing is collected, what looks dead is counted all the same.
  std::chrono::nanoseconds grace = std::chrono::minutes(15);
};

/// An allocation that looked dead in two looks a grace apart, unchanged in between, as have all others of its handle.
/// The releaser reads its block again and asks prove().
struct Leak {
  /// Why its node, when it is not in the list, counts as gone.
  enum class NodeEnd : std::uint8_t {
    none,     ///< it does not
    listed,   ///< an earlier list had it
    removed,  ///< an operator took it away
  };
  net::Prefix block;
  net::Address address;
  SequenceNumber sequence;
  std::uint64_t handle = 0;
  Sighting first;
  NodeEnd node_end = NodeEnd::none;
};

/// A block that its owner is to give up: only when still empty and unchanged.
struct BlockToRelease {
  AffinityRelease release;
  bool node_gone = false;  ///< else: surplus, the node has another of the family and could claim it again by itself
  Sighting first;
};

/// A claim on a block that does not exist or is somebody else's.
struct StrayAffinity {
  Affinity affinity;
  Sighting first;
};

/// A handle record that no allocation bears.
struct StrayHandle {
  std::string id;
  Sighting first;
};

/// The conclusion of one look.
struct Verdict {
  Memory memory;  ///< for the next look

  std::vector<Leak> leaks;  ///< to release, longest dead first, no more than the brake lets through
  std::vector<BlockToRelease> blocks;
  std::vector<StrayAffinity> affinities;
  std::vector<StrayHandle> handles;
  std::vector<net::Prefix> cooled;  ///< blocks with ended cooldowns to write down

  std::size_t candidates = 0;          ///< allocations that look dead, those to release included
  std::size_t confirmed = 0;           ///< of them, for a grace and unchanged
  std::size_t waiting_for_handle = 0;  ///< confirmed, but their handle holds another that is not
  std::size_t kept_by_brake = 0;
  std::vector<Alarm> alarms;
};

/// Decides what may be collected. `register_read` is when reading the register ended; `now` is after the facts came.
/// A look that proves nothing leaves everything alone but ended cooldowns. Incomplete or old facts leave the
/// memory as it was. An empty, shrunken or older list makes it begin anew, so that two whole looks must follow. A node
/// is gone when the list lacks it and an earlier list of the same source had it, or an operator removed it. About what
/// is held on a node that was never listed nothing is concluded, whatever the list of pods says: alarm.
[[nodiscard]] Verdict judge(const RegisterView& view, const Facts& facts, const Memory& before,
                            const Settings& settings, const Instant& register_read, const Instant& now);

}  // namespace croft::core::collect
