#pragma once

#include <chrono>
#include <string>

#include "base/clock.h"
#include "collector/use/ports.h"

namespace croft::edge {

/// Facts out of a file (collector/format/facts.h), read anew each time it is asked. A program that knows the cluster
/// keeps the file current and replaces it in one step. A file older than `age_max` or from the future, by its own time
/// or else by its last write, is marked incomplete: its pods may be others by now. Errors: those of reading, naming the
/// file and the member.
class StaticFacts final : public engine::FactSource {
 public:
  StaticFacts(std::string path, std::chrono::nanoseconds age_max, const Clock& clock)
      : path_(std::move(path)), age_max_(age_max), clock_(clock) {}

  [[nodiscard]] Result<core::collect::Facts> facts() override;

 private:
  const std::string path_;
  const std::chrono::nanoseconds age_max_;
  const Clock& clock_;
};

}  // namespace croft::edge
