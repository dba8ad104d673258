#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/net/prefix.h"
#include "ipam/audit/register_report.h"
#include "register/records.h"

namespace croft::core::audit {

/// A record that is there and cannot be read. Without a name, permission_denied: this account may not read the kind.
struct Unreadable {
  Key key;
  Error error;
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
  /// Whether any record of the kind could not be read.
  [[nodiscard]] bool lacks_some(Kind kind) const;
  /// Whether the record is there, and could not be read.
  [[nodiscard]] bool has(const Key& key) const;
  /// The names of those of a kind.
  [[nodiscard]] std::set<std::string> names_of(Kind kind) const;

  /// One finding for each record. `foreign_writers`: the programs of Calico and Kubernetes work with records of theirs.
  [[nodiscard]] std::vector<Finding> findings(bool foreign_writers) const;

 private:
  const std::vector<Unreadable>& unreadable_;
  std::set<std::string> blocks_;
  std::set<Kind> unlistable_;
};

}  // namespace croft::core::audit
