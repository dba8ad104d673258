#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::os {

/// The codes of gRPC, by their numbers.
enum class GrpcCode : std::uint8_t {
  ok = 0,
  cancelled = 1,
  unknown = 2,
  invalid_argument = 3,
  deadline_exceeded = 4,
  not_found = 5,
  already_exists = 6,
  permission_denied = 7,
  resource_exhausted = 8,
  failed_precondition = 9,
  aborted = 10,
  out_of_range = 11,
  unimplemented = 12,
  internal = 13,
  unavailable = 14,
  data_loss = 15,
  unauthenticated = 16,
};
/// "UNAVAILABLE" and so on.
[[nodiscard]] std::string_view name_of(GrpcCode code);
/// The code that `grpc-status` names; nothing when that is no number. A number without a name is `unknown`.
[[nodiscard]] std::optional<GrpcCode> parse_grpc_code(std::string_view text);

/// The value of `grpc-timeout`: at most 8 digits and a unit, never longer than the span asked for by more than a unit.
[[nodiscard]] std::string grpc_timeout_text(std::chrono::nanoseconds span);

/// The span that a `grpc-timeout` names, at most a year; nothing when it is none.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_grpc_timeout(std::string_view text);

/// A text as a `grpc-message` has it: printable ASCII without `%` as it is, everything else percent-encoded.
[[nodiscard]] std::string message_encoded(std::string_view text);
/// A `grpc-message` without its percent-encoding; what is no encoding stays as it is.
[[nodiscard]] std::string percent_decoded(std::string_view text);

/// A message as it travels: not compressed, four bytes of length, the bytes.
[[nodiscard]] std::string grpc_framed(std::string_view message);

/// The prefix of the bytes of a message.
struct GrpcPrefix {
  std::uint8_t flag = 0;  ///< 1: compressed; more are not defined
  std::uint32_t length = 0;
};

/// Cuts the bytes of a body into messages.
class GrpcUnframer {
 public:
  explicit GrpcUnframer(std::size_t message_bytes_max) : message_bytes_max_(message_bytes_max) {}
  void add(std::string_view bytes) { buffer_ += bytes; }
  /// The prefix of the next message, for a look before next(); nothing when more bytes are needed.
  [[nodiscard]] std::optional<GrpcPrefix> prefix() const;
  /// The next whole message; nothing when more bytes are needed. Errors: corrupt (compressed, or a flag that does not
  /// exist), invalid_argument (longer than the bound): no further call makes sense.
  [[nodiscard]] Result<std::optional<std::string>> next();
  /// True when a message has begun and is not whole: at the end of a body it was cut.
  [[nodiscard]] bool has_rest() const { return rest_bytes() > 0; }
  /// The bytes that are in no message that was taken.
  [[nodiscard]] std::size_t rest_bytes() const { return buffer_.size() - taken_; }

 private:
  std::size_t message_bytes_max_;
  std::string buffer_;
  std::size_t taken_ = 0;
};

}  // namespace croft::os
