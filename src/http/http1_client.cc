#include "http/http1_client.h"

#include <array>
#include <span>

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "base/texts.h"

namespace croft::os {
namespace {

constexpr std::size_t kReadBytes = std::size_t{16} << 10;

bool is_token(std::string_view text) {
  return !text.empty() &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == text.npos;
}

/// Nothing that could end a line early.
bool is_line(std::string_view text, bool with_blanks) {
  for (const char c : text) {
    if (c < ' ' || c > '~' || (c == ' ' && !with_blanks)) return false;
  }
  return true;
}

[[nodiscard]] Result<std::string> text_of(const HttpRequest& request, const wire::Url& url) {
  if (!is_token(request.method)) return fail(invalid_argument("HTTP: a method that is none"));
  if (!request.target.starts_with('/') || !is_line(request.target, false)) {
    return fail(invalid_argument("HTTP: a target that is none"));
  }
  std::string text = fmt::format("{} {}{} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n", request.method, url.path,
                                 request.target, url.authority());
  for (const auto& [name, value] : request.headers) {
    if (!is_token(name) || !is_line(value, true)) return fail(invalid_argument("HTTP: a header that is none: " + name));
    text += fmt::format("{}: {}\r\n", name, value);
  }
  if (!request.body.empty() || request.method != "GET") {
    text += fmt::format("Content-Length: {}\r\n", request.body.size());
  }
  return text + "\r\n" + request.body;
}

namespace http = boost::beast::http;

auto wrong(const boost::system::error_code& error) { return fail(invalid_argument("HTTP: " + error.message())); }

/// Bytes as they come, to a response: Beast's parser, which makes nothing of what is behind it
/// (docs/adr/0015-http1.md).
class Parser {
 public:
  explicit Parser(const Http1Options& limits) {
    // Eager, Beast 1.74 goes on into a body whose length it has just refused.
    parser_.eager(false);
    parser_.header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
    parser_.body_limit(limits.body_bytes_max);
  }

  /// True: the message is complete. Error: invalid_argument, what is wrong with it; of no use after that.
  [[nodiscard]] Result<bool> feed(std::string_view bytes) {
    waiting_ += bytes;
    while (!waiting_.empty() && !parser_.is_done()) {
      boost::system::error_code error;
      const std::size_t used = parser_.put(boost::asio::buffer(waiting_), error);
      waiting_.erase(0, used);
      if (error == http::error::need_more) return false;
      if (error) return wrong(error);
      if (used == 0) break;
    }
    return parser_.is_done();
  }

  /// The peer sends no more; some messages end by that. Error: invalid_argument when this one does not.
  [[nodiscard]] Result<void> end() {
    boost::system::error_code error;
    if (!waiting_.empty()) return fail(invalid_argument("HTTP: it ends in the middle"));
    // Beast would make an empty message of no bytes at all.
    if (!parser_.got_some()) return fail(invalid_argument("HTTP: nothing came"));
    parser_.put_eof(error);
    if (error) return wrong(error);
    if (!parser_.is_done()) return fail(invalid_argument("HTTP: it ends in the middle"));
    return {};
  }

  [[nodiscard]] HttpResponse take() {
    auto message = parser_.release();
    HttpResponse response{static_cast<int>(message.result_int()), {}, {}};
    for (const auto& field : message) {
      response.headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
    }
    response.body = std::move(message.body());
    return response;
  }

 private:
  http::response_parser<http::string_body> parser_;
  std::string waiting_;
};

Error lost(const wire::Url& url, std::string_view why) {
  return make_error(ErrorCode::unknown_outcome, "asking {}: {}", url.text(), why);
}

}  // namespace

Http1Client::Http1Client(wire::Url url, Http1Options options, const Clock& clock)
    : url_(std::move(url)), options_(std::move(options)), clock_(clock) {}

Result<std::vector<std::string>> Http1Client::addresses(Deadline deadline) {
  if (url_.is_numeric) return std::vector{url_.host};
  if (!options_.look_up) {
    return fail(ErrorCode::invalid_argument,
                "{} has the name of a host, and this program looks up none: give it a numeric address", url_.text());
  }
  auto found = options_.look_up(url_.host, deadline);
  const std::lock_guard lock(mutex_);
  if (found) {
    last_ = *found;
  } else if (!last_.empty()) {
    return last_;
  }
  return found;
}

Result<std::unique_ptr<Transport>> Http1Client::connect(Deadline deadline) {
  TRY(const std::vector<std::string> hosts, addresses(deadline));
  Error last{ErrorCode::unavailable, "no address to connect to", {}};
  for (const std::string& host : hosts) {
    const Endpoint endpoint{Endpoint::Kind::tcp, url_.secure, host, url_.port, {}};
    auto transport = connect_transport(endpoint, options_.security.get(), clock_, deadline);
    if (transport) return transport;
    last = std::move(transport).error();
    if (deadline.passed(clock_.now())) break;
  }
  return fail(std::move(last));
}

Result<HttpResponse> Http1Client::call(const HttpRequest& request, Deadline deadline) {
  TRY(const std::string text, text_of(request, url_));
  if (deadline.passed(clock_.now())) {
    return fail(ErrorCode::deadline_exceeded, "no time was left to ask {}", url_.text());
  }
  TRY(const std::unique_ptr<Transport> transport, connect(deadline));
  // From here on the server may have got it.
  std::span<const std::byte> left = std::as_bytes(std::span(text));
  while (!left.empty()) {
    const auto moved = transport->write(left);
    if (!moved) break;  // a server may answer and close before it has read all
    left = left.subspan(moved->bytes);
    if (moved->bytes > 0 || !moved->would_block) continue;
    const bool reads = transport->write_waits_for_read();
    if (!wait_for_descriptor(transport->descriptor(), reads, !reads, clock_, deadline)) {
      return fail(lost(url_, "it did not take the request in time"));
    }
  }
  Parser parser(options_);
  std::array<std::byte, kReadBytes> buffer;
  for (;;) {
    // Also when bytes keep coming: an answer that drips has a deadline too.
    if (deadline.passed(clock_.now())) return fail(lost(url_, "no answer in time"));
    const auto moved = transport->read(buffer);
    if (!moved) return fail(lost(url_, moved.error().message));
    if (moved->ended) {
      if (const auto ended = parser.end(); !ended) return fail(lost(url_, "no whole answer: " + ended.error().message));
      break;
    }
    if (moved->bytes > 0) {
      const auto done = parser.feed({reinterpret_cast<const char*>(buffer.data()), moved->bytes});
      if (!done) return fail(lost(url_, "no answer that is one: " + done.error().message));
      if (*done) break;
      continue;
    }
    const bool writes = transport->read_waits_for_write();
    if (!wait_for_descriptor(transport->descriptor(), !writes, writes, clock_, deadline)) {
      return fail(lost(url_, "no answer in time"));
    }
  }
  HttpResponse response = parser.take();
  // 1xx is no answer yet, and nothing of ours asks for one.
  if (response.status < 200) return fail(lost(url_, fmt::format("an answer with status {}", response.status)));
  return response;
}

}  // namespace croft::os
