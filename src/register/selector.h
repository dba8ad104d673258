#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace croft::core {

/// Limits that Calico does not have.
inline constexpr std::size_t kSelectorBytesMax = std::size_t{64} * 1024;
inline constexpr std::size_t kSelectorNestingMax = 256;  ///< parentheses open at the same time

/// Calico's: the longest key of a label.
inline constexpr std::size_t kLabelKeyBytesMax = 512;

/// Which labels are meant: Calico's selector language, as a value.
///
///   all()  global()  has(k)  k == "v"  k != "v"  k in {"v", "w"}  k not in {…}  k contains "v"  k starts with "v"
///   k ends with "v"  !x  x && y  x || y  (x)
///
/// `!` binds tightest and negates one of these or a parenthesis, then `&&`, then `||`. A key is of letters, digits and
/// `_./-`; there are no reserved words. A string stands in either kind of quote and has no escapes. Blanks and tabs
/// separate; other white space is an error. An empty text is `all()`. `!=` and `not in` hold where the label is absent,
/// the other comparisons do not.
///
/// Reading recurses as deep as parentheses are nested, matching not at all.
class Selector {
 public:
  using Labels = std::map<std::string, std::string>;

  /// Everything: `all()`.
  Selector() = default;

  /// invalid_argument for a text that is none: what was expected, and what stands there instead.
  [[nodiscard]] static Result<Selector> parse(std::string_view text);

  [[nodiscard]] bool matches(const Labels& labels) const;

 private:
  friend class SelectorParser;

  enum class Op : std::uint8_t {
    all,
    global,
    has,
    equal,
    not_equal,
    contains,
    starts_with,
    ends_with,
    in,
    not_in,
    negate,   ///< of the result before
    each_of,  ///< of the last `count` results
    any_of,
  };

  /// One step of the expression in postfix order.
  struct Step {
    Op op = Op::all;
    std::string key{};
    std::vector<std::string> values{};  ///< one; for sets any number, in order
    std::size_t count = 0;
  };

  [[nodiscard]] static bool compare(const Step& step, const Labels& labels);
  [[nodiscard]] static bool compare(const Step& step, const std::string& value);

  std::vector<Step> steps_{Step{}};
};

}  // namespace croft::core
