#include "core/block/refusal.h"

#include <fmt/format.h>

namespace croft::core {

Error to_error(const Refusal& refusal) {
  std::string details;
  for (const PoolVerdict& verdict : refusal.considered) {
    details += fmt::format("{}pool {} ({}): {}", details.empty() ? "" : "; ", verdict.pool, verdict.cidr.to_string(),
                           verdict.reason);
  }
  return {refusal.code, refusal.summary, std::move(details)};
}

}  // namespace croft::core
