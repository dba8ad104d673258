#pragma once

#include "base/error.h"
#include "register/owner.h"
#include "store/kube/events.h"

namespace croft::app {

/// Tells a pod by an Event why it has no address; `events` bounds how often. Nothing where it has no name or namespace.
void tell_of_refusal(store::kube::Events& events, const core::PodIdentity& pod, const Error& why);

}  // namespace croft::app
