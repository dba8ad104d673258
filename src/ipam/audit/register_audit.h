#pragma once

#include <memory>
#include <vector>

#include "base/clock.h"
#include "ipam/audit/register_report.h"
#include "ipam/audit/runtime_comparison.h"
#include "register/snapshot.h"

namespace croft::core::audit {

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
