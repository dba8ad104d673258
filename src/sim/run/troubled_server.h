#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "sim/server.h"

// The register's server and the ways to it with every trouble that a run makes.

namespace croft::sim {

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

class TroubledServer final : public Server {
 public:
  TroubledServer(Schedule& schedule, Manners manners, std::uint64_t seed)
      : Server(schedule, std::move(manners), seed) {}

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

 protected:
  [[nodiscard]] Span draw(const std::pair<Span, Span>& range) override;
  /// `look` of on_commit() is told what was before.
  [[nodiscard]] Result<store::Revision> apply(std::span<const store::Write> writes,
                                              const store::WriteToken& token) override;

 private:
  friend class TroubledClient;
  friend class ServerWatch;

  [[nodiscard]] bool is_down() const { return troubles_.down_until > schedule_.now(); }

  struct Told {
    Span when;
    store::Change change;
  };

  Troubles troubles_;
  /// The changes of the last moment's commits, where answers do not wait for the disk ("sync_after_answer").
  std::deque<std::pair<Span, Changed>> unsynced_;
  std::vector<Told> told_;  ///< every change so far, in the order of revisions
  Signal changed_;
  std::uint64_t put_back_ = 0;  ///< how often
};

class TroubledClient final : public Client {
 public:
  /// `way`: of its machine; null when nothing ever goes wrong there.
  TroubledClient(TroubledServer& server, const MachineClock& clock, Way* way = nullptr)
      : Client(server, clock), troubled_(server), way_(way) {}

  [[nodiscard]] Result<std::unique_ptr<store::Watch>> watch(const store::WatchScope& scope, store::Revision after,
                                                            Deadline deadline) override;
  [[nodiscard]] std::uint64_t epoch() const override { return troubled_.put_back_; }

 protected:
  [[nodiscard]] Result<std::shared_ptr<Flight>> send(std::span<const store::Write> writes,
                                                     const store::WriteToken& token, Deadline deadline) override;
  [[nodiscard]] Result<store::Revision> reply_of(Flight& flight, Deadline deadline) override;
  [[nodiscard]] Result<void> travel(Span span, Deadline deadline) const override;

 private:
  friend class ServerWatch;

  [[nodiscard]] bool is_cut() const { return way_ != nullptr && way_->cut_until > troubled_.schedule_.now(); }

  TroubledServer& troubled_;
  Way* const way_;
};

}  // namespace croft::sim
