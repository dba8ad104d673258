#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "ipam/audit/findings.h"
#include "ipam/audit/runtime_comparison.h"
#include "ipam/use/release.h"
#include "ipam/use/transact.h"
#include "store/store.h"

namespace croft::engine {

/// A handle without addresses, as it was seen.
struct LeakedHandle {
  std::string id;
  store::Revision revision;
};

struct AuditReport : core::audit::Report {
  std::vector<LeakedHandle> leaked_handles;  ///< the empty ones, with their revisions
  /// Kinds that this account may not read, and why: what they would have said is not judged.
  std::map<core::Kind, Error> not_allowed{};
};

/// How long a store may take for its first word to who then waits minutes for a large register.
inline constexpr std::chrono::seconds kFirstAnswerMax{30};

/// Whether the store answers anything at all; whatever else is wrong with it is for the one who reads it to find.
/// Errors: unavailable and deadline_exceeded of the store.
[[nodiscard]] Result<void> wait_for_first_answer(const Context& context);

/// Lists the pods that live in a cluster.
using RunningPods = std::function<Result<std::vector<core::audit::RunningPod>>()>;

/// Reads the whole register once, without any lock (of handles a page at a time, where the store has no common moment
/// for all), and reports what contradicts itself (core::audit::RegisterAudit).
/// Records that change meanwhile may show up as findings; a second look tells. With `runtime.live`, also addresses
/// whose attachment is not among them. Reports each address of it and of `pods`, which become `runtime.pods`, whose
/// user does not hold it. The pods are asked for after the blocks are read, so that every holder is among them. Changes
/// nothing. Without the right to read a kind the rest is judged; pools and blocks are needed.
[[nodiscard]] Result<AuditReport> audit(const Context& context, core::audit::Runtime runtime,
                                        const RunningPods& pods = nullptr);

}  // namespace croft::engine
