#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/transport.h"
#include "http/url/url.h"

namespace croft::os {

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

/// The numeric addresses of a name, as look_up_host tells them. Given in, because a static program has no resolver.
using LookUp = std::function<Result<std::vector<std::string>>(const std::string& name, Deadline deadline)>;

struct Http1Options {
  std::shared_ptr<const TransportSecurity> security;  ///< for https; its server_name has to fit the URL
  LookUp look_up;                                     ///< empty: names are refused
  std::size_t header_bytes_max = std::size_t{32} << 10;
  std::size_t body_bytes_max = std::size_t{4} << 20;
};

/// HTTP/1.1 as client (docs/adr/0015-http1.md). Each call has a connection of its own, so that a connection that the
/// server has just closed never makes a call ambiguous. Safe to use from several threads.
class Http1Client {
 public:
  Http1Client(wire::Url url, Http1Options options, const Clock& clock);

  /// Sends a request and returns the whole answer, whatever its status. Where a name has several addresses, they are
  /// tried in turn until one connects; when names cannot be looked up, those of the last time are.
  /// Errors, which tell what the server may know of it:
  ///   unavailable        nothing was sent: not connected
  ///   deadline_exceeded  nothing was sent: no time left
  ///   permission_denied  nothing was sent: a certificate was refused, or a socket
  ///   invalid_argument   nothing was sent: the request or URL is wrong; a name, and nobody to look it up
  ///   unknown_outcome    it was sent, or part of it, and no whole, valid answer came
  [[nodiscard]] Result<HttpResponse> call(const HttpRequest& request, Deadline deadline);

 private:
  [[nodiscard]] Result<std::vector<std::string>> addresses(Deadline deadline);
  [[nodiscard]] Result<std::unique_ptr<Transport>> connect(Deadline deadline);

  const wire::Url url_;
  const Http1Options options_;
  const Clock& clock_;
  std::mutex mutex_;
  std::vector<std::string> last_;  ///< guarded by mutex_: what the name had
};

}  // namespace croft::os
