#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/kube/api.h"
#include "store/kube/format/requests.h"
#include "store/kube/list_walk.h"

namespace croft::store::kube {

/// Which objects of a list, and how long it may take.
struct ListLimits {
  wire::kube::ApiSelection select;  ///< empty: all
  Deadline deadline;                ///< of the whole list; each page has 15 s besides
  ListBounds bounds{};
  /// What to allow where the API does not permit the list.
  std::string_view remedy = "the controller needs the rights of deploy/kubernetes/access.yaml";
};

/// Reads all objects of a collection (wire::kube::collection_path), as new as can be, page by page, so that no more
/// than a page of their text is in memory; `take` gets each page, in one of the forms that `accept` names, and how many
/// objects it was asked for with (ApiListOf::limit), and returns what it says of the list. `begin` is called before the
/// first one, and again when the list has to be read anew: what was taken before is void then. The answer is the list's
/// resourceVersion, the same of all pages. Errors: of `take`; of ListWalk; those of the API, with `what` in front;
/// permission_denied says what to allow. Without an error every object that existed when this was called, and still
/// does, was taken, once.
[[nodiscard]] Result<std::string> for_each_page(
    Api& api, const Clock& clock, const std::string& collection, std::string_view accept, std::string_view what,
    const std::function<void()>& begin,
    const std::function<Result<ListPage>(const std::string& body, std::int64_t limit)>& take,
    const ListLimits& limits = {});

/// The same of each object, in JSON; the list has to be one `of` that. Error also: corrupt, a name longer than any is.
[[nodiscard]] Result<void> for_each_object(
    Api& api, const Clock& clock, const std::string& collection, const wire::kube::ApiListOf& of, std::string_view what,
    const std::function<void()>& begin,
    const std::function<Result<void>(wire::JsonRef object, const wire::kube::ApiMeta& meta)>& take,
    const ListLimits& limits = {});

/// Of nodes, ten times what Kubernetes is made for.
inline constexpr std::size_t kNodesMax = 50'000;

}  // namespace croft::store::kube
