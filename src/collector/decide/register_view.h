#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "collector/decide/facts.h"
#include "register/block.h"
#include "register/node.h"
#include "register/records.h"

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

/// An allocation, packed: names are numbers that stand for them in this process.
struct HeldRow {
  SequenceNumber sequence;
  std::uint64_t pod = 0;     ///< pod_identity()
  std::uint64_t handle = 0;  ///< handle_identity()
  std::uint64_t uid = 0;     ///< uid_identity() of the pod's
  std::uint32_t node = 0;    ///< into RegisterView::nodes()
  std::uint32_t block = 0;   ///< into RegisterView::blocks()
  std::uint16_t ordinal = 0;
  AllocationOwner::Kind kind = AllocationOwner::Kind::kept;
  bool is_static = false;  ///< AllocationOwner::is_static
  std::uint32_t line = 0;  ///< of network and interface: what of a pod a new sandbox holds in the place of an old one
};

struct BlockRow {
  net::Prefix cidr;
  SequenceNumber sequence;
  std::optional<AffinityOwner::Type> owner_type;  ///< absent: nobody's
  std::uint32_t owner = 0;                        ///< into RegisterView::nodes(), also for a virtual owner
  bool empty = false;                             ///< once the cooldowns that have ended are written down
  bool has_cooled = false;                        ///< some cooldown has ended and is not written down
};

/// The result of one look at the register, of a size that a cluster of half a million addresses fits in: 48 bytes an
/// allocation. Filled record by record, blocks first, then handles.
class RegisterView {
 public:
  static constexpr std::uint32_t kNoNode = 0;

  RegisterView();

  /// A block that passed check_block. `cooldowns` are those of its pool.
  void add_block(const Block& block, const Cooldowns& cooldowns, const Instant& now);
  /// There is a block that can't be read: what nothing else bears may be borne there.
  void set_partial() { partial_ = true; }
  /// Nodes get blocks by an operator's claims alone (IpamConfig::auto_allocate_blocks): no block is too many.
  void set_claimed_by_hand() { claimed_by_hand_ = true; }
  void add_affinity(const Affinity& affinity);
  /// A handle record; one that no allocation bears is kept by its name, up to kStrayHandlesMax of them.
  void add_handle(const std::string& id);

  /// An operator's word on a node that was taken away. Behind the blocks.
  void add_removed(const RemovedNode& removed);

  /// Whether the node of an allocation was taken away while it held just this.
  [[nodiscard]] bool is_of_removed_node(const HeldRow& row) const;
  [[nodiscard]] const std::vector<HeldRow>& held() const { return held_; }
  [[nodiscard]] const std::vector<BlockRow>& blocks() const { return blocks_; }
  [[nodiscard]] const std::vector<Affinity>& affinities() const { return affinities_; }
  [[nodiscard]] const std::vector<std::string>& stray_handles() const { return stray_handles_; }
  /// Names of nodes and virtual owners; number kNoNode is the empty one.
  [[nodiscard]] const std::vector<std::string>& nodes() const { return nodes_; }
  [[nodiscard]] bool is_partial() const { return partial_; }
  [[nodiscard]] bool is_claimed_by_hand() const { return claimed_by_hand_; }
  [[nodiscard]] std::size_t pod_count() const { return pod_count_; }  ///< allocations held for pods

  [[nodiscard]] const BlockRow* block(const net::Prefix& cidr) const;
  [[nodiscard]] net::Address address(const HeldRow& row) const {
    return net::address_at(blocks_[row.block].cidr, net::Ordinal(row.ordinal));
  }

 private:
  [[nodiscard]] std::uint32_t node_number(std::string_view name);

  std::vector<HeldRow> held_;
  std::vector<BlockRow> blocks_;
  std::vector<Affinity> affinities_;
  std::vector<std::string> stray_handles_;
  std::vector<std::string> nodes_;
  std::unordered_map<std::string, std::uint32_t> node_numbers_;
  std::unordered_map<net::Prefix, std::uint32_t> block_numbers_;
  /// (node, block) -> the highest sequence number that is meant
  std::map<std::pair<std::uint32_t, std::uint32_t>, SequenceNumber> removed_;
  std::vector<std::uint64_t> handles_;  ///< sorted, made by the first add_handle
  std::size_t pod_count_ = 0;
  bool partial_ = false;
  bool claimed_by_hand_ = false;
};

/// More are seen by the looks after those have gone.
inline constexpr std::size_t kStrayHandlesMax = 100'000;

/// A number that stands for a handle within this process.
[[nodiscard]] std::uint64_t handle_identity(const std::string& handle_id);

}  // namespace croft::core::collect
