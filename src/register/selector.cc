#include "register/selector.h"

#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/letters.h"
#include "base/printable.h"
#include "base/texts.h"

namespace croft::core {
namespace {

constexpr bool is_key_character(char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '/' || c == '-'; }

}  // namespace

/// Reads the text from left to right and writes the steps, by a function for each level of the language.
class SelectorParser {
 public:
  explicit SelectorParser(std::string_view text) : rest_(text) { selector_.steps_.clear(); }

  [[nodiscard]] Result<Selector> run() {
    TRY_VOID(any_of(0));
    skip_blanks();
    if (!rest_.empty()) return fail(expected("&&, || or the end"));
    return std::move(selector_);
  }

 private:
  using Op = Selector::Op;
  using Step = Selector::Step;

  struct Operator {
    std::string_view first, second;
    Op op;
  };
  static constexpr Operator kOperators[] = {
      {"==", {}, Op::equal},
      {"!=", {}, Op::not_equal},
      {"contains", {}, Op::contains},
      {"starts", "with", Op::starts_with},
      {"ends", "with", Op::ends_with},
      {"not", "in", Op::not_in},
      {"in", {}, Op::in},
  };

  /// A word of the language, with the blanks before it.
  bool take(std::string_view word) {
    if (word.empty()) return true;
    skip_blanks();
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }

  [[nodiscard]] Error expected(std::string_view what) {
    skip_blanks();
    return make_error(ErrorCode::invalid_argument, "expected {}, found {}", what,
                      rest_.empty() ? "the end" : echo(rest_));
  }

  // `depth` parentheses are open.
  [[nodiscard]] Result<void> any_of(std::size_t depth) {
    return group(Op::any_of, "||", [&] { return each_of(depth); });
  }
  [[nodiscard]] Result<void> each_of(std::size_t depth) {
    return group(Op::each_of, "&&", [&] { return operand(depth); });
  }
  [[nodiscard]] Result<void> group(Op op, std::string_view between, const auto& read_one) {
    std::size_t count = 0;
    do {
      TRY_VOID(read_one());
      ++count;
    } while (take(between));
    if (count >= 2) selector_.steps_.push_back({.op = op, .count = count});
    return {};
  }

  [[nodiscard]] Result<void> operand(std::size_t depth) {
    bool negated = false;
    while (take("!")) negated = !negated;
    if (take("(")) {
      if (depth == kSelectorNestingMax) {
        return fail(ErrorCode::invalid_argument, "selector has more than {} parentheses inside each other",
                    kSelectorNestingMax);
      }
      TRY_VOID(any_of(depth + 1));
      if (!take(")")) return fail(expected(")"));
    } else {
      TRY(Step step, comparison());
      selector_.steps_.push_back(std::move(step));
    }
    if (negated) selector_.steps_.push_back({.op = Op::negate});
    return {};
  }

  [[nodiscard]] Result<Step> comparison() {
    if (take("all(")) return closed({.op = Op::all});
    if (take("global(")) return closed({.op = Op::global});
    if (take("has(")) {
      TRY(std::string key, label_key());
      return closed({.op = Op::has, .key = std::move(key)});
    }
    TRY(std::string key, label_key());
    TRY(const Op op, comparison_operator());
    Step step{.op = op, .key = std::move(key)};
    if (op == Op::in || op == Op::not_in) {
      TRY(step.values, set());
    } else {
      TRY(step.values.emplace_back(), string_literal());
    }
    return step;
  }
  [[nodiscard]] Result<Step> closed(Step step) {
    if (!take(")")) return fail(expected(")"));
    return step;
  }

  /// After it no character of a key may come: next to a single word, and behind the blanks after two. So `a contains b`
  /// goes on to its missing string and `a not in b` is no operator, as in Calico.
  [[nodiscard]] Result<Op> comparison_operator() {
    for (const auto& [first, second, op] : kOperators) {
      const std::string_view before = rest_;
      const bool taken = take(first) && take(second);
      if (!second.empty()) skip_blanks();
      if (taken && (rest_.empty() || !is_key_character(rest_.front()))) return op;
      rest_ = before;
    }
    return fail(expected("an operator after the label"));
  }

  [[nodiscard]] Result<std::string> label_key() {
    skip_blanks();
    const auto* const end = std::find_if_not(rest_.begin(), rest_.end(), is_key_character);
    const auto key = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    if (key.empty()) return fail(expected("a label"));
    if (key.size() > kLabelKeyBytesMax) return fail(invalid_argument("label too long: " + echo(key)));
    rest_.remove_prefix(key.size());
    return std::string(key);
  }

  [[nodiscard]] Result<std::string> string_literal() {
    skip_blanks();
    if (!rest_.starts_with('"') && !rest_.starts_with('\'')) return fail(expected("a string"));
    const auto end = rest_.find(rest_.front(), 1);
    if (end == rest_.npos) return fail(invalid_argument("unterminated string " + echo(rest_)));
    std::string value(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    return value;
  }

  /// In order. A comma may also follow the last value.
  [[nodiscard]] Result<std::vector<std::string>> set() {
    if (!take("{")) return fail(expected("{"));
    std::vector<std::string> values;
    for (bool more = true; !take("}"); more = take(",")) {
      if (!more) return fail(expected("}"));
      TRY(values.emplace_back(), string_literal());
    }
    std::sort(values.begin(), values.end());
    return values;
  }

  std::string_view rest_;
  Selector selector_;
};

Result<Selector> Selector::parse(std::string_view text) {
  if (text.size() > kSelectorBytesMax) {
    return fail(ErrorCode::invalid_argument, "selector is {} bytes long; at most {} are read", text.size(),
                kSelectorBytesMax);
  }
  if (text.find_first_not_of(" \t") == text.npos) return Selector();
  return SelectorParser(text).run();
}

// ---- matching

bool Selector::matches(const Labels& labels) const {
  std::vector<bool> results;
  for (const Step& step : steps_) {
    if (step.op == Op::negate) {
      results.back() = !results.back();
    } else if (step.op == Op::each_of || step.op == Op::any_of) {
      const auto begin = results.end() - static_cast<std::ptrdiff_t>(step.count);
      const bool decisive = step.op == Op::any_of;
      const bool decided = std::find(begin, results.end(), decisive) != results.end();
      results.erase(begin, results.end());
      results.push_back(decided == decisive);
    } else {
      results.push_back(compare(step, labels));
    }
  }
  CROFT_ASSERT(results.size() == 1);
  return results.front();
}

bool Selector::compare(const Step& step, const Labels& labels) {
  if (step.op == Op::all || step.op == Op::global) return true;
  const auto found = labels.find(step.key);
  if (found == labels.end()) return step.op == Op::not_equal || step.op == Op::not_in;
  return compare(step, found->second);
}

bool Selector::compare(const Step& step, const std::string& value) {
  switch (step.op) {
    case Op::equal:
      return value == step.values.front();
    case Op::not_equal:
      return value != step.values.front();
    case Op::contains:
      return value.find(step.values.front()) != value.npos;
    case Op::starts_with:
      return value.starts_with(step.values.front());
    case Op::ends_with:
      return value.ends_with(step.values.front());
    case Op::in:
      return std::binary_search(step.values.begin(), step.values.end(), value);
    case Op::not_in:
      return !std::binary_search(step.values.begin(), step.values.end(), value);
    default:
      return true;  // has
  }
}

}  // namespace croft::core
