#include "http/grpc_frame.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "base/hex.h"
#include "base/texts.h"

namespace croft::os {
namespace {

constexpr std::size_t kPrefixBytes = 5;

constexpr std::array<std::string_view, 17> kCodeNames = {
    "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
    "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
    "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
    "DATA_LOSS", "UNAUTHENTICATED"};

/// A unit of `grpc-timeout`.
struct Unit {
  char letter;
  std::int64_t nanoseconds;
};
constexpr std::array<Unit, 6> kUnits = {
    {{'n', 1}, {'u', 1'000}, {'m', 1'000'000}, {'S', 1'000'000'000}, {'M', 60'000'000'000}, {'H', 3'600'000'000'000}}};

}  // namespace

std::string_view name_of(GrpcCode code) {
  const auto index = static_cast<std::size_t>(code);
  return index < kCodeNames.size() ? kCodeNames[index] : "UNKNOWN";
}

std::optional<GrpcCode> parse_grpc_code(std::string_view text) {
  unsigned number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size()) return std::nullopt;
  return number < kCodeNames.size() ? static_cast<GrpcCode>(number) : GrpcCode::unknown;
}

std::string grpc_timeout_text(std::chrono::nanoseconds span) {
  constexpr std::int64_t kValueMax = 99'999'999;  // eight digits
  const std::int64_t wanted = std::max<std::int64_t>(span.count(), 1);
  for (const Unit& unit : kUnits) {
    const std::int64_t value = wanted / unit.nanoseconds + (wanted % unit.nanoseconds == 0 ? 0 : 1);
    if (value <= kValueMax) return fmt::format("{}{}", value, unit.letter);
  }
  return fmt::format("{}H", kValueMax);
}

std::optional<std::chrono::nanoseconds> parse_grpc_timeout(std::string_view text) {
  constexpr std::size_t kDigitsMax = 8;
  constexpr std::chrono::nanoseconds kMost = std::chrono::hours{24 * 365};
  if (text.size() < 2 || text.size() > kDigitsMax + 1) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = text.data() + text.size() - 1;
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || value < 0) return std::nullopt;
  for (const Unit& unit : kUnits) {
    if (unit.letter != text.back()) continue;
    return value > kMost.count() / unit.nanoseconds ? kMost : std::chrono::nanoseconds(value * unit.nanoseconds);
  }
  return std::nullopt;
}

std::string message_encoded(std::string_view text) {
  return percent_encoded(text, R"( !"#$&'()*+,-./:;<=>?@[\]^_`{|}~)");
}

std::string percent_decoded(std::string_view text) {
  std::string decoded;
  decoded.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const int high = text[i] == '%' && i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = high >= 0 ? hex_value(text[i + 2]) : -1;
    if (low >= 0) {
      decoded += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      decoded += text[i];
    }
  }
  return decoded;
}

std::string grpc_framed(std::string_view message) {
  std::string framed;
  framed.reserve(kPrefixBytes + message.size());
  framed += '\0';
  for (const int shift : {24, 16, 8, 0}) framed += static_cast<char>((message.size() >> shift) & 0xFF);
  framed += message;
  return framed;
}

std::optional<GrpcPrefix> GrpcUnframer::prefix() const {
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  if (rest.size() < kPrefixBytes) return std::nullopt;
  GrpcPrefix prefix{static_cast<std::uint8_t>(rest[0]), 0};
  for (std::size_t i = 1; i < kPrefixBytes; ++i)
    prefix.length = prefix.length << 8U | static_cast<unsigned char>(rest[i]);
  return prefix;
}

Result<std::optional<std::string>> GrpcUnframer::next() {
  const std::string_view rest = std::string_view(buffer_).substr(taken_);
  if (rest.empty()) return std::optional<std::string>();
  if (rest[0] == 1) return fail(ErrorCode::corrupt, "the answer is compressed, which was not offered");
  if (rest[0] != 0) {
    return fail(ErrorCode::corrupt, "a message begins with the flag {}", static_cast<unsigned char>(rest[0]));
  }
  const auto begin = prefix();
  if (!begin) return std::optional<std::string>();
  const std::size_t length = begin->length;
  if (length > message_bytes_max_) {
    return fail(ErrorCode::invalid_argument, "a message of {} bytes is longer than {}", length, message_bytes_max_);
  }
  if (rest.size() < kPrefixBytes + length) return std::optional<std::string>();
  if (taken_ == 0 && rest.size() == kPrefixBytes + length) {
    buffer_.erase(0, kPrefixBytes);
    return std::optional(std::exchange(buffer_, {}));
  }
  std::optional<std::string> message(std::in_place, rest.substr(kPrefixBytes, length));
  taken_ += kPrefixBytes + length;
  // Not after each message: many small ones would be moved again and again.
  if (taken_ == buffer_.size() || taken_ > buffer_.size() / 2) {
    buffer_.erase(0, taken_);
    taken_ = 0;
  }
  return message;
}

}  // namespace croft::os
