#pragma once

#include <span>
#include <string>
#include <string_view>

namespace croft::wire::kube {

/// A member that is kept, and which of its own are; without `parts` all of it. Lists are looked into.
struct Kept {
  std::string_view name;
  std::span<const Kept> parts{};
};

/// Goes through a JSON text by its brackets and quotes, without reading it: a list of an API server is cut into its
/// objects so, and what nobody reads of an object is left out. It takes a text for JSON that is none; parse_json() of
/// the pieces tells.
class JsonSlices {
 public:
  /// At an object or a list. One that is neither is not sound.
  explicit JsonSlices(std::string_view text);
  [[nodiscard]] bool is_open() const { return state_ != State::broken; }
  [[nodiscard]] bool is_object() const { return close_ == '}'; }

  /// Goes to the next value. False at the end, and where the text is cut off or no JSON.
  [[nodiscard]] bool next();
  /// In an object, as it is written.
  [[nodiscard]] std::string_view name() const { return name_; }
  /// The value, and goes behind it. Empty where it has no end.
  [[nodiscard]] std::string_view text();
  /// What is in the value, if that is an object or a list; leave() goes on behind it, once all of it was gone through.
  [[nodiscard]] JsonSlices inside() const { return JsonSlices(rest_); }
  void leave(const JsonSlices& inside);

  /// Whether it ended where it should; to be asked behind the last one.
  [[nodiscard]] bool is_sound() const { return state_ == State::over; }
  /// What is behind the object or list.
  [[nodiscard]] std::string_view behind() const { return rest_; }

 private:
  enum class State { first, at_value, behind_value, over, broken } state_ = State::first;
  std::string_view rest_, name_;
  char close_ = ']';
};

/// The text with nothing of its members but those. What is no JSON comes back as it is.
[[nodiscard]] std::string with_only(std::string_view text, std::span<const Kept> kept);

}  // namespace croft::wire::kube
