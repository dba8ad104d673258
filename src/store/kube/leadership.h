#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/clock.h"
#include "base/result.h"
#include "store/forwarding_store.h"
#include "store/kube/api.h"

// The leader among several processes, by a Lease as client-go's leader election has it
// (docs/notes/kubernetes-client.md#leases).
namespace croft::store::kube {

/// The `spec` of a Lease of coordination.k8s.io/v1.
struct LeaseRecord {
  std::string holder;            ///< empty: nobody, it was released or never taken
  std::int64_t duration_s = 0;   ///< its holder renews it within this time; 0: not said
  std::string acquired;          ///< by the holder's clock, for people: nothing is decided by it
  std::string renewed;           ///< likewise
  std::int64_t transitions = 0;  ///< how often it changed hands
  friend bool operator==(const LeaseRecord&, const LeaseRecord&) = default;
};

/// Whether `identity` may write itself into a record: nobody has it, it has it itself, or it is over. A record is over
/// once it is `unchanged` for its own duration, or where it says none for `duration`, by the clock of this machine that
/// never jumps. Pure.
[[nodiscard]] bool may_take(const LeaseRecord& record, std::chrono::nanoseconds unchanged, std::string_view identity,
                            std::chrono::nanoseconds duration);
/// The record to write in the place of `before` (null: there is no Lease), acquired and counted anew unless `identity`
/// has it already. Pure.
[[nodiscard]] LeaseRecord taken_record(const LeaseRecord* before, std::string_view identity,
                                       std::chrono::nanoseconds duration, WallTime now);

/// A Lease as it was read.
struct Lease {
  LeaseRecord record;
  std::string resource_version;
};
/// The answer to a GET, POST or PATCH of a Lease. Error: corrupt, naming the member.
[[nodiscard]] Result<Lease> decode_lease(std::string_view json);
/// The body that makes it, or with a resourceVersion the merge patch that changes its record and nothing else.
[[nodiscard]] std::string encode_lease(std::string_view name_space, std::string_view name,
                                       std::string_view resource_version, const LeaseRecord& record);

struct LeadershipOptions {
  std::string name_space;  ///< of the Lease
  std::string name;
  std::string identity;                                          ///< of this process: no other one ever has it
  std::chrono::nanoseconds duration = std::chrono::seconds{15};  ///< others leave the Lease alone so long
};

/// A time in which this process leads without a gap. Never 0.
using Term = std::uint64_t;

/// Leads, or tries to. No two processes believe to lead at once, as long as no clock runs more than 1.5 times
/// as fast as another; wall clocks do not matter. A process that is stopped in the middle of
/// a write may still send it: such a write meets the conditions of its commit.
///
/// One thread calls attempt() and pause(), and release() once that is over. Any thread asks who leads.
class Leadership {
 public:
  /// `api` and `clock` must outlive it. Error: invalid_argument: a name or namespace that can be none.
  [[nodiscard]] static Result<std::unique_ptr<Leadership>> make(Api& api, LeadershipOptions options,
                                                                const Clock& clock);

  struct Attempt {
    std::string holder;            ///< as far as is known
    std::optional<Error> failure;  ///< why it was neither taken, nor renewed, nor found with another one
  };
  /// Takes or renews the Lease, or finds that another holds it. Each request has a third of the duration. The next
  /// attempt reads back the outcome of a write without an answer.
  [[nodiscard]] Attempt attempt();
  /// How long to wait until the next one: a leader no longer than it leads without another renewal, others at random
  /// between one and 2.2 retry periods.
  [[nodiscard]] std::chrono::nanoseconds pause(Random& random) const;

  /// Leads no more; the Lease stays until it is over, or release().
  void resign();
  /// Gives the Lease back so that another may have it at once: once all that was done as leader is over. False: it has
  /// none. Error: as of a store; then others wait until the Lease is over.
  [[nodiscard]] Result<bool> release(Deadline deadline);

  /// The term it leads in now: until two thirds of the duration after the last renewal was sent, and no longer.
  [[nodiscard]] std::optional<Term> term() const;
  /// When that ends unless it is renewed; nothing when it is over, or another.
  [[nodiscard]] std::optional<Deadline> end_of(Term term) const;
  [[nodiscard]] bool is_leader() const { return term().has_value(); }

  [[nodiscard]] const LeadershipOptions& options() const { return options_; }

 private:
  Leadership(Api& api, LeadershipOptions options, std::string collection, const Clock& clock)
      : api_(api),
        options_(std::move(options)),
        collection_(std::move(collection)),
        path_(collection_ + "/" + options_.name),
        clock_(clock) {}
  /// Between two tries: 2 s of 15 s.
  [[nodiscard]] std::chrono::nanoseconds retry_period() const { return options_.duration * 2 / 15; }
  /// In the place of `before`, or as a new one. Error: conflict when another was first.
  [[nodiscard]] Result<Lease> write(const std::optional<Lease>& before, const LeaseRecord& record, Deadline deadline);
  [[nodiscard]] Attempt take(const std::optional<Lease>& before);

  Api& api_;
  const LeadershipOptions options_;
  const std::string collection_;
  const std::string path_;
  const Clock& clock_;

  // Used by the one thread alone.
  std::optional<LeaseRecord> seen_;      ///< the record that was read last
  std::chrono::nanoseconds seen_at_{0};  ///< since boot, when that was new
  std::optional<Lease> own_;             ///< as this process wrote it last, unless it may be another by now

  mutable std::mutex mutex_;  ///< guards all below
  Term term_ = 0;
  std::chrono::nanoseconds until_{0};  ///< since boot: the end of `term_`; 0: it is over
};

/// A store whose commits begin only while a process leads, in the term in which it began its work, and end with that
/// term at the latest. Else they are refused (unavailable, nothing was changed). Reads pass. Safe to use from several
/// threads.
class FencedStore final : public ForwardingStore {
 public:
  /// Both must outlive it. Before the first enter() nothing is committed.
  FencedStore(Store& beneath, const Leadership& leadership) : ForwardingStore(beneath), leadership_(leadership) {}

  /// Commits belong to this term from now on.
  void enter(Term term) { term_ = term; }

  [[nodiscard]] Result<Revision> commit(std::span<const Write> writes, const WriteToken& token,
                                        Deadline deadline) override;

 private:
  const Leadership& leadership_;
  std::atomic<Term> term_ = 0;
};

}  // namespace croft::store::kube
