#pragma once

#include <string>

#include "base/result.h"

namespace croft {

/// What a test compares where a call may fail: "(success)" where there is no error.
template <class T>
[[nodiscard]] std::string message_of(const Result<T>& result) {
  return result ? "(success)" : result.error().message;
}

}  // namespace croft
