#pragma once

#include <optional>
#include <vector>

#include "base/net/address.h"
#include "register/pool.h"

namespace croft::core {

/// The wishes of a pod, or of its namespace, in annotations (docs/configuration.md): by Croft's names or, where these
/// are absent, by Calico's (docs/notes/calico-ipam.md#annotations).
struct PodWishes {
  net::PerFamily<std::optional<std::vector<AskedPool>>> pools;  ///< in the place of the configuration's
  std::vector<net::Address> addresses;                          ///< of a pod only
  std::optional<net::PerFamily<bool>> families;                 ///< in the place of the configuration's
  friend bool operator==(const PodWishes&, const PodWishes&) = default;
};

/// The wishes of a pod and its namespace. The pod's count before the namespace's.
struct AnnotatedWishes {
  PodWishes pod, name_space;
  friend bool operator==(const AnnotatedWishes&, const AnnotatedWishes&) = default;
};

/// The annotations in the Kubernetes API that count: those that the runtime has not handed over already.
struct WishesWanted {
  net::PerFamily<bool> pools{true, true};
  bool addresses = true, families = true;
  friend bool operator==(const WishesWanted&, const WishesWanted&) = default;
};

}  // namespace croft::core
