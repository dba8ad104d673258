#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"

namespace croft::edge {

/// A daemon's answers about its health, as Kubernetes' probes ask (`/healthz`, `/readyz`). Alive is who comes to the
/// end of its work; ready who could do all of it when it was last tried. Safe to use from several threads.
class Health {
 public:
  /// Work that takes longer than this is taken for stuck. `clock` must outlive it.
  explicit Health(const Clock& clock, std::chrono::nanoseconds work_max = std::chrono::minutes(15))
      : clock_(clock), work_max_(work_max) {}

  /// Something of limited length begins, ends.
  void begin_work();
  void end_work();

  /// The problem that keeps a part of the work from being done; empty: none. Parts are named in the answer.
  void set(const std::string& part, std::string problem);

  /// Nothing was tried: another process works now.
  void forget();

  struct Answer {
    bool good = true;
    /// For people: "ok", or a line for each part and a verdict, as the API server's own.
    std::string text;
  };
  [[nodiscard]] Answer alive() const;
  /// Not alive is not ready; without any part nothing was tried yet, which is not ready either.
  [[nodiscard]] Answer ready() const;

 private:
  [[nodiscard]] std::optional<std::string> stuck() const;

  const Clock& clock_;
  const std::chrono::nanoseconds work_max_;
  mutable std::mutex mutex_;  ///< guards all below
  std::optional<std::chrono::nanoseconds> begun_since_boot_;
  std::map<std::string, std::string> problems_;  ///< by part
};

/// Looks at a Health from a thread of its own, so that nobody need ask over a network. A question there can be kept
/// from its answer by whoever else connects.
class Watchdog {
 public:
  /// `stuck` is called once, on that thread, with what Health::alive() says when it says no; `health` must outlive
  /// this.
  Watchdog(const Health& health, std::chrono::milliseconds interval, std::function<void(const std::string&)> stuck);
  /// Ends within a moment; `stuck` is not running afterwards.
  ~Watchdog() = default;
  Watchdog(const Watchdog&) = delete;
  Watchdog& operator=(const Watchdog&) = delete;

 private:
  void look(const std::stop_token& end, const Health& health, std::chrono::milliseconds interval,
            const std::function<void(const std::string&)>& stuck);

  std::mutex mutex_;
  std::condition_variable_any turn_;
  std::jthread thread_;  ///< last: it uses the others
};

/// Where a daemon serves something by HTTP.
struct MetricsAddress {
  net::Address host;
  std::uint16_t port = 0;

  /// Reads `10.0.0.1:9600` and `[fd00::1]:9600`. `:9600` and `[::]:9600` are all addresses of both families, `0.0.0.0`
  /// those of IPv4. Error: invalid_argument with the remedy: a name, no port, port 0. It names what is served there.
  [[nodiscard]] static Result<MetricsAddress> parse(std::string_view text, std::string_view served = "metrics");
  /// As parse() reads it.
  [[nodiscard]] std::string text() const;
};

/// One request, as a handler sees it. Its method is GET, or HEAD, which gets the same answer without its body.
struct WebRequest {
  std::string_view path, query, host, authorization;
};

/// The answer. Nobody keeps it, and nobody guesses its type: the server says `no-store` and `nosniff` itself.
struct WebAnswer {
  unsigned status = 200;
  std::string body;
  std::string_view type = "text/plain; charset=utf-8";
  std::vector<std::pair<std::string_view, std::string>> fields{};  ///< further ones of the header
};

/// Serves pages by plain HTTP, to whoever reaches the address (docs/adr/0018-asio-in-daemons.md), from a thread of its
/// own until it ends. One request a connection; GET and HEAD alone; header, time and number of connections are bounded.
class WebServer {
 public:
  using Handler = std::function<WebAnswer(const WebRequest&)>;
  /// `handler` answers on that thread, one request after the other. Error: already_exists when nothing can listen
  /// there, which names what is `served`: another process does, it is no address of this machine, or the port is for
  /// root only.
  [[nodiscard]] static Result<std::unique_ptr<WebServer>> start(Handler handler, const MetricsAddress& address,
                                                                std::string_view served);
  /// A request that is being answered ends before this does.
  ~WebServer();
  WebServer(const WebServer&) = delete;
  WebServer& operator=(const WebServer&) = delete;

 private:
  class Parts;
  explicit WebServer(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Serves metrics at `/metrics`. With `health`: answers at `/healthz`, `/livez` and `/readyz`, 200 or 503. `metrics`
/// makes the text of one scrape; it and `health` must outlive the server. Error: of WebServer::start.
[[nodiscard]] Result<std::unique_ptr<WebServer>> serve_metrics(std::function<std::string()> metrics,
                                                               const MetricsAddress& address,
                                                               const Health* health = nullptr);

}  // namespace croft::edge
