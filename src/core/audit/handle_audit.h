#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "core/audit/register_report.h"
#include "core/audit/unseen.h"
#include "core/register/records.h"
#include "core/register/snapshot.h"
#include "net/prefix.h"

namespace croft::core::audit {

/// Compares what handles count with what the blocks hold.
class HandleAudit {
 public:
  /// An address that is held.
  void add_held(const std::string& handle_id, const net::Prefix& block) { ++counts_[handle_id][block.to_string()]; }
  /// Once all have been added: adds to `report` what there is of handles, and what is wrong with them.
  void check(Reader& reader, const Unseen& unseen, Report& report) const;

 private:
  void check_handle(const Key& key, const Handle& handle, const Unseen& unseen, Report& report) const;

  std::map<std::string, std::map<std::string, std::uint32_t>> counts_;  ///< handle -> block -> addresses held
};

}  // namespace croft::core::audit
