#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/result.h"

namespace croft::wire::ucloud {

/// A request's parameters, by name; docs/notes/warm-pool.md#ucloud-api.
using Parameters = std::vector<std::pair<std::string, std::string>>;

/// Any bytes to the 20 bytes of their SHA-1 (os/digest.h).
using Sha1 = std::function<std::string(std::string_view)>;

/// The caller's keys. The private key and the token never appear in a message.
struct Keys {
  std::string public_key;
  std::string private_key;
  std::string security_token;  ///< of STS; empty: keys of a person
  friend bool operator==(const Keys&, const Keys&) = default;
};

/// The value of a parameter; nothing: it is not there. The first counts.
[[nodiscard]] const std::string* find(const Parameters& parameters, std::string_view name);

/// The signature: all parameters but `Signature` sorted by the bytes of their names, names and values written one
/// behind the other as they are, and the private key; of that the SHA-1 in small hexadecimal digits. Parameters without
/// a value count as well: who leaves them out of a form (form_of) leaves them out here.
[[nodiscard]] std::string signature_of(const Parameters& parameters, std::string_view private_key, const Sha1& sha1);

/// A request as it is sent: parameters without a value are left out, PublicKey and SecurityToken are added, and
/// Signature last.
[[nodiscard]] Parameters signed_by(Parameters parameters, const Keys& keys, const Sha1& sha1);

/// application/x-www-form-urlencoded: letters, digits and `-_.~` as they are, the rest as `%XX`.
[[nodiscard]] std::string form_of(const Parameters& parameters);

// The parameters of each action; docs/notes/warm-pool.md#ucloud-api. MACs are sent in capital letters. Parameters
// without a value are not sent.

/// Where and for whom.
struct Scope {
  std::string region;
  std::string project;
};

/// For an interface that gets or has addresses.
struct Target {
  std::string zone;
  std::string vpc;
  std::string subnet;
  net::Mac mac;
  std::string object;
};

/// "52:54:00:26:6E:DA", as the API writes it.
[[nodiscard]] std::string mac_text(const net::Mac& mac);

[[nodiscard]] Parameters allocate_request(const Scope& scope, const Target& to,
                                          const std::optional<net::Address>& address);
[[nodiscard]] Parameters allocate_batch_request(const Scope& scope, const Target& to, std::uint32_t count);
[[nodiscard]] Parameters delete_request(const Scope& scope, const Target& of, const net::Address& address);
/// For one interface, one address, both, or the whole subnet.
[[nodiscard]] Parameters describe_request(const Scope& scope, const std::string& vpc, const std::string& subnet,
                                          const std::optional<net::Mac>& mac,
                                          const std::optional<net::Address>& address);
[[nodiscard]] Parameters move_request(const Scope& scope, const std::string& subnet, const net::Address& address,
                                      const net::Mac& from, const net::Mac& to);
[[nodiscard]] Parameters describe_subnet_request(const Scope& scope, const std::string& vpc, const std::string& subnet);
[[nodiscard]] Parameters describe_host_request(const Scope& scope, const std::string& instance);

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

/// The meaning of an answer for the call.
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

/// The class of vpc/provider.h; ErrorCode::internal for `ok`, which is no error. The effect of a write with the verdict
/// `other` has to be looked at, so it is unknown_outcome.
[[nodiscard]] ErrorCode error_code_of(Verdict verdict, bool is_write);

/// The meaning of a code of `refused`, and what to do about it; empty for other codes.
[[nodiscard]] std::string_view remedy_of(std::int64_t ret_code);

}  // namespace croft::wire::ucloud
