#include "store/kube/format/kube_server.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/net/address.h"
#include "base/net/echo.h"
#include "store/kube/format/kubeconfig.h"

namespace croft::wire::kube {
namespace {

constexpr std::size_t kHostBytesMax = 253;
constexpr std::size_t kPrefixBytesMax = 512;

bool is_letter_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

bool is_dns_name(std::string_view text) {
  if (text.empty() || text.size() > kHostBytesMax || text.starts_with('-') || text.starts_with('.')) return false;
  if (text.find("..") != text.npos) return false;
  const bool is_allowed =
      std::ranges::all_of(text, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '.' || c == '_'; });
  // What looks like a number is an address that is wrong, not a name.
  const std::string_view last = text.substr(text.rfind('.') + 1);
  return is_allowed && !last.empty() && !std::ranges::all_of(last, [](char c) { return c >= '0' && c <= '9'; });
}

bool is_path(std::string_view text) {
  return text.size() <= kPrefixBytesMax && text.find("//") == text.npos && std::ranges::all_of(text, [](char c) {
           return is_letter_or_digit(c) || std::string_view("/-._~%:@!$&'()*+,;=").find(c) != std::string_view::npos;
         });
}

Error wrong(std::string_view url, std::string_view why) {
  return invalid_argument(fmt::format("{} {}", net::echo(url), why));
}

bool strip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

std::optional<std::string> server_host(std::string_view text) {
  const bool is_bracketed = text.starts_with('[') && text.ends_with(']') && text.size() > 2;
  const std::string_view bare = is_bracketed ? text.substr(1, text.size() - 2) : text;
  if (const auto address = net::Address::parse(bare)) {
    if (is_bracketed && bare.find(':') == bare.npos) return {};
    return std::string(bare);
  }
  if (is_bracketed || !is_dns_name(bare)) return {};
  return std::string(bare);
}

std::optional<std::uint16_t> server_port(std::string_view text) {
  std::uint16_t port = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), port);
  if (error != std::errc() || end != text.data() + text.size() || port == 0) return {};
  return port;
}

bool is_dns_label(std::string_view text) {
  constexpr std::size_t kLabelBytesMax = 63;
  return !text.empty() && text.size() <= kLabelBytesMax && !text.starts_with('-') && !text.ends_with('-') &&
         std::ranges::all_of(text, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; });
}

bool is_bearer_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7F'; });
}

std::string_view trimmed_token(std::string_view content) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const std::size_t begin = content.find_first_not_of(kSpace);
  if (begin == content.npos) return {};
  return content.substr(begin, content.find_last_not_of(kSpace) - begin + 1);
}

std::string KubeServer::authority() const {
  const bool is_v6 = host.find(':') != host.npos;
  return is_v6 ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

std::string KubeServer::text() const {
  return fmt::format("{}://{}{}", secure ? "https" : "http", authority(), path_prefix);
}

Result<KubeServer> parse_kube_server(std::string_view url) {
  std::string_view rest = url;
  KubeServer server;
  if (!strip(rest, "https://")) {
    if (!strip(rest, "http://")) return fail(wrong(url, "must begin with https:// (or http://, without credentials)"));
    server.secure = false;
    server.port = 80;
  }
  if (rest.find_first_of("?#") != rest.npos) return fail(wrong(url, "may have no query and no fragment"));
  std::string_view authority = rest.substr(0, rest.find('/'));
  std::string_view path = rest.substr(authority.size());
  if (authority.find('@') != authority.npos) return fail(invalid_argument("a server's URL may have no user"));
  while (path.ends_with('/')) path.remove_suffix(1);
  if (!is_path(path)) return fail(wrong(url, "has a path that is none"));
  server.path_prefix = path;
  const std::size_t bracket = authority.rfind(']');
  const std::size_t colon = authority.find(':', bracket == authority.npos ? 0 : bracket);
  if (colon != authority.npos) {
    const auto port = server_port(authority.substr(colon + 1));
    if (!port) return fail(wrong(url, "has a port that is none, 1 to 65535"));
    server.port = *port;
    authority = authority.substr(0, colon);
  }
  auto host = server_host(authority);
  const bool is_bare_v6 = host && host->find(':') != host->npos && bracket == authority.npos;
  if (!host || is_bare_v6) return fail(wrong(url, "needs a host: 10.0.0.1, [fd00::1] with brackets, or a name"));
  server.host = *std::move(host);
  return server;
}

}  // namespace croft::wire::kube
