#pragma once

#include <vector>

#include "base/clock.h"
#include "core/audit/register_report.h"
#include "core/audit/runtime_comparison.h"
#include "core/audit/unseen.h"
#include "core/register/snapshot.h"

namespace croft::core::audit {

/// What a look at the register has to see: lists with values, and records.
/// `with_services`: Services are the register's own, not Kubernetes'.
[[nodiscard]] Missing wanted_by_audit(bool foreign_writers, bool with_services);

/// What contradicts itself in the register as it was seen. A damaged record is a finding, and what it would have said
/// is not held against the others. With `runtime.live`, also addresses whose attachment is not among them; when it has
/// no entry at all, that is said instead.
[[nodiscard]] Report audit_register(const Snapshot& snapshot, const std::vector<Unreadable>& unreadable,
                                    const Runtime& runtime, const Instant& now);

}  // namespace croft::core::audit
