#include "http/http2_connection.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nghttp2/nghttp2.h>

#include "base/assert.h"
#include "base/printable.h"
#include "base/texts.h"
#include "os/file_descriptor.h"

namespace croft::os {
namespace {

constexpr std::int32_t kStreamWindowBytes = 4 << 20;
constexpr std::int32_t kConnectionWindowBytes = 16 << 20;
constexpr std::size_t kOutBytes = 64U << 10;
/// How much is taken in at once: who sends without end must not keep anybody from looking at the time.
constexpr int kReadsAtOnce = 32;
/// Bytes of a peer that a message repeats.
constexpr std::size_t kShownMax = 200;

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

std::uint8_t* bytes_of(const std::string& text) {
  // nghttp2 takes names and values without const and copies them.
  return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
}

using Lock = std::unique_lock<std::mutex>;

/// The state of one stream. All of it is guarded by the session's mutex.
struct State {
  std::int32_t id = -1;

  // The request.
  std::string unsent;  ///< of the body
  std::size_t unsent_taken = 0;
  bool last_given = false;               ///< nothing follows `unsent`
  bool body_waits = false;               ///< nghttp2 was told that there is nothing to send now
  std::uint64_t begins_at = UINT64_MAX;  ///< where in the bytes of the connection; UINT64_MAX: not yet made

  // The answer.
  std::vector<Http2Header> headers;
  std::vector<Http2Header> trailers;
  std::size_t header_bytes = 0;
  bool in_trailers = false;
  bool has_headers = false;    ///< those of the answer itself, not of an interim one
  bool wants_headers = false;  ///< somebody waits for them
  std::string received;
  std::size_t received_bytes_max = 0;
  bool whole = false;   ///< the reader wants the end only: flow control goes on by itself
  bool ended = false;   ///< the peer has sent all
  bool closed = false;  ///< both sides have
  std::optional<Http2Failure> failure;

  std::condition_variable wake;

  [[nodiscard]] bool is_over() const { return ended || failure.has_value(); }
};

/// The rest but what overrides is called with `mutex` held.
class Session final : public Http2Connection, public std::enable_shared_from_this<Session> {
 public:
  static constexpr std::size_t kReadBytes = std::size_t{32} << 10;

  Session(std::unique_ptr<Transport> transport, std::string peer, const Http2Options& options, const Clock& clock)
      : transport_(std::move(transport)),
        peer_(std::move(peer)),
        options_(options),
        clock_(clock),
        alarm_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    nghttp2_session_callbacks* callbacks = nullptr;
    nghttp2_option* option = nullptr;
    CROFT_ASSERT(nghttp2_session_callbacks_new(&callbacks) == 0 && nghttp2_option_new(&option) == 0);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame_received);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, stream_closed);
    nghttp2_session_callbacks_set_before_frame_send_callback(callbacks, before_send);
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_max_reserved_remote_streams(option, 0);
    CROFT_ASSERT(nghttp2_session_client_new2(&session_, callbacks, this, option) == 0);
    nghttp2_option_del(option);
    nghttp2_session_callbacks_del(callbacks);

    const std::array<nghttp2_settings_entry, 3> settings = {
        {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
         {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<std::uint32_t>(kStreamWindowBytes)},
         {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
          static_cast<std::uint32_t>(std::min<std::size_t>(options.header_bytes_max, UINT32_MAX))}}};
    CROFT_ASSERT(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
    CROFT_ASSERT(nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, kConnectionWindowBytes) == 0);
    last_byte_at_ = clock_.now().since_boot;
    settings_by_ = last_byte_at_ + options.settings_timeout;
    if (!alarm_.is_open())
      break_connection({ErrorCode::unavailable, "cannot make an eventfd: too many open files", {}});
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session() override { nghttp2_session_del(session_); }

  std::mutex mutex;

  [[nodiscard]] Result<std::shared_ptr<Http2Stream>> open(const std::vector<Http2Header>& headers, std::string body,
                                                          bool end, std::size_t received_bytes_max) override;
  [[nodiscard]] Result<void> write(State& state, std::string_view bytes, bool end) {
    if (state.is_over() || state.closed || state.last_given) {
      return fail(ErrorCode::unavailable, "the stream to {} has ended", peer_);
    }
    if (state.unsent.size() - state.unsent_taken + bytes.size() > options_.unsent_bytes_max) {
      return fail(ErrorCode::invalid_argument, "{} does not take what is sent to it", peer_);
    }
    state.unsent += bytes;
    state.last_given = end;
    if (std::exchange(state.body_waits, false)) nghttp2_session_resume_data(session_, state.id);
    flush();
    return {};
  }
  /// Takes what was received and how it ended, and lets the peer send as much again.
  void take_received(State& state, Http2Stream::Received& received) {
    received.bytes = std::exchange(state.received, {});
    unread_bytes_ -= received.bytes.size();
    if (!received.bytes.empty() && !state.whole && !state.closed && !broken_) {
      nghttp2_session_consume_stream(session_, state.id, received.bytes.size());
      flush();
    }
    received.ended = state.ended;
    if (!received.ended) received.failure = state.failure;
  }
  /// Nobody takes anything before the end: the peer may send on all the same, also for what came before this call.
  void take_in_whole(State& state) {
    if (std::exchange(state.whole, true) || state.received.empty() || state.closed || broken_) return;
    // Another thread may have taken in much between open() and now; left uncounted, it would close the window for good.
    nghttp2_session_consume_stream(session_, state.id, state.received.size());
    flush();
  }
  /// Resets the stream when it is not closed, and forgets it.
  void drop(const std::shared_ptr<State>& state) {
    forget_received(*state);
    streams_.erase(state->id);
    if (state->closed || broken_) return;
    nghttp2_submit_rst_stream(session_, NGHTTP2_FLAG_NONE, state->id, NGHTTP2_CANCEL);
    flush();
  }
  [[nodiscard]] bool nothing_sent(const State& state) const { return written_ <= state.begins_at; }
  /// Looks at what the peer has said meanwhile.
  [[nodiscard]] bool is_usable() override {
    const Lock lock(mutex);
    if (!driving_) read_available();
    return !broken_ && !goodbye_;
  }
  [[nodiscard]] Result<void> wait_until_ready(Deadline deadline) override {
    Lock lock(mutex);
    std::condition_variable wake;
    const bool in_time = wait(
        lock, wake, [this] { return ready_; }, deadline);
    if (broken_) return fail(*broken_);
    if (!in_time) return fail(ErrorCode::deadline_exceeded, "the server has not answered yet");
    return {};
  }
  [[nodiscard]] bool has_passed(Deadline deadline) const { return deadline.passed(clock_.now()); }

  /// Moves bytes, or sleeps while another thread does, until done() or the connection is broken (true), or the deadline
  /// (false). A thread that makes done() true notifies `wake`.
  template <class Done>
  [[nodiscard]] bool wait(Lock& lock, std::condition_variable& wake, Done done, Deadline deadline) {
    constexpr Nanoseconds kSleepMax = std::chrono::hours{1};  // far deadlines would overflow the clock of wait_for
    bool in_time = true;
    bool first = true;
    while (!done() && !broken_) {
      const Nanoseconds now = clock_.now().since_boot;
      // The first time what is there already is taken, however late it is.
      if (!first && now >= deadline.at_since_boot) {
        in_time = false;
        break;
      }
      if (!driving_) {
        driving_ = true;
        flush();
        read_available();
        if (!done() && !broken_ && now < deadline.at_since_boot) drive(lock, deadline);
        flush();
        driving_ = false;
      } else {
        waiters_.push_back(&wake);
        const Nanoseconds left = deadline.at_since_boot > now ? deadline.at_since_boot - now : Nanoseconds{0};
        wake.wait_for(lock, std::min(left, kSleepMax));
        std::erase(waiters_, &wake);
      }
      first = false;
    }
    hand_over();
    return in_time;
  }

 private:
  // The callbacks of nghttp2; the last argument is the Session.
  static Session& of(void* data) { return *static_cast<Session*>(data); }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    auto* state = of(data).find(frame->hd.stream_id);
    if (state != nullptr) state->in_trailers = frame->headers.cat == NGHTTP2_HCAT_HEADERS;
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name, std::size_t name_size,
                    const std::uint8_t* value, std::size_t value_size, std::uint8_t, void* data) {
    Session& session = of(data);
    auto* state = session.find(frame->hd.stream_id);
    if (state == nullptr) return 0;
    constexpr std::size_t kEntryBytes = 32;  // as HTTP/2 itself counts
    state->header_bytes += name_size + value_size + kEntryBytes;
    if (state->header_bytes > session.options_.header_bytes_max) {
      session.fail_stream(*state, {ErrorCode::corrupt, session.peer_ + " sends headers without end", {}}, false);
      return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;  // resets the stream
    }
    const std::string_view name_text = text_of(name, name_size);
    if (name_text == ":status") {  // after an interim answer the real one comes as HCAT_HEADERS too
      state->headers.clear();
      state->in_trailers = false;
    }
    auto& list = state->in_trailers ? state->trailers : state->headers;
    list.push_back({std::string(name_text), std::string(text_of(value, value_size))});
    return 0;
  }

  static int data_chunk(nghttp2_session* nghttp2, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
                        std::size_t size, void* data) {
    Session& session = of(data);
    // The windows of streams bound what waits here; the connection's only lets them share.
    nghttp2_session_consume_connection(nghttp2, size);
    auto* state = session.find(id);
    if (state == nullptr || state->failure) return 0;
    const bool is_long = state->received.size() + size > state->received_bytes_max;
    if (is_long || session.unread_bytes_ + size > session.options_.unread_bytes_max) {
      session.fail_stream(
          *state,
          {ErrorCode::invalid_argument,
           is_long ? fmt::format("the answer of {} is longer than {} bytes", session.peer_, state->received_bytes_max)
                   : fmt::format("the answers of {} are longer than {} bytes together", session.peer_,
                                 session.options_.unread_bytes_max),
           {}},
          false);
      session.forget_received(*state);
      nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, id, NGHTTP2_CANCEL);
      return 0;
    }
    state->received += text_of(bytes, size);
    session.unread_bytes_ += size;
    if (state->whole) {
      nghttp2_session_consume_stream(nghttp2, id, size);
    } else {
      state->wake.notify_one();
    }
    return 0;
  }

  static int frame_received(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    Session& session = of(data);
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) {
      session.ready_ = true;
      session.wake_all();
    }
    if (frame->hd.type == NGHTTP2_GOAWAY) session.goodbye_ = true;
    auto* headed = frame->hd.type == NGHTTP2_HEADERS ? session.find(frame->hd.stream_id) : nullptr;
    if (headed != nullptr && !headed->headers.empty() && !headed->headers.front().value.starts_with('1')) {
      headed->has_headers = true;
      if (headed->wants_headers) headed->wake.notify_one();
    }
    const bool may_end = frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS;
    auto* state = may_end ? session.find(frame->hd.stream_id) : nullptr;
    if (state != nullptr && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0) {
      state->ended = true;
      state->wake.notify_one();
    }
    return 0;
  }

  static int stream_closed(nghttp2_session*, std::int32_t id, std::uint32_t code, void* data) {
    Session& session = of(data);
    auto* state = session.find(id);
    if (state == nullptr) return 0;
    state->closed = true;
    if (!state->is_over()) {
      // REFUSED_STREAM also stands for "above the last stream of a GOAWAY": nghttp2 closes those itself.
      const bool refused = code == NGHTTP2_REFUSED_STREAM;
      session.fail_stream(*state,
                          make_error(ErrorCode::unavailable, "{} {} the request ({})", session.peer_,
                                     refused ? "did not take" : "broke off", nghttp2_http2_strerror(code)),
                          refused || session.nothing_sent(*state));
    }
    session.streams_.erase(id);
    return 0;
  }

  static int before_send(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    Session& session = of(data);
    if (frame->hd.type == NGHTTP2_HEADERS) {
      auto* state = session.find(frame->hd.stream_id);
      if (state != nullptr) state->begins_at = session.queued_;
    }
    if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
      session.violation_ =
          fmt::format("{} {}", nghttp2_http2_strerror(frame->goaway.error_code),
                      printable(text_of(frame->goaway.opaque_data, frame->goaway.opaque_data_len).substr(0, kShownMax),
                                Printed::line));
    }
    return 0;
  }

  static ssize_t read_body(nghttp2_session*, std::int32_t id, std::uint8_t* into, std::size_t size,
                           std::uint32_t* flags, nghttp2_data_source*, void* data) {
    auto* state = of(data).find(id);
    if (state == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const std::size_t bytes = std::min(size, state->unsent.size() - state->unsent_taken);
    std::copy_n(state->unsent.data() + state->unsent_taken, bytes, into);
    state->unsent_taken += bytes;
    const bool all = state->unsent_taken == state->unsent.size();
    if (all) {
      state->unsent.clear();
      state->unsent_taken = 0;
    }
    if (all && state->last_given) {
      *flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (bytes == 0) {
      state->body_waits = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(bytes);
  }

  using Nanoseconds = std::chrono::nanoseconds;

  /// Moves the bytes that nghttp2 wants to send, up to a bound, into `out_`.
  void refill() {
    if (out_taken_ == out_.size()) {
      out_.clear();
      out_taken_ = 0;
    }
    while (!broken_ && out_.size() < kOutBytes) {
      const std::uint8_t* bytes = nullptr;
      const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
      if (size < 0) break_connection({ErrorCode::internal, nghttp2_strerror(static_cast<int>(size)), {}});
      if (size <= 0) return;
      out_ += text_of(bytes, static_cast<std::size_t>(size));
      queued_ += static_cast<std::uint64_t>(size);
    }
  }
  void flush() {
    for (refill(); !broken_ && out_taken_ < out_.size(); refill()) {
      const auto moved = transport_->write(std::as_bytes(std::span(out_)).subspan(out_taken_));
      if (!moved) {
        // Why it closed may be waiting to be read: a GOAWAY, an answer.
        read_available();
        return break_connection(moved.error());
      }
      if (moved->would_block) {
        // The thread that sleeps on the socket does not know yet that it must wait for room. A full counter rings as
        // well.
        const std::uint64_t one = 1;
        if (asleep_) [[maybe_unused]]
          const ssize_t rung = ::write(alarm_.get(), &one, sizeof one);
        return;
      }
      out_taken_ += moved->bytes;
      written_ += moved->bytes;
    }
  }
  void read_available() {
    const std::span<std::byte> buffer(in_.get(), kReadBytes);
    for (int i = 0; i < kReadsAtOnce && !broken_; ++i) {
      const auto moved = transport_->read(buffer);
      if (!moved) return break_connection(moved.error());
      more_to_read_ = !moved->would_block;
      if (moved->would_block) return;
      if (moved->ended) {
        return break_connection({ErrorCode::unavailable, peer_ + " closed the connection", {}});
      }
      take_bytes(buffer.first(moved->bytes));
    }
  }
  void take_bytes(std::span<const std::byte> bytes) {
    last_byte_at_ = clock_.now().since_boot;
    ping_sent_at_.reset();
    const ssize_t taken =
        nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (taken < 0) {
      return break_connection(make_error(ErrorCode::corrupt, "{} does not speak HTTP/2: {}", peer_,
                                         nghttp2_strerror(static_cast<int>(taken))));
    }
    // When nghttp2 gives up on the peer it says why in the GOAWAY that it makes, see before_send.
    refill();
    if (nghttp2_session_want_read(session_) != 0) return;
    if (violation_.empty()) {
      return break_connection({ErrorCode::unavailable, peer_ + " ended the connection (GOAWAY)", {}});
    }
    break_connection(make_error(ErrorCode::corrupt, "{} does not speak HTTP/2: {}", peer_, violation_));
  }
  void drive(Lock& lock, Deadline deadline) {
    look_at_the_time();
    flush();  // what was read may have opened a window
    if (broken_) return;
    const Nanoseconds until = std::min(deadline.at_since_boot, next_look());
    const Nanoseconds now = clock_.now().since_boot;
    const Nanoseconds left = until > now && !more_to_read_ ? until - now : Nanoseconds{0};
    const auto milliseconds =
        std::min<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(), INT_MAX);
    const bool to_write = out_taken_ < out_.size() && !transport_->write_waits_for_read();
    const short events = static_cast<short>(POLLIN | (to_write || transport_->read_waits_for_write() ? POLLOUT : 0));
    std::array<pollfd, 2> wanted = {{{transport_->descriptor(), events, 0}, {alarm_.get(), POLLIN, 0}}};
    asleep_ = true;
    lock.unlock();
    ::poll(wanted.data(), wanted.size(), static_cast<int>(milliseconds));
    lock.lock();
    asleep_ = false;
    std::uint64_t rings = 0;
    if (wanted[1].revents != 0) [[maybe_unused]]
      const ssize_t size = ::read(alarm_.get(), &rings, sizeof rings);
    read_available();
    look_at_the_time();
  }
  /// Called after what has come was read: only then does silence mean anything.
  void look_at_the_time() {
    if (broken_) return;
    const Nanoseconds now = clock_.now().since_boot;
    if (!ready_) {
      if (now >= settings_by_) {
        break_connection({ErrorCode::unavailable, peer_ + " took the connection and does not answer", {}});
      }
      return;
    }
    if (!ping_sent_at_) {
      if (now - last_byte_at_ < options_.ping_after) return;
      nghttp2_submit_ping(session_, NGHTTP2_FLAG_NONE, nullptr);
      ping_sent_at_ = now;
      flush();
    } else if (now - *ping_sent_at_ >= options_.ping_timeout) {
      break_connection({ErrorCode::unavailable, peer_ + " is silent: no answer to a ping", {}});
    }
  }
  [[nodiscard]] Nanoseconds next_look() const {
    if (!ready_) return settings_by_;
    return ping_sent_at_ ? *ping_sent_at_ + options_.ping_timeout : last_byte_at_ + options_.ping_after;
  }
  void break_connection(Error error) {
    if (broken_) return;
    broken_ = std::move(error);
    for (auto& [id, state] : streams_) {
      if (!state->is_over()) fail_stream(*state, *broken_, nothing_sent(*state));
      state->closed = true;
    }
    streams_.clear();
    wake_all();
  }
  void fail_stream(State& state, Error error, bool surely_not_processed) {
    state.failure = Http2Failure{std::move(error), surely_not_processed};
    state.wake.notify_one();
  }
  void wake_all() {
    for (std::condition_variable* wake : waiters_) wake->notify_one();
  }
  /// One of those who sleep must move the bytes from now on.
  void hand_over() {
    if (!driving_ && !waiters_.empty()) waiters_.front()->notify_one();
  }
  [[nodiscard]] State* find(std::int32_t id) {
    const auto found = streams_.find(id);
    return found == streams_.end() ? nullptr : found->second.get();
  }
  void forget_received(State& state) {
    unread_bytes_ -= state.received.size();
    state.received = {};
  }

  std::unique_ptr<Transport> transport_;
  std::string peer_;
  Http2Options options_;
  const Clock& clock_;
  FileDescriptor alarm_;  ///< eventfd: interrupts the poll of the driving thread
  nghttp2_session* session_ = nullptr;

  std::map<std::int32_t, std::shared_ptr<State>> streams_;
  std::size_t unread_bytes_ = 0;  ///< of all streams, those that are closed and not dropped included
  std::string out_;
  std::size_t out_taken_ = 0;
  /// Not filled, and not on the stack, all of whose pages a function touches as it begins.
  const std::unique_ptr<std::byte[]> in_ = std::make_unique_for_overwrite<std::byte[]>(kReadBytes);
  std::uint64_t queued_ = 0;   ///< bytes ever put into out_
  std::uint64_t written_ = 0;  ///< of these, taken by the transport

  bool more_to_read_ = false;  ///< not all that was there was read; the socket need not show it
  bool driving_ = false;       ///< some thread moves the bytes
  bool asleep_ = false;        ///< and sleeps on the socket, without the mutex
  std::vector<std::condition_variable*> waiters_;

  bool ready_ = false;     ///< the peer's SETTINGS came
  bool goodbye_ = false;   ///< GOAWAY came
  std::string violation_;  ///< what nghttp2 objected to
  std::optional<Error> broken_;
  Nanoseconds settings_by_{};
  Nanoseconds last_byte_at_{};
  std::optional<Nanoseconds> ping_sent_at_;
};

class Stream final : public Http2Stream {
 public:
  Stream(std::shared_ptr<Session> session, std::shared_ptr<State> state)
      : session_(std::move(session)), state_(std::move(state)) {}
  ~Stream() override {
    const Lock lock(session_->mutex);
    session_->drop(state_);
  }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  [[nodiscard]] Result<void> write(std::string_view bytes, bool end) override {
    const Lock lock(session_->mutex);
    return session_->write(*state_, bytes, end);
  }
  [[nodiscard]] Received read(Deadline deadline) override {
    Lock lock(session_->mutex);
    const auto done = [this] { return !state_->received.empty() || state_->is_over(); };
    Received received;
    if (!session_->wait(lock, state_->wake, done, deadline)) {
      received.timed_out = true;
      return received;
    }
    session_->take_received(*state_, received);
    received.late = session_->has_passed(deadline);
    return received;
  }
  [[nodiscard]] Received read_all(Deadline deadline) override {
    Lock lock(session_->mutex);
    session_->take_in_whole(*state_);
    Received received;
    if (!session_->wait(
            lock, state_->wake, [this] { return state_->is_over(); }, deadline)) {
      received.failure =
          Http2Failure{{ErrorCode::deadline_exceeded, "no answer in time", {}}, session_->nothing_sent(*state_)};
      session_->drop(state_);
      return received;
    }
    session_->take_received(*state_, received);
    return received;
  }
  [[nodiscard]] bool wait_for_headers(Deadline deadline) override {
    Lock lock(session_->mutex);
    state_->wants_headers = true;
    return session_->wait(
        lock, state_->wake, [this] { return state_->has_headers || state_->is_over(); }, deadline);
  }
  [[nodiscard]] bool nothing_sent() const override {
    const Lock lock(session_->mutex);
    return session_->nothing_sent(*state_);
  }
  [[nodiscard]] std::vector<Http2Header> headers() const override {
    const Lock lock(session_->mutex);
    return state_->headers;
  }
  [[nodiscard]] std::vector<Http2Header> trailers() const override {
    const Lock lock(session_->mutex);
    return state_->trailers;
  }

 private:
  const std::shared_ptr<Session> session_;
  const std::shared_ptr<State> state_;
};

Result<std::shared_ptr<Http2Stream>> Session::open(const std::vector<Http2Header>& headers, std::string body, bool end,
                                                   std::size_t received_bytes_max) {
  const Lock lock(mutex);
  // A server that has gone meanwhile is noticed before something is entrusted to it.
  if (!driving_) read_available();
  if (broken_) return fail(*broken_);
  if (goodbye_) return fail(ErrorCode::unavailable, peer_ + " takes no more requests on this connection (GOAWAY)");
  if (streams_.size() >= options_.streams_max) {
    return fail(ErrorCode::unavailable, "{} requests to {} are open already", streams_.size(), peer_);
  }
  if (body.size() > options_.unsent_bytes_max) {
    return fail(ErrorCode::invalid_argument, "a request of {} bytes is too large", body.size());
  }
  if (streams_.empty()) last_byte_at_ = std::max(last_byte_at_, clock_.now().since_boot);
  std::vector<nghttp2_nv> pairs;
  pairs.reserve(headers.size());
  for (const Http2Header& h : headers) {
    pairs.push_back({bytes_of(h.name), bytes_of(h.value), h.name.size(), h.value.size(), NGHTTP2_NV_FLAG_NONE});
  }
  nghttp2_data_provider provider{};
  provider.read_callback = read_body;
  // Without a body the headers are the end: some servers and what stands before them take a GET no other way.
  const bool has_body = !end || !body.empty();
  const std::int32_t id =
      nghttp2_submit_request(session_, nullptr, pairs.data(), pairs.size(), has_body ? &provider : nullptr, nullptr);
  if (id < 0) {
    return fail(id == NGHTTP2_ERR_STREAM_ID_NOT_AVAILABLE ? ErrorCode::unavailable : ErrorCode::internal,
                "no request to {}: {}", peer_, nghttp2_strerror(id));
  }
  auto state = std::make_shared<State>();
  state->id = id;
  state->unsent = std::move(body);
  state->last_given = end;
  state->received_bytes_max = received_bytes_max;
  streams_.emplace(id, state);
  flush();
  return std::make_shared<Stream>(shared_from_this(), std::move(state));
}

}  // namespace

std::shared_ptr<Http2Connection> Http2Connection::make(std::unique_ptr<Transport> transport, std::string peer,
                                                       const Http2Options& options, const Clock& clock) {
  return std::make_shared<Session>(std::move(transport), std::move(peer), options, clock);
}

}  // namespace croft::os
