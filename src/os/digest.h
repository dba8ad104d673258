#pragma once

#include <string>
#include <string_view>

namespace croft::os {

// Digests, of OpenSSL: any bytes to the 32 bytes of theirs (sha1: 20). For names that others make in the same way, not
// for secrets. Safe to use from several threads. sha256 and sha1 do without a start of the library, sha3_256 needs it.

[[nodiscard]] std::string sha256(std::string_view bytes);
[[nodiscard]] std::string sha3_256(std::string_view bytes);
/// For the formats that ask for it; it withstands nobody who looks for two texts of one digest.
[[nodiscard]] std::string sha1(std::string_view bytes);

}  // namespace croft::os
