#pragma once

#include <cstddef>
#include <functional>
#include <utility>

#include "collector/decide/facts.h"
#include "vpc/use/warm_ports.h"

namespace croft::edge {

/// What a list of pods says, as the stock's keeper needs it. The list is the program's:
/// store::kube::for_each_pod_of_node() of this node.
class ApiPods final : public engine::NodePods {
 public:
  /// No node runs as many; more are an error (corrupt).
  static constexpr std::size_t kPodsMax = 10'000;

  /// Asks anew and takes every pod of this node, as engine::PodSource::pods() does.
  using List = std::function<Result<void>(Deadline deadline, const std::function<void()>& begin,
                                          const std::function<void(const core::collect::PodFact&)>& take)>;
  explicit ApiPods(List list) : list_(std::move(list)) {}

  /// Addresses that cannot be understood, as an annotation may hold any, are left out; the pod is not. Errors: of the
  /// list.
  [[nodiscard]] Result<std::vector<Pod>> pods(Deadline deadline) override;

 private:
  const List list_;
};

}  // namespace croft::edge
