#include "sim/run/troubled_server.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <set>

#include "base/planted.h"
#include "store/store.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;
using store::Change;
using store::Revision;

Error away() { return {ErrorCode::unavailable, "simulated: the store is away", {}}; }
Error unknown() { return {ErrorCode::unknown_outcome, "simulated: the reply was lost", {}}; }

}  // namespace

// ---------------------------------------------------------------- the server

Span TroubledServer::draw(const std::pair<Span, Span>& range) {
  return (troubles_.slow_until > schedule_.now() ? kSlowness : 1) * Server::draw(range);
}

Result<Revision> TroubledServer::apply(std::span<const store::Write> writes, const store::WriteToken& token) {
  ++traffic_.commits;
  if (troubles_.full_until > schedule_.now()) {
    const bool gives_back = std::ranges::none_of(
        writes, [](const store::Write& write) { return write.value && write.key.kind != core::Kind::block; });
    if (!gives_back) return fail(ErrorCode::storage_full, "simulated: the disk is full");
  }
  std::vector<Changed> changes;
  core::Missing keys;
  for (const store::Write& write : writes) keys.records.insert(write.key);
  const auto before = records_.read(keys, {}).value().records;
  auto done = records_.commit(writes, token, {});
  if (!done) {
    if (done.error().code == ErrorCode::conflict) ++traffic_.conflicts;
    return done;
  }
  for (const store::Write& write : writes) {
    if (write.only_check) continue;
    const auto at = static_cast<std::size_t>(std::distance(keys.records.begin(), keys.records.find(write.key)));
    std::optional<core::Value> was;
    if (before[at]) was = *before[at]->value;
    if (!write.value && !was) continue;
    told_.push_back({schedule_.now(), write.value ? Change::put({write.key, *write.value, *done, token})
                                                  : Change::deleted(write.key, *done)});
    changes.push_back({write.key, std::move(was), write.value});
  }
  if (is_planted("sync_after_answer")) {
    for (const Changed& change : changes) unsynced_.emplace_back(schedule_.now(), change);
  }
  if (look_) look_(changes);
  changed_.notify_all();
  return done;
}

void TroubledServer::lose_unsynced() {
  constexpr Span kOnDiskAfter = 5s;
  std::vector<Changed> undone;
  for (; !unsynced_.empty(); unsynced_.pop_back()) {
    auto& [when, change] = unsynced_.back();
    if (when + kOnDiskAfter < schedule_.now()) break;
    const store::Write write{change.key, change.before, store::Condition::always()};
    (void)records_.commit({&write, 1}, {}, {});
    undone.push_back({change.key, change.after, change.before});
  }
  if (look_ && !undone.empty()) look_(undone);
}

TroubledServer::Copy TroubledServer::copy() {
  Copy copy;
  for (std::size_t kind = 0; kind < core::kKindCount; ++kind) {
    auto records = records_.list({static_cast<core::Kind>(kind), ""}, {}).value();
    std::ranges::move(records, std::back_inserter(copy.records));
  }
  return copy;
}

void TroubledServer::put_back(const Copy& copy) {
  std::map<core::Key, std::optional<core::Value>> to;
  for (const store::Record& record : this->copy().records) to[record.key] = std::nullopt;
  for (const store::Record& record : copy.records) to[record.key] = *record.value;
  for (auto& [key, value] : to) {
    const store::Write write{key, std::move(value), store::Condition::always()};
    (void)records_.commit({&write, 1}, {}, {});
  }
  ++put_back_;
  told_.clear();
  changed_.notify_all();
}

// ---------------------------------------------------------------- the client

Result<void> TroubledClient::travel(Span span, Deadline deadline) const {
  TRY_VOID(Client::travel(span, deadline));
  if (!is_cut() && !troubled_.is_down()) return {};
  sleep(std::min<Span>(50ms, clock_.at(deadline) - troubled_.schedule_.now()));
  return fail(away());
}

Result<std::shared_ptr<Client::Flight>> TroubledClient::send(std::span<const store::Write> writes,
                                                             const store::WriteToken& token, Deadline deadline) {
  TRY_VOID(store::check_writes(writes));
  ++troubled_.traffic_.requests;
  std::optional<Meeting> meets;
  if (way_ != nullptr && !way_->mishaps.empty()) {
    meets = way_->mishaps.front();
    way_->mishaps.pop_front();
    if (troubled_.manners_.is_local && meets->mishap != Mishap::conflict) meets.reset();
  }
  Schedule& schedule = troubled_.schedule_;
  if (meets && meets->mishap == Mishap::conflict) {
    TRY_VOID(travel(troubled_.draw(troubled_.manners_.write), deadline));
    return fail(ErrorCode::conflict, "simulated: somebody else wrote first");
  }
  if (is_cut() || troubled_.is_down()) {
    sleep(50ms);
    return fail(away());
  }
  const Span span = troubled_.draw(troubled_.manners_.write);
  auto flight = std::make_shared<Flight>();
  flight->writes.assign(writes.begin(), writes.end());
  flight->token = token;
  const std::uint64_t history = troubled_.put_back_;  // a server that was put back gets nothing of before
  const bool is_lost = meets && meets->mishap == Mishap::lose_request;
  const bool is_late = meets && meets->mishap == Mishap::late_request;
  const Span arrives = schedule.now() + span / 2 + (is_late ? meets->late : Span{0});
  TroubledServer& server = troubled_;
  if (is_lost || is_late || (meets && meets->mishap == Mishap::lose_reply)) {
    schedule.after(span, [flight] { flight->take(fail(unknown())); });
  }
  if (!is_lost) {
    schedule.at(arrives, [&server, &schedule, flight, span, history] {
      if (server.is_down() || history != server.put_back_) {
        return schedule.after(span / 2, [flight] {
          if (!flight->reply) flight->take(fail(away()));
        });
      }
      server.busy_until_ = std::max(server.busy_until_, schedule.now()) + server.work_of(flight->writes);
      schedule.at(server.busy_until_, [&server, &schedule, flight, span] {
        auto outcome = server.apply(flight->writes, flight->token);
        schedule.after(span / 2, [flight, outcome = std::move(outcome)]() mutable {
          if (!flight->reply) flight->take(std::move(outcome));
        });
      });
    });
  }
  return flight;
}

Result<Revision> TroubledClient::reply_of(Flight& flight, Deadline deadline) {
  const Span until = clock_.at(deadline);
  const bool local = troubled_.manners_.is_local;
  const bool replied = wait_for(
      flight.replied, [&] { return flight.reply.has_value(); }, until);
  // A file's writer waits for what it has begun.
  if (!replied && local) (void)wait_for(flight.replied, [&] { return flight.reply.has_value(); });
  if (!flight.reply || (is_cut() && !local)) {
    flight.reply = fail(unknown());
  }
  if (!*flight.reply && flight.reply->error().code == ErrorCode::unknown_outcome) ++troubled_.traffic_.unknown;
  return *flight.reply;
}

// ---------------------------------------------------------------- watching

class ServerWatch final : public store::Watch {
 public:
  ServerWatch(TroubledClient& client, store::WatchScope scope, Revision after)
      : client_(client), scope_(std::move(scope)), after_(after), history_(client.troubled_.put_back_) {}

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override {
    TroubledServer& server = client_.troubled_;
    const Span until = client_.clock_.at(deadline);
    while (true) {
      if (history_ != server.put_back_) return fail(ErrorCode::too_old, "simulated: another history");
      if (client_.is_cut() || server.is_down()) {
        sleep(std::min<Span>(200ms, until - server.schedule_.now()));
        return fail(away());
      }
      if (auto seen = what_has_come(); !seen.empty()) return seen;
      const Span due = next_due();
      if (server.schedule_.now() >= until) return std::vector<Change>();
      if (due != kNever) {
        sleep(std::min(due, until) - server.schedule_.now());
      } else {
        (void)wait(server.changed_, until);
      }
    }
  }

  [[nodiscard]] bool is_complete_up_to(Revision position) override { return after_ >= position; }

  void follow(const core::Key& key, Revision after) override {
    followed_.insert(key);
    after_ = std::min(after_, after);
  }
  void unfollow(const core::Key& key) override { followed_.erase(key); }

 private:
  using Told = TroubledServer::Told;

  [[nodiscard]] std::vector<Told>::const_iterator first() const {
    const auto& told = client_.troubled_.told_;
    return std::ranges::upper_bound(told, after_, std::less<>(), [](const Told& one) { return one.change.revision; });
  }
  /// How long what was told is on its way: the same for all of one watch at one time, so that changes keep their order.
  [[nodiscard]] Span lag() const {
    const auto& range = client_.troubled_.manners_.watch;
    const Way* way = client_.way_;
    const bool has_lag = way != nullptr && way->lag_until > client_.troubled_.schedule_.now();
    return range.first + (has_lag ? way->lag : Span{0});
  }
  [[nodiscard]] Span next_due() const {
    const auto at = first();
    if (at == client_.troubled_.told_.end()) return kNever;
    return std::max(at->when + lag(), client_.troubled_.schedule_.now() + Span{1});
  }
  [[nodiscard]] std::vector<Change> what_has_come() {
    std::vector<Change> seen;
    const auto end = client_.troubled_.told_.end();
    for (auto at = first(); at != end && at->when + lag() <= client_.troubled_.schedule_.now(); ++at) {
      after_ = at->change.revision;
      if (is_in(scope_, at->change.key)) {
        seen.push_back(at->change);
      } else if (followed_.contains(at->change.key)) {
        seen.push_back(at->change.record ? Change::touched(at->change.key, at->change.revision) : at->change);
      }
    }
    return seen;
  }

  TroubledClient& client_;
  const store::WatchScope scope_;
  std::set<core::Key> followed_;
  Revision after_;
  const std::uint64_t history_;
};

Result<std::unique_ptr<store::Watch>> TroubledClient::watch(const store::WatchScope& scope, Revision after,
                                                            Deadline deadline) {
  ++troubled_.traffic_.requests;
  TRY_VOID(travel(troubled_.draw(troubled_.manners_.read), deadline));
  return std::unique_ptr<store::Watch>(std::make_unique<ServerWatch>(*this, scope, after));
}

}  // namespace croft::sim
