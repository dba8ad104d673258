#pragma once

#include "base/error.h"
#include "http/grpc_channel.h"

namespace croft::store::etcd {

/// The meaning of a call that failed (docs/notes/reliability.md#unknown-outcomes).
struct Verdict {
  Error error;
  bool try_again = false;     ///< nothing was changed, and another member may answer
  bool log_in_again = false;  ///< nothing was changed; the token is too old
  bool is_broken = false;     ///< the member answers, and with what is no answer
  bool done = false;          ///< there is no error
};

/// `writes`: the call may have changed something. Then every answer that does not prove the opposite is
/// unknown_outcome.
[[nodiscard]] Verdict verdict_on(const os::GrpcStatus& status, bool writes);

[[nodiscard]] inline Verdict done() { return {{}, false, false, false, true}; }

/// The same of an answer that `error` says is none, or not to what was asked: it proves nothing.
[[nodiscard]] Verdict verdict_on_nonsense(const Error& error, bool writes);

}  // namespace croft::store::etcd
