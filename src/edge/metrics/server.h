#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"
#include "edge/metrics/health.h"
#include "edge/metrics/metrics.h"
#include "edge/metrics/stock_metrics.h"
#include "net/address.h"

namespace croft::edge {

/// Where metrics are served.
struct MetricsAddress {
  net::Address host;
  std::uint16_t port = 0;

  /// Reads `10.0.0.1:9600` and `[fd00::1]:9600`; all addresses are `0.0.0.0` or `[::]`. Error: invalid_argument with
  /// the remedy: a name, no port, port 0.
  [[nodiscard]] static Result<MetricsAddress> parse(std::string_view text);
  /// As parse() reads it.
  [[nodiscard]] std::string text() const;
};

/// Serves metrics by plain HTTP at `/metrics`, to whoever reaches the address (docs/adr/0009-metrics.md), from threads
/// of its own until it ends. Adds figures of its own, `exposer_*`. With `health`: answers at `/healthz`, `/livez` and
/// `/readyz`, 200 or 503; one such server a process.
class MetricsServer {
 public:
  /// Errors: already_exists when nothing can listen there: another process does, it is no address of this machine, or
  /// the port is for root only; refused_by_configuration for IPv6 where civetweb has none, as in Debian 12.
  [[nodiscard]] static Result<std::unique_ptr<MetricsServer>> start(const Metrics& metrics,
                                                                    const MetricsAddress& address,
                                                                    const Health* health = nullptr);
  /// The same of a stock of cloud addresses.
  [[nodiscard]] static Result<std::unique_ptr<MetricsServer>> start(const StockMetrics& metrics,
                                                                    const MetricsAddress& address,
                                                                    const Health* health = nullptr);
  ~MetricsServer();
  MetricsServer(const MetricsServer&) = delete;
  MetricsServer& operator=(const MetricsServer&) = delete;

 private:
  class Parts;
  explicit MetricsServer(std::unique_ptr<Parts> parts);
  [[nodiscard]] static Result<std::unique_ptr<MetricsServer>> start_with(
      const std::weak_ptr<prometheus::Collectable>& metrics, const MetricsAddress& address, const Health* health);
  std::unique_ptr<Parts> parts_;
};

}  // namespace croft::edge
