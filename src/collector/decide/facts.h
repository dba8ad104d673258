#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"

namespace croft::core::collect {

/// A node that exists, as something outside the register says.
struct NodeFact {
  std::string name;  ///< as `node` of an allocation and the owner of an affinity name it
  std::map<std::string, std::string> labels;
  std::vector<net::Address> tunnel_addresses;
};

/// A pod that exists.
struct PodFact {
  std::string namespace_name;
  std::string name;
  std::string uid;
  std::string node;  ///< empty: bound to none yet
  std::string phase;
  std::string reason;
  std::vector<net::Address> addresses;  ///< all it reports, of all its networks; empty: none reported yet
  /// It reports something that is no address: then nothing is concluded from those that were understood.
  bool has_unreadable_address = false;
  /// It uses its node's network: the addresses that it reports are the node's.
  bool is_in_node_network = false;
  /// It is what the API has of a pod that a kubelet read from a file: its UID is not the one that the runtime tells.
  bool is_mirror = false;
  /// Its kubelet says that it has no sandbox: what it reports it had before, and others may have it by now.
  bool has_no_sandbox = false;
};

/// The knowledge about nodes and pods at one moment, from outside the register: the second source without which no
/// address is collected (docs/promises.md#promise-4). Filled once, then only read. Packed: 500,000 pods take about 60
/// MiB.
class Facts {
 public:
  /// The moment the lists stand for: when the source was asked.
  Instant taken_at;
  /// Every node and pod is in it. When not, why: then nothing is collected.
  bool complete = false;
  std::string incomplete_because;
  /// Which Kubernetes cluster they are of: the UID of its namespace kube-system. Empty: not said.
  std::string cluster;
  /// The revision of the list of pods, as its source counts its changes; absent: it does not.
  std::optional<std::uint64_t> pods_revision;

  /// The same without pods, for those that are asked for one by one; not frozen.
  [[nodiscard]] Facts with_nodes_alone() const;

  void add_node(const NodeFact& node);
  void add_nodes_of(const Facts& other);
  void add_pod(const PodFact& pod);
  /// The list of pods is known, be it empty; without this only nodes are.
  void set_pods_known() { pods_known_ = true; }
  /// To be called when all has been added, before the first question.
  void freeze();

  [[nodiscard]] std::size_t node_count() const { return nodes_.size(); }
  [[nodiscard]] std::size_t pod_count() const { return pods_.size(); }
  /// Those that are bound to a node. The rest come and go as fast as somebody asks for what no node has.
  [[nodiscard]] std::size_t bound_pod_count() const { return bound_pods_; }
  [[nodiscard]] bool pods_known() const { return pods_known_; }
  [[nodiscard]] const std::unordered_set<std::string>& nodes() const { return nodes_; }
  [[nodiscard]] bool has_node(const std::string& name) const { return nodes_.contains(name); }
  /// Whether an existing node uses the address for a tunnel.
  [[nodiscard]] bool is_tunnel_address(const net::Address& address) const {
    return tunnels_.contains(address.unmapped());
  }

  /// The knowledge about one pod name.
  struct Pod {
    enum class Answer : std::uint8_t {
      absent,  ///< no pod has the name
      unsure,  ///< several entries answer to it: nothing may be concluded
      found,
    } answer = Answer::absent;
    bool evicted = false;
    bool ended = false;  ///< its containers have, and are not started again
    bool has_unreadable_address = false;
    bool on_existing_node = false;  ///< bound to a node that exists
    std::uint64_t uid = 0;          ///< uid_identity(); 0: not known
    std::string_view node{};
    std::span<const net::Address> addresses{};
  };
  [[nodiscard]] Pod pod(std::string_view namespace_name, std::string_view name) const;
  /// The same by pod_identity(): two names with one identity give `unsure`; an absent name that shares the identity of
  /// another is taken for that one. For looking through many; what is done is decided by the name itself.
  [[nodiscard]] Pod pod_by_identity(std::uint64_t identity) const;

 private:
  struct Packed {
    std::uint64_t identity = 0;
    std::size_t name_at = 0;  ///< into text_: namespace, then name
    std::size_t addresses_at = 0;
    std::uint64_t uid = 0;
    std::uint32_t node = kNoNode;  ///< into node_names_
    std::uint16_t namespace_bytes = 0, name_bytes = 0, address_count = 0;
    bool evicted = false, ended = false, has_unreadable_address = false;
  };
  static constexpr std::uint32_t kNoNode = std::numeric_limits<std::uint32_t>::max();

  [[nodiscard]] std::span<const Packed> with_identity(std::uint64_t identity) const;
  [[nodiscard]] Pod unpacked(const Packed& packed) const;

  std::unordered_set<std::string> nodes_;
  std::unordered_set<net::Address> tunnels_;
  std::vector<std::string> node_names_;  ///< that pods name, also of nodes that don't exist
  std::unordered_map<std::string, std::uint32_t> node_numbers_;
  std::size_t bound_pods_ = 0;
  std::vector<Packed> pods_;  ///< by identity once frozen
  std::string text_;
  std::vector<net::Address> addresses_;
  bool pods_known_ = false;
  bool frozen_ = false;
};

/// Longer names are cut by nobody: no pod has one (Kubernetes: 253), and no adapter passes one on.
inline constexpr std::size_t kPodNameBytesMax = 1024;
inline constexpr std::size_t kPodAddressesMax = 4096;

/// A number that stands for a pod's UID within this process: two numbers, two UIDs. 0 for the empty one.
[[nodiscard]] std::uint64_t uid_identity(std::string_view uid);

/// A number that stands for a pod name within this process.
[[nodiscard]] std::uint64_t pod_identity(std::string_view namespace_name, std::string_view name);

}  // namespace croft::core::collect
