#include "cni/error_table.h"

#include <array>

#include "base/assert.h"

namespace croft::edge {
namespace {

using wire::cni::Code;

struct Row {
  ErrorCode code;
  Code cni;
  ExitCode exit;
};

// A transient failure and a store that only an operator can open again are both "try again later" to the runtime: the
// pod waits, and the message names the remedy.
constexpr std::array kTable = {
    Row{ErrorCode::invalid_argument, Code::invalid_network_config, ExitCode::usage},
    Row{ErrorCode::not_found, Code::internal, ExitCode::error},
    Row{ErrorCode::already_exists, Code::internal, ExitCode::error},
    Row{ErrorCode::conflict, Code::try_again_later, ExitCode::error},
    Row{ErrorCode::unknown_outcome, Code::try_again_later, ExitCode::error},
    Row{ErrorCode::unavailable, Code::try_again_later, ExitCode::store_unreachable},
    Row{ErrorCode::too_old, Code::try_again_later, ExitCode::error},
    Row{ErrorCode::deadline_exceeded, Code::try_again_later, ExitCode::store_unreachable},
    Row{ErrorCode::storage_full, Code::try_again_later, ExitCode::error},
    Row{ErrorCode::read_only, Code::try_again_later, ExitCode::store_unreachable},
    Row{ErrorCode::permission_denied, Code::try_again_later, ExitCode::store_unreachable},
    Row{ErrorCode::corrupt, Code::store_damaged, ExitCode::error},
    Row{ErrorCode::newer_version, Code::store_damaged, ExitCode::error},
    Row{ErrorCode::exhausted, Code::no_address, ExitCode::error},
    Row{ErrorCode::no_pool, Code::try_again_later, ExitCode::error},
    Row{ErrorCode::refused_by_configuration, Code::refused, ExitCode::error},
    Row{ErrorCode::refused_for_safety, Code::refused, ExitCode::refused_for_safety},
    Row{ErrorCode::internal, Code::internal, ExitCode::error},
};

constexpr bool complete_and_in_order() {
  for (std::size_t i = 0; i < kTable.size(); ++i) {
    if (static_cast<std::size_t>(kTable[i].code) != i) return false;
  }
  return kTable.size() == static_cast<std::size_t>(ErrorCode::internal) + 1;
}
static_assert(complete_and_in_order(), "every ErrorCode has its row, in the order of the enum");

const Row& row_of(ErrorCode code) {
  const auto index = static_cast<std::size_t>(code);
  CROFT_ASSERT(index < kTable.size());
  return kTable[index];
}

}  // namespace

Code cni_code_of(ErrorCode code) { return row_of(code).cni; }

ExitCode exit_code_of(ErrorCode code) { return row_of(code).exit; }

wire::cni::Error to_cni_error(const Error& error) { return {cni_code_of(error.code), error.message, error.details}; }

wire::cni::Error as_status_error(wire::cni::Error error) {
  if (error.code != Code::limited_connectivity) error.code = Code::plugin_not_available;
  return error;
}

}  // namespace croft::edge
