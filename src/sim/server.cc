#include "sim/server.h"

#include <algorithm>

#include "store/store.h"

namespace croft::sim {
namespace {

using namespace std::chrono_literals;
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

std::size_t items_in(const store::ReadAnswer& answer) {
  std::size_t items = 0;
  for (const auto& list : answer.lists) items += list.size();
  for (const auto& keys : answer.keys) items += keys->size();
  return items;
}

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
  return range.first + Span(static_cast<std::int64_t>(drawn));
}

Result<Revision> Server::apply(std::span<const store::Write> writes, const store::WriteToken& token) {
  ++traffic_.commits;
  auto done = records_.commit(writes, token, {});
  if (!done) {
    if (done.error().code == ErrorCode::conflict) ++traffic_.conflicts;
    return done;
  }
  std::vector<Changed> changes;
  for (const store::Write& write : writes) {
    if (!write.only_check) changes.push_back({write.key, std::nullopt, write.value});
  }
  if (look_) look_(changes);
  return done;
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

// ---------------------------------------------------------------- the client

Result<void> Client::travel(Span span, Deadline deadline) const {
  const Span until = clock_.at(deadline);
  const Span arrives = server_.schedule_.now() + span;
  if (arrives > until) {
    sleep(until - server_.schedule_.now());
    return fail(ErrorCode::deadline_exceeded, "simulated: no answer in time");
  }
  sleep(span);
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

Result<void> Client::for_each(const store::ListRequest& request, const Until& until, const Take& take) {
  std::string after;
  for (bool more = true; more;) {
    ++server_.traffic_.requests;
    const Span span = server_.draw(server_.manners_.read);
    const Deadline deadline = until();
    TRY_VOID(travel(span / 2, deadline));
    store::Page page = server_.records_.page(request, after);
    const Manners::Work& work = server_.manners_.work;
    server_.serve(work.a_read + work.a_key + work.a_list +
                  work.an_item * static_cast<std::int64_t>(page.records.size()));
    TRY_VOID(travel(span / 2, deadline));
    more = page.more;
    if (more) after = page.records.back().key.name;
    for (store::Record& record : page.records) TRY_VOID(take(record));
  }
  return {};
}

Result<std::shared_ptr<Client::Flight>> Client::send(std::span<const store::Write> writes,
                                                     const store::WriteToken& token, Deadline) {
  TRY_VOID(store::check_writes(writes));
  ++server_.traffic_.requests;
  const Span span = server_.draw(server_.manners_.write);
  auto flight = std::make_shared<Flight>();
  flight->writes.assign(writes.begin(), writes.end());
  flight->token = token;
  server_.schedule_.after(span / 2, [&server = server_, flight, span] {
    Schedule& schedule = server.schedule_;
    server.busy_until_ = std::max(server.busy_until_, schedule.now()) + server.work_of(flight->writes);
    schedule.at(server.busy_until_, [&server, &schedule, flight, span] {
      schedule.after(span / 2, [flight, outcome = server.apply(flight->writes, flight->token)]() mutable {
        flight->take(std::move(outcome));
      });
    });
  });
  return flight;
}

Result<Revision> Client::reply_of(Flight& flight, Deadline deadline) {
  (void)wait_for(
      flight.replied, [&] { return flight.reply.has_value(); }, clock_.at(deadline));
  if (flight.reply) return *flight.reply;
  ++server_.traffic_.unknown;
  return fail(ErrorCode::unknown_outcome, "simulated: the reply was lost");
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

Result<std::unique_ptr<store::Watch>> Client::watch(const store::WatchScope&, Revision, Deadline) {
  return fail(ErrorCode::internal, "simulated: nobody watches");
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
  if (!first) return fail(ErrorCode::deadline_exceeded, "simulated: no answer in time");
  return turn;
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
