#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/manual_clock.h"
#include "base/result.h"
#include "sim/schedule.h"
#include "store/memory/memory_store.h"
#include "store/store.h"

namespace croft::sim {

/// How a store behaves as its clients see it. The times of single calls lie between the two of a pair, the short ones
/// more often.
struct Manners {
  std::string name;
  store::Capabilities can;
  std::pair<Span, Span> read, write;
  Span service{0};  ///< the server writes one commit after the other, and each takes this
  /// Work of the server besides, which is done one request after the other.
  struct Work {
    Span a_read{0};     ///< a request that reads
    Span a_key{0};      ///< a record or list in it
    Span a_list{0};     ///< a list in it, besides
    Span an_item{0};    ///< a record that a list sends
    Span a_block{0};    ///< a block with its holders, in a list
    Span a_write{0};    ///< a record of a commit
    Span a_watcher{0};  ///< a change of a claim, for each of those who watch
  } work{};
  std::pair<Span, Span> watch{};  ///< how long a change is on its way to who watches
  bool has_turns = false;         ///< writers wait in a queue
  bool is_local = false;          ///< a file: no reply is lost, no request comes late
};
/// "kubernetes", "etcd" or "sqlite".
[[nodiscard]] std::optional<Manners> manners_of(std::string_view name);
inline constexpr std::array kStores{"kubernetes", "etcd", "sqlite"};

/// The trouble of one commit on its way.
enum class Mishap : std::uint8_t {
  lose_reply,    ///< applied; the client gets unknown_outcome
  lose_request,  ///< not applied; the client gets unknown_outcome
  late_request,  ///< the client gets unknown_outcome, and it comes later after all
  conflict,      ///< not applied; the server says conflict
};

struct Meeting {
  Mishap mishap = Mishap::conflict;
  Span late{0};  ///< of late_request
};

/// A machine's way to the server, and its troubles. A time named `until` is on the schedule: the trouble is over then.
struct Way {
  std::deque<Meeting> mishaps;  ///< the next commits meet these
  Span cut_until{0};
  Span lag{0}, lag_until{0};  ///< watches see everything so much later
};

/// One record that a commit changed.
struct Changed {
  core::Key key;
  std::optional<core::Value> before, after;
};

/// How often things happened, all clients together.
struct Traffic {
  std::uint64_t requests = 0;  ///< reads, pages and commits, as the real store would be asked
  std::uint64_t commits = 0;   ///< tried
  std::uint64_t conflicts = 0;
  std::uint64_t unknown = 0;
  Traffic& operator+=(const Traffic& other);
};

/// The register's server: a store in memory with the manners of a real one, on simulated time.
class Server {
 public:
  /// `seed`: of the times that calls take.
  Server(Schedule& schedule, Manners manners, std::uint64_t seed);

  [[nodiscard]] const Manners& manners() const { return manners_; }
  [[nodiscard]] Schedule& schedule() const { return schedule_; }
  /// The records themselves, without any manners.
  [[nodiscard]] store::MemoryStore& records() { return records_; }
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

  /// Is called with what each commit changes, before anybody knows of it.
  void on_commit(std::function<void(const std::vector<Changed>&)> look) { look_ = std::move(look); }
  /// Nobody watches, and `look` of on_commit() is not told what was before: for runs of very many commits.
  void keep_no_history() {
    keeps_history_ = false;
    records_.keep_no_history();
  }
  /// How many watch the claims (Manners::Work).
  void set_watchers(std::uint64_t watchers) { watchers_ = watchers; }
  /// Waits, in an actor, until the server has done work that takes this, behind all that it was asked for before.
  void serve(Span work);

  /// Each lasts until its time on the schedule. A slow server takes kSlowness times as long for each call.
  struct Troubles {
    Span down_until{0}, full_until{0}, slow_until{0};
  };
  static constexpr int kSlowness = 60;
  [[nodiscard]] Troubles& troubles() { return troubles_; }
  [[nodiscard]] const Troubles& troubles() const { return troubles_; }
  /// A power cut. Nothing is lost: commits are answered once they are on disk.
  void lose_unsynced();
  /// Everything as it was at the beginning of a copy; the positions go on from where they are.
  struct Copy {
    std::vector<store::Record> records;
  };
  [[nodiscard]] Copy copy();
  void put_back(const Copy& copy);

 private:
  friend class Client;
  friend class ServerWatch;

  [[nodiscard]] bool is_down() const { return troubles_.down_until > schedule_.now(); }
  /// A time between the two.
  [[nodiscard]] Span draw(const std::pair<Span, Span>& range);
  /// How long the server works on a commit.
  [[nodiscard]] Span work_of(std::span<const store::Write> writes) const;
  [[nodiscard]] Result<store::Revision> apply(std::span<const store::Write> writes, const store::WriteToken& token);

  struct Told {
    Span when;
    store::Change change;
  };

  Schedule& schedule_;
  const Manners manners_;
  SeededRandom random_;
  store::MemoryStore records_;
  std::function<void(const std::vector<Changed>&)> look_;
  Traffic traffic_;
  Span busy_until_{0};
  bool keeps_history_ = true;
  Troubles troubles_;
  std::uint64_t watchers_ = 0;
  /// The changes of the last moment's commits, where answers do not wait for the disk ("sync_after_answer").
  std::deque<std::pair<Span, Changed>> unsynced_;
  std::vector<Told> told_;  ///< every change so far, in the order of revisions
  Signal changed_;
  std::uint64_t put_back_ = 0;  ///< how often
  // The queue of writers, where there is one.
  std::uint64_t turns_asked_ = 0;
  std::set<std::uint64_t> turns_;
  Signal turn_over_;
};

/// A process's way to the server. Calls are made by actors.
class Client final : public store::Store {
 public:
  /// `clock`: of its machine; `way`: of its machine too, null when nothing ever goes wrong there. The referenced
  /// objects outlive it.
  Client(Server& server, const MachineClock& clock, Way* way = nullptr) : server_(server), clock_(clock), way_(way) {}

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override;
  [[nodiscard]] Result<store::Page> list(const store::ListRequest& request, Deadline deadline) override;
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override;
  /// On their way at once, where the store takes them one by one.
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override;
  [[nodiscard]] Result<store::Revision> position(Deadline deadline) override;
  [[nodiscard]] Result<std::unique_ptr<store::Watch>> watch(const store::WatchScope& scope, store::Revision after,
                                                            Deadline deadline) override;
  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override;
  [[nodiscard]] store::Capabilities capabilities() const override { return server_.manners_.can; }
  [[nodiscard]] std::uint64_t epoch() const override { return server_.put_back_; }

 private:
  friend class ServerWatch;
  class OwnTurn;
  struct Flight;

  [[nodiscard]] Span work_of(const core::Missing& wanted) const;
  [[nodiscard]] bool is_cut() const { return way_ != nullptr && way_->cut_until > server_.schedule_.now(); }
  /// Sends a commit; its reply comes to the flight.
  [[nodiscard]] Result<std::shared_ptr<Flight>> send(std::span<const store::Write> writes,
                                                     const store::WriteToken& token, Deadline deadline);
  [[nodiscard]] Result<store::Revision> reply_of(Flight& flight, Deadline deadline);
  /// The way there, or back; an error when it ends nowhere.
  [[nodiscard]] Result<void> travel(Span span, Deadline deadline) const;

  Server& server_;
  const MachineClock& clock_;
  Way* const way_;
};

/// The manners of a store with the times that were measured (docs/measurements.md), on machines with two cores that the
/// clients shared. There the work of a request limits the rate. It is divided by the cores. The cost of a change for
/// each watcher is estimated. `datastore`: one of kStores.
[[nodiscard]] Manners measured_manners(const std::string& datastore, double cores);

}  // namespace croft::sim
