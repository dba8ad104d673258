#include "vpc/use/stock_actor.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

namespace croft::engine {
namespace {

namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr std::size_t kErrandsMax = 256;
constexpr std::size_t kQueueMax = 4096;
constexpr std::size_t kBatchMax = 128;
/// UK8S' plugin holds one lock of its node for an ADD: one without hope would keep away the DEL that frees an address.
constexpr nanoseconds kOldWaitMax = std::chrono::seconds{4};
/// Waiting ADDs are looked at this often whatever happens: an address may have cooled off.
constexpr nanoseconds kLookAgain = std::chrono::seconds{1};
constexpr std::chrono::milliseconds kHangUpsAreSeen{100};

/// The container that a call is for.
const std::string& container_of(const StockCall& call) {
  const auto* add = std::get_if<StockAdd>(&call.what);
  return (add != nullptr ? add->request.owner : std::get<StockDel>(call.what).release.owner).container_id;
}

/// Decides a call, and keeps its answer. False: there is no address to give. In a batch also where nothing is to be
/// written: what is held already, or holds nothing, goes alone.
core::Step<bool> step_of(StockCall& call, bool is_alone, const Writer& writer, const core::Snapshot& snapshot,
                         const Instant& now) {
  const auto kept = [&]<class Answer>(core::Step<Answer> step, auto keep) -> core::Step<bool> {
    if (auto* missing = std::get_if<core::Missing>(&step)) return std::move(*missing);
    if (auto* error = std::get_if<Error>(&step)) return std::move(*error);
    auto& plan = std::get<core::Plan<Answer>>(step);
    const bool is_final = (is_alone || !plan.writes.empty()) && keep(std::move(plan.answer));
    return core::Plan<bool>{is_final, std::move(plan.writes)};
  };
  if (auto* del = std::get_if<StockDel>(&call.what)) {
    return kept(writer.in_term(snapshot, warm::plan_release(snapshot, del->release, now)), [&](warm::Changed let_go) {
      del->answer = std::move(let_go);
      return true;
    });
  }
  auto& add = std::get<StockAdd>(call.what);
  return kept(plan_giving(snapshot, add.request, now, writer), [&](warm::Answer given) {
    auto* assigned = std::get_if<warm::Assigned>(&given);
    if (assigned == nullptr) {
      call.may_hope = std::get<warm::Empty>(given).is_probing;
      return false;
    }
    add.answer = std::move(*assigned);
    return true;
  });
}

bool is_without_hope(const StockCall& add, const Instant& now) {
  return add.is_old && !add.may_hope && now.since_boot - add.since >= kOldWaitMax;
}

/// A DEL of the container, done or still to come, ends the ADD before it: nobody waits for that any more.
bool is_deleted_in(std::span<const StockCall> calls, const StockCall& add) {
  return std::ranges::any_of(calls, [&](const StockCall& other) {
    return std::holds_alternative<StockDel>(other.what) && container_of(other) == container_of(add);
  });
}

void put_in_front(std::deque<StockCall>& queue, auto& calls) {
  queue.insert(queue.begin(), std::make_move_iterator(calls.begin()), std::make_move_iterator(calls.end()));
  calls.clear();
}

}  // namespace

// ---------------------------------------------------------------- workers

bool Workers::run(std::function<void()> errand, std::string name, bool is_first) {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_ || (!is_first && errands_.size() >= kErrandsMax)) return false;
    errands_.insert(is_first ? errands_.begin() : errands_.end(), {std::move(errand), std::move(name)});
    const bool are_all_busy = under_way_ + errands_.size() > threads_.size();
    if (are_all_busy && threads_.size() < threads_max_) threads_.emplace_back([this] { work(); });
  }
  comes_.notify_one();
  return true;
}

void Workers::work() {
  std::unique_lock lock(mutex_);
  for (;;) {
    auto next = errands_.end();
    comes_.wait(lock, [&] {
      next = std::ranges::find_if(errands_, [&](const Errand& one) { return !named_.contains(one.name); });
      return next != errands_.end() || (stopping_ && errands_.empty());
    });
    if (next == errands_.end()) return;
    Errand errand = std::move(*next);
    errands_.erase(next);
    if (!errand.name.empty()) named_.insert(errand.name);
    ++under_way_;
    lock.unlock();
    errand.run();
    lock.lock();
    --under_way_;
    named_.erase(errand.name);
    comes_.notify_all();
    ends_.notify_all();
  }
}

bool Workers::drain(nanoseconds patience) {
  std::unique_lock lock(mutex_);
  stopping_ = true;
  comes_.notify_all();
  return ends_.wait_for(lock, patience, [&] { return errands_.empty() && under_way_ == 0; });
}

void Workers::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  comes_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

// ---------------------------------------------------------------- the loop

StockActor::StockActor(const KeeperWorld& world, bool looks_first) : world_(world) {
  if (!looks_first) state.looked_at = world_.store.epoch();
  loop_ = std::thread([this] { run(); });
}

StockActor::~StockActor() {
  outside_.stop();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  comes_.notify_one();
  loop_.join();
}

void StockActor::post(std::function<void()> message) const {
  {
    const std::lock_guard lock(mutex_);
    messages_.push_back(std::move(message));
  }
  comes_.notify_one();
}

StockSeen StockActor::seen() const {
  const std::lock_guard lock(mutex_);
  return shown_;
}

/// Shows what the last pass left, and takes what came since. False: it is to end.
bool StockActor::wait_for_messages(std::deque<std::function<void()>>& messages) {
  std::unique_lock lock(mutex_);
  shown_ = state.seen;
  held_ = queue_.size() + waiting_.size();
  while (messages_.empty() && !may_go_ && !stopping_ && queue_.empty()) {
    const nanoseconds round = round_ && !is_round_under_way_ ? next_round_ : nanoseconds::max();
    const nanoseconds timer = std::min(look_again_, round);
    if (timer == nanoseconds::max()) {
      comes_.wait(lock);
      continue;
    }
    const nanoseconds left = timer - world_.clock.now().since_boot;
    if (left <= nanoseconds{0}) break;
    comes_.wait_for(lock, std::min<nanoseconds>(left, std::chrono::seconds{60}));
  }
  if (stopping_ && messages_.empty()) return false;
  messages.swap(messages_);
  if (may_go_) {
    std::ranges::move(came_, std::back_inserter(queue_));
    came_.clear();
    may_go_ = false;
  }
  return true;
}

void StockActor::run() {
  std::deque<std::function<void()>> messages;
  while (wait_for_messages(messages)) {
    for (const auto& message : messages) message();
    if (!messages.empty()) memory_.loader.reset();  // they may have written
    messages.clear();
    serve_next_batch();
    begin_round();
  }
}

void StockActor::take_term() {
  const std::uint64_t before = state.term;
  memory_.loader.reset();
  const auto taken =
      transact(context(), TurnTaking::before_writing,
               [&](const core::Snapshot& snapshot, const Instant&) { return warm::plan_term(snapshot, before); });
  if (taken && *taken == before) return;
  // Plugins that have done their calls themselves have hung up: that is seen by then, and those are not begun.
  if (before != 0) std::this_thread::sleep_for(kHangUpsAreSeen);
  if (!taken) return note_problem(taken.error());
  state.term = *taken;
  if (before == 0) return;
  log("a plugin of this node wrote to the stock meanwhile: everything is read anew");
  state.read_anew = true;
  state.is_due = true;
}

void StockActor::note_problem(const Error& error) {
  StockSeen& seen = state.seen;
  const bool is_news = !seen.last_problem || seen.last_problem->message != error.message;
  seen.last_problem = error;
  if (is_news) (world_.warn ? world_.warn : world_.log)(fmt::format("trouble: {}", error.message));
}

Writer StockActor::writer() const {
  return {[this] { return ask([this] { return may_give(); }); }, [this] { return ask([this] { return state.term; }); }};
}

// ---------------------------------------------------------------- rounds

void StockActor::start_rounds(std::function<nanoseconds()> round, std::function<void()> look) {
  ask([&] {
    round_ = std::move(round);
    look_ = std::move(look);
    next_round_ = world_.clock.now().since_boot;
  });
  tick();
}

void StockActor::tick() {
  post([this] {
    if (!look_ || may_give() || state.is_looking) return;
    state.is_looking = outside_.run([this] {
      look_();
      post([this] { state.is_looking = false; });
    });
  });
}

void StockActor::begin_round() {
  if (!round_ || is_round_under_way_) return;
  if (!state.is_due && world_.clock.now().since_boot < next_round_) return;
  state.is_due = false;
  is_round_under_way_ = outside_.run([this] {
    const nanoseconds next = round_();
    post([this, next] {
      next_round_ = next;
      is_round_under_way_ = false;
    });
  });
  if (!is_round_under_way_) round_ = nullptr;  // end_rounds()
}

bool StockActor::end_rounds(nanoseconds patience) { return outside_.drain(patience); }

// ---------------------------------------------------------------- ADDs and DELs

void StockActor::serve(Ended ended) {
  ask([&] { ended_ = std::move(ended); });
  const std::lock_guard lock(mutex_);
  takes_calls_ = true;
}

std::optional<Error> StockActor::take(StockCall& call) {
  // One that a worker has looked at came before that.
  if (call.since == nanoseconds{0}) call.since = world_.clock.now().since_boot;
  const std::lock_guard lock(mutex_);
  if (!takes_calls_) return ends();
  if (came_.size() + held_ >= kQueueMax) return Error{ErrorCode::exhausted, "too many calls wait", {}};
  came_.push_back(std::move(call));
  return std::nullopt;
}

void StockActor::go() {
  {
    const std::lock_guard lock(mutex_);
    if (came_.empty()) return;
    may_go_ = true;
  }
  comes_.notify_one();
}

void StockActor::end_calls() {
  {
    const std::lock_guard lock(mutex_);
    takes_calls_ = false;
    may_go_ = may_go_ || !came_.empty();
  }
  ask([this] { are_calls_ending_ = true; });
  // Calls that came before that message are served with it, and those that are tried again here.
  while (ask([this] { return !queue_.empty() || !waiting_.empty(); })) {
  }
}

void StockActor::serve_next_batch() {
  // With nobody waiting too: the ADD that set it may be gone, and the loop would not sleep any more.
  const bool is_time = world_.clock.now().since_boot >= look_again_;
  if (std::exchange(state.stocked, false) || is_time || are_calls_ending_) {
    look_again_ = nanoseconds::max();
    put_in_front(queue_, waiting_);
  }
  if (queue_.empty()) return;
  // In the order of arrival.
  const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(queue_.size(), kBatchMax));
  Batch batch(std::move_iterator(queue_.begin()), std::move_iterator(end));
  queue_.erase(queue_.begin(), end);
  serve_batch(std::move(batch));
}

/// Whatever kept the stock empty, the caller is told that it gets no address, and has no use of asking elsewhere.
Error StockActor::none_in_time() const {
  Error why = state.seen.last_problem.value_or(Error{});
  constexpr std::string_view kEmpty = "the stock is empty, and no address came in time";
  why.message = why.message.empty() ? std::string(kEmpty) : fmt::format("{}: {}", kEmpty, why.message);
  why.code = ErrorCode::exhausted;
  return why;
}

void StockActor::serve_batch(Batch batch) {
  Batch ended;
  const Instant now = world_.clock.now();
  const auto end = [&](StockCall& call, std::optional<Error> error) {
    call.error = std::move(error);
    ended.push_back(std::move(call));
  };
  std::erase_if(batch, [&](StockCall& call) {
    // An ADD whose caller is gone is not begun: a DEL has come or will.
    const bool is_gone = call.hung_up != nullptr && *call.hung_up && std::holds_alternative<StockAdd>(call.what);
    if (!is_gone && !call.limit.passed(now)) return false;
    end(call, call.has_waited ? none_in_time() : Error{ErrorCode::deadline_exceeded, "it is too late", {}});
    return true;
  });

  const Writer writer = this->writer();
  std::vector<BatchedCall> calls;
  calls.reserve(batch.size());
  for (StockCall& call : batch) {
    BatchedCall& one = calls.emplace_back();
    one.owner = container_of(call);
    one.not_after = call.limit;
    one.decide = [&call, &writer](const core::Snapshot& snapshot, const Instant& at) {
      return step_of(call, false, writer, snapshot, at);
    };
  }
  if (!calls.empty())
    state.seen.calls.commits +=
        commit_together(context(), world_.store, calls, store::kCommitWritesMax, &memory_).commits;
  Batch again, empty_handed;
  std::vector<bool> is_deleted(batch.size());
  for (std::size_t i = 0; i < batch.size(); ++i) {
    is_deleted[i] =
        std::holds_alternative<StockAdd>(batch[i].what) && is_deleted_in(std::span(batch).subspan(i), batch[i]);
  }
  std::erase_if(waiting_, [&](StockCall& add) {
    add.was_deleted = is_deleted_in(batch, add);
    if (add.was_deleted) end(add, Error{ErrorCode::conflict, "the container was deleted meanwhile", {}});
    return add.was_deleted;
  });
  bool is_term_over = false;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    StockCall& call = batch[i];
    const BatchFate fate = calls[i].fate;
    if (fate == BatchFate::done || fate == BatchFate::failed) {
      end(call, std::move(calls[i].error));
      continue;
    }
    if (fate == BatchFate::waits || is_term_over) {
      again.push_back(std::move(call));
      continue;
    }
    const auto served = serve_alone(call);
    is_term_over = !served && warm::is_term_over(served.error());
    if (is_term_over) {
      again.push_back(std::move(call));
    } else if (!served || *served) {
      end(call, served ? std::nullopt : std::optional(served.error()));
    } else if (are_calls_ending_) {
      end(call, ends());
    } else if (is_deleted[i]) {
      call.was_deleted = true;
      end(call, Error{ErrorCode::conflict, "the container was deleted meanwhile", {}});
    } else if (is_without_hope(call, now)) {
      end(call, none_in_time());
    } else {
      empty_handed.push_back(std::move(call));
    }
  }
  if (is_term_over) take_term();
  put_in_front(queue_, again);
  for (StockCall& add : empty_handed) {
    state.seen.calls.waited += add.has_waited ? 0U : 1U;
    add.has_waited = true;
    waiting_.push_back(std::move(add));
  }
  if (!waiting_.empty()) look_again_ = std::min(look_again_, world_.clock.now().since_boot + kLookAgain);
  // A call whose time is up is told so then, and not at the next look.
  for (const StockCall& add : waiting_) look_again_ = std::min(look_again_, add.limit.at_since_boot);
  state.seen.calls.waiting = static_cast<std::uint32_t>(waiting_.size());
  // An ADD that waits for a look (may_give) is served from the stock afterwards.
  const std::uint32_t waiting = may_give() ? state.seen.calls.waiting : 0;
  state.is_due = state.is_due || waiting > state.waiting;
  state.waiting = waiting;
  if (ended.empty() || !ended_) return;
  {
    const std::lock_guard lock(mutex_);
    shown_ = state.seen;  // whoever has an answer finds it counted
  }
  ended_(std::move(ended));
}

/// False: it has to wait for the stock.
Result<bool> StockActor::serve_alone(StockCall& call) {
  memory_.loader.reset();
  Context context = this->context();
  context.not_after = call.limit;
  const auto turn = std::holds_alternative<StockAdd>(call.what) ? TurnTaking::first : TurnTaking::before_writing;
  const auto done = transact(context, turn, [&](const core::Snapshot& snapshot, const Instant& now) {
    return step_of(call, true, writer(), snapshot, now);
  });
  if (done && !*done) call.may_hope = call.may_hope || !state.asking.empty() || !may_give();
  return done;
}

}  // namespace croft::engine
