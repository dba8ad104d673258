#pragma once

#include <string>

#include "base/json/document.h"
#include "base/result.h"
#include "register/owner.h"
#include "register/pod_wishes.h"
#include "store/kube/api.h"

namespace croft::store::kube {

/// The kind of object that has the annotations.
enum class Annotated : std::uint8_t { pod, name_space };

/// The wishes in the annotations of an object of the API. Error: invalid_argument, naming the object and the
/// annotation.
[[nodiscard]] Result<core::PodWishes> wishes_in(Annotated kind, wire::JsonRef object, const std::string& name);

/// The wishes in the annotations of a pod and its namespace, which are read at once. Nothing for a pod or namespace
/// that the API does not have: static pods run before it knows them. The pod is who has the name: a static pod's UID is
/// another one there. Errors: of wishes_in(), and of the API; permission_denied says what to allow.
[[nodiscard]] Result<core::AnnotatedWishes> ask_for_wishes(Api& api, const core::PodIdentity& pod, Deadline deadline);

}  // namespace croft::store::kube
