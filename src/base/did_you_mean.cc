#include "base/did_you_mean.h"

#include <algorithm>
#include <utility>

namespace croft {
namespace {

/// Longer ones nobody types; comparing them would only take time.
constexpr std::size_t kWordBytesMax = 64;

/// Past these two words are two words.
std::size_t errors_allowed(std::string_view word) { return word.size() <= 2 ? 0 : word.size() <= 4 ? 1 : 2; }

}  // namespace

std::size_t typing_errors_between(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = a[i - 1] == b[j - 1] ? 0 : 1;
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + change});
      const bool is_swap = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (is_swap) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

std::vector<std::string> nearest_words(std::string_view word, const std::vector<std::string>& known,
                                       std::size_t count) {
  if (word.empty() || word.size() > kWordBytesMax) return {};
  std::vector<std::pair<std::size_t, std::string>> near;
  for (const std::string& one : known) {
    if (one == word || one.size() > kWordBytesMax) continue;
    const std::size_t errors = typing_errors_between(word, one);
    const bool begins = one.starts_with(word) && word.size() >= 2;
    if (errors <= errors_allowed(word) || begins) near.emplace_back(errors, one);
  }
  std::sort(near.begin(), near.end());
  std::vector<std::string> words;
  for (auto& [errors, one] : near) {
    if (words.size() < count) words.push_back(std::move(one));
  }
  return words;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& known) {
  std::string text;
  for (const std::string& one : nearest_words(word, known)) text += (text.empty() ? "\"" : " or \"") + one + "\"";
  return text.empty() ? "" : "; did you mean " + text + "?";
}

}  // namespace croft
