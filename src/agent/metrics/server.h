#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "agent/metrics/health.h"
#include "base/net/address.h"
#include "base/result.h"

namespace croft::edge {

/// Where metrics are served.
struct MetricsAddress {
  net::Address host;
  std::uint16_t port = 0;

  /// Reads `10.0.0.1:9600` and `[fd00::1]:9600`. `:9600` and `[::]:9600` are all addresses of both families, `0.0.0.0`
  /// those of IPv4. Error: invalid_argument with the remedy: a name, no port, port 0.
  [[nodiscard]] static Result<MetricsAddress> parse(std::string_view text);
  /// As parse() reads it.
  [[nodiscard]] std::string text() const;
};

/// Serves metrics by plain HTTP at `/metrics`, to whoever reaches the address (docs/adr/0018-asio-in-daemons.md), from
/// a thread of its own until it ends. With `health`: answers at `/healthz`, `/livez` and `/readyz`, 200 or 503.
/// One request a connection; GET and HEAD alone; header, time and number of connections are bounded.
class MetricsServer {
 public:
  /// `metrics` makes the text of one scrape, on that thread; it and `health` must outlive the server. Error:
  /// already_exists when nothing can listen there: another process does, it is no address of this machine, or the port
  /// is for root only.
  [[nodiscard]] static Result<std::unique_ptr<MetricsServer>> start(std::function<std::string()> metrics,
                                                                    const MetricsAddress& address,
                                                                    const Health* health = nullptr);
  /// A request that is being answered ends before this does.
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

 private:
  class Parts;
  explicit MetricsServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace croft::edge
