#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>
#include <nghttp2/nghttp2.h>

#include "base/assert.h"
#include "http/grpc_server.h"

namespace croft::os {
namespace {

/// How much is made ready to be sent at once.
constexpr std::size_t kUnsentAtOnce = 64U << 10;
/// Frames that wait to be sent: no peer that reads has so many.
constexpr std::size_t kWaitingFramesMax = 1000;
/// Frames a second beyond those of calls that were answered; then the peer is left.
constexpr std::uint32_t kFramesMax = 2000;
/// The frames that an answered call may have taken, for the count of frames.
constexpr std::uint32_t kFramesOfACall = 16;
/// The size of an answer's text: clients take 8 KiB of metadata, and each byte may become three.
constexpr std::size_t kAnswerTextMax = 2000;
constexpr std::size_t kShownPathMax = 200;
constexpr std::size_t kFrameHeadBytes = 9;

std::string_view view_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

nghttp2_nv field(std::string_view name, std::string_view value) {
  // nghttp2 takes names and values without const and copies them.
  return {reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
          reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())), name.size(), value.size(),
          NGHTTP2_NV_FLAG_NONE};
}

/// The type of uncompressed protobuf.
bool is_grpc_type(std::string_view type) {
  constexpr std::string_view kType = "application/grpc";
  constexpr std::string_view kProto = "+proto";
  if (!type.starts_with(kType)) return false;
  type.remove_prefix(kType.size());
  if (type.starts_with(kProto)) type.remove_prefix(kProto.size());
  return type.empty() || type.front() == ';' || type.front() == ' ';
}

}  // namespace

struct GrpcSession::Call {
  Call(GrpcCallId number, std::int32_t stream_id, std::size_t message_bytes_max)
      : id(number), stream(stream_id), unframer(message_bytes_max) {}

  GrpcCallId id;
  std::int32_t stream;

  // The request.
  std::string http_method;
  std::string path;
  std::string content_type;
  std::string timeout;
  std::string encoding;
  bool takes_trailers = false;
  std::size_t metadata_bytes = 0;
  Deadline deadline;
  GrpcUnframer unframer;
  std::optional<std::string> message;
  std::size_t held = 0;  ///< in GrpcMemory
  bool in_hand = false;  ///< the handler has it, and has not answered
  std::shared_ptr<std::atomic<bool>> hung_up;

  // Signs of life.
  std::string sign;
  std::chrono::nanoseconds sign_due = std::chrono::nanoseconds::max();
  bool sign_goes = false;  ///< one is on its way
  std::shared_ptr<std::atomic<std::chrono::nanoseconds>> told;

  // The answer.
  std::string body;
  std::size_t body_taken = 0;
  bool body_begun = false;
  bool body_waits = false;  ///< nghttp2 was told that there is nothing to send now
  bool answered = false;    ///< the end is on its way; what the peer still sends does not matter
  GrpcCode code = GrpcCode::ok;
  std::string text;  ///< as it travels

  /// Drops the data that only the beginning of a call needs.
  void drop_metadata() {
    for (std::string* gone : {&http_method, &content_type, &timeout}) std::string().swap(*gone);
  }
  [[nodiscard]] std::string code_text() const { return fmt::format("{}", static_cast<int>(code)); }
};

/// The callbacks of nghttp2; the last argument is the session.
struct GrpcSessionCallbacks {
  using Call = GrpcSession::Call;

  static GrpcSession& of(void* data) { return *static_cast<GrpcSession*>(data); }

  static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    GrpcSession& session = of(data);
    if (session.ended_ || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    const std::int32_t stream = frame->hd.stream_id;
    const GrpcCallId id = session.connection_ << GrpcSession::kStreamBits | static_cast<GrpcCallId>(stream);
    session.calls_.emplace(stream, std::make_unique<Call>(id, stream, session.options_.message_bytes_max));
    return 0;
  }

  static int header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name_bytes, std::size_t name_size,
                    const std::uint8_t* value_bytes, std::size_t value_size, std::uint8_t, void* data) {
    GrpcSession& session = of(data);
    Call* call = session.find(frame->hd.stream_id);
    if (call == nullptr || frame->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    constexpr std::size_t kEntryBytes = 32;  // as HTTP/2 itself counts
    call->metadata_bytes += name_size + value_size + kEntryBytes;
    if (call->metadata_bytes > session.options_.metadata_bytes_max) return 0;
    const std::string_view name = view_of(name_bytes, name_size);
    const std::string_view value = view_of(value_bytes, value_size);
    if (name == ":method") call->http_method = value;
    if (name == ":path") call->path = value;
    if (name == "content-type") call->content_type = value;
    if (name == "te") call->takes_trailers = true;  // nghttp2 lets no other value pass
    if (name == "grpc-timeout") call->timeout = value;
    if (name == "grpc-encoding") call->encoding = value;
    return 0;
  }

  static int data_chunk(nghttp2_session*, std::uint8_t, std::int32_t stream, const std::uint8_t* bytes,
                        std::size_t size, void* data) {
    GrpcSession& session = of(data);
    Call* call = session.find(stream);
    if (call != nullptr && !call->answered) session.take_data(*call, view_of(bytes, size));
    return 0;
  }

  static int frame_received(nghttp2_session*, const nghttp2_frame* frame, void* data) {
    GrpcSession& session = of(data);
    if (frame->hd.type == NGHTTP2_SETTINGS && (frame->hd.flags & NGHTTP2_FLAG_ACK) == 0) session.greeted_ = true;
    const bool is_headers = frame->hd.type == NGHTTP2_HEADERS;
    if (!is_headers && frame->hd.type != NGHTTP2_DATA) return 0;
    Call* call = session.find(frame->hd.stream_id);
    if (call == nullptr) return 0;
    if (is_headers && frame->headers.cat == NGHTTP2_HCAT_REQUEST) session.headers_complete(*call);
    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0 && !call->answered) session.half_closed(*call);
    return 0;
  }

  static int frame_sent(nghttp2_session* nghttp2, const nghttp2_frame* frame, void*) {
    const bool is_end = frame->hd.type == NGHTTP2_HEADERS && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    // Answered before it has said everything: the peer need not go on.
    if (is_end && nghttp2_session_get_stream_remote_close(nghttp2, frame->hd.stream_id) == 0) {
      nghttp2_submit_rst_stream(nghttp2, NGHTTP2_FLAG_NONE, frame->hd.stream_id, NGHTTP2_NO_ERROR);
    }
    return 0;
  }

  static int stream_closed(nghttp2_session*, std::int32_t stream, std::uint32_t, void* data) {
    GrpcSession& session = of(data);
    const auto found = session.calls_.find(stream);
    if (found != session.calls_.end()) session.forget(found);
    return 0;
  }

  static ssize_t read_body(nghttp2_session* nghttp2, std::int32_t stream, std::uint8_t* into, std::size_t size,
                           std::uint32_t* flags, nghttp2_data_source*, void* data) {
    GrpcSession& session = of(data);
    Call* call = session.find(stream);
    if (call == nullptr) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    const std::size_t bytes = std::min(size, call->body.size() - call->body_taken);
    std::copy_n(call->body.data() + call->body_taken, bytes, into);
    call->body_taken += bytes;
    session.unsent_ -= bytes;
    const bool all = call->body_taken == call->body.size();
    if (all) {
      call->body.clear();
      call->body_taken = 0;
    }
    session.account(*call);
    if (all && call->answered) {
      const std::string code = call->code_text();
      const std::array<nghttp2_nv, 2> trailers = {field("grpc-status", code), field("grpc-message", call->text)};
      if (nghttp2_submit_trailer(nghttp2, stream, trailers.data(), call->text.empty() ? 1 : 2) != 0) {
        return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      }
      *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
    } else if (bytes == 0) {
      call->body_waits = true;
      return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<ssize_t>(bytes);
  }

  /// The same for all sessions, which copy them.
  static nghttp2_session_callbacks* all() {
    static nghttp2_session_callbacks* const kCallbacks = [] {
      nghttp2_session_callbacks* made = nullptr;
      CROFT_ASSERT(nghttp2_session_callbacks_new(&made) == 0);
      nghttp2_session_callbacks_set_on_begin_headers_callback(made, begin_headers);
      nghttp2_session_callbacks_set_on_header_callback(made, header);
      nghttp2_session_callbacks_set_on_data_chunk_recv_callback(made, data_chunk);
      nghttp2_session_callbacks_set_on_frame_recv_callback(made, frame_received);
      nghttp2_session_callbacks_set_on_frame_send_callback(made, frame_sent);
      nghttp2_session_callbacks_set_on_stream_close_callback(made, stream_closed);
      return made;
    }();
    return kCallbacks;
  }
  static nghttp2_option* option() {
    static nghttp2_option* const kTheOne = [] {
      nghttp2_option* made = nullptr;
      CROFT_ASSERT(nghttp2_option_new(&made) == 0);
      nghttp2_option_set_no_closed_streams(made, 1);
      return made;
    }();
    return kTheOne;
  }
};

GrpcSession::GrpcSession(std::uint64_t connection, GrpcHandler& handler, const GrpcSessionOptions& options,
                         GrpcMemory& memory, const Clock& clock)
    : connection_(connection),
      handler_(handler),
      options_(options),
      memory_(memory),
      clock_(clock),
      frames_(kFramesMax, std::chrono::nanoseconds{std::chrono::seconds{1}} / kFramesMax) {
  CROFT_ASSERT(connection < kConnectionEnd);
  CROFT_ASSERT(
      nghttp2_session_server_new2(&session_, GrpcSessionCallbacks::all(), this, GrpcSessionCallbacks::option()) == 0);
  const std::array<nghttp2_settings_entry, 2> settings = {
      {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, options.streams_max},
       {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE,
        static_cast<std::uint32_t>(std::min<std::size_t>(options.metadata_bytes_max, UINT32_MAX))}}};
  CROFT_ASSERT(nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings.data(), settings.size()) == 0);
}

GrpcSession::~GrpcSession() {
  hang_up();
  nghttp2_session_del(session_);
}

GrpcSession::Call* GrpcSession::find(std::int32_t stream) {
  if (ended_) return nullptr;
  const auto found = calls_.find(stream);
  return found == calls_.end() ? nullptr : found->second.get();
}

/// A call that the handler has; nothing when it is gone or answered.
GrpcSession::Call* GrpcSession::open_call(GrpcCallId id) {
  constexpr GrpcCallId kStreamMask = (GrpcCallId{1} << kStreamBits) - 1;
  Call* call = connection_of(id) == connection_ ? find(static_cast<std::int32_t>(id & kStreamMask)) : nullptr;
  return call != nullptr && call->in_hand ? call : nullptr;
}

// ---------------------------------------------------------------- what comes

void GrpcSession::receive(std::span<const std::byte> bytes) {
  if (!ended_) count_frames(bytes);
  if (ended_) return;
  const ssize_t taken =
      nghttp2_session_mem_recv(session_, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  // Not HTTP/2, or a flood of what has to be acknowledged: nothing can be said any more.
  if (taken < 0) ended_ = broken_ = true;
  if (!ended_ && nghttp2_session_get_outbound_queue_size(session_) > kWaitingFramesMax) end(NGHTTP2_ENHANCE_YOUR_CALM);
}

/// From the bytes themselves: nghttp2 passes over some frames in silence.
void GrpcSession::count_frames(std::span<const std::byte> bytes) {
  constexpr std::size_t kLengthBytes = 3;
  while (!bytes.empty() && !ended_) {
    const std::size_t part = std::min(bytes.size(), to_next_frame_);
    to_next_frame_ -= part;
    bytes = bytes.subspan(part);
    for (; to_next_frame_ == 0 && !bytes.empty(); bytes = bytes.subspan(1)) {
      if (frame_head_size_ < kLengthBytes) frame_length_ = frame_length_ << 8U | std::to_integer<std::size_t>(bytes[0]);
      if (++frame_head_size_ < kFrameHeadBytes) continue;
      to_next_frame_ = std::exchange(frame_length_, 0);
      frame_head_size_ = 0;
      count_frame();
      if (ended_) break;
    }
  }
}

void GrpcSession::count_frame() {
  if (!frames_.take(clock_.now().since_boot)) end(NGHTTP2_ENHANCE_YOUR_CALM);
}

void GrpcSession::end(std::uint32_t http2_error) {
  ended_ = true;
  nghttp2_session_terminate_session(session_, http2_error);
}

void GrpcSession::headers_complete(Call& call) {
  if (call.metadata_bytes > options_.metadata_bytes_max) {
    return refuse(
        call, GrpcCode::resource_exhausted,
        fmt::format("the metadata has {} bytes, more than {}", call.metadata_bytes, options_.metadata_bytes_max));
  }
  constexpr int kMethodNotAllowed = 405;
  constexpr int kUnsupportedMediaType = 415;
  if (call.http_method != "POST") return refuse(call, GrpcCode::internal, "gRPC is asked by POST", kMethodNotAllowed);
  if (!is_grpc_type(call.content_type)) {
    return refuse(call, GrpcCode::invalid_argument, "the content-type is not application/grpc", kUnsupportedMediaType);
  }
  if (!call.takes_trailers) return refuse(call, GrpcCode::internal, "the request lacks `te: trailers`");
  const bool is_served = peer_ ? handler_.serves_peer(*peer_, call.path) : handler_.serves(call.path);
  if (!is_served) {
    return refuse(call, GrpcCode::unimplemented,
                  fmt::format("there is no method {}", std::string_view(call.path).substr(0, kShownPathMax)));
  }
  if (!call.timeout.empty()) {
    const auto span = parse_grpc_timeout(call.timeout);
    if (!span) return refuse(call, GrpcCode::invalid_argument, "the grpc-timeout is none");
    call.deadline = Deadline::after(clock_.now(), *span);
  }
  call.drop_metadata();
}

void GrpcSession::take_data(Call& call, std::string_view bytes) {
  if (memory_.bytes + bytes.size() > memory_.bytes_max) {
    return refuse(call, GrpcCode::resource_exhausted, "too many calls at once for the memory they may take");
  }
  call.unframer.add(bytes);
  take_messages(call);
  if (!call.answered) account(call);
}

void GrpcSession::account(Call& call) {
  set_held(call,
           call.unframer.rest_bytes() + (call.message ? call.message->size() : 0) + call.body.size() - call.body_taken);
}

void GrpcSession::set_held(Call& call, std::size_t bytes) {
  memory_.bytes += bytes;
  memory_.bytes -= std::exchange(call.held, bytes);
}

void GrpcSession::take_messages(Call& call) {
  constexpr std::size_t kFarTooLong = 4;
  while (const auto prefix = call.unframer.prefix()) {
    if (prefix->flag == 1 && !call.encoding.empty() && call.encoding != "identity") {
      return refuse(call, GrpcCode::unimplemented, "compressed messages are not taken");
    }
    if (prefix->flag != 0) {
      return refuse(call, GrpcCode::internal, fmt::format("a message begins with the flag {}", prefix->flag));
    }
    if (prefix->length > options_.message_bytes_max) {
      const bool far = prefix->length / kFarTooLong > options_.message_bytes_max;
      return refuse(call, far ? GrpcCode::resource_exhausted : GrpcCode::invalid_argument,
                    fmt::format("the message has {} bytes; no more than {} are taken", prefix->length,
                                options_.message_bytes_max));
    }
    auto message = call.unframer.next();
    CROFT_ASSERT(message.has_value());
    if (!*message) return;
    if (call.message) return refuse(call, GrpcCode::invalid_argument, "more than one message came");
    call.message = std::move(**message);
  }
}

void GrpcSession::half_closed(Call& call) {
  if (call.unframer.has_rest()) return refuse(call, GrpcCode::invalid_argument, "the request ends within a message");
  if (!call.message) return refuse(call, GrpcCode::invalid_argument, "no message came");
  call.in_hand = true;
  ++in_hand_;
  call.hung_up = std::make_shared<std::atomic<bool>>(false);
  call.told = std::make_shared<std::atomic<std::chrono::nanoseconds>>(std::chrono::nanoseconds{0});
  handler_.on_request(
      {call.id, std::move(call.path), *std::exchange(call.message, {}), call.deadline, call.hung_up, peer_, call.told});
}

void GrpcSession::hang_up() {
  ended_ = true;
  while (!calls_.empty()) forget(calls_.begin());
}

void GrpcSession::forget(std::map<std::int32_t, std::unique_ptr<Call>>::iterator found) {
  const std::unique_ptr<Call> call = std::move(found->second);
  calls_.erase(found);
  set_held(*call, 0);
  unsent_ -= call->body.size() - call->body_taken;
  if (call->hung_up) call->hung_up->store(true);
  if (call->in_hand) --in_hand_;
}

// ---------------------------------------------------------------- what goes

/// An answer of our own, to a call that the handler does not have.
void GrpcSession::refuse(Call& call, GrpcCode code, std::string_view text, int http_status) {
  call.drop_metadata();
  call.unframer = GrpcUnframer(options_.message_bytes_max);
  call.message.reset();
  account(call);
  finish(call, code, text, http_status);
}

void GrpcSession::finish(Call& call, GrpcCode code, std::string_view text, int http_status) {
  call.answered = true;
  call.code = code;
  call.text = message_encoded(text.substr(0, kAnswerTextMax));
  if (call.body_begun || !call.body.empty()) return begin_body(call);
  // No body: headers are everything.
  const std::string status = fmt::format("{}", http_status);
  const std::string code_text = call.code_text();
  const std::array<nghttp2_nv, 4> headers = {field(":status", status), field("content-type", "application/grpc"),
                                             field("grpc-status", code_text), field("grpc-message", call.text)};
  if (nghttp2_submit_response(session_, call.stream, headers.data(), call.text.empty() ? 3 : 4, nullptr) != 0) {
    end(NGHTTP2_INTERNAL_ERROR);
  }
}

/// Lets nghttp2 ask for the body from now on.
void GrpcSession::begin_body(Call& call) {
  if (call.body_begun) {
    if (std::exchange(call.body_waits, false)) nghttp2_session_resume_data(session_, call.stream);
    return;
  }
  call.body_begun = true;
  const std::array<nghttp2_nv, 2> headers = {field(":status", "200"), field("content-type", "application/grpc")};
  nghttp2_data_provider provider{};
  provider.read_callback = GrpcSessionCallbacks::read_body;
  if (nghttp2_submit_response(session_, call.stream, headers.data(), headers.size(), &provider) != 0) {
    end(NGHTTP2_INTERNAL_ERROR);
  }
}

void GrpcSession::queue(Call& call, std::string_view message) {
  const std::string framed = grpc_framed(message);
  unsent_ += framed.size();
  call.body += framed;
  account(call);
  const bool is_too_much = unsent_ + out_.size() - out_taken_ > options_.unsent_bytes_max;
  if (is_too_much || memory_.bytes > memory_.bytes_max) end(NGHTTP2_ENHANCE_YOUR_CALM);
}

void GrpcSession::answer(const GrpcAnswer& answer) {
  Call* call = open_call(answer.call);
  if (call == nullptr) return;
  call->in_hand = false;
  --in_hand_;
  ++answered_;
  frames_.give_back(kFramesOfACall);
  if (answer.code == GrpcCode::ok) queue(*call, answer.message);
  constexpr int kOk = 200;
  if (!ended_) finish(*call, answer.code, answer.text, kOk);
}

void GrpcSession::give_signs(GrpcCallId call, std::string message, std::chrono::nanoseconds first) {
  Call* to = open_call(call);
  if (to == nullptr) return;
  to->sign = std::move(message);
  to->sign_due = first;
}

std::chrono::nanoseconds GrpcSession::next_sign() const {
  auto next = std::chrono::nanoseconds::max();
  for (const auto& [stream, call] : calls_) {
    if (call->in_hand) next = std::min(next, call->sign_due);
  }
  return next;
}

void GrpcSession::send_signs(std::chrono::nanoseconds now) {
  for (const auto& [stream, call] : calls_) {
    if (ended_ || !call->in_hand || call->sign_due > now) continue;
    call->sign_due = now + kGrpcSignEvery;
    // A peer that does not read gets no second one behind the first.
    if (std::exchange(call->sign_goes, true)) continue;
    queue(*call, call->sign);
    if (!ended_) begin_body(*call);
  }
}

void GrpcSession::note_told(std::chrono::nanoseconds now) {
  for (const auto& [stream, call] : calls_) {
    if (!call->sign_goes || !call->body.empty()) continue;
    call->sign_goes = false;
    call->told->store(now);
  }
}

void GrpcSession::go_away() {
  if (ended_) return;
  nghttp2_submit_goaway(session_, NGHTTP2_FLAG_NONE, nghttp2_session_get_last_proc_stream_id(session_),
                        NGHTTP2_NO_ERROR, nullptr, 0);
}

std::string_view GrpcSession::unsent() {
  if (out_taken_ == out_.size()) {
    out_.clear();
    out_taken_ = 0;
  }
  while (!broken_ && out_.size() < kUnsentAtOnce) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_, &bytes);
    if (size < 0) ended_ = broken_ = true;
    if (size <= 0) break;
    out_ += view_of(bytes, static_cast<std::size_t>(size));
  }
  return std::string_view(out_).substr(out_taken_);
}

void GrpcSession::sent(std::size_t bytes) { out_taken_ += bytes; }

bool GrpcSession::is_over() {
  if (ended_) return true;
  const bool all_sent = out_taken_ == out_.size();
  return all_sent && nghttp2_session_want_read(session_) == 0 && nghttp2_session_want_write(session_) == 0;
}

}  // namespace croft::os
