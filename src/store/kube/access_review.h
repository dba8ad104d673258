#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/api.h"

// What an API lets its caller do, asked beforehand (SelfSubjectAccessReview, authorization.k8s.io/v1): anybody who has
// an account may ask that.
namespace croft::store::kube {

/// Of one kind of objects in the whole cluster; the texts are of static storage.
struct NeededRights {
  std::string_view group, resource;
  std::vector<std::string_view> verbs;  ///< as in a role: get, list, create, update, delete
};

/// Asks for all of them together. Errors: permission_denied, which names each right that is missing; what kept the API
/// from being asked: unavailable, deadline_exceeded, corrupt, and refused_by_configuration where the account may not
/// ask.
[[nodiscard]] Result<void> check_rights(Api& api, std::span<const NeededRights> needed, Deadline deadline);

}  // namespace croft::store::kube
