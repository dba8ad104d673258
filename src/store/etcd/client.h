#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_channel.h"
#include "http/transport.h"
#include "store/etcd/format/api.h"

namespace croft::store::etcd {

using wire::etcd::Event;
using wire::etcd::RangeRequest;
using wire::etcd::RangeResponse;
using wire::etcd::Revision;
using wire::etcd::TxnRequest;
using wire::etcd::TxnResponse;
using wire::etcd::WatchCreate;
using wire::etcd::WatchResponse;

struct ClientOptions {
  /// Where the members are: `http://10.0.0.1:2379`, `https://[fd00::1]:2379`, `unix:/path`. Numeric, 1 to 16.
  std::vector<std::string> endpoints;
  /// For https: http/tls.h, `os::make_tls(files)`.
  std::shared_ptr<const os::TransportSecurity> security;
  std::string user;  ///< empty: no authentication by password
  std::string password;
  /// Gives the password at each login instead, so that one that was changed is used from then on.
  std::function<Result<std::string>()> read_password;
  /// How long a member has to take the connection and to show that it speaks HTTP/2.
  std::chrono::nanoseconds dial_timeout = std::chrono::milliseconds{1000};
  /// How long one member has to answer, within the deadline of the call. A read goes to another member then, if there
  /// is one; a write ends with an unknown outcome.
  std::chrono::nanoseconds request_timeout = std::chrono::seconds{5};
  std::chrono::nanoseconds read_timeout = std::chrono::seconds{2};
  std::size_t response_bytes_max = std::size_t{64} << 20;
};

/// Several watches on one stream, for one thread. A watch is a hint: events can be late, and etcd 3.4 has known ways to
/// lose one (docs/notes/reliability.md#etcd-faults), so whoever watches also lists now and then. A peer that is silent
/// is asked for a sign of life; without one for ten seconds in next() the stream counts as lost.
class WatchStream {
 public:
  virtual ~WatchStream() = default;

  /// Asks for one more watch and doesn't wait for the answer: it comes through next(). `watch_id` is above 0 and new in
  /// this stream. Error: unavailable when the stream is lost.
  [[nodiscard]] virtual Result<void> add(const WatchCreate& watch) = 0;
  /// The end comes through next() as `canceled`; events that were on their way may come before it.
  [[nodiscard]] virtual Result<void> cancel(std::int64_t id) = 0;
  /// Asks how far they all are: an answer of kAllWatches with a revision comes through next(). It tells of events
  /// before it only as docs/notes/reliability.md#etcd-progress says.
  [[nodiscard]] virtual Result<void> ask_progress() = 0;
  /// Whether its member is known to give those answers in their order, behind the events before them.
  [[nodiscard]] virtual bool answers_in_order(Deadline deadline) = 0;

  /// The next message, a revision never in parts; nothing at the deadline. Error: unavailable when the stream is lost
  /// (it stays so: open another, each watch from the revision after the last event that was seen); permission_denied;
  /// corrupt for an answer that is none.
  [[nodiscard]] virtual Result<std::optional<WatchResponse>> next(Deadline deadline) = 0;
};

/// A client of an etcd cluster. All calls share one connection at a time, made when the first call comes, to a member
/// chosen at random; when that fails, to the next. It starts no thread: whoever waits for an answer moves the answers
/// of the others too. No call is answered from memory.
///
/// A member whose answer is none (no message, too large, not what was asked for) is left for the next one. A read is
/// asked of that; a write ends with an unknown outcome.
///
/// Calls block up to their deadline and may come from several threads. Errors of every call: invalid_argument (etcd
/// refused the request as such, also one that is too large), permission_denied, unavailable (also when no member
/// gives an answer that is one; each is named), deadline_exceeded, corrupt (a cluster that found itself damaged),
/// internal.
class Client {
 public:
  /// Error: invalid_argument naming the endpoint that is none, or https without `security`. Connects nothing. `clock`
  /// and `random` must outlive the client, `clock` its watch streams too.
  [[nodiscard]] static Result<std::unique_ptr<Client>> make(ClientOptions options, const Clock& clock, Random& random);
  virtual ~Client() = default;

  /// Tried on other members when one fails. Error also: conflict for a `revision` that was compacted away.
  [[nodiscard]] virtual Result<RangeResponse> range(const RangeRequest& request, Deadline deadline) = 0;

  /// One that writes is sent once, unless it is certain that nobody processed it. The outcomes:
  /// - a TxnResponse: done, or `succeeded` false and the other branch done;
  /// - unknown_outcome: it may have been applied, or may be yet. When is_no_space(error), etcd has answered that its
  ///   quota is used up. It says so before it applies a write, but also after it applied one that crossed the line
  ///   together with others. Nothing is on its way any more then: one range() settles it.
  /// - every other error: it was not applied and never will be. unavailable when it could not be sent;
  ///   deadline_exceeded when the time was over before it was.
  /// One that only reads is treated like range().
  [[nodiscard]] virtual Result<TxnResponse> txn(const TxnRequest& request, Deadline deadline) = 0;

  /// How often an answer was of another cluster than one before it, or of a revision below one that was seen before it
  /// was asked for. It has grown before the call that met it returns. Values read before it grew are void.
  [[nodiscard]] virtual std::uint64_t history() const = 0;

  /// A stream without watches, on a connection of its own, which ends with the stream. It may outlive the client.
  [[nodiscard]] virtual Result<std::unique_ptr<WatchStream>> open_watch(Deadline deadline) = 0;

  /// Requests handed to the transport, each attempt counted, and connections begun. For tests and benchmarks.
  struct Counts {
    std::uint64_t requests = 0;
    std::uint64_t dials = 0;
  };
  [[nodiscard]] virtual Counts counts() const = 0;
};

/// Whether a member of this version gives answers to ask_progress() in their order. False for one that is none.
[[nodiscard]] bool answers_in_order(std::string_view version);

/// Whether an error says that etcd's space quota is used up.
[[nodiscard]] bool is_no_space(const Error& error);

/// The meaning of a call that failed (docs/notes/reliability.md#unknown-outcomes).
struct Verdict {
  Error error;
  bool try_again = false;     ///< nothing was changed, and another member may answer
  bool log_in_again = false;  ///< nothing was changed; the token is too old
  bool is_broken = false;     ///< the member answers, and with what is no answer
};

/// `writes`: the call may have changed something. Then every answer that does not prove the opposite is
/// unknown_outcome.
[[nodiscard]] Verdict verdict_on(const os::GrpcStatus& status, bool writes);

/// The same of an answer that `error` says is none, or not to what was asked: it proves nothing.
[[nodiscard]] Verdict verdict_on_nonsense(const Error& error, bool writes);

}  // namespace croft::store::etcd
