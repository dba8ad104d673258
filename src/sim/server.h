#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
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

/// The register's server: a store in memory with the manners of a real one, on simulated time. Nothing goes wrong with
/// it; sim/run has one with troubles.
class Server {
 public:
  /// `seed`: of the times that calls take.
  Server(Schedule& schedule, Manners manners, std::uint64_t seed);
  virtual ~Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  [[nodiscard]] const Manners& manners() const { return manners_; }
  [[nodiscard]] Schedule& schedule() const { return schedule_; }
  /// The records themselves, without any manners.
  [[nodiscard]] store::MemoryStore& records() { return records_; }
  [[nodiscard]] const Traffic& traffic() const { return traffic_; }

  /// Is called with what each commit changes, before anybody knows of it.
  void on_commit(std::function<void(const std::vector<Changed>&)> look) { look_ = std::move(look); }
  /// How many watch the claims (Manners::Work).
  void set_watchers(std::uint64_t watchers) { watchers_ = watchers; }
  /// Waits, in an actor, until the server has done work that takes this, behind all that it was asked for before.
  void serve(Span work);

 protected:
  friend class Client;

  /// A time between the two.
  [[nodiscard]] virtual Span draw(const std::pair<Span, Span>& range);
  /// `look` of on_commit() is not told what was before.
  [[nodiscard]] virtual Result<store::Revision> apply(std::span<const store::Write> writes,
                                                      const store::WriteToken& token);
  /// How long the server works on a commit.
  [[nodiscard]] Span work_of(std::span<const store::Write> writes) const;

  Schedule& schedule_;
  const Manners manners_;
  SeededRandom random_;
  store::MemoryStore records_;
  std::function<void(const std::vector<Changed>&)> look_;
  Traffic traffic_;
  Span busy_until_{0};
  std::uint64_t watchers_ = 0;

 private:
  // The queue of writers, where there is one.
  std::uint64_t turns_asked_ = 0;
  std::set<std::uint64_t> turns_;
  Signal turn_over_;
};

/// A process's way to the server. Calls are made by actors.
class Client : public store::Store {
 public:
  /// `clock`: of its machine. The referenced objects outlive it.
  Client(Server& server, const MachineClock& clock) : server_(server), clock_(clock) {}

  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override;
  [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until, const Take& take) override;
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override;
  /// On their way at once, where the store takes them one by one.
  [[nodiscard]] std::vector<Result<store::Revision>> commit_each(std::span<const store::Write> writes,
                                                                 const store::WriteToken& token,
                                                                 Deadline deadline) override;
  [[nodiscard]] Result<store::Revision> position(Deadline deadline) override;
  /// Not here.
  [[nodiscard]] Result<std::unique_ptr<store::Watch>> watch(const store::WatchScope& scope, store::Revision after,
                                                            Deadline deadline) override;
  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline deadline) override;
  [[nodiscard]] store::Capabilities capabilities() const override { return server_.manners_.can; }
  [[nodiscard]] std::uint64_t epoch() const override { return 0; }

 protected:
  /// A commit on its way, which goes on when its client is dead.
  struct Flight {
    std::vector<store::Write> writes;
    store::WriteToken token;
    std::optional<Result<store::Revision>> reply;
    Signal replied;

    void take(Result<store::Revision> with) {
      reply = std::move(with);
      replied.notify_all();
    }
  };
  /// Sends a commit; its reply comes to the flight.
  [[nodiscard]] virtual Result<std::shared_ptr<Flight>> send(std::span<const store::Write> writes,
                                                             const store::WriteToken& token, Deadline deadline);
  [[nodiscard]] virtual Result<store::Revision> reply_of(Flight& flight, Deadline deadline);
  /// The way there, or back; an error when it ends nowhere.
  [[nodiscard]] virtual Result<void> travel(Span span, Deadline deadline) const;
  Server& server_;
  const MachineClock& clock_;

 private:
  class OwnTurn;
  [[nodiscard]] Span work_of(const core::Missing& wanted) const;
};

/// The manners of a store with the times that were measured (docs/measurements.md), on machines with two cores that the
/// clients shared. There the work of a request limits the rate. It is divided by the cores. The cost of a change for
/// each watcher is estimated. `datastore`: one of kStores.
[[nodiscard]] Manners measured_manners(const std::string& datastore, double cores);

}  // namespace croft::sim
