#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "register/service.h"

namespace croft::core::audit {

/// One thing a repair found (docs/notes/service-ranges.md#repair, #object-repair), in the field's words.
struct RepairFinding {
  /// The values of the label `type` of the field's metrics. `full` is here for their sake: nothing finds it, since
  /// taking a value by name never says so. `unknown` is damage.
  enum class Type : std::uint8_t { leak, repair, full, out_of_range, duplicate, invalid, unknown };
  static constexpr std::size_t kTypeCount = 7;

  Type type = Type::repair;
  std::string_view reason;  ///< of the event: ClusterIPNotAllocated; for what has none, a word of Croft's own
  std::string_view action;  ///< of the event: ClusterIPAllocation
  std::string range;        ///< name of the record: serviceips; `ipaddresses` where addresses are objects
  std::string value;        ///< the address or port; a text that is neither as it stands
  std::optional<ServiceName> service;  ///< whose value it is; nothing for leaks
  std::string message;
  /// What this pass writes puts it right: a value taken or an object made, one that leaked freed for good.
  bool mended = false;
  std::uint64_t count = 1;  ///< more: it stands for so many values of its type, which have no finding of their own
  friend bool operator==(const RepairFinding&, const RepairFinding&) = default;
};

/// `leak`, `repair`, `full`, `outOfRange`, `duplicate`, `invalid`, `unknown`.
[[nodiscard]] std::string_view name_of(RepairFinding::Type type);

/// How many of each type, as the field's metrics count: a leak when it is freed.
using RepairCounts = std::array<std::size_t, RepairFinding::kTypeCount>;
[[nodiscard]] RepairCounts counts_of(const std::vector<RepairFinding>& findings);

}  // namespace croft::core::audit
