#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "store/kube/object_list.h"

namespace croft::store::kube {

/// The server's judgement of a token that somebody else has presented.
struct TokenReviewed {
  bool is_known = false;    ///< the server knows whose it is
  bool is_allowed = false;  ///< and the user has all rights
  std::string user;         ///< "system:serviceaccount:ops:alice"; empty: nobody
};

/// Asks whose a token is (TokenReview, authentication.k8s.io/v1), and whether that user has all rights that
/// are `needed` in the whole cluster (SubjectAccessReview, authorization.k8s.io/v1). This account needs `create` of
/// both, as deploy/kubernetes/access.yaml gives it to the controller. Errors: those of the API, the missing right among
/// them; corrupt.
[[nodiscard]] Result<TokenReviewed> review_token(Api& api, std::string_view token, std::span<const NeededRights> needed,
                                                 Deadline deadline);

}  // namespace croft::store::kube
