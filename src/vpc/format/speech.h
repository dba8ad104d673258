#pragma once

#include <cstdint>
#include <optional>
#include <string>

// Which versions of what Croft adds to UK8S' protocol two sides speak, and whether they go together.

namespace croft::wire::vpc {

/// Version 0 is UK8S' own; 1 has the network and UID of a pod, and a borrower's name of its request; 2 borrows an
/// address by name, for the pod that keeps it.
inline constexpr std::uint32_t kSpeechNewest = 2;
inline constexpr std::uint32_t kSpeechOfKept = 2;

/// What one side says. Says it nothing, it is as the default.
struct Speech {
  std::uint32_t newest = 0;
  std::uint32_t oldest = 0;  ///< with which it still goes together
  std::string program;       ///< "croft 0.1.0"; for people
  friend bool operator==(const Speech&, const Speech&) = default;
};

/// Of this program, which refuses versions below `oldest`.
[[nodiscard]] Speech own_speech(std::uint32_t oldest = 0);

/// Why two sides do not go together, in a sentence with both's versions; nothing: they do.
[[nodiscard]] std::optional<std::string> skew_between(const Speech& own, const Speech& other);

/// Why nothing is asked of the other side by its name, in a sentence; nothing: it knows the request. One that does not
/// would not see which address is meant, and move any other.
[[nodiscard]] std::optional<std::string> no_lending_by_name(const Speech& other);

}  // namespace croft::wire::vpc
