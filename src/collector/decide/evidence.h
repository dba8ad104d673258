#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/address.h"
#include "collector/decide/facts.h"
#include "collector/decide/memory.h"
#include "register/block.h"

namespace croft::core::collect {

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

[[nodiscard]] Evidence evidence_of(const BlockToRelease& block, const Facts& facts, const Instant& now);
[[nodiscard]] Evidence evidence_of(const StrayAffinity& affinity, const Instant& now);
[[nodiscard]] Evidence evidence_of(const StrayHandle& handle, const Instant& now);

}  // namespace croft::core::collect
