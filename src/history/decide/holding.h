#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/net/prefix.h"
#include "register/block.h"

// The holders of addresses over time. Pure: values, and what follows from them.

namespace croft::core::history {

/// Somebody who holds an address. Empty members are not known.
struct Holder {
  std::string node, namespace_name, pod, uid, network, container, interface_name;
  std::string handle;  ///< only where it is not of a network and a container (a tunnel's address)
  friend bool operator==(const Holder&, const Holder&) = default;
};

/// For people: of what is known the most telling. May hold any text.
[[nodiscard]] std::string name_of(const Holder& holder);

/// When something happened: not before `after`, up to which everything had been seen, and by `by`, when it was seen.
struct Moment {
  WallTime after{};
  WallTime by{};
  [[nodiscard]] static Moment at(WallTime time) { return {time, time}; }
  friend bool operator==(const Moment&, const Moment&) = default;
};

/// One holder of one address, from when to when.
struct Holding {
  net::Address address;
  std::string pool;  ///< empty: it was in none
  Holder holder;
  Moment begin;                 ///< `after` is the epoch where the holder is older than the history
  std::optional<Moment> end{};  ///< absent: it holds it still, as far as the history goes
  friend bool operator==(const Holding&, const Holding&) = default;
};

/// A time in which not everything was seen. A holder that came and went inside it is not recorded.
struct Gap {
  WallTime from{};
  WallTime until{};
  bool is_twice = false;     ///< the clock was set back, so that these times came twice
  bool is_of_block = false;  ///< the recorder was there, and the store told only the last of several changes
};
/// The end of a gap that is not over.
inline constexpr WallTime kNotOver{std::chrono::hours{24 * 365 * 250}};

/// The times of which a history tells.
struct Reach {
  WallTime since{};
  WallTime until{};
};

enum class Held : std::uint8_t { no, maybe, yes };
[[nodiscard]] Held held_at(const Holding& holding, WallTime at);

/// The answer to "who held it then". Several holdings, or one that is no more than a maybe, leave it open.
struct Answer {
  std::vector<Holding> holdings;  ///< those that held it, or may have
  bool is_sure = false;           ///< one did; or nobody, with no holdings
  std::string known;              ///< how that is known, for people: "seen by watch"
};
/// `candidates`: holdings of the address. `gap`: one that has the moment inside; of several one whose times came twice.
[[nodiscard]] Answer answer_at(const std::vector<Holding>& candidates, const std::optional<Gap>& gap,
                               const Reach& reach, WallTime at);

/// Names a holder in the state of one allocation: another holder, or the same one later, has another.
using Print = std::uint64_t;
/// The holdings that are open.
using Open = std::map<net::Address, Print>;

struct Begun {
  Holding holding;
  Print print = 0;
};
struct Ended {
  net::Address address;
  Moment end;
};
struct Changes {
  std::vector<Ended> ended;  ///< come before those that begin: an address may be in both
  std::vector<Begun> begun;
};

/// The differences between what was held in `range` and what the block says now; without a block nothing is held there.
/// They happened when `seen` says. Where that is long, the time that a block records makes it shorter.
[[nodiscard]] Changes changes_of(const Open& open, const net::Prefix& range, const Block* block, const Moment& seen);

}  // namespace croft::core::history
