#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace croft::wire {

/// Where HTTP is spoken: `http://api.example`, `https://[fd00::1]:8443/node-a`.
struct Url {
  bool secure = false;
  std::string host;  ///< a numeric address (IPv6 without brackets), or a name in small letters
  bool is_numeric = false;
  std::uint16_t port = 0;
  std::string path;  ///< in front of every target: empty, or with `/` first and none last

  /// Without a port it is 80 or 443. Error: invalid_argument, saying what is wrong: another scheme, a user, a question
  /// mark, a host that is none.
  [[nodiscard]] static Result<Url> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  /// The value of `Host` and `:authority`: without the port when that is the usual one.
  [[nodiscard]] std::string authority() const;
  friend bool operator==(const Url&, const Url&) = default;
};

}  // namespace croft::wire
