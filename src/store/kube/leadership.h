#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/api.h"
#include "store/kube/format/lease.h"
#include "store/kube/lease_rules.h"

namespace croft::store::kube {

struct LeadershipOptions {
  std::string name_space;  ///< of the Lease
  std::string name;
  std::string identity;  ///< of this process: no other one ever has it
  LeaseTimes times;
};

/// A time in which this process leads without a gap. Never 0.
using Term = std::uint64_t;

/// Leads, or tries to, by a Lease that one of several processes holds. Two that believe to lead at once there are not,
/// as long as no clock runs more than duration / renew_deadline (1.5) times as fast as another; the wall clocks do not
/// matter. A process that was stopped for a while and goes on in the middle of a write is beyond that: such a write
/// meets the conditions of its commit (docs/runbooks/kubernetes-leader.md#what-it-does-not-do).
///
/// One thread renews: attempt(), pause(), listen() and release(). Any thread asks who leads.
class Leadership {
 public:
  /// `api` and `clock` must outlive it. Error: invalid_argument: times that do not go together, a name or namespace
  /// that can be none, an identity that is empty.
  [[nodiscard]] static Result<std::unique_ptr<Leadership>> make(Api& api, LeadershipOptions options,
                                                                const Clock& clock);

  /// What an attempt came to.
  struct Attempt {
    bool leads = false;            ///< still, also where this renewal failed
    std::string holder;            ///< as far as is known; empty: nobody, or nobody could be asked
    std::optional<Error> failure;  ///< why it was neither taken, nor renewed, nor found with another one
  };
  /// Takes or renews the Lease, or finds that another holds it. Asks the API once as long as it leads, else up to three
  /// times, for at most half the renew deadline each.
  [[nodiscard]] Attempt attempt();
  /// How long to wait until the next one: while it leads no longer than it does so without another renewal.
  [[nodiscard]] std::chrono::nanoseconds pause(Random& random) const;

  /// What a candidate heard of the Lease that another holds.
  enum class Heard : std::uint8_t {
    nothing,   ///< it is held still, when the deadline came
    release,   ///< it is free: time for the next attempt
    no_watch,  ///< it can't be watched now, or may not: wait without
  };
  /// Watches the Lease, from what the last attempt has read on, so that a release is followed at once. Between two
  /// attempts.
  [[nodiscard]] Heard listen(Deadline deadline);

  /// From now on it does not lead, and no attempt changes that. Any thread.
  void resign();
  /// Gives the Lease back, if it has it, so that another may have it at once. After resign(), and when all that was
  /// done as leader is over. Error: as of a store; then others wait until the Lease is over.
  [[nodiscard]] Result<void> release(Deadline deadline);

  /// The term it leads in now: until the renew deadline after the last renewal was sent, and no longer.
  [[nodiscard]] std::optional<Term> term() const;
  /// When that ends unless it is renewed; nothing when it is over, or another.
  [[nodiscard]] std::optional<Deadline> end_of(Term term) const;
  [[nodiscard]] bool is_leader() const { return term().has_value(); }

  [[nodiscard]] const LeadershipOptions& options() const { return options_; }

 private:
  Leadership(Api& api, LeadershipOptions options, std::string collection, std::string path, const Clock& clock);

  [[nodiscard]] wire::kube::ApiObjectOf lease_of() const;
  /// The Lease as it is; nothing where there is none.
  [[nodiscard]] Result<std::optional<wire::kube::Lease>> read(Deadline deadline);
  /// Writes a record in the place of `before`, or makes the Lease. Error: conflict when another was first;
  /// unknown_outcome.
  [[nodiscard]] Result<wire::kube::Lease> write(const wire::kube::Lease* before, const wire::kube::LeaseRecord& record,
                                                Deadline deadline);
  [[nodiscard]] Attempt take(const wire::kube::Lease* before);
  [[nodiscard]] Attempt failed(Error error) const;
  /// The Lease is another's, or may be.
  void lose();
  [[nodiscard]] Deadline deadline_of_request() const;

  Api& api_;
  const LeadershipOptions options_;
  const std::string collection_;
  const std::string path_;
  const Clock& clock_;

  // Of the one thread.
  LeaseSight sight_;
  std::string read_version_;              ///< resourceVersion of the Lease as it was read last; empty: there was none
  std::unique_ptr<WatchStream> watch_;    ///< on it, while it is another's
  std::optional<wire::kube::Lease> own_;  ///< as this process wrote it last, unless it is known to be another by now

  mutable std::mutex mutex_;  ///< guards all below
  Term term_ = 0;
  std::chrono::nanoseconds until_{0};  ///< since boot: the end of `term_`; 0: it is over
  bool resigned_ = false;
};

}  // namespace croft::store::kube
