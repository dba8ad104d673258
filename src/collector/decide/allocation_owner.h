#pragma once

#include <cstdint>
#include <string_view>

#include "collector/decide/facts.h"
#include "register/block.h"

namespace croft::core::collect {

/// The owner of an allocation, out of its attributes, as far as collecting it goes
/// (docs/notes/calico-ipam.md#collector-valid). The views live as long as the attribute.
struct AllocationOwner {
  enum class Kind : std::uint8_t {
    pod,     ///< names a pod and its namespace
    tunnel,  ///< of a node's daemon; lives as long as the node
    kept,    ///< never collected: nobody outside can tell whether it is alive (no pod, a virtual machine, Windows' own)
  } kind = Kind::kept;
  std::string_view namespace_name, pod, uid, node;  ///< empty when not recorded
  std::string_view network, interface_name;         ///< likewise
  /// Its pod is one that a kubelet read from a file: the API has at most a mirror of it, which may be refused or
  /// deleted while the pod lives.
  bool is_static = false;
};
[[nodiscard]] AllocationOwner owner_of_allocation(const Attribute& attribute);

/// Why an allocation looks dead.
enum class Doubt : std::uint8_t {
  none,          ///< it does not
  pod_gone,      ///< no pod has the owner's name
  pod_evicted,   ///< its pod was evicted
  pod_replaced,  ///< the pod of the name is another one, by the UIDs
  not_the_pods,  ///< its pod exists and has other addresses
  node_gone,     ///< its node does not exist, and no pod proves the address alive
};
/// Stable lower-case name: "pod_gone".
[[nodiscard]] std::string_view name_of(Doubt doubt);

/// An address that is held for a pod.
struct HeldForPod {
  net::Address address;
  bool node_gone = false;  ///< the node the allocation names does not exist
  bool is_static = false;  ///< AllocationOwner::is_static
  std::uint64_t uid = 0;   ///< uid_identity() of the pod's
};
/// Decides whether it looks dead. The pod's own list of addresses counts, compared as values; never where the pod runs
/// (docs/notes/calico-ipam.md#upstream-faults: #12257, #5044). A UID that is recorded and is not the pod's proves that
/// it is another pod; one that either side lacks proves nothing. Nothing is concluded about a static pod while its node
/// is there.
[[nodiscard]] Doubt doubt_of_pod(const Facts& facts, const Facts::Pod& pod, const HeldForPod& held);

}  // namespace croft::core::collect
