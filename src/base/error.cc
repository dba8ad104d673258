#include "base/error.h"

#include <cstdio>
#include <cstdlib>

#include "base/assert.h"

namespace croft {

std::string_view name_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::already_exists:
      return "already_exists";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::unknown_outcome:
      return "unknown_outcome";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::too_old:
      return "too_old";
    case ErrorCode::deadline_exceeded:
      return "deadline_exceeded";
    case ErrorCode::storage_full:
      return "storage_full";
    case ErrorCode::read_only:
      return "read_only";
    case ErrorCode::permission_denied:
      return "permission_denied";
    case ErrorCode::corrupt:
      return "corrupt";
    case ErrorCode::newer_version:
      return "newer_version";
    case ErrorCode::exhausted:
      return "exhausted";
    case ErrorCode::no_pool:
      return "no_pool";
    case ErrorCode::refused_by_configuration:
      return "refused_by_configuration";
    case ErrorCode::refused_for_safety:
      return "refused_for_safety";
    case ErrorCode::internal:
      return "internal";
  }
  return "internal";
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
