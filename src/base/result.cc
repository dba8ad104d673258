#include "base/result.h"

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>

#include "base/assert.h"

namespace croft {

std::string_view name_of(ErrorCode code) {
  // In the order of the codes.
  constexpr auto kNames = std::to_array<std::string_view>({
      "invalid_argument",
      "not_found",
      "already_exists",
      "conflict",
      "unknown_outcome",
      "unavailable",
      "too_old",
      "deadline_exceeded",
      "storage_full",
      "read_only",
      "permission_denied",
      "corrupt",
      "newer_version",
      "exhausted",
      "no_pool",
      "refused_by_configuration",
      "refused_for_safety",
      "internal",
  });
  static_assert(kNames.size() == static_cast<std::size_t>(ErrorCode::internal) + 1);
  return kNames.at(static_cast<std::size_t>(code));
}

bool is_transient(ErrorCode code) {
  switch (code) {
    case ErrorCode::conflict:
    case ErrorCode::unknown_outcome:
    case ErrorCode::unavailable:
    case ErrorCode::too_old:
    case ErrorCode::deadline_exceeded:
    case ErrorCode::storage_full:
      return true;
    default:
      return false;
  }
}

Error Error::in(std::string_view context) const {
  Error result = *this;
  result.message = std::string(context) + ": " + message;
  return result;
}

void assertion_failed(const char* expression, const char* file, int line) {
  std::fprintf(stderr, "croft: assertion failed: %s (%s:%d)\n", expression, file, line);
  std::abort();
}

}  // namespace croft
