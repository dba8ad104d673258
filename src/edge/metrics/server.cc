#include "edge/metrics/server.h"

#include <CivetServer.h>

#include <atomic>
#include <charconv>
#include <exception>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <prometheus/exposer.h>

#include "net/echo.h"

namespace croft::edge {
namespace {

// Whoever connects and says nothing keeps a thread for as long as a request may take, and who comes behind as many of
// them as can wait is answered within about four seconds: Prometheus has ten, and so have the chart's probes.
constexpr const char* kThreads = "64";
constexpr const char* kRequestTimeoutMs = "1000";
/// Connections that wait for a thread, and those that wait to be taken from the kernel.
constexpr const char* kQueue = "64";
constexpr const char* kBacklog = "128";

Error wrong(std::string_view text, std::string_view why) {
  return {ErrorCode::invalid_argument, fmt::format("metrics address {} {}", net::echo(text), why), {}};
}

/// What civetweb complains of while this thread starts a server: it calls back without telling whose server it is.
thread_local std::string* complaints = nullptr;

/// Of the process's server: a callback is not told whose it is. Null: it says nothing of that.
std::atomic<const Health*> told_health{nullptr};

/// Takes what asks for health; the rest is the exposer's.
int answer_health(mg_connection* connection) {
  const mg_request_info* request = mg_get_request_info(connection);
  const Health* health = told_health;
  if (health == nullptr || request == nullptr || request->local_uri == nullptr) return 0;
  const std::string_view path = request->local_uri;
  const bool is_alive = path == "/healthz" || path == "/livez";
  if (!is_alive && path != "/readyz") return 0;
  const Health::Answer answer = is_alive ? health->alive() : health->ready();
  const int code = answer.good ? 200 : 503;
  const std::string head = fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n"
      "Cache-Control: no-store\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
      answer.good ? "200 OK" : "503 Service Unavailable", answer.text.size());
  const bool has_body = std::string_view(request->request_method) != "HEAD";
  mg_write(connection, head.data(), head.size());
  if (has_body) mg_write(connection, answer.text.data(), answer.text.size());
  return code;
}

/// Later complaints, of what clients send, concern nobody.
int take_complaint(const mg_connection*, const char* message) {
  if (complaints != nullptr && message != nullptr && complaints->empty()) *complaints = message;
  return 1;
}

}  // namespace

Result<MetricsAddress> MetricsAddress::parse(std::string_view text) {
  constexpr std::string_view kForm =
      "must be an address and a port, as in 127.0.0.1:9600 or [::1]:9600; names are not looked up";
  const bool is_bracketed = text.starts_with('[');
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || (is_bracketed && (colon < 2 || text[colon - 1] != ']'))) return fail(wrong(text, kForm));
  const std::string_view host = is_bracketed ? text.substr(1, colon - 2) : text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const auto address = net::parse_address(host);
  if (!address || address->is_v4() == is_bracketed) return fail(wrong(text, kForm));

  MetricsAddress result{*address, 0};
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc() || stop != port.data() + port.size()) {
    return fail(wrong(text, "must end with a port, 1 to 65535"));
  }
  if (result.port == 0) {
    return fail(
        wrong(text, "has port 0, which is a port nobody knows: name one, or leave the flag out for no metrics"));
  }
  return result;
}

std::string MetricsAddress::text() const {
  return host.is_v4() ? fmt::format("{}:{}", host.to_string(), port) : fmt::format("[{}]:{}", host.to_string(), port);
}

class MetricsServer::Parts {
 public:
  Parts(const std::vector<std::string>& options, const CivetCallbacks& callbacks)
      : exposer_(std::make_unique<prometheus::Exposer>(options, &callbacks)) {}
  /// A request that is being answered ends before this does.
  ~Parts() {
    exposer_.reset();
    told_health = nullptr;
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;
  [[nodiscard]] prometheus::Exposer& exposer() { return *exposer_; }

 private:
  std::unique_ptr<prometheus::Exposer> exposer_;
};

MetricsServer::MetricsServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
MetricsServer::~MetricsServer() = default;

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const Metrics& metrics, const MetricsAddress& address,
                                                            const Health* health) {
  return start_with(metrics.collectable(), address, health);
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::start(const StockMetrics& metrics, const MetricsAddress& address,
                                                            const Health* health) {
  return start_with(metrics.collectable(), address, health);
}

Result<std::unique_ptr<MetricsServer>> MetricsServer::start_with(const std::weak_ptr<prometheus::Collectable>& metrics,
                                                                 const MetricsAddress& address, const Health* health) {
  if (address.host.is_v6() && mg_check_feature(MG_FEATURES_IPV6) == 0) {
    return fail(
        ErrorCode::refused_by_configuration,
        fmt::format("metrics can't be served at {}: the HTTP library of this machine, civetweb, is built without "
                    "IPv6; give an IPv4 address",
                    address.text()));
  }
  const std::vector<std::string> options{"listening_ports",    address.text(),    "num_threads",      kThreads,
                                         "request_timeout_ms", kRequestTimeoutMs, "connection_queue", kQueue,
                                         "listen_backlog",     kBacklog};
  CivetCallbacks callbacks;
  callbacks.log_message = take_complaint;
  if (health != nullptr) {
    told_health = health;
    callbacks.begin_request = answer_health;
  }
  std::string complaint;
  complaints = &complaint;
  std::unique_ptr<Parts> parts;
  try {
    parts = std::make_unique<Parts>(options, callbacks);
  } catch (const std::exception& error) {
    if (complaint.empty()) complaint = error.what();
  }
  complaints = nullptr;
  if (parts == nullptr) {
    told_health = nullptr;
    return fail(ErrorCode::already_exists, fmt::format("metrics can't be served at {}: {}", address.text(), complaint));
  }
  parts->exposer().RegisterCollectable(metrics);
  return std::unique_ptr<MetricsServer>(new MetricsServer(std::move(parts)));
}

}  // namespace croft::edge
