#pragma once

namespace croft {

/// Prints the broken assumption with its place on standard error and aborts: a detected violation stops the process
/// before it can answer anybody. Never used for bad input.
[[noreturn]] void assertion_failed(const char* expression, const char* file, int line);

}  // namespace croft

/// States what the code has proven. Stays on in release builds.
#define CROFT_ASSERT(expression) \
  ((expression) ? static_cast<void>(0) : ::croft::assertion_failed(#expression, __FILE__, __LINE__))
