#include "http/http1_parser.h"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

namespace croft::os {
namespace {

namespace http = boost::beast::http;

HttpHeaders headers_of(const http::fields& fields) {
  HttpHeaders headers;
  for (const auto& field : fields) {
    headers.emplace_back(std::string(field.name_string()), std::string(field.value()));
  }
  return headers;
}

void take(http::response<http::string_body>&& from, HttpResponse& into) {
  into.status = static_cast<int>(from.result_int());
  into.headers = headers_of(from);
  into.body = std::move(from.body());
}

auto wrong(const boost::system::error_code& error) { return fail(invalid_argument("HTTP: " + error.message())); }

class Parser final : public Http1Parser {
 public:
  Parser(HttpResponse& into, const Http1Limits& limits) : into_(into) {
    // Eager, Beast 1.74 goes on into a body whose length it has just refused.
    parser_.eager(false);
    parser_.header_limit(static_cast<std::uint32_t>(limits.header_bytes_max));
    parser_.body_limit(limits.body_bytes_max);
  }

  [[nodiscard]] Result<bool> feed(std::string_view bytes) override {
    waiting_ += bytes;
    while (!waiting_.empty() && !parser_.is_done()) {
      boost::system::error_code error;
      const std::size_t used = parser_.put(boost::asio::buffer(waiting_), error);
      waiting_.erase(0, used);
      if (error == http::error::need_more) return false;
      if (error) return wrong(error);
      if (used == 0) break;
    }
    return complete();
  }

  [[nodiscard]] Result<void> end() override {
    boost::system::error_code error;
    if (!waiting_.empty()) return fail(invalid_argument("HTTP: it ends in the middle"));
    // Beast would make an empty message of no bytes at all.
    if (!parser_.got_some()) return fail(invalid_argument("HTTP: nothing came"));
    parser_.put_eof(error);
    if (error) return wrong(error);
    TRY(const bool done, complete());
    if (!done) return fail(invalid_argument("HTTP: it ends in the middle"));
    return {};
  }

 private:
  [[nodiscard]] Result<bool> complete() {
    if (!parser_.is_done()) return false;
    if (!taken_) take(parser_.release(), into_);
    taken_ = true;
    return true;
  }

  HttpResponse& into_;
  http::response_parser<http::string_body> parser_;
  std::string waiting_;
  bool taken_ = false;
};

}  // namespace

std::unique_ptr<Http1Parser> make_response_parser(HttpResponse& into, const Http1Limits& limits) {
  return std::make_unique<Parser>(into, limits);
}

}  // namespace croft::os
