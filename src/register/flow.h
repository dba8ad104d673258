#pragma once

#include <type_traits>
#include <utility>
#include <variant>

#include <tl/expected.hpp>

#include "base/error.h"
#include "base/result.h"

namespace croft::core {

/// A decision needs to see more than the snapshot has. Its reader has noted the keys; only a reader says so
/// (Reader::ready), so that nobody stops for more without having asked for it.
class NotRead {
 private:
  friend class Reader;
  NotRead() = default;
};

/// For steps that refuse nothing: there is no such value.
struct NoRefusal {
  NoRefusal() = delete;
};

/// Why a step of a decision ended before its end: more has to be read, the data is at fault, or the request is refused.
template <class Refused = NoRefusal>
class Stop {
 public:
  Stop(NotRead why) : why_(why) {}                                      // NOLINT(google-explicit-constructor)
  Stop(Error why) : why_(std::in_place_type<Error>, std::move(why)) {}  // NOLINT(google-explicit-constructor)
  Stop(Refused why)                                                     // NOLINT(google-explicit-constructor)
    requires(!std::is_same_v<Refused, NoRefusal>)
      : why_(std::in_place_type<Refused>, std::move(why)) {}
  /// The stop of a step that refuses nothing, within one that may.
  template <class Other>
    requires(std::is_same_v<Other, NoRefusal> && !std::is_same_v<Refused, NoRefusal>)
  Stop(Stop<Other> why)  // NOLINT(google-explicit-constructor)
      : why_(why.error() != nullptr ? Why(std::in_place_type<Error>, std::move(*why.error())) : Why(*why.not_read())) {}

  [[nodiscard]] const NotRead* not_read() const { return std::get_if<NotRead>(&why_); }
  [[nodiscard]] Error* error() { return std::get_if<Error>(&why_); }
  [[nodiscard]] Refused* refusal() { return std::get_if<Refused>(&why_); }

 private:
  using Why = std::variant<NotRead, Error, Refused>;
  Why why_;
};

/// The outcome of a step of a decision, or why it ended. TRY and TRY_VOID (base/result.h) hand a stop on, also that of
/// a Result, whose Error is the data's fault.
template <class T, class Refused = NoRefusal>
using Flow = tl::expected<T, Stop<Refused>>;

}  // namespace croft::core

namespace croft {

/// Ends a step: for TRY.
template <class Refused>
[[nodiscard]] tl::unexpected<core::Stop<Refused>> fail(core::Stop<Refused> stop) {
  return tl::unexpected<core::Stop<Refused>>(std::move(stop));
}

}  // namespace croft
