#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/pacing.h"
#include "base/result.h"
#include "http/grpc_frame.h"
#include "http/grpc_listener.h"
#include "http/unix_listener.h"

struct nghttp2_session;

namespace croft::os {

/// Names a call of one server, for as long as the server lives.
using GrpcCallId = std::uint64_t;

/// A unary call, whole. There are no others.
struct GrpcRequest {
  GrpcCallId call = 0;
  std::string method;  ///< "/package.Service/Method"
  std::string message;
  Deadline deadline;  ///< when the caller stops waiting, as it said
  /// Whether the caller took the call back, or is gone. Readable from any thread.
  std::shared_ptr<const std::atomic<bool>> hung_up;
  /// The caller, over a listener that knows its callers by certificates (TlsListener); null: over a Unix socket.
  std::shared_ptr<const GrpcPeer> peer;
  /// When the last sign of life went to the caller (GrpcServer::give_signs), since boot; 0: none did.
  std::shared_ptr<const std::atomic<std::chrono::nanoseconds>> told = nullptr;
};

/// The end of a call.
struct GrpcAnswer {
  GrpcCallId call = 0;
  GrpcCode code = GrpcCode::ok;
  std::string text;     ///< for people; with a code other than ok
  std::string message;  ///< with code ok
};

/// The service behind a GrpcServer. Called in the server's one thread: nothing here may block.
class GrpcHandler {
 public:
  virtual ~GrpcHandler() = default;
  /// Whether there is such a method.
  [[nodiscard]] virtual bool serves(std::string_view method) = 0;
  /// The same for a peer that was let in by its certificate. A handler that says nothing here serves none of them.
  [[nodiscard]] virtual bool serves_peer(const GrpcPeer& /*peer*/, std::string_view /*method*/) { return false; }
  /// A call. It is to be answered, now or later, in this thread or another; who has hung up may be left without.
  virtual void on_request(GrpcRequest request) = 0;
  /// Everything that was there to be read at once has been: what came together can be passed on together.
  virtual void on_batch_end() {}
};

/// The time between two signs of life to one caller.
inline constexpr std::chrono::milliseconds kGrpcSignEvery{500};

/// The bounds of one peer.
struct GrpcSessionOptions {
  /// A longer message is answered INVALID_ARGUMENT; one of more than four times as much RESOURCE_EXHAUSTED, gRPC's word
  /// for it. Neither is kept.
  std::size_t message_bytes_max = 64U << 10;
  std::size_t metadata_bytes_max = 8U << 10;  ///< of a call, counted as HTTP/2 does; more is RESOURCE_EXHAUSTED
  std::uint32_t streams_max = 32;             ///< calls open at once; further ones are refused
  std::size_t unsent_bytes_max = 1U << 20;    ///< who does not read what he asked for is left
};

/// The memory that messages take from their first byte to the end of their call, and answers until the peer has taken
/// them, of all sessions together. A call that would need more is answered RESOURCE_EXHAUSTED; a session whose answers
/// would is ended.
struct GrpcMemory {
  std::size_t bytes_max = std::size_t{16} << 20;
  std::size_t bytes = 0;
};

/// The server's side of one gRPC connection: bytes in, bytes out. It knows no socket and has no thread. It tells the
/// handler of calls while it takes bytes in, and must not be called back from there. Not synchronised.
///
/// Requests that are none are answered by itself, as gRPC over HTTP/2 says: 405 and 415, INVALID_ARGUMENT, INTERNAL,
/// UNIMPLEMENTED for what is compressed. Against floods of frames stand nghttp2's limits (of acknowledgements, resets,
/// CONTINUATION) and a limit of frames a second.
class GrpcSession {
 public:
  /// `connection` makes the ids of its calls: connection_of() finds it again. The rest must outlive the session.
  GrpcSession(std::uint64_t connection, GrpcHandler& handler, const GrpcSessionOptions& options, GrpcMemory& memory,
              const Clock& clock);
  /// As hang_up().
  ~GrpcSession();
  GrpcSession(const GrpcSession&) = delete;
  GrpcSession& operator=(const GrpcSession&) = delete;

  /// The owner of the session (GrpcRequest::peer). Before the first receive(); else it is nobody's.
  void set_peer(std::shared_ptr<const GrpcPeer> peer) { peer_ = std::move(peer); }

  /// Numbers of connections are below this.
  static constexpr std::uint64_t kConnectionEnd = std::uint64_t{1} << 33U;
  [[nodiscard]] static std::uint64_t connection_of(GrpcCallId call) { return call >> kStreamBits; }

  /// Takes in what the peer has sent.
  void receive(std::span<const std::byte> bytes);
  /// The bytes to send to it, a bounded part at once; valid until the next call of anything.
  [[nodiscard]] std::string_view unsent();
  /// So much of unsent() has been taken.
  void sent(std::size_t bytes);

  /// Answers a call; one that is gone or answered already is passed over.
  void answer(const GrpcAnswer& answer);
  /// GrpcServer::give_signs; likewise.
  void give_signs(GrpcCallId call, std::string message, std::chrono::nanoseconds first);
  /// When the next sign is due, since boot; max(): none is.
  [[nodiscard]] std::chrono::nanoseconds next_sign() const;
  /// Queues the signs that are due.
  void send_signs(std::chrono::nanoseconds now);
  /// All that unsent() had has been taken, not before `now` (GrpcRequest::told).
  void note_told(std::chrono::nanoseconds now);

  /// Takes no more calls, and says so (GOAWAY). Open calls go on.
  void go_away();
  /// The peer is gone, and with it all its calls.
  void hang_up();

  /// Nothing is to be read any more. The bytes of unsent() are sent if that is possible at once, and the connection is
  /// closed.
  [[nodiscard]] bool is_over();
  /// Whether the peer has shown that it speaks HTTP/2.
  [[nodiscard]] bool has_greeted() const { return greeted_; }
  /// Calls that the handler has and has not answered.
  [[nodiscard]] std::size_t in_hand() const { return in_hand_; }
  /// Calls that it has answered, ever.
  [[nodiscard]] std::uint64_t answered() const { return answered_; }

 private:
  friend struct GrpcSessionCallbacks;
  struct Call;
  static constexpr unsigned kStreamBits = 31;

  [[nodiscard]] Call* find(std::int32_t stream);
  [[nodiscard]] Call* open_call(GrpcCallId id);
  void count_frames(std::span<const std::byte> bytes);
  /// Ends the session when it is too much.
  void count_frame();
  void end(std::uint32_t http2_error);
  void headers_complete(Call& call);
  void take_data(Call& call, std::string_view bytes);
  void take_messages(Call& call);
  void account(Call& call);
  void set_held(Call& call, std::size_t bytes);
  void half_closed(Call& call);
  void refuse(Call& call, GrpcCode code, std::string_view text, int http_status = 200);
  void finish(Call& call, GrpcCode code, std::string_view text, int http_status);
  void begin_body(Call& call);
  void queue(Call& call, std::string_view message);
  void forget(std::map<std::int32_t, std::unique_ptr<Call>>::iterator found);

  const std::uint64_t connection_;
  GrpcHandler& handler_;
  const GrpcSessionOptions& options_;
  GrpcMemory& memory_;
  const Clock& clock_;
  std::shared_ptr<const GrpcPeer> peer_;
  nghttp2_session* session_ = nullptr;
  std::map<std::int32_t, std::unique_ptr<Call>> calls_;
  std::size_t in_hand_ = 0;
  std::uint64_t answered_ = 0;
  std::string out_;
  std::size_t out_taken_ = 0;
  std::size_t unsent_ = 0;          ///< bytes of messages that wait for the peer's windows
  std::size_t to_next_frame_ = 24;  ///< bytes of what comes; at first, of the preface
  std::size_t frame_length_ = 0;    ///< of the frame whose head is being read
  std::size_t frame_head_size_ = 0;
  TokenBucket frames_;
  bool greeted_ = false;
  bool ended_ = false;
  bool broken_ = false;  ///< nghttp2 makes nothing more of it
};

struct GrpcServerOptions {
  GrpcSessionOptions session;
  std::size_t connections_max = 512;  ///< open at once; further ones are closed at once
  /// For the peer to prove itself, where the listener asks for that, and to show that it speaks HTTP/2.
  std::chrono::nanoseconds greeting_max = std::chrono::seconds{5};
  /// A connection of which the handler has no call for so long is closed, also while a request is half there or an
  /// answer half gone.
  std::chrono::nanoseconds idle_max = std::chrono::seconds{30};
};

/// A gRPC server on a Unix socket (UnixListener), or on TCP for peers with certificates (TlsListener). One thread moves
/// the bytes of all connections, and sleeps without a timer unless a connection may become too old. It knows no
/// protocol above gRPC; see GrpcSession for what a peer may do to it.
class GrpcServer {
 public:
  /// Listens, and serves nobody yet. `clock` must outlive it. Error: unavailable when descriptors are missing.
  [[nodiscard]] static Result<std::unique_ptr<GrpcServer>> make(std::unique_ptr<GrpcListener> listener,
                                                                const GrpcServerOptions& options, const Clock& clock);
  /// As stop() with no patience.
  virtual ~GrpcServer() = default;

  /// Serves from now on; once. `handler` must outlive the server, or its stop().
  virtual void serve(GrpcHandler& handler) = 0;

  /// Ends calls, from any thread; the peers see it soon. However many there are: one wake-up, and none out of the
  /// handler itself. Calls that are gone are passed over.
  virtual void answer(std::vector<GrpcAnswer> answers) = 0;
  /// Says `message` to the caller that waits, at `first` (since boot) and every kGrpcSignEvery from then on, until the
  /// call is answered. The thread that serves says it, whatever the others wait for. Only a client that reads a unary
  /// method as a streaming one takes more than the answer.
  virtual void give_signs(GrpcCallId call, std::string message, std::chrono::nanoseconds first) = 0;

  /// Takes no more connections; the files of Unix sockets are gone when it returns.
  virtual void stop_listening() = 0;
  /// As stop_listening(), and takes no more calls. Those that are there may be answered until the deadline; then their
  /// callers count as gone, and everything is closed. Returns when that has happened. Not from the handler.
  virtual void stop(Deadline deadline) = 0;

  struct Counts {
    std::size_t open = 0;
    std::uint64_t accepted = 0;
    std::uint64_t foreign_users = 0;   ///< refused: may not connect
    std::uint64_t too_many = 0;        ///< refused: over connections_max
    std::uint64_t no_descriptors = 0;  ///< refused: the process or the machine had none left
    std::uint64_t unproven = 0;        ///< closed: gave no proof of who they are (of TLS), or not in time
  };
  [[nodiscard]] virtual Counts counts() const = 0;
};

}  // namespace croft::os
