#include "http/url/url.h"

#include <algorithm>
#include <charconv>

#include "base/net/address.h"
#include "base/printable.h"
#include "base/texts.h"

namespace croft::wire {
namespace {

constexpr std::size_t kUrlBytesMax = 2048;
constexpr std::size_t kHostBytesMax = 253;

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kHostBytesMax || text.front() == '.' || text.front() == '-') return false;
  if (text.ends_with('.')) text.remove_suffix(1);
  // A name's last label is no number: "10.0.0.256" is no name, but an address that is wrong.
  const std::string_view last = text.substr(text.rfind('.') + 1);
  if (last.find_first_not_of("0123456789") == last.npos) return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789._-") == text.npos;
}

}  // namespace

Result<Url> Url::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(ErrorCode::invalid_argument, "URL {} {}", echo(without_user_info(text)), why);
  };
  if (text.size() > kUrlBytesMax) return wrong("is too long");
  if (std::ranges::any_of(text, [](char c) { return c <= ' ' || c > '~'; })) {
    return wrong("has characters that no URL has");
  }
  Url url;
  url.secure = text.starts_with("https://");
  if (!url.secure && !text.starts_with("http://")) return wrong("must begin with http:// or https://");
  const std::string_view rest = text.substr(text.find("//") + 2);
  if (rest.find_first_of("?#") != rest.npos) return wrong("must have no query and no fragment");
  std::string_view authority = rest.substr(0, rest.find('/'));
  url.path = rest.substr(authority.size());
  while (url.path.ends_with('/')) url.path.pop_back();
  if (authority.find('@') != authority.npos) return fail(invalid_argument("a URL must have no user and no password"));
  const bool is_bracketed = authority.starts_with('[');
  if (is_bracketed) authority.remove_prefix(1);
  const std::size_t end = authority.find(is_bracketed ? ']' : ':');
  if (is_bracketed && end == authority.npos) return wrong("has no closing bracket");
  for (const char c : authority.substr(0, end)) url.host += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  const auto address = net::Address::parse(url.host);
  url.is_numeric = address && address->is_v4() != is_bracketed;
  if (!url.is_numeric && (is_bracketed || !is_name(url.host))) {
    return wrong("has no host: a name, 10.0.0.1 or [fd00::1]");
  }
  authority.remove_prefix(end == authority.npos ? authority.size() : end + (is_bracketed ? 1 : 0));
  url.port = url.secure ? 443 : 80;
  if (authority.empty()) return url;
  if (!authority.starts_with(':')) return wrong("has something behind its host");
  authority.remove_prefix(1);
  const auto [stop, error] = std::from_chars(authority.data(), authority.data() + authority.size(), url.port);
  if (error != std::errc() || stop != authority.data() + authority.size() || url.port == 0) {
    return wrong("needs a port from 1 to 65535 behind the colon");
  }
  return url;
}

std::string Url::authority() const {
  std::string text = host.find(':') == host.npos ? host : "[" + host + "]";
  if (port != (secure ? 443 : 80)) text += ":" + std::to_string(port);
  return text;
}

std::string Url::text() const { return (secure ? "https://" : "http://") + authority() + path; }

}  // namespace croft::wire
