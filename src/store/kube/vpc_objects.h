#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "register/owner.h"
#include "store/kube/api.h"
#include "store/kube/format/vpc_objects.h"

// The kinds of vpc.uk8s.ucloud.cn and what goes with them, one object at a time. Safe to use from several threads, as
// far as the Api is.
//
// Errors of all: those of the API (Answer::error), with what was asked for in front; permission_denied says what to
// allow; not_found also when the cluster has not the kind (its CustomResourceDefinition is missing, and is named);
// unknown_outcome of a write: read it back. So is a conflict: an intermediary may have sent the write twice.
namespace croft::store::kube {

/// Objects of one kind: wire::kube::IpamdRecord or VpcIpClaimRecord.
template <class Record>
class VpcObjects {
 public:
  using Object = wire::kube::VpcObject<Record>;
  /// `api` must outlive it.
  explicit VpcObjects(Api& api) : api_(api) {}

  /// All there are, of all namespaces. An ipamd that can't be read is left out, so that nobody's nonsense hides the
  /// others. A claim that can't be read is an error: what it holds must not look free.
  [[nodiscard]] Result<std::vector<Object>> all(Deadline deadline);
  /// Nothing where there is none.
  [[nodiscard]] Result<std::optional<Object>> find(const std::string& name_space, const std::string& name,
                                                   Deadline deadline);
  /// Makes it, or puts it in the place of `before`. Errors: already_exists; conflict when it is another one by now.
  [[nodiscard]] Result<Object> write(const std::optional<Object>& before, const std::string& name_space,
                                     const std::string& name, const Record& record, Deadline deadline);
  /// The very object that was seen: of this UID and version. One that is gone is a success. Error: conflict.
  [[nodiscard]] Result<void> remove(const wire::kube::ApiMeta& seen, Deadline deadline);

 private:
  Api& api_;
};

/// The names of all nodes, as new as can be.
[[nodiscard]] Result<std::set<std::string>> node_names(Api& api, Deadline deadline);

/// A pod; nothing where there is none of this name.
[[nodiscard]] Result<std::optional<wire::kube::ApiObject>> pod_of_stock(Api& api, const std::string& name_space,
                                                                        const std::string& pod, Deadline deadline);
/// The pods of all namespaces that have not ended and report this address, but those in their node's network; as new as
/// can be.
[[nodiscard]] Result<std::vector<core::PodIdentity>> pods_with(Api& api, const net::Address& address,
                                                               Deadline deadline);
/// Writes a pod's address where Calico reads it. Errors: not_found, the pod is gone; conflict, one of the same name has
/// taken its place.
[[nodiscard]] Result<void> annotate_pod(Api& api, const std::string& name_space, const std::string& pod,
                                        const std::string& uid, const net::Address& address, Deadline deadline);

}  // namespace croft::store::kube
