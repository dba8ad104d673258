#include "http/grpc_channel.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace croft::os {
namespace {

/// Room for the message and its frame; a bound with a little slack is as good.
constexpr std::size_t kFrameSlackBytes = 64;

const std::string* find(const std::vector<Http2Header>& headers, std::string_view name) {
  for (const Http2Header& h : headers) {
    if (h.name == name) return &h.value;
  }
  return nullptr;
}

/// Our own word for a failure on the way.
GrpcStatus status_of(const Error& error, bool surely_not_processed) {
  GrpcCode code = GrpcCode::internal;
  if (error.code == ErrorCode::unavailable) code = GrpcCode::unavailable;
  if (error.code == ErrorCode::deadline_exceeded) code = GrpcCode::deadline_exceeded;
  if (error.code == ErrorCode::invalid_argument) code = GrpcCode::resource_exhausted;
  if (error.code == ErrorCode::permission_denied) code = GrpcCode::permission_denied;
  return {code, error.message, false, surely_not_processed};
}

GrpcStatus broken_answer(std::string message) { return {GrpcCode::internal, std::move(message), false, false}; }

/// 0: there is none that is a number.
int http_status_of(const std::vector<Http2Header>& headers) {
  const std::string* text = find(headers, ":status");
  int status = 0;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), status);
  return status;
}

/// The status of an answer that has come to its end: trailers, or headers alone when there is no body.
GrpcStatus status_of_answer(const std::vector<Http2Header>& headers, const std::vector<Http2Header>& trailers) {
  const auto& last = trailers.empty() ? headers : trailers;
  const std::string* code_text = http_status_of(headers) == 200 ? find(last, "grpc-status") : nullptr;
  if (code_text == nullptr) {
    const int http_status = http_status_of(headers);
    if (http_status == 200) return broken_answer("the answer has no grpc-status");
    // A proxy or another kind of server in between. Whether it asked anybody else we don't know.
    return {GrpcCode::unavailable, fmt::format("HTTP status {}", http_status), false, false};
  }
  const auto code = parse_grpc_code(*code_text);
  if (!code) return broken_answer("the answer's grpc-status is no number");
  const std::string* message = find(last, "grpc-message");
  return {*code, message == nullptr ? "" : percent_decoded(*message), true, false};
}

}  // namespace

Result<std::shared_ptr<GrpcChannel>> GrpcChannel::connect(const Endpoint& endpoint, const TransportSecurity* security,
                                                          const GrpcOptions& options, const Clock& clock,
                                                          Deadline deadline) {
  TRY(auto transport, connect_transport(endpoint, security, clock, deadline));
  auto connection = Http2Connection::make(std::move(transport), endpoint.text(), options.http2, clock);
  return std::shared_ptr<GrpcChannel>(new GrpcChannel(std::move(connection), endpoint, options, clock));
}

GrpcChannel::GrpcChannel(std::shared_ptr<Http2Connection> connection, const Endpoint& endpoint,
                         const GrpcOptions& options, const Clock& clock)
    : connection_(std::move(connection)),
      authority_(endpoint.authority()),
      scheme_(endpoint.secure ? "https" : "http"),
      options_(options),
      clock_(clock) {}

std::vector<Http2Header> GrpcChannel::headers(std::string_view path, const std::vector<Http2Header>& metadata) const {
  std::vector<Http2Header> headers = {{":method", "POST"},
                                      {":scheme", scheme_},
                                      {":path", std::string(path)},
                                      {":authority", authority_},
                                      {"te", "trailers"},
                                      {"content-type", "application/grpc"},
                                      {"user-agent", "croft/" CROFT_VERSION}};
  headers.insert(headers.end(), metadata.begin(), metadata.end());
  return headers;
}

GrpcReply GrpcChannel::call(std::string_view path, std::string_view message, Deadline deadline,
                            const std::vector<Http2Header>& metadata, const GrpcSigns& signs) {
  auto sent = headers(path, metadata);
  if (deadline.at_since_boot != std::chrono::nanoseconds::max()) {
    const auto now = clock_.now();
    if (deadline.passed(now)) return {{GrpcCode::deadline_exceeded, "no time was left to ask", false, true}, {}};
    sent.push_back({"grpc-timeout", grpc_timeout_text(deadline.at_since_boot - now.since_boot)});
  }
  auto opened = connection_->open(sent, grpc_framed(message), true, options_.message_bytes_max + kFrameSlackBytes);
  if (!opened) return {status_of(opened.error(), true), {}};
  GrpcStream stream(*std::move(opened), options_.message_bytes_max);
  GrpcReply reply;
  bool is_answered = false;
  for (Deadline next = signs.first;;) {
    auto received = stream.read({std::min(next.at_since_boot, deadline.at_since_boot)});
    if (received.message && !is_answered && signs.is_one && signs.is_one(*received.message)) {
      next = Deadline::after(clock_.now(), signs.silence);
    } else if (received.message) {
      if (std::exchange(is_answered, true)) return {broken_answer("the answer is not one whole message"), {}};
      reply.message = *std::move(received.message);
    } else if (!received.status) {
      const bool is_silent = next.at_since_boot < deadline.at_since_boot;
      return {{GrpcCode::deadline_exceeded, is_silent ? "no sign of life in time" : "no answer in time", false,
               stream.stream_->nothing_sent()},
              {}};
    } else if (!received.status->ok()) {
      return {*std::move(received.status), {}};
    } else {
      if (!is_answered || stream.unframer_.has_rest())
        return {broken_answer("the answer is not one whole message"), {}};
      reply.status = *std::move(received.status);
      return reply;
    }
  }
}

Result<std::unique_ptr<GrpcStream>> GrpcChannel::open_stream(std::string_view path,
                                                             const std::vector<Http2Header>& metadata) {
  TRY(auto stream,
      connection_->open(headers(path, metadata), "", false, options_.message_bytes_max + kFrameSlackBytes));
  return std::unique_ptr<GrpcStream>(new GrpcStream(std::move(stream), options_.message_bytes_max));
}

Result<void> GrpcStream::write(std::string_view message) { return stream_->write(grpc_framed(message), false); }

GrpcStream::Received GrpcStream::read(Deadline deadline) {
  for (bool late = false;;) {
    auto message = unframer_.next();
    if (!message) return {std::nullopt, status_of(message.error(), false)};
    if (*message) return {std::move(*message), std::nullopt};
    if (end_) return {std::nullopt, end_};
    // A message that comes byte by byte must not be waited for beyond the deadline.
    if (late) return {};
    auto received = stream_->read(deadline);
    if (received.timed_out) return {};
    late = received.late;
    unframer_.add(received.bytes);
    if (received.ended) end_ = status_of_answer(stream_->headers(), stream_->trailers());
    if (received.failure) end_ = status_of(received.failure->error, received.failure->surely_not_processed);
  }
}

}  // namespace croft::os
