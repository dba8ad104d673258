#pragma once

#include <string>
#include <string_view>

namespace croft {

/// A text without what stands before an `@` in the URLs in it: a user, mostly with a password. For errors and logs,
/// which repeat what was given.
[[nodiscard]] inline std::string without_user_info(std::string_view text) {
  constexpr std::string_view kBefore = "://", kHidden = "(hidden)";
  std::string result;
  for (;;) {
    const std::size_t begin = text.find(kBefore);
    if (begin == text.npos) return result.append(text);
    result.append(text.substr(0, begin + kBefore.size()));
    text.remove_prefix(begin + kBefore.size());
    // A password may have any character: the last one of this URL ends it.
    const std::size_t at = text.substr(0, text.find(kBefore)).rfind('@');
    if (at == text.npos) continue;
    result.append(kHidden);
    text.remove_prefix(at);
  }
}

}  // namespace croft
