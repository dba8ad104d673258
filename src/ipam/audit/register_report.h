#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/error.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/shared_map.h"
#include "ipam/audit/findings.h"
#include "register/block.h"
#include "register/node.h"
#include "register/owner.h"
#include "register/records.h"
#include "register/snapshot.h"

// The report of a look at the register.

namespace croft::core::audit {

struct Runtime;  // ipam/audit/runtime_comparison.h

/// The past or present holder of an address, as far as its attributes say: "pod shop/web-0 (handle net.0f3c) on node
/// n1", "handle net.0f3c on node n1".
[[nodiscard]] std::string holder_text(const std::string& handle_id,
                                      const std::map<std::string, std::string>& attributes);

/// One address that is held or cools.
struct Allocation {
  net::Address address;
  net::Prefix block;
  std::optional<AffinityOwner> block_owner;
  std::string handle_id;  ///< of the last holder while it cools
  SequenceNumber sequence_number;
  SharedMap<std::string, std::string> attributes;  ///< of the last holder while it cools
  SharedMap<std::string, std::string> alternate_owner;
  bool cooling = false;
  bool unattached = false;  ///< the runtime does not know its holder (finding not_attached)
  bool gone = false;        ///< its cluster does not have its holder (findings pod_gone, node_gone)
  bool problem = false;     ///< some finding names it

  /// The node it is held on; empty when not recorded.
  [[nodiscard]] std::string node() const;
  /// Held on a node that is not the owner of its block.
  [[nodiscard]] bool borrowed() const;
};

struct NodeCount {
  std::string node;
  std::size_t held = 0;
  std::size_t blocks = 0;
};

/// A handle of which no block holds anything.
struct EmptyHandle {
  Key key;  ///< of its record
  std::string id;
};

/// A block that a node claimed.
struct BlockOfNode {
  net::Prefix cidr;
  std::string node;
};

/// The result of a look.
struct Report {
  std::vector<Finding> findings;
  std::vector<std::string> notes;  ///< what is worth knowing and no fault, a sentence each
  std::size_t pools = 0, blocks = 0, handles = 0, nodes_recorded = 0, held = 0, cooling = 0;
  std::size_t borrowed = 0;
  std::size_t without_node = 0;         ///< addresses held that record no node
  std::vector<NodeCount> nodes;         ///< the most addresses first
  std::vector<Allocation> allocations;  ///< ascending
  std::vector<EmptyHandle> empty_handles;
  std::vector<BlockOfNode> blocks_of_nodes;
};

/// A record that is there and cannot be read. Without a name, permission_denied: this account may not read the kind.
struct Unreadable {
  Key key;
  Error error;
  bool is_beside = false;  ///< what cannot be read is beside a record of Calico's, which is whole
};

/// The part of the register that a look could not see. It is not held against the records that were seen. `unreadable`
/// must outlive it.
class Unseen {
 public:
  explicit Unseen(const std::vector<Unreadable>& unreadable);

  /// Whether a block may be there although it was not read.
  [[nodiscard]] bool may_have_block(const std::string& cidr) const {
    return lacks_all(Kind::block) || blocks_.contains(cidr);
  }
  /// Whether this account may not read the kind.
  [[nodiscard]] bool lacks_all(Kind kind) const { return unlistable_.contains(kind); }
  /// Whether the record is there, and could not be read.
  [[nodiscard]] bool has(const Key& key) const;
  /// The names of those of a kind; empty: all were read.
  [[nodiscard]] std::set<std::string> names_of(Kind kind) const;

  /// One finding for each record. `foreign_writers`: the programs of Calico and Kubernetes work with records of theirs.
  [[nodiscard]] std::vector<Finding> findings(bool foreign_writers) const;

 private:
  const std::vector<Unreadable>& unreadable_;
  std::set<std::string> blocks_;
  std::set<Kind> unlistable_;
};

/// The reads that a look at the register needs: lists with values, and records; the list of handles where one moment is
/// seen. `with_services`: Services are the register's own, not Kubernetes'.
[[nodiscard]] Missing wanted_by_audit(bool with_services);

/// Finds the contradictions in the register as it was seen. A damaged record is a finding, and what it would have said
/// is not held against the others. With `runtime.live`, also addresses whose attachment is not among them; when it has
/// no entry at all, that is said instead.
/// The look has two parts: all but handles at once, and then each handle, of which only the name is kept. A handle may
/// have a megabyte, and each pod has one. `snapshot` and `unreadable` must outlive it.
class RegisterAudit {
 public:
  RegisterAudit(const Snapshot& snapshot, const std::vector<Unreadable>& unreadable, const Runtime& runtime,
                const Instant& now);
  ~RegisterAudit();
  RegisterAudit(const RegisterAudit&) = delete;
  RegisterAudit& operator=(const RegisterAudit&) = delete;

  /// One that comes a second time counts once. True: no block holds anything of it (Report::empty_handles).
  bool add_handle(const Key& key, const Handle& handle);
  /// One that is there and can't be read, or all of them.
  void add_unreadable(const Unreadable& handle);
  /// Once, behind the last handle.
  [[nodiscard]] Report report();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace croft::core::audit
