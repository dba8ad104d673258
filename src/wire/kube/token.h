#pragma once

#include <optional>
#include <string_view>

#include "base/clock.h"

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

}  // namespace croft::wire::kube
