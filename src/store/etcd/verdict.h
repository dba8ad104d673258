#pragma once

#include "base/error.h"
#include "os/grpc_channel.h"

namespace croft::store::etcd {

/// What a failed call means (reliability sheet §1.3).
struct Verdict {
  Error error;
  bool try_again = false;     ///< nothing was changed, and another member may answer
  bool log_in_again = false;  ///< nothing was changed; the token is too old
};

/// `writes`: the call may have changed something. Then every answer that does not prove the opposite is
/// unknown_outcome.
[[nodiscard]] Verdict verdict_on(const os::GrpcStatus& status, bool writes);

/// For is_other_line().
[[nodiscard]] Error other_line();

}  // namespace croft::store::etcd
