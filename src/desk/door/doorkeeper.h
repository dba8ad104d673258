#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/pacing.h"

namespace croft::edge {

/// Whether somebody may look at the page's data.
struct Verdict {
  enum class Kind : std::uint8_t {
    welcome,
    unknown,    ///< without a token that anybody knows
    forbidden,  ///< known, and without the right
    unsure,     ///< who knows could not be asked
  } kind = Kind::unknown;
  std::string why;  ///< for people; empty for those who are welcome
};

/// Admits by a bearer token. A verdict is kept for kVerdictTime, by the token's digest. For one thread.
class Doorkeeper {
 public:
  /// Judges a token by asking somebody who knows it.
  using Judge = std::function<Verdict(const std::string& token)>;
  /// `clock` must outlive it.
  Doorkeeper(Judge judge, const Clock& clock) : judge_(std::move(judge)), clock_(clock) {}

  /// `authorization`: the field of the request's header.
  [[nodiscard]] Verdict admit(std::string_view authorization);

  static constexpr std::chrono::seconds kVerdictTime{60};
  static constexpr std::size_t kVerdictsMax = 1000;
  static constexpr std::size_t kTokenBytesMax = 6000;

 private:
  struct Kept {
    Verdict verdict;
    std::chrono::nanoseconds until{};
  };
  const Judge judge_;
  const Clock& clock_;
  std::map<std::string, Kept> kept_;  ///< by digest
  /// Tokens that nobody knows must not keep the judge busy.
  TokenBucket questions_{20, std::chrono::milliseconds(200)};
};

/// Judges by the one token in a file, which is read anew each time. The file is a secret one (os::read_secret_file).
[[nodiscard]] Doorkeeper::Judge judge_by_file(std::string path);

/// Whether the field Host of a request names this machine: an address of loopback, or `localhost`. A page of another
/// site whose name leads here cannot say so (DNS rebinding).
[[nodiscard]] bool is_loopback_host(std::string_view host);

}  // namespace croft::edge
