#pragma once

#include <cstdint>
#include <string_view>

#include "base/error.h"

namespace croft::wire::ucloud {

// The codes of the API that mean something to us; docs/notes/warm-pool.md#ucloud-api. All others are `other`.
inline constexpr std::int64_t kOk = 0;
inline constexpr std::int64_t kTimedOut = 110;
inline constexpr std::int64_t kGatewayFault = 130;
inline constexpr std::int64_t kServiceUnavailable = 150;
inline constexpr std::int64_t kRateLimited = 153;
inline constexpr std::int64_t kNoAction = 160;
inline constexpr std::int64_t kUnknownAction = 161;
inline constexpr std::int64_t kNoSignature = 170;
inline constexpr std::int64_t kBadSignature = 171;
inline constexpr std::int64_t kNoSuchUser = 172;
inline constexpr std::int64_t kNoSuchToken = 174;
inline constexpr std::int64_t kNoProject = 292;
inline constexpr std::int64_t kZoneNotAllowed = 293;
inline constexpr std::int64_t kSourceRefused = 294;
inline constexpr std::int64_t kSecurityLock = 295;
inline constexpr std::int64_t kDenied = 299;
inline constexpr std::int64_t kSubnetExhausted = 57000;
inline constexpr std::int64_t kNoSuchAddress = 58221;

/// What an answer means to the call.
enum class Verdict : std::uint8_t {
  ok,
  exhausted,    ///< the subnet has no address
  no_address,   ///< there is no such secondary address: success for a delete
  throttled,    ///< surely not done
  fault,        ///< of a read: it may pass; of a write nobody knows what became of it
  stale_token,  ///< 174: once with a new one, then as `refused`
  refused,      ///< as configured it never will
  other,        ///< a code that is not known: it says that it was not done, and not why
};
[[nodiscard]] Verdict verdict_of(std::int64_t ret_code);

/// The class of vpc/provider.h; ErrorCode::internal for `ok`, which is no error. What a write of the verdict `other`
/// has done has to be looked at, so it is unknown_outcome.
[[nodiscard]] ErrorCode error_code_of(Verdict verdict, bool is_write);

/// What a code of `refused` means and what to do about it; empty for other codes.
[[nodiscard]] std::string_view remedy_of(std::int64_t ret_code);

}  // namespace croft::wire::ucloud
