#pragma once

#include <optional>
#include <vector>

#include "base/net/address.h"
#include "base/net/per_family.h"
#include "register/pool.h"

namespace croft::core {

/// What a pod, or its namespace, asks for in annotations (docs/configuration.md): of Croft's names or, where it has not
/// these, of Calico's (docs/notes/calico-ipam.md#annotations).
struct PodWishes {
  net::PerFamily<std::optional<std::vector<AskedPool>>> pools;  ///< in the place of the configuration's
  std::vector<net::Address> addresses;                          ///< of a pod only
  std::optional<net::PerFamily<bool>> families;                 ///< in the place of the configuration's
  friend bool operator==(const PodWishes&, const PodWishes&) = default;
};

/// Of a pod and its namespace. The pod's count before the namespace's.
struct AnnotatedWishes {
  PodWishes pod, name_space;
  friend bool operator==(const AnnotatedWishes&, const AnnotatedWishes&) = default;
};

/// What of the annotations in the Kubernetes API counts: what the runtime has not handed over already.
struct WishesWanted {
  net::PerFamily<bool> pools{true, true};
  bool addresses = true, families = true;
  friend bool operator==(const WishesWanted&, const WishesWanted&) = default;
};

}  // namespace croft::core
