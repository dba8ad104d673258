#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/client.h"
#include "store/forwarding_store.h"
#include "store/store.h"

namespace croft::store::etcd {

/// Where and how records of somebody else's objects are stored: those of Kubernetes, as a kube-apiserver keeps them. A
/// store without a registry refuses their kinds, and a program without need of them does not link their codec.
class Registry {
 public:
  Registry() = default;
  Registry(const Registry&) = delete;
  Registry& operator=(const Registry&) = delete;
  virtual ~Registry() = default;

  /// Whether records of this kind are the registry's.
  [[nodiscard]] virtual bool has(Kind kind) const = 0;
  /// Whether Croft's own Services take from the registry's ranges although Services are the registry's.
  [[nodiscard]] virtual bool gives_to_own_services() const = 0;
  /// The prefix of a record's name in its key. `kind` is one of the registry's.
  [[nodiscard]] virtual std::string root_of(Kind kind) const = 0;
  /// Error: read_only for a write that must not be made; asked before anything is sent.
  [[nodiscard]] virtual Result<void> check_write(const Write& write) const = 0;

  /// Errors as those of services/format/kubernetes_objects.h.
  [[nodiscard]] virtual Result<Value> decode(const Key& key, std::string_view place, std::string_view bytes) const = 0;
  /// The bytes of a value that check_write lets pass.
  [[nodiscard]] virtual std::string encode(const Value& value) const = 0;
};

/// Where kube-apiservers keep their records when nobody says else; Croft's own Services take from the ranges there.
inline constexpr std::string_view kKubernetesPrefix = "/registry";

struct KubernetesOptions {
  std::string prefix{kKubernetesPrefix};  ///< --etcd-prefix of the kube-apiservers
  /// Services are Kubernetes' own too, and read-only: who writes them past a kube-apiserver goes past its defaults,
  /// its admission and the locks of its allocators. Else they are Croft's own records. The Services of the other kind
  /// are foreign_service then.
  bool services = false;
};

/// Kubernetes' ranges and ServiceCIDRs (docs/formats/kubernetes.md): range allocations are read and
/// written, all else is read. Error: invalid_argument for a prefix that is none.
[[nodiscard]] Result<std::unique_ptr<Registry>> make_kubernetes_registry(KubernetesOptions options);

}  // namespace croft::store::etcd

namespace croft::store {

/// A store in an etcd cluster, in Calico's own formats, so that Calico may work on the same data at the same time.
/// Calls go to `client`; a read of several records is one request as of one moment, a commit is one request. Nothing is
/// kept in memory. There is no queue of writers. `clock` and `random` must outlive the store and its watches.
///
/// A record that can't be read makes the call that finds it fail (corrupt, naming the key); a key under Calico's
/// prefixes that is none of Calico's is passed over.
///
/// `registry` has the records of Kubernetes; without one their kinds are refused (invalid_argument). A commit of a
/// range allocation alone whose reply was lost is recognised by its bytes: somebody else may have written the same.
/// Commit it with a record of Croft's own where that matters.
///
/// An etcd that was restored is refused until its register has another epoch (HasEpoch).
///
/// With `own_denied` it is for looking (LookOnly): a user that may not read below /croft/v1/ finds nothing there, and a
/// register that was restored is shown.
[[nodiscard]] std::unique_ptr<Store> make_etcd_store(std::unique_ptr<etcd::Client> client, const Clock& clock,
                                                     Random& random, std::unique_ptr<etcd::Registry> registry = nullptr,
                                                     OnOwnDenied own_denied = nullptr);

}  // namespace croft::store
