#pragma once

#include <memory>

#include "store/kube/api.h"

namespace croft::store::kube {

/// The same API, but lists of nodes, namespaces, Services, IPAddresses and ServiceCIDRs come over the wire in protobuf:
/// a fraction of the bytes, and of the server's time. Whoever asks gets JSON, with the members that Croft reads. For
/// programs that carry protobuf. What is refused in protobuf, of pods too, is asked once more in JSON, to know why;
/// watches, single objects and writes go as they are.
[[nodiscard]] std::unique_ptr<Api> lists_in_protobuf(std::unique_ptr<Api> api);

}  // namespace croft::store::kube
