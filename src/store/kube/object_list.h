#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "store/kube/format/api.h"

namespace croft::store::kube {

/// Which objects.
struct ListAsked {
  std::string collection;             ///< wire::kube::collection_path
  wire::kube::ApiListOf of;           ///< `may_be_metadata`: nothing but their metadata is asked for
  wire::kube::ApiSelection select{};  ///< empty: all
  std::string resource_version{};     ///< empty: as new as can be; "0": as the server remembers them
  bool may_be_unknown = false;        ///< an API that does not know the kind has none of it
  std::int64_t page_objects = 500;
};

/// The use that is made of a list.
struct ListUse {
  /// Called before the first page, and again where the list has to be read anew: what was taken before is void then.
  std::function<void()> begin;
  std::function<Result<void>(const wire::kube::ApiObject& object)> take;
  std::function<Error(const Answer& answer)> error_of;  ///< of an answer that is no page
  std::function<Deadline()> until;                      ///< of each page
};

/// The request for the first page, for a caller that asks for more beside it.
[[nodiscard]] Request first_page(const ListAsked& asked);

/// Reads a list page by page and object by object, so that no more than a page of text is in memory. The pages are of
/// one moment; one that is longer than an answer may be is asked for in smaller parts. `first`: the answer to
/// first_page(). The answer is the list's resourceVersion; empty where the kind is not known. Errors: of `take` and
/// `error_of`; corrupt: what comes is no such list, or it has more than a million objects. Without an error every
/// object that existed when this was called, and still does, was taken, once.
[[nodiscard]] Result<std::string> read_list(Api& api, const ListAsked& asked, const ListUse& use,
                                            std::optional<Answer> first = {});

/// For a list that is read for itself until a deadline, with 15 s for each page. An error begins with `what`, such as
/// "list pods"; `remedy` is the right to grant where the API does not permit the list.
struct ToSay {
  std::string_view what;
  Deadline deadline{};
  std::string_view remedy = "the controller needs the rights of deploy/kubernetes/access.yaml";
};
[[nodiscard]] Result<std::string> for_each_object(
    Api& api, const Clock& clock, const ListAsked& asked, const ToSay& say, const std::function<void()>& begin,
    const std::function<Result<void>(const wire::kube::ApiObject& object)>& take);

/// One object, as new as can be (read from etcd's quorum); nothing where there is none. Errors: of `error_of`; corrupt.
[[nodiscard]] Result<std::optional<wire::kube::ApiObject>> find_object(
    Api& api, const wire::kube::ApiResource& resource, std::string_view name_space, std::string_view name,
    Deadline deadline, const std::function<Error(const Answer& answer)>& error_of);

// The rights of an account in an API, and the tokens of service accounts.

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
