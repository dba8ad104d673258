#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "base/assert.h"

namespace croft::wire::cni {

/// Error codes of the CNI specification that Croft produces (docs/notes/cni.md#error-codes), and Croft's own from
/// 100 on (docs/promises.md#cni-codes).
enum class Code : std::uint16_t {
  incompatible_version = 1,
  invalid_environment = 4,
  io_failure = 5,
  decoding_failure = 6,
  invalid_network_config = 7,
  invalid_netns = 8,
  try_again_later = 11,
  plugin_not_available = 50,  ///< STATUS only
  limited_connectivity = 51,  ///< STATUS only
  no_address = 100,
  store_damaged = 101,  ///< or written by a newer version
  refused = 102,        ///< by configuration or for safety
  internal = 999,
};

/// A failure as the runtime gets it. Croft's own Error (base/error.h) becomes one through cni/error_table.h.
struct Error {
  Code code = Code::internal;
  std::string msg;
  std::string details;  ///< left out when empty
  friend bool operator==(const Error&, const Error&) = default;
};

/// The longest `msg` or `details` that is printed; what is longer is cut and ends in "...".
inline constexpr std::size_t kErrorTextBytesMax = std::size_t{64} << 10;

/// The error object as the reference prints it: code, msg, details; four blanks; no newline behind it.
[[nodiscard]] std::string print_error(const Error& error);

/// A value, or the CNI error that stands in its place. (croft::Result carries croft::Error, which knows no CNI codes;
/// what is read from a runtime must be refused with exactly the code the specification gives.)
template <class T>
class [[nodiscard]] Checked {
 public:
  Checked(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Checked(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  [[nodiscard]] bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  [[nodiscard]] T& operator*() & { return value(); }
  [[nodiscard]] const T& operator*() const& { return const_cast<Checked*>(this)->value(); }
  [[nodiscard]] T&& operator*() && { return std::move(value()); }
  [[nodiscard]] T* operator->() { return &value(); }
  [[nodiscard]] const T* operator->() const { return &**this; }
  /// Only when it is not ok().
  [[nodiscard]] const Error& error() const {
    CROFT_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }

 private:
  [[nodiscard]] T& value() {
    CROFT_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }
  std::variant<T, Error> state_;
};

}  // namespace croft::wire::cni
