#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <tl/expected.hpp>

namespace croft {

/// The kind of failure, as far as callers decide by it. One table in cni/error_table.h turns a code into a CNI code and
/// an exit code; nothing else does.
enum class ErrorCode : std::uint8_t {
  invalid_argument,          ///< input is wrong; the message names the field, the value and the remedy
  not_found,                 ///< the thing named does not exist
  already_exists,            ///< create-if-absent found it there
  conflict,                  ///< transient: somebody else wrote first; read again and plan again
  unknown_outcome,           ///< a write may or may not have taken effect; read back before deciding anything
  unavailable,               ///< transient: the store or agent is briefly away (locked, not reachable)
  too_old,                   ///< transient: a watch can't go on from there, changes are lost; read everything again
  deadline_exceeded,         ///< transient: the caller's deadline passed; nothing was changed unless said
  storage_full,              ///< transient: no space or quota; nothing was changed
  read_only,                 ///< the store is on a read-only file system
  permission_denied,         ///< the store or its directory may not be read or written by this user
  corrupt,                   ///< stored data contradicts itself or cannot be read; nothing is repaired by forgetting
  newer_version,             ///< stored data was written by a newer Croft
  exhausted,                 ///< refusal: no address is free now
  no_pool,                   ///< refusal: no pool exists yet that could serve
  refused_by_configuration,  ///< refusal: the request contradicts pools or configuration
  refused_for_safety,        ///< refusal: doing it could harm a live holder
  internal,                  ///< a fault of Croft itself
};

/// The stable lower-case name, e.g. "not_found"; used in logs and JSON output.
[[nodiscard]] std::string_view name_of(ErrorCode code);

/// True for the codes after which the same call may succeed later without anybody changing the input.
[[nodiscard]] bool is_transient(ErrorCode code);

/// A failure as a value. `message` is one line for a person: which field, which value, what to do. `details` may add
/// lines, e.g. each pool considered and why it was rejected; empty when there is nothing to add.
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::string details;

  /// The same error with `context: ` in front of the message.
  [[nodiscard]] Error in(std::string_view context) const;

  friend bool operator==(const Error&, const Error&) = default;
};

[[nodiscard]] inline Error invalid_argument(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message), {}};
}

/// A value or an Error. Expected failures travel this way; programmer errors are assertions (base/assert.h); nothing
/// in Croft throws across a function of its own. Only this header and register/snapshot.h name the type behind it
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
