#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "base/clock.h"
#include "store/kube/api.h"
#include "store/kube/form.h"
#include "store/store.h"

namespace croft::store {

/// Which kinds of records a store has in an API, and how; it may ask the API.
using FormsOf = std::function<Result<std::vector<std::unique_ptr<kube::Form>>>(kube::Api& api, Deadline deadline)>;

/// A register in a Kubernetes API: each record an object, written by itself under its resourceVersion
/// (docs/formats/kubernetes-own.md). Without atomic commits: the engine writes in order (engine/ordered_commit.h). Each
/// record of a read is as of some moment of the call; lists are as of one moment each.
///
/// `lay_out` is asked with the first call, until it succeeds once. The clock must outlive the store.
[[nodiscard]] std::unique_ptr<Store> make_kube_store(std::unique_ptr<kube::Api> api, FormsOf lay_out,
                                                     const Clock& clock);

}  // namespace croft::store
