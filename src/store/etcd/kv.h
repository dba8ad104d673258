#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/etcd/format/api.h"

namespace croft::store::etcd {

using wire::etcd::Event;
using wire::etcd::RangeRequest;
using wire::etcd::RangeResponse;
using wire::etcd::Revision;
using wire::etcd::StatusResponse;
using wire::etcd::TxnRequest;
using wire::etcd::TxnResponse;
using wire::etcd::WatchCreate;

/// The result of next() of a watch stream.
struct WatchUpdate {
  enum class What : std::uint8_t {
    idle,       ///< nothing until the deadline; the connection is alive as far as is known
    created,    ///< the server has taken the watch `id`
    events,     ///< one or more, in the order of their revisions; never half of a revision
    progress,   ///< everything of watch `id` up to `revision` has been delivered
    compacted,  ///< watch `id` has ended: its start is older than `compact_revision`. List, then watch from there
    canceled,   ///< watch `id` has ended for `reason`
  } what = What::idle;
  std::int64_t id = 0;
  Revision revision = 0;      ///< of the store when it sent this
  std::uint64_t cluster = 0;  ///< which cluster it is
  std::vector<Event> events;
  Revision compact_revision = 0;
  std::string reason;
};

/// Several watches on one stream. A watch is a hint: events can be late, and etcd 3.4 has known ways to lose one
/// (docs/notes/reliability.md#etcd-faults), so whoever watches also lists now and then.
///
/// next() is for one thread; add() and cancel() may come from others meanwhile. A peer that is silent is asked for a
/// sign of life; without one for ten seconds in next() the stream counts as lost.
class WatchStream {
 public:
  virtual ~WatchStream() = default;

  /// Asks for one more watch and doesn't wait for the answer: it comes through next(). `watch.id` must be new in this
  /// stream. Error: unavailable when the stream is lost.
  [[nodiscard]] virtual Result<void> add(const WatchCreate& watch) = 0;
  /// The end comes through next() as `canceled`; events that were on their way may come before it.
  [[nodiscard]] virtual Result<void> cancel(std::int64_t id) = 0;

  /// The next update, or `idle` at the deadline. Error: unavailable when the stream is lost (it stays so: open another,
  /// each watch from the revision after the last event that was seen); permission_denied; corrupt for an answer that
  /// is none.
  [[nodiscard]] virtual Result<WatchUpdate> next(Deadline deadline) = 0;
};

/// An etcd cluster. The one that talks to a real one is store/etcd/client.h.
///
/// Calls block up to their deadline and may come from several threads. Errors of every call: invalid_argument (etcd
/// refused the request as such, also one that is too large), permission_denied, unavailable (also when no member
/// gives an answer that is one; each is named), deadline_exceeded, corrupt (a cluster that found itself damaged),
/// internal.
class Kv {
 public:
  virtual ~Kv() = default;

  /// Tried on other members when one fails. Error also: is_compacted(error) for an `at_revision` that is gone.
  [[nodiscard]] virtual Result<RangeResponse> range(const RangeRequest& request, Deadline deadline) = 0;

  /// One that writes is sent once, unless it is certain that nobody processed it. The outcomes:
  /// - a TxnResponse: done, or `succeeded` false and the other branch done;
  /// - unknown_outcome: it may have been applied, or may be yet. When is_no_space(error), etcd has answered that its
  ///   quota is used up. It says so before it applies a write, but also after it applied one that crossed the line
  ///   together with others. Nothing is on its way any more then: one range() that is not serializable settles it.
  /// - every other error: it was not applied and never will be. unavailable when it could not be sent;
  ///   deadline_exceeded when the time was over before it was.
  /// One that only reads is treated like range().
  [[nodiscard]] virtual Result<TxnResponse> txn(const TxnRequest& request, Deadline deadline) = 0;

  /// How often an answer was of another cluster, or of an older state, than one before it. It has grown before the
  /// call that met it returns. Values read before it grew are void.
  [[nodiscard]] virtual std::uint64_t history() const = 0;

  /// A stream without watches.
  [[nodiscard]] virtual Result<std::unique_ptr<WatchStream>> open_watch(Deadline deadline) = 0;
};

/// Whether an error says that the revision asked for was compacted away: list again.
[[nodiscard]] bool is_compacted(const Error& error);
/// Whether an error says that etcd's space quota is used up.
[[nodiscard]] bool is_no_space(const Error& error);

}  // namespace croft::store::etcd
