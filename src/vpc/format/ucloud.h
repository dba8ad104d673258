#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/json/reader.h"
#include "base/net/address.h"
#include "base/net/mac.h"
#include "base/result.h"
#include "vpc/provider.h"

// UCloud's API and metadata, bytes <-> values (docs/formats/ucloud.md, docs/notes/warm-pool.md#ucloud-api).

namespace croft::wire::ucloud {

// ---------------------------------------------------------------- requests

/// A request's parameters, by name.
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

/// An action in the region and project of `own`. Parameters without a value are not sent.
[[nodiscard]] Parameters request(std::string_view action, const cloud::Interface& own,
                                 std::initializer_list<std::pair<std::string_view, std::string>> parameters);
/// The same of an address of an interface, or of one that it is to have: `at` says which; `name` and `value` are one
/// parameter more.
[[nodiscard]] Parameters request_at(std::string_view action, const cloud::Interface& own, const cloud::CloudAddress& at,
                                    std::string_view name, std::string value);

/// The signature: all parameters but `Signature` sorted by the bytes of their names, names and values written one
/// behind the other as they are, and the private key; of that the SHA-1 in small hexadecimal digits. Parameters without
/// a value count as well: who leaves them out of a form (form_of) leaves them out here.
[[nodiscard]] std::string signature_of(const Parameters& parameters, std::string_view private_key, const Sha1& sha1);

/// A request as it is sent: parameters without a value are left out, PublicKey and SecurityToken are added, and
/// Signature last.
[[nodiscard]] Parameters signed_by(Parameters parameters, const Keys& keys, const Sha1& sha1);

/// application/x-www-form-urlencoded: letters, digits and `-_.~` as they are, the rest as `%XX`.
[[nodiscard]] std::string form_of(const Parameters& parameters);

// ---------------------------------------------------------------- codes

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
struct Meaning {
  std::int64_t ret_code;
  Verdict verdict;
  std::string_view remedy;  ///< what it means, and what to do about it; may be empty
};
[[nodiscard]] Meaning meaning_of(std::int64_t ret_code);

/// The class of vpc/provider.h; ErrorCode::internal for `ok`, which is no error. The effect of a write with the verdict
/// `other` has to be looked at, so it is unknown_outcome.
[[nodiscard]] ErrorCode error_code_of(Verdict verdict, bool is_write);

// ---------------------------------------------------------------- answers

// Everything in an answer is somebody else's: each is at most kAnswerBytesMax, each list at most kListMax long, each
// text at most 512 bytes of plain characters. Errors are invalid_argument and name the member; whether that is
// `internal` or `unknown_outcome` is the caller's to say.

inline constexpr std::size_t kAnswerBytesMax = std::size_t{4} << 20;
inline constexpr std::size_t kListMax = 16'384;

/// An answer of any action.
struct Answer {
  std::int64_t ret_code = 0;  ///< RetCode, also where it is a number in quotes
  std::string message;        ///< of the API, cut at 256 bytes; whoever prints it makes it printable
  JsonDocument document;
};
/// Error: it is no JSON object with a RetCode.
[[nodiscard]] Result<Answer> decode_answer(std::string_view bytes);

/// Addresses of an answer: what a host can have, no loopback, multicast or unspecified one. A mask or gateway that is
/// none of the address' family is left out: the subnet tells it. The MAC address is zero where it is not said.
struct Addresses {
  std::vector<cloud::CloudAddress> addresses;
  std::string why_not;  ///< of those that were asked for and not given, as the cloud says it; may be empty
  /// Why the first element of a list that tells no address a host can have is none; empty: all tell one. Its meaning is
  /// not known: a list with one does not say of any address that it is not there.
  std::string odd;
};
/// IpInfo or IpsInfo of both Allocate actions: an object or a list. An item with any other Status than `Succeeded`
/// failed; one without Status and with an address was given. Error also: one that was given tells no address.
[[nodiscard]] Result<Addresses> decode_given(const Answer& answer);
/// DataSet of DescribeSecondaryIp; without it there are none. Error: it is no list of objects.
[[nodiscard]] Result<Addresses> decode_addresses(const Answer& answer);

/// DataSet of DescribeSubnet. A negative number of addresses is none.
[[nodiscard]] Result<std::vector<cloud::SubnetState>> decode_subnets(const Answer& answer);

/// UHostSet[].IPSet[] of DescribeUHostInstance: the ID, `uni-…`, of the interface with this address; empty: not said.
[[nodiscard]] Result<std::string> decode_interface_id(const Answer& answer, const net::Mac& mac);

// ---------------------------------------------------------------- metadata

inline constexpr std::string_view kMetadataPath = "/meta-data/v1.json";
/// With the role behind it.
inline constexpr std::string_view kCredentialsPath = "/meta-data/v1/uam/security-credentials/";

/// A machine's own view of itself.
struct Metadata {
  cloud::Interface interface;  ///< all but the MAC may be empty: not said; the object is the machine
  bool is_bare_metal = false;
};
/// The interface with `default` true, of a virtual machine (`uhost`) or a bare one (`uphost`); a machine with a single
/// interface may leave `default` away. Error: invalid_argument, also when several are the default or none is.
[[nodiscard]] Result<Metadata> decode_metadata(std::string_view bytes);

/// Keys of the security token service.
struct Credentials {
  Keys keys;
  WallTime expires{};
};
/// Errors: refused_by_configuration for a RetCode that is not 0; invalid_argument; no message tells a key.
[[nodiscard]] Result<Credentials> decode_credentials(std::string_view bytes);

}  // namespace croft::wire::ucloud
