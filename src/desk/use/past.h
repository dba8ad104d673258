#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/result.h"

namespace croft::engine {

/// A history of holders, as far as the page asks it. Where there is none the page has no slider and no time to full.
/// Called from one thread at a time, and not for long: somebody waits for the page.
class Past {
 public:
  virtual ~Past() = default;

  /// The times of which it tells.
  struct Reach {
    WallTime since{};
    WallTime until{};
  };
  [[nodiscard]] virtual Result<Reach> reach() = 0;

  /// When a pool is full. Nothing in `full_in`: not within the time that a forecast covers.
  struct Forecast {
    std::optional<std::chrono::seconds> full_in{}, earliest{}, latest{};
    std::string unknown_because{};  ///< not empty: nothing can be said
  };
  /// By pool.
  [[nodiscard]] virtual Result<std::map<std::string, Forecast>> forecasts() = 0;

  /// Somebody who held an address, or may have.
  struct Holder {
    net::Address address;
    std::string who;       ///< "pod shop/web-0 on node oak"
    bool is_sure = true;   ///< false: it may have
    std::string known_by;  ///< "seen by watch", "between two looks 03:05 and 03:12", "nobody looked"
  };
  /// At most `count_max` of the addresses in `part`, ascending. An address of which nobody knows, as in a gap, comes
  /// with no `who`.
  [[nodiscard]] virtual Result<std::vector<Holder>> held_at(const net::Prefix& part, WallTime at,
                                                            std::size_t count_max) = 0;
};

}  // namespace croft::engine
