#pragma once

#include <cstdint>
#include <string>

#include "store/kube/api.h"

namespace croft::store::kube {

struct TokenOf {
  std::string name_space, service_account;
  std::int64_t seconds =
      86'400;  ///< how long it is to be good; an API server may give less, and none under ten minutes
};

/// A new token of a service account (TokenRequest). Errors: those of the API; permission_denied and not_found say what
/// to allow or make; corrupt.
[[nodiscard]] Result<std::string> request_token(Api& api, const TokenOf& wanted, Deadline deadline);

/// What a server says of the token with which it is asked.
enum class TokenTaken : std::uint8_t {
  yes,      ///< or it said nothing against it, as where it allows its owner nothing
  refused,  ///< 401: it was revoked, or is of another key
  unknown,  ///< no server answered
};
/// Asks the server something that it answers to whom it knows, and that costs its storage nothing.
[[nodiscard]] TokenTaken ask_of_token(Api& api, Deadline deadline);

}  // namespace croft::store::kube
