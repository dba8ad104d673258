#include "agent/metrics/web_server.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http.hpp>
#include <fmt/format.h>

#include "base/printable.h"
#include "base/texts.h"

namespace croft::edge {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using boost::system::error_code;
using std::chrono::milliseconds;

// A connection that says nothing has a place for as long as its request may take. A scraper behind as many of them as
// the kernel keeps waiting is answered within about four seconds: Prometheus has ten, and so have the chart's probes.
constexpr std::size_t kConnectionsMax = 64;
constexpr int kBacklog = 192;
constexpr milliseconds kRequestTime{1000};
constexpr milliseconds kAnswerTime{5000};
constexpr std::uint32_t kHeaderBytesMax = 8192;
/// Before the next try where no connection could be taken, as without a descriptor left.
constexpr milliseconds kAcceptAgain{100};

using Request = http::request_parser<http::empty_body>;
using Answer = http::response<http::string_body>;

Answer answer_of(WebAnswer said) {
  Answer answer(static_cast<http::status>(said.status), 11);
  answer.set(http::field::content_type, beast::string_view(said.type.data(), said.type.size()));
  answer.set("X-Content-Type-Options", "nosniff");
  answer.set(http::field::cache_control, "no-store");
  for (const auto& [name, value] : said.fields) answer.set(beast::string_view(name.data(), name.size()), value);
  answer.keep_alive(false);
  answer.content_length(said.body.size());
  answer.body() = std::move(said.body);
  return answer;
}

Answer answer_to(const WebServer::Handler& handler, const http::request_header<>& request) {
  const bool is_head = request.method() == http::verb::head;
  if (!is_head && request.method() != http::verb::get) {
    return answer_of({405, "GET and HEAD alone\n", WebAnswer{}.type, {{"Allow", "GET, HEAD"}}});
  }
  const auto field = [&](http::field name) {
    const auto value = request[name];
    return std::string_view(value.data(), value.size());
  };
  const std::string_view target(request.target().data(), request.target().size());
  const std::size_t mark = std::min(target.find('?'), target.size());
  Answer answer;
  try {
    answer = answer_of(handler({target.substr(0, mark), target.substr(std::min(mark + 1, target.size())),
                                field(http::field::host), field(http::field::authorization)}));
  } catch (const std::exception& thrown) {
    // No memory, say; the daemon goes on.
    answer = answer_of({500, fmt::format("this could not be answered: {}\n", thrown.what())});
  }
  if (is_head) answer.body().clear();  // the header keeps the length
  return answer;
}

/// The answer to a client whose request can't be read; nothing to one that is gone or said nothing.
std::optional<Answer> answer_to_broken(const error_code& error) {
  if (error == http::error::header_limit || error == http::error::buffer_overflow) {
    return answer_of({431, "the header is too large\n"});
  }
  const bool is_about_form = error.category() == http::make_error_code(http::error::bad_method).category();
  if (!is_about_form || error == http::error::end_of_stream || error == http::error::partial_message) return {};
  return answer_of({400, "this is no HTTP/1.1 request\n"});
}

/// One request and its answer. Lives in its handlers; `ended` is called once, unless the server ends first.
class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket socket, const WebServer::Handler& handler, std::function<void()> ended)
      : stream_(std::move(socket)), handler_(handler), ended_(std::move(ended)) {
    request_.header_limit(kHeaderBytesMax);
  }

  void start() {
    stream_.expires_after(kRequestTime);
    // A body is not read: nothing here takes one.
    http::async_read_header(stream_, buffer_, request_, [self = shared_from_this()](const error_code& error, auto) {
      if (!error) return self->answer(answer_to(self->handler_, self->request_.get()));
      if (auto answer = answer_to_broken(error)) return self->answer(*std::move(answer));
      self->ended_();
    });
  }

 private:
  void answer(Answer answer) {
    answer_ = std::move(answer);
    stream_.expires_after(kAnswerTime);
    http::async_write(stream_, answer_, [self = shared_from_this()](const error_code& error, auto) {
      if (error) return self->ended_();
      error_code ignored;
      self->stream_.socket().shutdown(tcp::socket::shutdown_send, ignored);
      self->stream_.expires_after(kRequestTime);
      self->drain();
    });
  }

  /// Until the client closes: what is left unread when a socket is closed takes the answer with it.
  void drain() {
    stream_.async_read_some(asio::buffer(rest_), [self = shared_from_this()](const error_code& error, auto) {
      if (error) return self->ended_();
      self->drain();
    });
  }

  beast::tcp_stream stream_;
  beast::flat_buffer buffer_{kHeaderBytesMax + 1};
  Request request_;
  Answer answer_;
  std::array<char, 1024> rest_{};
  const WebServer::Handler& handler_;
  const std::function<void()> ended_;
};

}  // namespace

Result<MetricsAddress> MetricsAddress::parse(std::string_view text, std::string_view served) {
  constexpr std::string_view kForm =
      "must be an address and a port, as in 127.0.0.1:9600, [::1]:9600 or :9600; names are not looked up";
  const auto wrong = [&](std::string_view why) {
    return make_error(ErrorCode::invalid_argument, "{} address {} {}", served, echo(text), why);
  };
  const bool is_bracketed = text.starts_with('[');
  const std::size_t colon = text.rfind(':');
  if (colon == text.npos || (is_bracketed && (colon < 2 || text[colon - 1] != ']'))) return fail(wrong(kForm));
  const std::string_view host = is_bracketed ? text.substr(1, colon - 2) : text.substr(0, colon);
  const std::string_view port = text.substr(colon + 1);
  const bool is_all = !is_bracketed && host.empty() && !port.empty();
  const auto address = net::parse_address(is_all ? "::" : host);
  if (!address || (!is_all && address->is_v4() == is_bracketed)) return fail(wrong(kForm));

  MetricsAddress result{*address, 0};
  const auto [stop, error] = std::from_chars(port.data(), port.data() + port.size(), result.port);
  if (error != std::errc() || stop != port.data() + port.size()) {
    return fail(wrong("must end with a port, 1 to 65535"));
  }
  if (result.port == 0) {
    return fail(wrong(
        fmt::format("has port 0, which is a port nobody knows: name one, or leave the flag out for no {}", served)));
  }
  return result;
}

std::string MetricsAddress::text() const {
  return host.is_v4() ? fmt::format("{}:{}", host.to_string(), port) : fmt::format("[{}]:{}", host.to_string(), port);
}

class WebServer::Parts {
 public:
  explicit Parts(Handler handler) : handler_(std::move(handler)) {}
  ~Parts() {
    io_.stop();
    if (thread_.joinable()) thread_.join();
  }
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  /// At `[::]` IPv4 too; a kernel without IPv6 has its IPv4 addresses alone.
  [[nodiscard]] error_code listen(const MetricsAddress& address) {
    error_code error;
    const auto host = asio::ip::make_address(address.host.to_string(), error);
    if (error) return error;
    tcp::endpoint at(host, address.port);
    acceptor_.open(at.protocol(), error);
    if (error == asio::error::address_family_not_supported && host.is_unspecified()) {
      at = tcp::endpoint(tcp::v4(), address.port);
      acceptor_.open(at.protocol(), error);
    }
    if (!error) acceptor_.set_option(tcp::acceptor::reuse_address(true), error);
    if (!error && at.protocol() == tcp::v6()) acceptor_.set_option(asio::ip::v6_only(false), error);
    if (!error) acceptor_.bind(at, error);
    if (!error) acceptor_.listen(kBacklog, error);
    return error;
  }

  void serve() {
    accept();
    thread_ = std::thread([this] { io_.run(); });
  }

 private:
  void accept() {
    if (is_accepting_ || connections_ == kConnectionsMax) return;
    is_accepting_ = true;
    acceptor_.async_accept([this](const error_code& error, tcp::socket socket) {
      is_accepting_ = false;
      if (error) return accept_later();
      ++connections_;
      std::make_shared<Session>(std::move(socket), handler_, [this] { take_end(); })->start();
      accept();
    });
  }

  void accept_later() {
    again_.expires_after(kAcceptAgain);
    again_.async_wait([this](const error_code& error) {
      if (!error) accept();  // else a later wait is in this one's place
    });
  }

  void take_end() {
    --connections_;
    accept();
  }

  const Handler handler_;
  asio::io_context io_{1};
  tcp::acceptor acceptor_{io_};
  asio::steady_timer again_{io_};
  std::size_t connections_ = 0;  ///< these two are the thread's
  bool is_accepting_ = false;
  std::thread thread_;
};

WebServer::WebServer(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
WebServer::~WebServer() = default;

Result<std::unique_ptr<WebServer>> WebServer::start(Handler handler, const MetricsAddress& address,
                                                    std::string_view served) {
  auto parts = std::make_unique<Parts>(std::move(handler));
  if (const error_code error = parts->listen(address)) {
    return fail(ErrorCode::already_exists, "{} can't be served at {}: {}", served, address.text(), error.message());
  }
  parts->serve();
  return std::unique_ptr<WebServer>(new WebServer(std::move(parts)));
}

Result<std::unique_ptr<WebServer>> serve_metrics(std::function<std::string()> metrics, const MetricsAddress& address,
                                                 const Health* health) {
  const auto handler = [metrics = std::move(metrics), health](const WebRequest& request) -> WebAnswer {
    if (request.path == "/metrics") return {200, metrics(), "text/plain; version=0.0.4; charset=utf-8"};
    const bool is_alive = request.path == "/healthz" || request.path == "/livez";
    if (health == nullptr || (!is_alive && request.path != "/readyz")) return {404, "nothing is here: /metrics\n"};
    Health::Answer said = is_alive ? health->alive() : health->ready();
    return {said.good ? 200U : 503U, std::move(said.text)};
  };
  return WebServer::start(handler, address, "metrics");
}

void Health::begin_work() {
  const std::lock_guard lock(mutex_);
  begun_since_boot_ = clock_.now().since_boot;
}

void Health::end_work() {
  const std::lock_guard lock(mutex_);
  begun_since_boot_.reset();
}

void Health::set(const std::string& part, std::string problem) {
  const std::lock_guard lock(mutex_);
  problems_[part] = std::move(problem);
}

void Health::forget() {
  const std::lock_guard lock(mutex_);
  problems_.clear();
}

/// With mutex_ held.
std::optional<std::string> Health::stuck() const {
  if (!begun_since_boot_) return {};
  const auto span = clock_.now().since_boot - *begun_since_boot_;
  if (span <= work_max_) return {};
  return fmt::format("work has been going on for {} s", std::chrono::duration_cast<std::chrono::seconds>(span).count());
}

Health::Answer Health::alive() const {
  const std::lock_guard lock(mutex_);
  const auto problem = stuck();
  if (!problem) return {true, "ok\n"};
  return {false, fmt::format("[-]alive failed: {}\nhealthz check failed\n", *problem)};
}

Health::Answer Health::ready() const {
  const std::lock_guard lock(mutex_);
  Answer answer;
  const auto add = [&](const std::string& part, const std::string& problem) {
    answer.good = answer.good && problem.empty();
    answer.text += problem.empty() ? fmt::format("[+]{} ok\n", part)
                                   : fmt::format("[-]{} failed: {}\n", part, printable(problem, Printed::line));
  };
  if (const auto problem = stuck()) add("alive", *problem);
  if (problems_.empty()) add("work", "nothing was done yet");
  for (const auto& [part, problem] : problems_) add(part, problem);
  answer.text += answer.good ? "readyz check passed\n" : "readyz check failed\n";
  return answer;
}

Watchdog::Watchdog(const Health& health, std::chrono::milliseconds interval,
                   std::function<void(const std::string&)> stuck)
    : thread_([this, &health, interval, stuck = std::move(stuck)](const std::stop_token& end) {
        look(end, health, interval, stuck);
      }) {}

void Watchdog::look(const std::stop_token& end, const Health& health, std::chrono::milliseconds interval,
                    const std::function<void(const std::string&)>& stuck) {
  std::unique_lock lock(mutex_);
  while (!turn_.wait_for(lock, end, interval, [&end] { return end.stop_requested(); })) {
    if (end.stop_requested()) return;
    const Health::Answer answer = health.alive();
    if (!answer.good) return stuck(answer.text);
  }
}

}  // namespace croft::edge
