#pragma once

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/net/address.h"
#include "base/net/prefix.h"
#include "base/time_text.h"

namespace croft::core {

// For tests: scenario files. A file is groups between blank lines; a group is comments (`#`) and commands, one a line,
// then `----` and what they print. Commands that print nothing need no `----`.

/// What a person did wrong in a scenario file.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Group {
  std::vector<std::pair<std::size_t, std::string>> lines;  ///< commands and comments with their line numbers
  std::string expected;                                    ///< each line ended
  std::size_t line = 0;                                    ///< where the expectation is, or would be
};

[[nodiscard]] inline std::vector<Group> groups_of(std::string_view text) {
  std::vector<Group> groups;
  Group group;
  bool below = false;
  std::size_t number = 0;
  const auto finish = [&] {
    if (!group.lines.empty()) groups.push_back(std::exchange(group, {}));
    group = {};
    below = false;
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    ++number;
    if (line.empty()) {
      finish();
    } else if (line == "----" && !below) {
      if (group.lines.empty()) throw Malformed(fmt::format("{}: ---- without a command above it", number));
      below = true;
      group.line = number;
    } else if (below) {
      group.expected += line + "\n";
    } else {
      group.lines.emplace_back(number, line);
      group.line = number;
    }
  }
  finish();
  return groups;
}

/// One command: words, and `name=value` in any order among them. Quotes keep blanks: selector="zone == 'z1'".
class Command {
 public:
  explicit Command(std::string_view line) {
    std::string word;
    bool quoted = false, any = false;
    for (const char c : line) {
      if (c == '"') {
        quoted = !quoted;
        any = true;
      } else if (c == ' ' && !quoted) {
        if (any) add(std::exchange(word, {}));
        any = false;
      } else {
        word += c;
        any = true;
      }
    }
    if (quoted) throw Malformed("a quote is not closed");
    if (any) add(word);
  }

  [[nodiscard]] bool more() const { return !words_.empty(); }
  /// The next word; it must be there.
  std::string word(std::string_view what) {
    if (words_.empty()) throw Malformed(fmt::format("{} is missing", what));
    std::string first = std::move(words_.front());
    words_.erase(words_.begin());
    return first;
  }
  /// Takes the word if it is the next.
  bool flag(std::string_view name) {
    const auto it = std::find(words_.begin(), words_.end(), name);
    if (it == words_.end()) return false;
    words_.erase(it);
    return true;
  }
  void expect(std::string_view name) {
    if (const std::string got = word(name); got != name) throw Malformed(fmt::format("{} instead of {}", got, name));
  }
  [[nodiscard]] bool has(const std::string& name) const { return options_.contains(name); }
  /// The value of an option; `otherwise` when it is not given.
  std::string option(const std::string& name, std::string otherwise = {}) {
    const auto it = options_.find(name);
    if (it == options_.end()) return otherwise;
    otherwise = std::move(it->second);
    options_.erase(it);
    return otherwise;
  }
  std::vector<std::string> list(const std::string& name) { return split(option(name), ','); }
  std::uint32_t number(const std::string& name, std::uint32_t otherwise) {
    return has(name) ? number_of(option(name)) : otherwise;
  }
  std::map<std::string, std::string> rest() { return std::exchange(options_, {}); }
  /// Whatever was not taken is a mistake.
  void done() const {
    if (!words_.empty()) throw Malformed("unknown word " + words_.front());
    if (!options_.empty()) throw Malformed("unknown argument " + options_.begin()->first + "=");
  }

  static std::uint32_t number_of(std::string_view text) {
    std::uint32_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) throw Malformed(fmt::format("{} is no number", text));
    return value;
  }
  /// 30s, 15m, 2h
  static std::chrono::seconds parse_span(std::string_view text) {
    const auto span = croft::parse_span(text);
    if (!span) throw Malformed(fmt::format("{} is no time: 30s, 15m, 2h", text));
    return *span;
  }
  static net::Address address_of(std::string_view text) {
    const auto parsed = net::Address::parse(text);
    if (!parsed) throw Malformed(fmt::format("{} is no address", text));
    return *parsed;
  }
  static net::Prefix prefix_of(std::string_view text) {
    const auto parsed = net::Prefix::parse(text);
    if (!parsed) throw Malformed(fmt::format("{} is no CIDR", text));
    return *parsed;
  }
  static std::vector<std::string> split(std::string_view text, char separator) {
    std::vector<std::string> parts;
    while (!text.empty()) {
      const std::size_t end = std::min(text.find(separator), text.size());
      parts.emplace_back(text.substr(0, end));
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    return parts;
  }

 private:
  void add(std::string word) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0) {
      words_.push_back(std::move(word));
    } else if (!options_.emplace(word.substr(0, equals), word.substr(equals + 1)).second) {
      throw Malformed("twice: " + word.substr(0, equals) + "=");
    }
  }

  std::vector<std::string> words_;
  std::map<std::string, std::string> options_;
};

}  // namespace croft::core
