#include "store/kube/hide_token.h"

#include <charconv>
#include <cstddef>
#include <utility>

namespace croft::store::kube {
namespace {

constexpr std::size_t kTokenBytesMin = 8;
constexpr std::size_t kPartBytesMin = 24;

/// How many bytes of `text` are its first character, as it is or escaped as in JSON; 0: the end. `c`: the character.
std::size_t take_one(std::string_view text, char& c) {
  if (text.empty()) return 0;
  c = text.front();
  if (c != '\\' || text.size() < 2) return 1;
  if (text[1] != 'u') {
    c = text[1];
    return 2;
  }
  constexpr std::size_t kEscapeBytes = 6;
  unsigned code = 0;
  if (text.size() < kEscapeBytes) return 1;
  const char* const end = text.data() + kEscapeBytes;
  const auto [stop, error] = std::from_chars(text.data() + 2, end, code, 16);
  if (error != std::errc() || stop != end || code > 0x7f) return 1;
  c = static_cast<char>(code);
  return kEscapeBytes;
}

struct Match {
  std::size_t of_token = 0;  ///< so many bytes of the token are here …
  std::size_t of_text = 0;   ///< … written in so many
};

Match match(std::string_view token, std::string_view text) {
  Match found;
  for (const char wanted : token) {
    char c = 0;
    const std::size_t size = take_one(text.substr(found.of_text), c);
    if (size == 0 || c != wanted) break;
    ++found.of_token;
    found.of_text += size;
  }
  return found;
}

void hide(std::string_view token, std::size_t least, std::string& text) {
  if (token.size() < kTokenBytesMin) return;
  const std::string begins{token.front(), '\\'};
  std::string kept;
  std::size_t done = 0;
  for (std::size_t at = text.find_first_of(begins); at != text.npos; at = text.find_first_of(begins, at)) {
    const Match found = match(token, std::string_view(text).substr(at));
    if (found.of_token < std::min(least, token.size())) {
      ++at;
      continue;
    }
    kept.append(text, done, at - done).append(kHiddenToken);
    at += found.of_text;
    done = at;
  }
  if (done == 0) return;
  kept.append(text, done);
  text = std::move(kept);
}

}  // namespace

void hide_token(std::string_view token, std::string& text) { hide(token, kPartBytesMin, text); }

void hide_whole_token(std::string_view token, std::string& text) { hide(token, token.size(), text); }

void hide_token(std::string_view token, Error& error) {
  hide_token(token, error.message);
  hide_token(token, error.details);
}

void hide_token(std::string_view token, wire::kube::ApiStatus& status) {
  for (std::string* text : {&status.reason, &status.message, &status.name, &status.kind, &status.uid}) {
    hide_token(token, *text);
  }
  for (auto& cause : status.causes) {
    for (std::string* text : {&cause.reason, &cause.message, &cause.field}) hide_token(token, *text);
  }
}

}  // namespace croft::store::kube
