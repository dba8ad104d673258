#include "agent/daemon/pod_events.h"

#include "store/kube/format/event.h"

namespace croft::app {

void tell_of_refusal(store::kube::Events& events, const core::PodIdentity& pod, const Error& why) {
  if (pod.name.empty() || pod.namespace_name.empty()) return;
  events.tell({"v1", "Pod", pod.namespace_name, pod.name, pod.uid},
              {wire::kube::Event::Type::warning, "FailedAddressAssignment", "",
               why.details.empty() ? why.message : why.message + "\n" + why.details});
}

}  // namespace croft::app
