#include "register/selector.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/letters.h"

namespace croft::core {
namespace {

// ---- tokens

enum class TokenKind : std::uint8_t {
  label,
  string_literal,
  left_brace,
  right_brace,
  comma,
  equal,
  not_equal,
  in,
  negate,
  not_in,
  contains,
  starts_with,
  ends_with,
  all,
  has,
  left_paren,
  right_paren,
  each_of,
  any_of,
  global,
  end,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view value;  ///< a key or the inside of a string, else empty
  std::string_view text;   ///< as it stands in the selector, with all behind it
};

constexpr bool is_key_character(char c) { return is_alphanumeric(c) || c == '_' || c == '.' || c == '/' || c == '-'; }

// ---- errors

void append_escaped(std::string& out, char c) {
  constexpr std::string_view kEscaped = "\a\b\f\n\r\t\v";
  constexpr std::string_view kLetters = "abfnrtv";
  if (const auto at = kEscaped.find(c); at != kEscaped.npos) {
    out += '\\';
    out += kLetters[at];
  } else if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') {
    out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  } else {
    out += c;
  }
}

constexpr bool is_continuation_byte(char c) { return (static_cast<unsigned char>(c) & 0xC0U) == 0x80U; }

/// One line, not longer than the limit, cut between two characters.
std::string as_message(std::string_view text) {
  constexpr std::string_view kCut = "...";
  std::string message;
  for (const char c : text.substr(0, kSelectorMessageBytesMax + 1)) append_escaped(message, c);
  if (message.size() <= kSelectorMessageBytesMax) return message;
  std::size_t end = kSelectorMessageBytesMax - kCut.size();
  while (end > 0 && is_continuation_byte(message[end])) --end;
  message.resize(end);
  message += kCut;
  return message;
}

auto bad(std::string_view message) { return fail(ErrorCode::invalid_argument, as_message(message)); }

// ---- the tokenizer

/// Cuts a text into tokens, from left to right.
class Tokenizer {
 public:
  explicit Tokenizer(std::string_view text) : rest_(text) {}

  /// All tokens; the last one is TokenKind::end.
  [[nodiscard]] Result<std::vector<Token>> run() {
    std::vector<Token> tokens;
    for (skip_blanks(); !rest_.empty(); skip_blanks()) {
      const bool after_label = !tokens.empty() && tokens.back().kind == TokenKind::label;
      const std::string_view text = rest_;
      TRY(const Token token, next(after_label ? tokens.back().value : std::string_view()));
      tokens.push_back({token.kind, token.value, text});
    }
    tokens.push_back({});
    return tokens;
  }

 private:
  /// The token at the front of a rest that is not empty. `label` is the token before, if that was one.
  [[nodiscard]] Result<Token> next(std::string_view label) {
    if (const auto punctuation = take_punctuation()) return Token{*punctuation, {}, {}};
    switch (rest_.front()) {
      case '"':
      case '\'':
        return string_literal();
      case '=':
        return bad("expected ==");
      case '&':
        return bad("expected &&");
      case '|':
        return bad("expected ||");
      default:
        return label.empty() ? word() : operator_after(label);
    }
  }

  std::optional<TokenKind> take_punctuation() {
    // `!=` before `!`.
    constexpr std::pair<std::string_view, TokenKind> kPunctuation[] = {
        {"(", TokenKind::left_paren},  {")", TokenKind::right_paren}, {"{", TokenKind::left_brace},
        {"}", TokenKind::right_brace}, {",", TokenKind::comma},       {"==", TokenKind::equal},
        {"!=", TokenKind::not_equal},  {"!", TokenKind::negate},      {"&&", TokenKind::each_of},
        {"||", TokenKind::any_of},
    };
    for (const auto& [text, kind] : kPunctuation) {
      if (take(text)) return kind;
    }
    return std::nullopt;
  }

  [[nodiscard]] Result<Token> string_literal() {
    const auto end = rest_.find(rest_.front(), 1);
    if (end == rest_.npos) return bad("unterminated string");
    const Token token{TokenKind::string_literal, rest_.substr(1, end - 1), {}};
    rest_.remove_prefix(end + 1);
    return token;
  }

  [[nodiscard]] Result<Token> operator_after(std::string_view label) {
    if (take_words("contains", {})) return Token{TokenKind::contains, {}, {}};
    if (take_words("starts", "with")) return Token{TokenKind::starts_with, {}, {}};
    if (take_words("ends", "with")) return Token{TokenKind::ends_with, {}, {}};
    if (take_words("not", "in")) return Token{TokenKind::not_in, {}, {}};
    if (take_words("in", {})) return Token{TokenKind::in, {}, {}};
    return bad(fmt::format("expected operator after label \"{}\"", label));
  }

  [[nodiscard]] Result<Token> word() {
    if (take("has(")) {
      skip_blanks();
      TRY(const std::string_view key, label_key());
      return closed(Token{TokenKind::has, key, {}}, "has(");
    }
    if (take("all(")) return closed(Token{TokenKind::all, {}, {}}, "all(");
    if (take("global(")) return closed(Token{TokenKind::global, {}, {}}, "global(");
    TRY(const std::string_view key, label_key());
    return Token{TokenKind::label, key, {}};
  }

  [[nodiscard]] Result<Token> closed(Token token, std::string_view opened) {
    skip_blanks();
    if (!take(")")) return bad(fmt::format("no closing ')' after {}", opened));
    return token;
  }

  [[nodiscard]] Result<std::string_view> label_key() {
    const auto* const end = std::find_if_not(rest_.begin(), rest_.end(), is_key_character);
    const auto key = rest_.substr(0, static_cast<std::size_t>(end - rest_.begin()));
    if (key.empty()) return bad("expected identifier");
    if (key.size() > kLabelKeyBytesMax) return bad(fmt::format("label too long: {}", key));
    rest_.remove_prefix(key.size());
    return key;
  }

  bool take(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  /// An operator of one word, or of two with or without blanks between. After it no character of a key may come: next
  /// to a single word, and behind the blanks after two. So `a contains b` is cut and `a not in b` is not, as in Calico.
  bool take_words(std::string_view first, std::string_view second) {
    const std::string_view before = rest_;
    bool taken = take(first);
    if (taken && !second.empty()) {
      skip_blanks();
      taken = take(second);
      skip_blanks();
    }
    if (taken && (rest_.empty() || !is_key_character(rest_.front()))) return true;
    rest_ = before;
    return false;
  }

  void skip_blanks() { rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size())); }

  std::string_view rest_;
};

}  // namespace

// ---- the parser

/// Goes over the tokens once and writes the steps. Open parentheses are on a stack of its own.
class SelectorParser {
 public:
  explicit SelectorParser(std::vector<Token> tokens) : tokens_(std::move(tokens)) { selector_.steps_.clear(); }

  [[nodiscard]] Result<Selector> run() {
    for (bool more = true; more;) {
      TRY_VOID(operand());
      TRY(more, after_operand());
    }
    if (front().kind != TokenKind::end)
      return bad(fmt::format("unexpected content at end of selector: {}", shown(front())));
    return std::move(selector_);
  }

 private:
  using Op = Selector::Op;
  using Step = Selector::Step;

  /// The whole text or an open parenthesis. Operands of `&&` make one operand of `||`.
  struct Level {
    bool negated = false;
    std::size_t any_of_count = 0;
    std::size_t each_of_count = 0;
  };

  [[nodiscard]] const Token& front() const { return tokens_[at_]; }
  [[nodiscard]] const Token& ahead(std::size_t n) const { return tokens_[std::min(at_ + n, tokens_.size() - 1)]; }

  /// Opens parentheses up to a comparison, and reads that.
  [[nodiscard]] Result<void> operand() {
    for (;;) {
      bool negated = false;
      for (; front().kind == TokenKind::negate; ++at_) negated = !negated;
      if (front().kind != TokenKind::left_paren) {
        TRY_VOID(comparison());
        close_operand(negated);
        return {};
      }
      if (levels_.size() > kSelectorNestingMax) {
        return bad(fmt::format("selector has more than {} parentheses inside each other", kSelectorNestingMax));
      }
      ++at_;
      levels_.push_back({.negated = negated});
    }
  }

  /// Closes parentheses up to an operator, after which it answers true, or the end.
  [[nodiscard]] Result<bool> after_operand() {
    for (;;) {
      switch (front().kind) {
        case TokenKind::each_of:
          ++at_;
          return true;
        case TokenKind::any_of:
          close_each_of();
          ++at_;
          return true;
        default:
          break;
      }
      const Level level = close_level();
      if (levels_.empty()) return false;
      if (front().kind != TokenKind::right_paren) return bad("expected )");
      ++at_;
      close_operand(level.negated);
    }
  }

  void close_operand(bool negated) {
    if (negated) selector_.steps_.push_back({.op = Op::negate});
    ++levels_.back().each_of_count;
  }

  void close_each_of() {
    Level& level = levels_.back();
    close_group(Op::each_of, std::exchange(level.each_of_count, 0));
    ++level.any_of_count;
  }

  Level close_level() {
    close_each_of();
    const Level level = levels_.back();
    close_group(Op::any_of, level.any_of_count);
    levels_.pop_back();
    return level;
  }

  void close_group(Op op, std::size_t count) {
    if (count >= 2) selector_.steps_.push_back({.op = op, .count = count});
  }

  [[nodiscard]] Result<void> comparison() {
    switch (front().kind) {
      case TokenKind::all:
        return simple(Op::all);
      case TokenKind::global:
        return simple(Op::global);
      case TokenKind::has:
        return simple(Op::has);
      case TokenKind::label:
        return label_comparison();
      default:
        return bad(fmt::format("unexpected {}", shown(front())));
    }
  }

  [[nodiscard]] Result<void> simple(Op op) {
    selector_.steps_.push_back({.op = op, .key = std::string(front().value)});
    ++at_;
    return {};
  }

  [[nodiscard]] Result<void> label_comparison() {
    if (ahead(1).kind == TokenKind::end) return bad("unexpected end of string looking for op");
    switch (ahead(1).kind) {
      case TokenKind::equal:
        return with_string(Op::equal);
      case TokenKind::not_equal:
        return with_string(Op::not_equal);
      case TokenKind::contains:
        return with_string(Op::contains);
      case TokenKind::starts_with:
        return with_string(Op::starts_with);
      case TokenKind::ends_with:
        return with_string(Op::ends_with);
      case TokenKind::in:
        return with_set(Op::in);
      case TokenKind::not_in:
        return with_set(Op::not_in);
      default:
        return bad(fmt::format("expected == or != not: {}", shown(ahead(1))));
    }
  }

  [[nodiscard]] Result<void> with_string(Op op) {
    if (ahead(2).kind != TokenKind::string_literal) return bad("expected string");
    selector_.steps_.push_back({.op = op, .key = std::string(front().value), .values = {std::string(ahead(2).value)}});
    at_ += 3;
    return {};
  }

  [[nodiscard]] Result<void> with_set(Op op) {
    if (ahead(2).kind != TokenKind::left_brace) return bad("expected set literal");
    Step step{.op = op, .key = std::string(front().value)};
    at_ += 3;
    while (front().kind == TokenKind::string_literal) {
      step.values.emplace_back(front().value);
      ++at_;
      if (front().kind != TokenKind::comma) break;
      ++at_;  // one may also follow the last value
    }
    if (front().kind != TokenKind::right_brace) return bad("expected }");
    ++at_;
    std::sort(step.values.begin(), step.values.end());
    selector_.steps_.push_back(std::move(step));
    return {};
  }

  static std::string_view shown(const Token& token) { return token.kind == TokenKind::end ? "end" : token.text; }

  std::vector<Token> tokens_;
  std::size_t at_ = 0;
  std::vector<Level> levels_{Level{}};
  Selector selector_;
};

Result<Selector> Selector::parse(std::string_view text) {
  if (text.size() > kSelectorBytesMax) {
    return bad(fmt::format("selector is {} bytes long; at most {} are read", text.size(), kSelectorBytesMax));
  }
  TRY(auto tokens, Tokenizer(text).run());
  if (tokens.front().kind == TokenKind::end) return Selector();
  return SelectorParser(std::move(tokens)).run();
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
