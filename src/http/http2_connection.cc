#include "http/http2_connection.h"

#include <utility>

#include <fmt/format.h>

#include "http/http2_session.h"

namespace croft::os {

Http2Connection::Http2Connection(std::unique_ptr<Session> session) : session_(std::move(session)) {}
Http2Connection::~Http2Connection() = default;

std::shared_ptr<Http2Connection> Http2Connection::make(std::unique_ptr<Transport> transport, std::string peer,
                                                       const Http2Options& options, const Clock& clock) {
  auto session = std::make_unique<Session>(std::move(transport), std::move(peer), options, clock);
  return std::shared_ptr<Http2Connection>(new Http2Connection(std::move(session)));
}

Result<void> Http2Connection::wait_until_ready(Deadline deadline) {
  Session::Lock lock(session_->mutex);
  std::condition_variable wake;
  const bool in_time = session_->wait(
      lock, wake, [this] { return session_->is_ready(); }, deadline);
  if (session_->broken()) return fail(*session_->broken());
  if (!in_time) return fail(ErrorCode::deadline_exceeded, "the server has not answered yet");
  return {};
}

Result<std::shared_ptr<Http2Stream>> Http2Connection::open(const std::vector<Http2Header>& headers, std::string body,
                                                           bool end, std::size_t received_bytes_max) {
  const Session::Lock lock(session_->mutex);
  TRY(auto state, session_->open(headers, std::move(body), end, received_bytes_max));
  return std::shared_ptr<Http2Stream>(new Http2Stream(shared_from_this(), std::move(state)));
}

bool Http2Connection::is_usable() const {
  const Session::Lock lock(session_->mutex);
  return session_->is_usable();
}

Http2Stream::Http2Stream(std::shared_ptr<Http2Connection> connection, std::shared_ptr<State> state)
    : connection_(std::move(connection)), state_(std::move(state)) {}

Http2Stream::~Http2Stream() {
  const Http2Connection::Session::Lock lock(connection_->session_->mutex);
  connection_->session_->drop(state_);
}

Result<void> Http2Stream::write(std::string_view bytes, bool end) {
  const Http2Connection::Session::Lock lock(connection_->session_->mutex);
  return connection_->session_->write(*state_, bytes, end);
}

Http2Stream::Received Http2Stream::read(Deadline deadline) {
  auto& session = *connection_->session_;
  Http2Connection::Session::Lock lock(session.mutex);
  const auto done = [this] { return !state_->received.empty() || state_->is_over(); };
  Received received;
  if (!session.wait(lock, state_->wake, done, deadline)) {
    received.timed_out = true;
    return received;
  }
  received.bytes = session.take_received(*state_);
  received.ended = state_->ended;
  if (!received.ended) received.failure = state_->failure;
  received.late = session.has_passed(deadline);
  return received;
}

Http2Stream::Received Http2Stream::read_all(Deadline deadline) {
  auto& session = *connection_->session_;
  Http2Connection::Session::Lock lock(session.mutex);
  session.take_in_whole(*state_);
  Received received;
  if (!session.wait(
          lock, state_->wake, [this] { return state_->is_over(); }, deadline)) {
    received.failure =
        Http2Failure{{ErrorCode::deadline_exceeded, "no answer in time", {}}, session.nothing_sent(*state_)};
    session.drop(state_);
    return received;
  }
  received.bytes = session.take_received(*state_);
  received.ended = state_->ended;
  if (!received.ended) received.failure = state_->failure;
  return received;
}

bool Http2Stream::wait_for_headers(Deadline deadline) {
  auto& session = *connection_->session_;
  Http2Connection::Session::Lock lock(session.mutex);
  state_->wants_headers = true;
  return session.wait(
      lock, state_->wake, [this] { return state_->has_headers || state_->is_over(); }, deadline);
}

bool Http2Stream::nothing_sent() const {
  const Http2Connection::Session::Lock lock(connection_->session_->mutex);
  return connection_->session_->nothing_sent(*state_);
}

std::vector<Http2Header> Http2Stream::headers() const {
  const Http2Connection::Session::Lock lock(connection_->session_->mutex);
  return state_->headers;
}

std::vector<Http2Header> Http2Stream::trailers() const {
  const Http2Connection::Session::Lock lock(connection_->session_->mutex);
  return state_->trailers;
}

}  // namespace croft::os
