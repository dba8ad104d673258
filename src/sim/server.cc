#include "sim/server.h"

#include <algorithm>

#include "base/planted.h"
#include "store/check_request.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;
using store::Change;
using store::Revision;

/// As the stores say of themselves (Store::capabilities of store/kube, store/etcd, store/sqlite).
const std::array<Manners, kStores.size()>& all_manners() {
  static const std::array<Manners, kStores.size()> kAll{
      Manners{.name = "kubernetes",
              .can = {.atomic_commit = false,
                      .foreign_writers = true,
                      .lacks = {core::Kind::vacancy, core::Kind::range_allocation}},
              .read = {1ms, 6ms},
              .write = {3ms, 20ms},
              .service = 200us,
              .watch = {1ms, 30ms}},
      Manners{.name = "etcd",
              .can = {.atomic_commit = true, .foreign_writers = true},
              .read = {300us, 2ms},
              .write = {1ms, 8ms},
              .service = 150us,
              .watch = {300us, 5ms}},
      Manners{.name = "sqlite",
              .can = {.atomic_commit = true},
              .read = {20us, 100us},
              .write = {500us, 3ms},
              .service = 500us,
              .watch = {0ms, 20ms},
              .has_turns = true,
              .is_local = true}};
  return kAll;
}

Error away() { return {ErrorCode::unavailable, "simulated: the store is away", {}}; }
Error too_late() { return {ErrorCode::deadline_exceeded, "simulated: no answer in time", {}}; }
std::size_t items_in(const store::ReadAnswer& answer) {
  std::size_t items = 0;
  for (const auto& list : answer.lists) items += list.size();
  for (const auto& keys : answer.keys) items += keys->size();
  return items;
}

Error unknown() { return {ErrorCode::unknown_outcome, "simulated: the reply was lost", {}}; }

using namespace std::chrono_literals;

constexpr double kMeasuredCores = 2;

}  // namespace

std::optional<Manners> manners_of(std::string_view name) {
  const auto found = std::ranges::find(all_manners(), name, &Manners::name);
  return found == all_manners().end() ? std::nullopt : std::optional(*found);
}

Traffic& Traffic::operator+=(const Traffic& other) {
  requests += other.requests;
  commits += other.commits;
  conflicts += other.conflicts;
  unknown += other.unknown;
  return *this;
}

// ---------------------------------------------------------------- the server

Server::Server(Schedule& schedule, Manners manners, std::uint64_t seed)
    : schedule_(schedule), manners_(std::move(manners)), random_(seed) {
  records_.set_capabilities(manners_.can);
}

Span Server::draw(const std::pair<Span, Span>& range) {
  const std::uint64_t width = static_cast<std::uint64_t>((range.second - range.first).count()) + 1;
  // The smallest of three: a short way is the rule.
  const std::uint64_t drawn = std::min({random_.next() % width, random_.next() % width, random_.next() % width});
  const int times = troubles_.slow_until > schedule_.now() ? kSlowness : 1;
  return times * (range.first + Span(static_cast<std::int64_t>(drawn)));
}

Result<Revision> Server::apply(std::span<const store::Write> writes, const store::WriteToken& token) {
  ++traffic_.commits;
  if (troubles_.full_until > schedule_.now()) {
    const bool gives_back = std::ranges::none_of(
        writes, [](const store::Write& write) { return write.value && write.key.kind != core::Kind::block; });
    if (!gives_back) return fail(ErrorCode::storage_full, "simulated: the disk is full");
  }
  std::vector<Changed> changes;
  core::Missing keys;
  if (keeps_history_) {
    for (const store::Write& write : writes) keys.records.insert(write.key);
  }
  const auto before = records_.read(keys, {}).value().records;
  auto done = records_.commit(writes, token, {});
  if (!done) {
    if (done.error().code == ErrorCode::conflict) ++traffic_.conflicts;
    return done;
  }
  for (const store::Write& write : writes) {
    if (write.only_check) continue;
    if (!keeps_history_) {
      if (look_) changes.push_back({write.key, std::nullopt, write.value});
      continue;
    }
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

void Server::lose_unsynced() {
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

Span Server::work_of(std::span<const store::Write> writes) const {
  Span work = manners_.service + manners_.work.a_write * static_cast<std::int64_t>(writes.size());
  for (const store::Write& write : writes) {
    if (write.key.kind == core::Kind::affinity) work += manners_.work.a_watcher * static_cast<std::int64_t>(watchers_);
  }
  return work;
}

void Server::serve(Span work) {
  if (work == Span{0}) return;
  busy_until_ = std::max(busy_until_, schedule_.now()) + work;
  sleep(busy_until_ - schedule_.now());
}

Server::Copy Server::copy() {
  Copy copy;
  for (std::size_t kind = 0; kind < core::kKindCount; ++kind) {
    store::ListRequest request{static_cast<core::Kind>(kind), {}, {}, store::kListLimitMax};
    for (bool more = true; more;) {
      store::Page page = records_.list(request, {}).value();
      more = page.more;
      if (more) request.after = page.records.back().key.name;
      for (store::Record& record : page.records) copy.records.push_back(std::move(record));
    }
  }
  return copy;
}

void Server::put_back(const Copy& copy) {
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

Result<void> Client::travel(Span span, Deadline deadline) const {
  const Span until = clock_.at(deadline);
  const Span arrives = server_.schedule_.now() + span;
  if (arrives > until) {
    sleep(until - server_.schedule_.now());
    return fail(too_late());
  }
  sleep(span);
  if (is_cut() || server_.is_down()) {
    sleep(std::min<Span>(50ms, until - server_.schedule_.now()));
    return fail(away());
  }
  return {};
}

Result<store::ReadAnswer> Client::read(const core::Missing& wanted, Deadline deadline) {
  // A server that answers records one by one is asked for them at once; its lists come page by page.
  const bool by_pages = !server_.manners_.can.atomic_commit;
  server_.traffic_.requests += by_pages ? wanted.records.size() + wanted.lists.size() + wanted.keys.size() : 1;
  const Span span = server_.draw(server_.manners_.read);
  TRY_VOID(travel(span / 2, deadline));
  server_.serve(work_of(wanted));
  core::Missing first = wanted;
  if (by_pages) {
    first = core::Missing();
    first.records = wanted.records;
  }
  TRY(store::ReadAnswer answer, server_.records_.read(first, deadline));
  if (by_pages && (!wanted.lists.empty() || !wanted.keys.empty() || !wanted.free_blocks.empty())) {
    TRY_VOID(travel(server_.draw(server_.manners_.read), deadline));
    core::Missing lists = wanted;
    lists.records.clear();
    TRY(store::ReadAnswer listed, server_.records_.read(lists, deadline));
    listed.records = std::move(answer.records);
    answer = std::move(listed);
  }
  server_.serve(server_.manners_.work.an_item * static_cast<std::int64_t>(items_in(answer)));
  TRY_VOID(travel(span / 2, deadline));
  return answer;
}

/// The server's work with a read, but for what its lists send.
Span Client::work_of(const core::Missing& wanted) const {
  const Manners::Work& work = server_.manners_.work;
  const auto asked = static_cast<std::int64_t>(wanted.records.size() + wanted.lists.size() + wanted.keys.size() +
                                               wanted.free_blocks.size());
  const auto lists = asked - static_cast<std::int64_t>(wanted.records.size());
  return work.a_key * asked + work.a_list * lists + work.a_read * (server_.manners_.can.atomic_commit ? 1 : asked);
}

Result<store::Page> Client::list(const store::ListRequest& request, Deadline deadline) {
  ++server_.traffic_.requests;
  const Span span = server_.draw(server_.manners_.read);
  TRY_VOID(travel(span / 2, deadline));
  TRY(store::Page page, server_.records_.list(request, deadline));
  const Manners::Work& work = server_.manners_.work;
  server_.serve(work.a_read + work.a_key + work.a_list +
                work.an_item * static_cast<std::int64_t>(page.records.size() + page.keys.size()));
  TRY_VOID(travel(span / 2, deadline));
  return page;
}

/// A commit on its way, which goes on when its client is dead.
struct Client::Flight {
  std::vector<store::Write> writes;
  store::WriteToken token;
  std::uint64_t history = 0;  ///< it is of; a server that was put back gets nothing of before
  std::optional<Result<Revision>> reply;
  Signal replied;
};

Result<std::shared_ptr<Client::Flight>> Client::send(std::span<const store::Write> writes,
                                                     const store::WriteToken& token, Deadline deadline) {
  TRY_VOID(store::check_writes(writes));
  ++server_.traffic_.requests;
  std::optional<Meeting> meets;
  if (way_ != nullptr && !way_->mishaps.empty()) {
    meets = way_->mishaps.front();
    way_->mishaps.pop_front();
    if (server_.manners_.is_local && meets->mishap != Mishap::conflict) meets.reset();
  }
  Schedule& schedule = server_.schedule_;
  if (meets && meets->mishap == Mishap::conflict) {
    TRY_VOID(travel(server_.draw(server_.manners_.write), deadline));
    return fail(ErrorCode::conflict, "simulated: somebody else wrote first");
  }
  if (is_cut() || server_.is_down()) {
    sleep(50ms);
    return fail(away());
  }
  const Span span = server_.draw(server_.manners_.write);
  auto flight = std::make_shared<Flight>();
  flight->writes.assign(writes.begin(), writes.end());
  flight->token = token;
  flight->history = server_.put_back_;
  const bool is_lost = meets && meets->mishap == Mishap::lose_request;
  const bool is_late = meets && meets->mishap == Mishap::late_request;
  const Span arrives = schedule.now() + span / 2 + (is_late ? meets->late : Span{0});
  Server& server = server_;
  const auto reply = [flight](Result<Revision> with) {
    flight->reply = std::move(with);
    flight->replied.notify_all();
  };
  if (is_lost || is_late || (meets && meets->mishap == Mishap::lose_reply)) {
    schedule.after(span, [reply] { reply(fail(unknown())); });
  }
  if (!is_lost) {
    schedule.at(arrives, [&server, &schedule, flight, reply, span] {
      if (server.is_down() || flight->history != server.put_back_) {
        return schedule.after(span / 2, [flight, reply] {
          if (!flight->reply) reply(fail(away()));
        });
      }
      server.busy_until_ = std::max(server.busy_until_, schedule.now()) + server.work_of(flight->writes);
      schedule.at(server.busy_until_, [&server, &schedule, flight, reply, span] {
        auto outcome = server.apply(flight->writes, flight->token);
        schedule.after(span / 2, [flight, reply, outcome = std::move(outcome)]() mutable {
          if (!flight->reply) reply(std::move(outcome));
        });
      });
    });
  }
  return flight;
}

Result<Revision> Client::reply_of(Flight& flight, Deadline deadline) {
  const Span until = clock_.at(deadline);
  const bool local = server_.manners_.is_local;
  const bool replied = wait_for(
      flight.replied, [&] { return flight.reply.has_value(); }, until);
  // A file's writer waits for what it has begun.
  if (!replied && local) (void)wait_for(flight.replied, [&] { return flight.reply.has_value(); });
  if (!flight.reply || (is_cut() && !local)) {
    flight.reply = fail(unknown());
  }
  if (!*flight.reply && flight.reply->error().code == ErrorCode::unknown_outcome) ++server_.traffic_.unknown;
  return *flight.reply;
}

Result<Revision> Client::commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                Deadline deadline) {
  TRY(const auto flight, send(writes, token, deadline));
  return reply_of(*flight, deadline);
}

std::vector<Result<Revision>> Client::commit_each(std::span<const store::Write> writes, const store::WriteToken& token,
                                                  Deadline deadline) {
  std::vector<Result<std::shared_ptr<Flight>>> flights;
  for (std::size_t i = 0; i < writes.size(); ++i) {
    flights.push_back(send(writes.subspan(i, 1), token, deadline));
  }
  std::vector<Result<Revision>> outcomes;
  for (const auto& flight : flights) {
    outcomes.push_back(flight ? reply_of(**flight, deadline) : Result<Revision>(fail(flight.error())));
  }
  return outcomes;
}

Result<Revision> Client::position(Deadline deadline) {
  ++server_.traffic_.requests;
  TRY_VOID(travel(server_.draw(server_.manners_.read), deadline));
  return server_.records_.position(deadline);
}

/// A place in the queue.
class Client::OwnTurn final : public store::Store::Turn {
 public:
  OwnTurn(Server& server, std::uint64_t number) : server_(server), number_(number) {}
  ~OwnTurn() override {
    server_.turns_.erase(number_);
    server_.turn_over_.notify_all();
  }
  OwnTurn(const OwnTurn&) = delete;
  OwnTurn& operator=(const OwnTurn&) = delete;

 private:
  Server& server_;
  std::uint64_t number_;
};

Result<std::unique_ptr<store::Store::Turn>> Client::take_turn(Deadline deadline) {
  if (!server_.manners_.has_turns) return std::unique_ptr<Turn>();
  const std::uint64_t number = server_.turns_asked_++;
  server_.turns_.insert(number);
  auto turn = std::make_unique<OwnTurn>(server_, number);
  const bool first = wait_for(
      server_.turn_over_, [&] { return *server_.turns_.begin() == number; }, clock_.at(deadline));
  if (!first) return fail(too_late());
  return turn;
}

// ---------------------------------------------------------------- watching

class ServerWatch final : public store::Watch {
 public:
  ServerWatch(Client& client, store::WatchScope scope, Revision after)
      : client_(client), scope_(std::move(scope)), after_(after), history_(client.server_.put_back_) {}

  [[nodiscard]] Result<std::vector<Change>> next(Deadline deadline) override {
    Server& server = client_.server_;
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

  [[nodiscard]] bool has_passed(Revision position) override { return after_ >= position; }

  void follow(const core::Key& key, Revision after) override {
    followed_.insert(key);
    after_ = std::min(after_, after);
  }
  void unfollow(const core::Key& key) override { followed_.erase(key); }

 private:
  using Told = Server::Told;

  [[nodiscard]] std::vector<Told>::const_iterator first() const {
    const auto& told = client_.server_.told_;
    return std::ranges::upper_bound(told, after_, std::less<>(), [](const Told& one) { return one.change.revision; });
  }
  /// How long what was told is on its way: the same for all of one watch at one time, so that changes keep their order.
  [[nodiscard]] Span lag() const {
    const auto& range = client_.server_.manners_.watch;
    const Way* way = client_.way_;
    const bool has_lag = way != nullptr && way->lag_until > client_.server_.schedule_.now();
    return range.first + (has_lag ? way->lag : Span{0});
  }
  [[nodiscard]] Span next_due() const {
    const auto at = first();
    if (at == client_.server_.told_.end()) return kNever;
    return std::max(at->when + lag(), client_.server_.schedule_.now() + Span{1});
  }
  [[nodiscard]] std::vector<Change> what_has_come() {
    std::vector<Change> seen;
    const auto end = client_.server_.told_.end();
    for (auto at = first(); at != end && at->when + lag() <= client_.server_.schedule_.now(); ++at) {
      after_ = at->change.revision;
      if (is_in(scope_, at->change.key)) {
        seen.push_back(at->change);
      } else if (followed_.contains(at->change.key)) {
        seen.push_back(at->change.record ? Change::touched(at->change.key, at->change.revision) : at->change);
      }
    }
    return seen;
  }

  Client& client_;
  const store::WatchScope scope_;
  std::set<core::Key> followed_;
  Revision after_;
  const std::uint64_t history_;
};

Result<std::unique_ptr<store::Watch>> Client::watch(const store::WatchScope& scope, Revision after, Deadline deadline) {
  ++server_.traffic_.requests;
  TRY_VOID(travel(server_.draw(server_.manners_.read), deadline));
  return std::unique_ptr<store::Watch>(std::make_unique<ServerWatch>(*this, scope, after));
}

Manners measured_manners(const std::string& datastore, double cores) {
  Manners manners = *manners_of(datastore);
  const double faster = kMeasuredCores / cores;
  const auto work = [&](double microseconds) { return Span(static_cast<std::int64_t>(microseconds * 1000 * faster)); };
  manners.service = {};
  if (datastore == "kubernetes") {
    // Long ones are those that waited for a core.
    manners.read = {300us, work(26000)};
    manners.write = {100us, work(126000)};
    manners.work = {work(10), work(0), work(20), work(140), work(730), work(3600), work(5)};
  } else if (datastore == "etcd") {
    manners.read = {200us, 1300us};
    manners.write = {200us, 1ms};
    manners.service = work(230);
    manners.work = {work(380), work(20), work(0), work(7), work(140), work(210), work(3)};
  } else {
    manners.read = {10us, 50us};
    manners.write = {50us, 200us};
    manners.service = work(950);
    manners.work = {work(50), work(5), work(0), work(1), work(10), work(120), work(0)};
  }
  return manners;
}

}  // namespace croft::sim
