#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace croft::wire::kube {

/// What an Event is about.
struct Regarding {
  std::string_view api_version = "v1";
  std::string_view kind;   ///< "Pod"
  std::string name_space;  ///< empty: it is in none
  std::string name;
  std::string uid;  ///< empty: not known
};

/// A core/v1 Event.
struct Event {
  std::string name;  ///< of the Event, in namespace_of_event()
  Regarding regarding;
  enum class Type : std::uint8_t { normal, warning } type = Type::warning;
  std::string reason;   ///< in CamelCase, for programs
  std::string action;   ///< likewise, what was being done; empty: not said
  std::string message;  ///< for people; cut where it is longer than kEventMessageMax
  std::string component, host;
  WallTime at{};
};

/// Of events.k8s.io's `note`; core/v1 takes more, and shows it in tables.
inline constexpr std::size_t kEventMessageMax = 1024;

/// Of a text of UTF-8, or of any bytes, no more than so many, `…` in place of what is cut.
[[nodiscard]] std::string cut_text(const std::string& text, std::size_t bytes_max);

/// The namespace that Events about it are in: its own, or `default`.
[[nodiscard]] std::string namespace_of_event(const Regarding& regarding);
[[nodiscard]] std::string encode_event(const Event& event);

}  // namespace croft::wire::kube
