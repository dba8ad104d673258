#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"

namespace croft::wire::kube {

/// A core/v1 Event about a pod, of the type Warning.
struct PodEvent {
  std::string name;  ///< of the Event, in the pod's namespace
  std::string name_space, pod, uid;
  std::string reason;   ///< in CamelCase, for programs
  std::string message;  ///< for people; cut where it is longer than kEventMessageMax
  std::string component, host;
  WallTime at{};
};

/// Of events.k8s.io's `note`; core/v1 takes more, and shows it in tables.
inline constexpr std::size_t kEventMessageMax = 1024;

/// Of a text of UTF-8, or of any bytes, no more than so many, `…` in place of what is cut.
[[nodiscard]] std::string cut_text(const std::string& text, std::size_t bytes_max);

[[nodiscard]] std::string encode_event(const PodEvent& event);

}  // namespace croft::wire::kube
