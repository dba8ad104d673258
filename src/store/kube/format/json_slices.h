#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace croft::wire::kube {

// Goes through a JSON text by its brackets and quotes, without reading it. So a list of an API server is cut into its
// objects, and the members that nobody reads are left out. A text that is no JSON may pass for it; parse_json() of the
// pieces tells.

/// A member that is kept, and which of its own are; without `parts` all of it. Lists are looked into.
struct Kept {
  std::string_view name;
  std::span<const Kept> parts{};
};

/// How long the value at the beginning of a text is; npos where it has no end.
[[nodiscard]] std::size_t length_of_value(std::string_view text);

/// Gets a member of an object by its name as it is written, or an element of a list, which has no name. `text` begins
/// with the value and goes on behind it. Returns how long the value is; npos: it has no end.
using TakeSlice = std::function<std::size_t(std::string_view name, std::string_view text)>;
/// Takes what is in the object or list at the beginning of a text. Returns how long that is; npos where it has no end
/// or is neither.
[[nodiscard]] std::size_t each_slice(std::string_view text, const TakeSlice& take);

/// The text with nothing of its members but those. A text that is no JSON comes back as it is.
[[nodiscard]] std::string with_only(std::string_view text, std::span<const Kept> kept);

}  // namespace croft::wire::kube
