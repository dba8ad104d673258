#include "http/endpoint.h"

#include <arpa/inet.h>
#include <sys/un.h>

#include <array>
#include <charconv>

#include <fmt/format.h>

#include "base/without_user_info.h"

namespace croft::os {
namespace {

constexpr std::size_t kUnixPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;

Error wrong(std::string_view text, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("endpoint \"{}\" {}", without_user_info(text), why), {}};
}

bool is_address(int family, const std::string& text) {
  std::array<std::byte, sizeof(in6_addr)> ignored{};
  return ::inet_pton(family, text.c_str(), ignored.data()) == 1;
}

bool strip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

[[nodiscard]] Result<Endpoint> parse_unix(std::string_view text, std::string_view path) {
  if (!path.starts_with('/')) return fail(wrong(text, "needs an absolute path after \"unix:\""));
  if (path.size() > kUnixPathBytesMax) {
    return fail(wrong(text, fmt::format("has a path longer than {} bytes", kUnixPathBytesMax)));
  }
  if (path.find('\0') != path.npos) return fail(wrong(text, "has a path with a NUL byte"));
  Endpoint endpoint;
  endpoint.kind = Endpoint::Kind::unix_socket;
  endpoint.path = path;
  return endpoint;
}

/// The host part of `rest`, which is left with what follows it.
[[nodiscard]] Result<std::string> take_host(std::string_view text, std::string_view& rest) {
  const bool bracketed = strip(rest, "[");
  const std::size_t end = rest.find(bracketed ? ']' : ':');
  if (end == rest.npos) return fail(wrong(text, bracketed ? "has no closing bracket" : "needs a port, as in :2379"));
  std::string host(rest.substr(0, end));
  rest.remove_prefix(end + (bracketed ? 1 : 0));
  if (!is_address(bracketed ? AF_INET6 : AF_INET, host)) {
    return fail(
        wrong(text, "must have a numeric address: 10.0.0.1, or [fd00::1] with brackets; names are not looked up"));
  }
  return host;
}

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view text) {
  std::string_view rest = text;
  if (strip(rest, "unix://") || strip(rest, "unix:")) return parse_unix(text, rest);
  Endpoint endpoint;
  if (strip(rest, "https://")) {
    endpoint.secure = true;
  } else if (!strip(rest, "http://")) {
    return fail(wrong(text, "must begin with http://, https:// or unix:"));
  }
  TRY(endpoint.host, take_host(text, rest));
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (!strip(rest, ":")) return fail(wrong(text, "needs a port, as in :2379"));
  const auto [stop, error] = std::from_chars(rest.data(), rest.data() + rest.size(), endpoint.port);
  if (error != std::errc() || stop != rest.data() + rest.size() || endpoint.port == 0) {
    return fail(wrong(text, "must end with a port, 1 to 65535, and no path"));
  }
  return endpoint;
}

Result<Endpoint> Endpoint::parse_numeric(std::string_view text, bool secure) {
  auto endpoint = text.ends_with('/') ? Result<Endpoint>(fail(wrong(text, "must end with a port")))
                                      : parse(fmt::format("http{}://{}", secure ? "s" : "", text));
  if (endpoint) return endpoint;
  return fail(wrong(text, "is no ADDRESS:PORT with a numeric address, as in 10.0.0.2:7312 or [fd00::2]:7312"));
}

std::string Endpoint::text() const {
  if (kind == Kind::unix_socket) return "unix:" + path;
  return (secure ? "https://" : "http://") + authority();
}

std::string Endpoint::authority() const {
  if (kind == Kind::unix_socket) return "localhost";
  const bool bracketed = host.find(':') != host.npos;
  return bracketed ? fmt::format("[{}]:{}", host, port) : fmt::format("{}:{}", host, port);
}

}  // namespace croft::os
