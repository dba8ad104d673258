#pragma once

#include <functional>

#include "base/result.h"
#include "core/collect/facts.h"

// What the engine needs from outside and cannot know itself. Adapters are in edge/.

namespace croft::engine {

/// Says which nodes and pods exist: the Kubernetes API, a file, or the store's own Node records (then pods are not
/// known). From one thread at a time.
class FactSource {
 public:
  virtual ~FactSource() = default;

  /// Asks anew. The answer is frozen, and `taken_at` is no earlier than this call, or it is marked incomplete: a list
  /// of unknown age proves nothing. A source that is away is an error, or an answer marked incomplete.
  [[nodiscard]] virtual Result<core::collect::Facts> facts() = 0;
};

/// Says which pods exist. From one thread at a time.
class PodSource {
 public:
  virtual ~PodSource() = default;

  /// Asks anew, and takes every pod; `begin` comes before the first one, and again when all that was taken is void. An
  /// error: not all pods are known.
  [[nodiscard]] virtual Result<void> pods(const std::function<void()>& begin,
                                          const std::function<void(const core::collect::PodFact&)>& take) = 0;
};

}  // namespace croft::engine
