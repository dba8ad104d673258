#include <arpa/inet.h>

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/without_user_info.h"
#include "http/http1_message.h"

namespace croft::os {
namespace {

constexpr std::size_t kUrlBytesMax = 2048;
constexpr std::size_t kHostBytesMax = 253;

bool is_inet(int family, const std::string& text) {
  std::array<std::byte, sizeof(in6_addr)> ignored{};
  return ::inet_pton(family, text.c_str(), ignored.data()) == 1;
}

bool is_name(std::string_view text) {
  if (text.empty() || text.size() > kHostBytesMax || text.front() == '.' || text.front() == '-') return false;
  // A name's last label is no number: "10.0.0.256" is no name, but an address that is wrong.
  const std::string_view last = text.substr(text.rfind('.') + 1);
  if (last.find_first_not_of("0123456789") == last.npos) return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789.-") == text.npos;
}

}  // namespace

Result<HttpUrl> HttpUrl::parse(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return fail(invalid_argument(fmt::format("URL \"{}\" {}", without_user_info(text).substr(0, 128), why)));
  };
  if (text.size() > kUrlBytesMax) return wrong("is too long");
  for (const char c : text) {
    if (c <= ' ' || c > '~') return wrong("has characters that no URL has");
  }
  std::string_view rest = text;
  HttpUrl url;
  if (rest.starts_with("https://")) {
    url.secure = true;
    rest.remove_prefix(8);
  } else if (rest.starts_with("http://")) {
    rest.remove_prefix(7);
  } else {
    return wrong("must begin with http:// or https://");
  }
  if (rest.find_first_of("?#") != rest.npos) return wrong("must have no query and no fragment");
  const std::size_t slash = rest.find('/');
  std::string_view authority = rest.substr(0, slash);
  if (slash != rest.npos) url.path = rest.substr(slash);
  while (url.path.ends_with('/')) url.path.pop_back();
  if (authority.find('@') != authority.npos) return fail(invalid_argument("a URL must have no user and no password"));
  const bool bracketed = authority.starts_with('[');
  if (bracketed) authority.remove_prefix(1);
  const std::size_t end = authority.find(bracketed ? ']' : ':');
  if (bracketed && end == authority.npos) return wrong("has no closing bracket");
  for (const char c : authority.substr(0, end)) url.host += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  url.is_numeric = is_inet(bracketed ? AF_INET6 : AF_INET, url.host);
  if (!url.is_numeric && (bracketed || !is_name(url.host))) return wrong("has no host: a name, 10.0.0.1 or [fd00::1]");
  authority.remove_prefix(end == authority.npos ? authority.size() : end + (bracketed ? 1 : 0));
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

std::string HttpUrl::authority() const {
  std::string text = host.find(':') == host.npos ? host : "[" + host + "]";
  if (port != (secure ? 443 : 80)) text += ":" + std::to_string(port);
  return text;
}

std::string HttpUrl::text() const { return (secure ? "https://" : "http://") + authority() + path; }

}  // namespace croft::os
