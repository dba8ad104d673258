#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"

namespace croft::wire::kube {

/// The size of a token, also in its file. The API server itself takes 1 MiB of headers.
inline constexpr std::size_t kTokenBytesMax = std::size_t{32} << 10;

/// Whether a text can be the value of a header: not empty nor too long, ASCII without spaces and control characters.
[[nodiscard]] bool is_bearer_token(std::string_view text);
/// A token as its file has it, without the white space around it; as client-go takes it.
[[nodiscard]] std::string_view trimmed_token(std::string_view content);

/// From when until when a token says that it is good (RFC 7519: `iat`, `exp`).
struct TokenLife {
  WallTime made;
  WallTime end;
  friend bool operator==(const TokenLife&, const TokenLife&) = default;
};
/// The life of a service account's token, a JSON Web Token, by its own claims; nobody has checked its signature.
/// Nothing for what is none, or says no end. One that does not say when it was made was made at 1970.
[[nodiscard]] std::optional<TokenLife> life_of_token(std::string_view token);

/// The body of a TokenRequest (authentication.k8s.io/v1) for a token of the API server's own audience.
[[nodiscard]] std::string encode_token_request(std::chrono::seconds life);
/// The token of its answer. Error: corrupt: it has none that is_bearer_token().
[[nodiscard]] Result<std::string> decode_token_request(std::string_view json);

}  // namespace croft::wire::kube
