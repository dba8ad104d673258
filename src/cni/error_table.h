#pragma once

#include "base/result.h"
#include "cni/format/environment.h"

namespace croft::edge {

/// How the programs of Croft end. Scripts depend on the numbers; they never change.
enum class ExitCode : int {
  fine = 0,
  error = 1,
  usage = 2,              ///< the command line or a value on it is wrong
  findings = 3,           ///< a check found something; no row leads here, `croft check` returns it itself
  store_unreachable = 4,  ///< the store is away or may not be used by this user
  refused_for_safety = 5,
};

// The one table from croft::ErrorCode to the outside (docs/promises.md#cni-codes, docs/formats/cni.md).

[[nodiscard]] wire::cni::Code cni_code_of(ErrorCode code);
[[nodiscard]] ExitCode exit_code_of(ErrorCode code);

/// The error as the runtime gets it: same message, same details.
[[nodiscard]] wire::cni::Error to_cni_error(const Error& error);

/// The error as an answer to STATUS: code 50, unless it is one of the two codes of STATUS already.
[[nodiscard]] wire::cni::Error as_status_error(wire::cni::Error error);

}  // namespace croft::edge
