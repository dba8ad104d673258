#pragma once

#include <string>

#include "base/clock.h"
#include "base/result.h"

namespace croft::store {

/// A store whose register has one record of itself, kept apart from the others: its epoch, and whose it is. A restore
/// ends with another epoch, so that nothing remembered from before it is committed. A backend that is one says so by
/// dynamic_cast; decorators are none.
class HasEpoch {
 public:
  virtual ~HasEpoch() = default;

  /// Begins another epoch, of the cluster that the store is in now and of no Kubernetes cluster yet. All memory of the
  /// register is void with it. Errors: those of a commit.
  [[nodiscard]] virtual Result<void> begin_epoch(Deadline deadline) = 0;

  /// Makes the register that of a Kubernetes cluster, named by the UID of its namespace kube-system, unless it is one's
  /// already. Error also: refused_by_configuration, naming both, when it is another's.
  [[nodiscard]] virtual Result<void> belong_to(const std::string& kube_system, Deadline deadline) = 0;
};

}  // namespace croft::store
