#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "store/kube/format/vpc_objects.h"

namespace croft::store::kube {

/// The kinds of vpc.uk8s.ucloud.cn and what goes with them, one object at a time. Safe to use from several threads, as
/// far as its Api is.
///
/// Errors of all: those of the API (Answer::error), with what was asked for in front; permission_denied says what to
/// allow; not_found also when the cluster has not the kind (its CustomResourceDefinition is missing, and is named);
/// unknown_outcome of a write: read it back. A write that meets what it wrote itself, because it was sent twice, is
/// done.
class VpcObjects {
 public:
  /// `api` must outlive it.
  explicit VpcObjects(Api& api) : api_(api) {}

  // ---- ipamds, all in the namespace kube-system

  struct NamedIpamd {
    wire::kube::ApiMeta meta;
    wire::kube::IpamdRecord record;
  };
  /// All that can be read; one that can't be is left out, so that nobody's nonsense hides the others.
  [[nodiscard]] Result<std::vector<NamedIpamd>> ipamds(Deadline deadline);
  /// Nothing where there is none.
  [[nodiscard]] Result<std::optional<wire::kube::Ipamd>> ipamd(const std::string& name, Deadline deadline);
  /// Error: already_exists.
  [[nodiscard]] Result<wire::kube::Ipamd> create(const std::string& name, const wire::kube::IpamdRecord& record,
                                                 Deadline deadline);
  /// Error: conflict when it is another one by now.
  [[nodiscard]] Result<wire::kube::Ipamd> update(const wire::kube::Ipamd& before, const wire::kube::IpamdRecord& record,
                                                 Deadline deadline);
  /// The very object that was seen: of this UID and version. One that is gone is a success. Error: conflict.
  [[nodiscard]] Result<void> remove_ipamd(const wire::kube::ApiMeta& seen, Deadline deadline);

  /// The names of all nodes, as new as can be.
  [[nodiscard]] Result<std::set<std::string>> node_names(Deadline deadline);

  // ---- vpcipclaims: fixed addresses, each named like its pod

  struct NamedClaim {
    wire::kube::ApiMeta meta;
    wire::kube::VpcIpClaimRecord record;
  };
  /// Of one namespace, or of all (empty). Unlike ipamds() one that can't be read is an error: what it holds must not
  /// look free.
  [[nodiscard]] Result<std::vector<NamedClaim>> claims(const std::string& name_space, Deadline deadline);
  [[nodiscard]] Result<std::optional<wire::kube::VpcIpClaim>> claim(const std::string& name_space,
                                                                    const std::string& pod, Deadline deadline);
  [[nodiscard]] Result<wire::kube::VpcIpClaim> create(const std::string& name_space, const std::string& pod,
                                                      const wire::kube::VpcIpClaimRecord& record, Deadline deadline);
  /// Also attaches and detaches: the label and the finalizer follow `attached`. Error: conflict.
  [[nodiscard]] Result<wire::kube::VpcIpClaim> update(const wire::kube::VpcIpClaim& before,
                                                      const wire::kube::VpcIpClaimRecord& record, Deadline deadline);

  // ---- pods

  /// Nothing where there is none of this name.
  [[nodiscard]] Result<std::optional<wire::kube::NotedPod>> pod(const std::string& name_space, const std::string& pod,
                                                                Deadline deadline);
  /// Writes a pod's addresses where Calico reads them. Errors: not_found, the pod is gone; conflict, one of the same
  /// name has taken its place.
  [[nodiscard]] Result<void> annotate_pod(const std::string& name_space, const std::string& pod, const std::string& uid,
                                          const std::vector<net::Address>& addresses, Deadline deadline);

 private:
  [[nodiscard]] Result<void> each(const wire::kube::ApiResource& resource, std::string_view kind,
                                  const std::string& name_space,
                                  const std::function<Result<void>(const wire::kube::ApiObject&)>& take,
                                  const std::function<void()>& begin, Deadline deadline);
  Api& api_;
};

}  // namespace croft::store::kube
