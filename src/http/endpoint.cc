#include "http/endpoint.h"

#include <sys/un.h>

#include <fmt/format.h>

#include "base/without_user_info.h"
#include "http/url/url.h"

namespace croft::os {
namespace {

constexpr std::size_t kUnixPathBytesMax = sizeof(sockaddr_un::sun_path) - 1;

Error wrong(std::string_view text, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("endpoint \"{}\" {}", without_user_info(text), why), {}};
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

}  // namespace

Result<Endpoint> Endpoint::parse(std::string_view text) {
  for (const std::string_view scheme : {"unix://", "unix:"}) {
    if (text.starts_with(scheme)) return parse_unix(text, text.substr(scheme.size()));
  }
  if (!text.starts_with("http")) return fail(wrong(text, "must begin with http://, https:// or unix:"));
  TRY(const wire::Url url, wire::Url::parse(text));
  if (!url.is_numeric) {
    return fail(
        wrong(text, "must have a numeric address: 10.0.0.1, or [fd00::1] with brackets; names are not looked up"));
  }
  std::string_view rest = text;
  if (rest.ends_with('/')) rest.remove_suffix(1);
  if (!url.path.empty() || !rest.ends_with(fmt::format(":{}", url.port))) {
    return fail(wrong(text, "must end with a port, as in :2379, and no path"));
  }
  return Endpoint{Kind::tcp, url.secure, url.host, url.port, {}};
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
