#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace croft::os {

/// Where HTTP/1.1 is spoken: `http://api.example`, `https://[fd00::1]:8443/node-a`.
struct HttpUrl {
  bool secure = false;
  std::string host;  ///< a numeric address (IPv6 without brackets), or a name in small letters
  bool is_numeric = false;
  std::uint16_t port = 0;
  std::string path;  ///< in front of every target: empty, or with `/` first and none last

  /// Without a port it is 80 or 443. Error: invalid_argument, saying what is wrong: another scheme, a user, a question
  /// mark, a host that is none.
  [[nodiscard]] static Result<HttpUrl> parse(std::string_view text);
  [[nodiscard]] std::string text() const;
  /// The value of `Host`: without the port when that is the usual one.
  [[nodiscard]] std::string authority() const;
  friend bool operator==(const HttpUrl&, const HttpUrl&) = default;
};

using HttpHeaders = std::vector<std::pair<std::string, std::string>>;

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  ///< path and query, escaped as they are sent
  HttpHeaders headers;       ///< beside Host, Connection and Content-Length
  std::string body;
};

struct HttpResponse {
  int status = 200;
  HttpHeaders headers;  ///< names as they came
  std::string body;
};

}  // namespace croft::os
