#pragma once

#include <chrono>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/api.h"

// The rights of an account in an API, and the tokens of service accounts.
namespace croft::store::kube {

/// Rights for one kind of objects in the whole cluster; the texts are of static storage.
struct NeededRights {
  std::string_view group, resource;
  std::vector<std::string_view> verbs;  ///< as in a role: get, list, create, update, delete
};

/// Asks for all of them together (SelfSubjectAccessReview, authorization.k8s.io/v1; whoever has an account may ask
/// that). Errors: permission_denied, which names each right that is missing; what kept the API from being asked:
/// unavailable, deadline_exceeded, corrupt, and refused_by_configuration where the account may not ask.
[[nodiscard]] Result<void> check_rights(Api& api, std::span<const NeededRights> needed, Deadline deadline);

/// A new token of a service account (TokenRequest), good for `life`; an API server may give less, and none under ten
/// minutes. Errors: those of the API; permission_denied and not_found say what to allow or make; corrupt.
[[nodiscard]] Result<std::string> request_token(Api& api, const std::string& name_space,
                                                const std::string& service_account, std::chrono::seconds life,
                                                Deadline deadline);

/// Asks the server something that it answers to callers it knows, and that costs its storage nothing. It shows whether
/// the server refuses the token (401): that was revoked, or is of another key. Nothing: nobody has looked at the token.
[[nodiscard]] std::optional<bool> is_token_refused(Api& api, Deadline deadline);

}  // namespace croft::store::kube
