#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace croft::wire::kube {

/// From when until when a token says that it is good (RFC 7519: `iat`, `exp`).
struct TokenLife {
  WallTime made;
  WallTime end;
  friend bool operator==(const TokenLife&, const TokenLife&) = default;
};

/// What a service account's token, a JSON Web Token, says of itself; nobody has checked its signature. Nothing for what
/// is none, or says no end. One that does not say when it was made was made at 1970.
[[nodiscard]] std::optional<TokenLife> life_of_token(std::string_view token);

/// The body of a TokenRequest (authentication.k8s.io/v1) for a token of the API server's own audience.
[[nodiscard]] std::string encode_token_request(std::int64_t seconds);
/// The token of its answer. Error: corrupt: it has none that is_bearer_token(), or one above kTokenBytesMax.
[[nodiscard]] Result<std::string> decode_token_request(std::string_view json);

}  // namespace croft::wire::kube
