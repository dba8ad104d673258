#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "base/net/prefix.h"
#include "ipam/audit/register_report.h"
#include "ipam/audit/unseen.h"
#include "register/records.h"

namespace croft::core::audit {

/// Compares what handles count with what the blocks hold.
class HandleAudit {
 public:
  /// An address that is held.
  void add_held(const std::string& handle_id, const net::Prefix& block) { ++counts_[handle_id][block.to_string()]; }
  /// Once all have been added: adds to `report` what is wrong with a handle; each one counts once. Nothing of it is
  /// kept but its name.
  void check(const Key& key, const Handle& handle, const Unseen& unseen, Report& report);
  /// One that is there and can't be read.
  void add_unread(const std::string& handle_id) { seen_.insert(handle_id); }
  /// Behind the last one: adds those that have no record.
  void finish(const Unseen& unseen, Report& report) const;

 private:
  void compare(const Key& key, const Handle& handle, const Unseen& unseen, Report& report) const;

  std::set<std::string> seen_;
  std::map<std::string, std::map<std::string, std::uint32_t>> counts_;  ///< handle -> block -> addresses held
};

}  // namespace croft::core::audit
