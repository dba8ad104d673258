#pragma once

#include <algorithm>
#include <string>
#include <string_view>

namespace croft {

/// Where the last `@` is, or the last `%40`, which is one as URLs write it in a password; npos: none.
[[nodiscard]] inline std::size_t last_at(std::string_view text) {
  const std::size_t plain = text.rfind('@'), encoded = text.rfind("%40");
  if (plain == text.npos || encoded == text.npos) return std::min(plain, encoded);
  return std::max(plain, encoded);
}

/// A text without what stands before an `@` or `%40` in the URLs in it: a user, mostly with a password. For errors and
/// logs, which repeat what was given.
[[nodiscard]] inline std::string without_user_info(std::string_view text) {
  constexpr std::string_view kBefore = "://", kHidden = "(hidden)";
  std::string result;
  for (;;) {
    const std::size_t begin = text.find(kBefore);
    if (begin == text.npos) return result.append(text);
    result.append(text.substr(0, begin + kBefore.size()));
    text.remove_prefix(begin + kBefore.size());
    // A password may have any character: the last one of this URL ends it.
    const std::size_t at = last_at(text.substr(0, text.find(kBefore)));
    if (at == text.npos) continue;
    result.append(kHidden);
    text.remove_prefix(at);
  }
}

}  // namespace croft
