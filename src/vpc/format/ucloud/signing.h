#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace croft::wire::ucloud {

/// What a request says, by name; docs/notes/warm-pool.md#ucloud-api.
using Parameters = std::vector<std::pair<std::string, std::string>>;

/// Any bytes to the 20 bytes of their SHA-1 (os/digest.h).
using Sha1 = std::function<std::string(std::string_view)>;

/// Who asks. The private key and the token never appear in a message.
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

/// Reads such a form: `+` is a blank. Error: invalid_argument for more than 64 KiB or 512 parameters, a `%` without two
/// digits, a name that comes twice.
[[nodiscard]] Result<Parameters> parse_form(std::string_view form);

}  // namespace croft::wire::ucloud
