#pragma once

#include "base/error.h"
#include "register/owner.h"
#include "store/kube/events.h"

namespace croft::app {

/// Tells a pod by an Event why it has no address; `events` bounds how often. Nothing where it has no name or namespace.
inline void tell_of_refusal(store::kube::Events& events, const core::PodIdentity& pod, const Error& why) {
  if (pod.name.empty() || pod.namespace_name.empty()) return;
  events.tell({"v1", "Pod", pod.namespace_name, pod.name, pod.uid},
              {store::kube::Events::Type::warning, "FailedAddressAssignment", "",
               why.details.empty() ? why.message : why.message + "\n" + why.details});
}

}  // namespace croft::app
