#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/result.h"
#include "http/http1_message.h"

namespace croft::os {

struct Http1ServerOptions {
  std::size_t header_bytes_max = std::size_t{16} << 10;
  std::size_t body_bytes_max = std::size_t{256} << 10;
  std::size_t connections_max = 512;                  ///< more wait in the kernel's queue
  std::chrono::nanoseconds patience{10'000'000'000};  ///< for a whole request to come, and for an answer to go
};

/// A small HTTP/1.1 server for tools and tests, a thread a connection, one request each. What listens to the world is
/// not made of it: no TLS, and who connects is not asked.
class Http1Server {
 public:
  enum class Waited : std::uint8_t { elapsed, client_gone, stopping };
  /// What a handler may ask while it works.
  class Exchange {
   public:
    virtual ~Exchange() = default;
    /// Waits without work. With `until_client_goes` it ends early when the client has closed the connection.
    virtual Waited wait(std::chrono::nanoseconds span, bool until_client_goes) = 0;
  };
  /// Called from several threads at once. Nothing: the connection is closed without an answer.
  using Handler = std::function<std::optional<HttpResponse>(const HttpRequest&, Exchange&)>;

  /// `where`: `127.0.0.1:8080`, `[::1]:0`; a port 0 is one that is free. Errors: invalid_argument, unavailable (the
  /// address is taken, or not of this machine).
  [[nodiscard]] static Result<std::unique_ptr<Http1Server>> listen(std::string_view where, Handler handler,
                                                                   const Clock& clock,
                                                                   const Http1ServerOptions& options = {});
  /// Ends all: waits of handlers end as `stopping`, and connections are closed.
  virtual ~Http1Server() = default;
  /// "127.0.0.1:34567", with the port it has.
  [[nodiscard]] virtual std::string where() const = 0;

 protected:
  Http1Server() = default;
};

}  // namespace croft::os
