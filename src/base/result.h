#pragma once

#include <utility>

#include <tl/expected.hpp>

#include "base/error.h"

namespace croft {

/// A value or an Error. Expected failures travel this way; programmer errors are assertions (base/assert.h); nothing
/// in Croft throws across a function of its own. Only this header and register/flow.h name the type behind it
/// (docs/adr/0001-result-type.md). Functions that return one carry [[nodiscard]]; scripts/check-tree demands it.
template <class T>
using Result = tl::expected<T, Error>;

/// Turns an Error into the failed state of any Result: `return fail(ErrorCode::not_found, "no pool a");`.
[[nodiscard]] inline tl::unexpected<Error> fail(Error error) { return tl::unexpected<Error>(std::move(error)); }
[[nodiscard]] inline tl::unexpected<Error> fail(ErrorCode code, std::string message) {
  return tl::unexpected<Error>(Error{code, std::move(message), {}});
}

}  // namespace croft

#define CROFT_CONCAT_INNER(a, b) a##b
#define CROFT_CONCAT(a, b) CROFT_CONCAT_INNER(a, b)

/// `TRY(auto pool, find_pool(name));` declares `pool` from the success of the expression or returns its Error.
/// Two statements: not for use as the body of an `if` without braces.
#define TRY(declaration, ...)                                                       \
  auto CROFT_CONCAT(croft_result_, __LINE__) = (__VA_ARGS__);                       \
  if (!CROFT_CONCAT(croft_result_, __LINE__))                                       \
    return ::croft::fail(std::move(CROFT_CONCAT(croft_result_, __LINE__)).error()); \
  declaration = *std::move(CROFT_CONCAT(croft_result_, __LINE__))

/// The same for `Result<void>`, or where the value is not wanted.
#define TRY_VOID(...)                                                                                     \
  if (auto CROFT_CONCAT(croft_result_, __LINE__) = (__VA_ARGS__); !CROFT_CONCAT(croft_result_, __LINE__)) \
  return ::croft::fail(std::move(CROFT_CONCAT(croft_result_, __LINE__)).error())
