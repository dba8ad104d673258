#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <map>
#include <utility>
#include <variant>

#include "base/clock.h"
#include "base/planted.h"

// Two looks: nothing is taken away by the word of one list, which may be cut, late or another's. It goes once looks a
// bound apart have shown the same of it without a break, and never much at once.

namespace croft {

/// When something was seen so for the first time, all looks since agreeing.
struct Sighting {
  std::chrono::nanoseconds since_boot{};  ///< what counts
  WallTime wall{};                        ///< for people

  [[nodiscard]] static Sighting at(const Instant& now) { return {now.since_boot, now.wall}; }
  /// Whether it had been so for the bound at `then`, and so in an earlier look than the first. 0: never.
  [[nodiscard]] bool has_stood(std::chrono::nanoseconds bound, std::chrono::nanoseconds then) const {
    return bound.count() > 0 && then - since_boot >= bound;
  }
  friend bool operator==(const Sighting&, const Sighting&) = default;
};

/// The sightings of one look. The next look makes its own from these: what it does not see again is forgotten, and what
/// has another witness by then begins anew.
template <class Key, class Witness = std::monostate>
class Sightings {
 public:
  /// Notes it, as `now` where the look `before` has not seen it with this witness. Returns since when it is so.
  const Sighting& see(const Sightings& before, const Key& key, const Sighting& now, const Witness& witness = {}) {
    const Sighting* const known = before.find(key, witness);
    return seen_.try_emplace(key, known != nullptr ? *known : now, witness).first->second.first;
  }
  /// Null: not seen, or with another witness.
  [[nodiscard]] const Sighting* find(const Key& key, const Witness& witness = {}) const {
    const auto found = seen_.find(key);
    return found == seen_.end() || found->second.second != witness ? nullptr : &found->second.first;
  }
  [[nodiscard]] bool contains(const Key& key) const { return seen_.contains(key); }
  [[nodiscard]] std::size_t size() const { return seen_.size(); }

 private:
  std::map<Key, std::pair<Sighting, Witness>> seen_;
};

/// Whether a list lacks more than half of what was there before: then it proves nothing.
[[nodiscard]] inline bool is_shrunken(std::size_t before, std::size_t now) { return 2 * now < before; }

/// How much one pass may take away (docs/notes/reliability.md#brake): the larger of 10 and 1 % of what is held.
[[nodiscard]] inline std::size_t removals_allowed(std::size_t held) {
  constexpr std::size_t kMin = 10, kDivisor = 100;
  return std::max(kMin, is_planted("brake_off") ? held : held / kDivisor);
}

}  // namespace croft
