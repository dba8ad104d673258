#include "agent/door/service.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "agent/door/client.h"
#include "base/texts.h"
#include "cni/decision_log.h"
#include "ipam/use/assign.h"
#include "ipam/use/release.h"
#include "store/store_url.h"

namespace croft::edge {
namespace {

namespace agent = wire::agent;

constexpr std::chrono::seconds kServeTime{15};
/// For claims ahead and their return: some writes' time on a slow store. One that is given up is done there all the
/// same, in the way of the next claim.
constexpr std::chrono::seconds kClaimAheadTime{5};
/// Sets of pools that are looked at after one batch.
constexpr std::size_t kShapesMax = 8;

std::string owner_text(const core::Owner& owner) {
  return fmt::format("network={} container={} ifname={}", owner.network, owner.container_id, owner.interface_name);
}

const char* source_of(bool from_cache) { return from_cache ? "cache" : "store"; }

const agent::Caller& caller_of(const AgentCall& call) {
  const auto* assign = std::get_if<agent::AssignCall>(&call.what);
  return assign != nullptr ? assign->caller : std::get<agent::ReleaseCall>(call.what).caller;
}

std::string subject_of(const AgentCall& call) {
  if (const auto* assign = std::get_if<agent::AssignCall>(&call.what))
    return "ADD " + owner_text(assign->request.owner);
  return "DEL " + owner_text(std::get<agent::ReleaseCall>(call.what).owner);
}

/// How a call ended, as its log line says it, and as its caller is told.
struct Ending {
  const char* outcome;
  std::string text;
  std::string message;
};

Ending ending_of(const AgentCall& call, const Error& error) {
  const bool is_add = std::holds_alternative<agent::AssignCall>(call.what);
  return {"error", text_of(error),
          is_add ? agent::encode(agent::AssignOutcome(error)) : agent::encode(agent::ReleaseOutcome(error))};
}
Ending ending_of(core::AssignAnswer answer, bool from_cache) {
  if (auto* refusal = std::get_if<core::Refusal>(&answer)) {
    return {"error", text_of(core::to_error(*refusal)), agent::encode(agent::AssignOutcome(std::move(*refusal)))};
  }
  auto& assigned = std::get<core::Assigned>(answer);
  std::string text = fmt::format("from={} {}", source_of(from_cache), text_of(assigned));
  return {"ok", std::move(text), agent::encode(agent::AssignOutcome(std::move(assigned)))};
}
Ending ending_of(core::Released released, bool from_cache) {
  std::string text = fmt::format("from={} released={}", source_of(from_cache), list_of(released.addresses));
  return {"ok", std::move(text), agent::encode(agent::ReleaseOutcome(std::move(released.addresses)))};
}

/// A call in a batch, with what it refers to.
struct Batched {
  AgentCall* call;
  DecisionLine line;
  core::Assigned assigned{};
  core::Released released{};
};

}  // namespace

bool AgentCall::wants_signs_of_life() const { return caller_of(*this).ends.has_value(); }

bool AgentCall::is_left(const Instant& now) const {
  if ((hung_up && *hung_up) || limit.passed(now)) return true;
  const auto last = told ? told->load() : std::chrono::nanoseconds{0};
  return std::max(first.at_since_boot, last + kAgentPatience - kHeadStart) <= now.since_boot;
}

bool serves_store_at(const AgentWorld& world, std::string_view url) {
  return store::are_same_store(url, world.store) ||
         std::any_of(world.plugin_stores.begin(), world.plugin_stores.end(),
                     [&](const std::string& other) { return store::are_same_store(url, other); });
}

/// The moment after which nothing may be begun for the call is kept in the clock that plugin and agent share, and not
/// as a span from now. A call that lay in the socket while this process was stopped is old, whatever its span.
Result<AgentCall> AgentService::admit(decltype(AgentCall::what) what, std::string owner, Deadline not_after) const {
  AgentCall call;
  call.what = std::move(what);
  call.owner = std::move(owner);
  const agent::Caller& caller = caller_of(call);
  if (!serves_store_at(world_, caller.store)) {
    return fail(ErrorCode::refused_by_configuration, "this agent serves the store {}, not {}",
                store::without_user(world_.store), store::without_user(caller.store));
  }
  if (caller.node != world_.node) {
    return fail(ErrorCode::refused_by_configuration, "this agent serves node {}, not {}", world_.node, caller.node);
  }
  const Instant now = world_.clock.now();
  if (caller.boot != now.boot) {
    return fail(ErrorCode::refused_by_configuration, "the call is of another boot, or of another machine");
  }
  call.limit = Deadline{std::min(caller.ends.value_or(caller.expires).at_since_boot, not_after.at_since_boot)};
  call.first = caller.expires;
  if (call.limit.passed(now) || call.first.passed(now)) {
    return fail(ErrorCode::deadline_exceeded, "the call came too late");
  }
  if (caller.network_namespace != 0) network_of_callers_ = caller.network_namespace;
  call.came_since_boot = now.since_boot;
  return call;
}

Result<AgentCall> AgentService::take_assign(std::string_view message, Deadline not_after) const {
  TRY(agent::AssignCall call, agent::decode_assign_call(message));
  const bool is_readable = !call.annotations || (world_.remembered_wishes && world_.ask_for_wishes);
  std::string owner = core::handle_of(call.request.owner);
  TRY(AgentCall taken, admit(std::move(call), std::move(owner), not_after));
  if (!is_readable) return fail(ErrorCode::refused_by_configuration, "this agent reads no annotations");
  return taken;
}

Result<AgentCall> AgentService::take_release(std::string_view message, Deadline not_after) const {
  TRY(agent::ReleaseCall call, agent::decode_release_call(message));
  std::string owner = core::handle_of(call.owner);
  return admit(std::move(call), std::move(owner), not_after);
}

/// A look at the store's file is only needed when the caller sees another one than was there before: where both agree
/// the commit itself looks.
Result<bool> AgentService::means_this_file(const AgentCall& call) {
  const auto& meant = caller_of(call).file;
  if (!world_.file || !meant) return true;
  {
    const std::lock_guard lock(file_mutex_);
    if (file_ == meant) return true;
  }
  TRY(const agent::StoreFile file, world_.file(call.limit));
  const std::lock_guard lock(file_mutex_);
  file_ = file;
  return file == *meant;
}

std::optional<Error> AgentService::refusal_of(const AgentCall& call) {
  // Only now: a DEL that came after its caller was killed may have been served before.
  if (call.hung_up && *call.hung_up) return Error{ErrorCode::deadline_exceeded, "the caller has hung up", {}};
  if (call.is_left(world_.clock.now())) {
    return Error{ErrorCode::deadline_exceeded, "it waited too long for its turn, or the agent stood still", {}};
  }
  const auto means_it = means_this_file(call);
  if (!means_it) return means_it.error();
  if (*means_it) return {};
  return make_error(ErrorCode::refused_by_configuration,
                    "this agent has another file open at {}: the store was replaced, or the path leads "
                    "elsewhere for the agent",
                    world_.store);
}

void AgentService::count(bool from_cache, bool failed) {
  ++(failed ? failed_ : from_cache ? from_cache_ : from_store_);
}

void AgentService::tell_added(const AgentCall& call, const core::AssignAnswer* answer) const {
  if (!world_.added || !std::holds_alternative<agent::AssignCall>(call.what)) return;
  world_.added(world_.clock.now().since_boot - call.came_since_boot, answer);
}

engine::Context AgentService::context_until(Deadline limit) const {
  return {world_.direct, world_.clock, world_.random, kServeTime, limit, world_.wait_by};
}

Result<bool> AgentService::apply_remembered_wishes(agent::AssignCall& call) const {
  if (!call.annotations) return true;
  const auto remembered = world_.remembered_wishes(call.request.pod);
  if (!remembered) return false;
  if (!*remembered) return fail(remembered->error());
  TRY_VOID(core::apply_wishes(**remembered, *call.annotations, call.request));
  TRY_VOID(core::check_something_is_asked(call.request));
  call.annotations.reset();
  return true;
}

AgentService::Together AgentService::serve_together(std::vector<AgentCall> calls) {
  Together result;
  std::deque<Batched> kept;
  std::vector<engine::BatchedCall> batch;
  batch.reserve(calls.size());
  for (AgentCall& call : calls) {
    if (auto refusal = refusal_of(call)) {
      result.answers.push_back({call.id, fail(*std::move(refusal))});
      continue;
    }
    Batched& one = kept.emplace_back(Batched{&call, DecisionLine(world_.clock, subject_of(call))});
    if (auto* assign = std::get_if<agent::AssignCall>(&call.what)) {
      const auto is_complete = apply_remembered_wishes(*assign);
      batch.push_back(
          engine::assign_in_batch(assign->request, assign->pools, call.limit, one.assigned, &world_.living));
      // The call that goes alone says what is wrong with them.
      if (!is_complete || !*is_complete) batch.back().fate = engine::BatchFate::alone;
    } else {
      const auto& release = std::get<agent::ReleaseCall>(call.what);
      batch.push_back(engine::release_in_batch(release.owner, call.limit, one.released));
    }
    batch.back().is_left = [&call](const Instant& now) { return call.is_left(now); };
  }
  const engine::BatchDone did = engine::commit_together(context_until({}), world_.cached, batch, batch_most_);
  batch_most_ = did.most;
  commits_ += did.commits;
  const auto end = [&](const Batched& one, Ending ending) {
    world_.log(one.line.ended(ending.outcome, ending.text));
    result.answers.push_back({one.call->id, std::move(ending.message)});
  };
  for (std::size_t i = 0; i < batch.size(); ++i) {
    Batched& one = kept[i];
    switch (batch[i].fate) {
      case engine::BatchFate::waits:
        result.waiting.push_back(std::move(*one.call));
        break;
      case engine::BatchFate::alone:
        result.alone.push_back(std::move(*one.call));
        break;
      case engine::BatchFate::failed:
        count(false, true);
        tell_added(*one.call, nullptr);
        end(one, ending_of(*one.call, *batch[i].error));
        break;
      case engine::BatchFate::done:
        count(did.from_memory, false);
        if (const auto* assign = std::get_if<agent::AssignCall>(&one.call->what)) {
          note_shape(assign->request);
          core::AssignAnswer answer(std::move(one.assigned));
          tell_added(*one.call, &answer);
          end(one, ending_of(std::move(answer), did.from_memory));
        } else {
          end(one, ending_of(std::move(one.released), did.from_memory));
        }
        break;
    }
  }
  return result;
}

Result<core::AssignAnswer> AgentService::assign_alone(const agent::AssignCall& call, const engine::Context& context,
                                                      Deadline limit) const {
  if (!call.annotations) return engine::assign(context, call.request, call.pools, &world_.living);
  const auto remembered = world_.remembered_wishes(call.request.pod);
  TRY(const core::AnnotatedWishes wishes, remembered ? *remembered : world_.ask_for_wishes(call.request.pod, limit));
  core::AssignRequest request = call.request;
  TRY_VOID(core::apply_wishes(wishes, *call.annotations, request));
  TRY_VOID(core::check_something_is_asked(request));
  return engine::assign(context, request, call.pools, &world_.living);
}

AgentAnswer AgentService::serve_alone(const AgentCall& call) {
  if (auto refusal = refusal_of(call)) return {call.id, fail(*std::move(refusal))};
  const DecisionLine line(world_.clock, subject_of(call));
  engine::Context context = context_until(call.limit);
  context.is_left = [&call](const Instant& now) { return call.is_left(now); };
  const auto end = [&](const auto& answer) {
    count(false, !answer);
    Ending ending = answer ? ending_of(*answer, false) : ending_of(call, answer.error());
    world_.log(line.ended(ending.outcome, ending.text));
    return AgentAnswer{call.id, std::move(ending.message)};
  };
  if (const auto* assign = std::get_if<agent::AssignCall>(&call.what)) {
    const auto answer = assign_alone(*assign, context, call.limit);
    const auto* refusal = answer ? std::get_if<core::Refusal>(&*answer) : nullptr;
    if (refusal != nullptr && world_.refused) world_.refused(assign->request.pod, core::to_error(*refusal));
    // So is what its annotations ask for and may not, or what nobody understands of them.
    const bool is_wrong = !answer && assign->annotations && answer.error().code == ErrorCode::invalid_argument;
    if (is_wrong && world_.refused) world_.refused(assign->request.pod, answer.error());
    tell_added(call, answer ? &*answer : nullptr);
    return end(answer);
  }
  const auto& release = std::get<agent::ReleaseCall>(call.what);
  return end(engine::release_owner(context, release.owner));
}

void AgentService::note_shape(const core::AssignRequest& request) {
  if (world_.claim_ahead_below == 0) return;
  const std::lock_guard lock(ahead_mutex_);
  const auto is_same = [&](const core::AssignRequest& known) {
    return known.pools == request.pools && known.namespace_labels == request.namespace_labels &&
           known.use == request.use && known.block_limit == request.block_limit &&
           (known.count.v4 == 0) == (request.count.v4 == 0) && (known.count.v6 == 0) == (request.count.v6 == 0);
  };
  if (shapes_.size() < kShapesMax && std::none_of(shapes_.begin(), shapes_.end(), is_same)) shapes_.push_back(request);
}

void AgentService::claim_ahead() {
  std::vector<core::AssignRequest> shapes;
  {
    const std::lock_guard lock(ahead_mutex_);
    shapes.swap(shapes_);
  }
  const engine::Context direct = context_until(Deadline::after(world_.clock.now(), kClaimAheadTime));
  for (const core::AssignRequest& shape : shapes) {
    for (const net::Family family : {net::Family::v4, net::Family::v6}) {
      if (shape.count[family] == 0) continue;
      const auto claimed = engine::claim_ahead(direct, world_.cached, shape, family, world_.claim_ahead_below);
      if (!claimed) continue;
      world_.log(fmt::format("claimed block={} ahead of need", claimed->block.to_string()));
      const std::lock_guard lock(ahead_mutex_);
      ahead_.push_back({shape.node, *claimed, world_.clock.now().since_boot});
    }
  }
}

void AgentService::give_back(bool end) {
  std::vector<Ahead> due;
  {
    const std::lock_guard lock(ahead_mutex_);
    const auto now = world_.clock.now().since_boot;
    const auto young = std::partition(ahead_.begin(), ahead_.end(), [&](const Ahead& ahead) {
      return end || now - ahead.since_boot >= world_.claim_ahead_hold;
    });
    due.assign(std::make_move_iterator(ahead_.begin()), std::make_move_iterator(young));
    ahead_.erase(ahead_.begin(), young);
  }
  const engine::Context context = context_until(Deadline::after(world_.clock.now(), kClaimAheadTime));
  for (Ahead& ahead : due) {
    const auto done = engine::give_back_ahead(context, ahead.node, ahead.claimed);
    if (done && *done) {
      world_.log(
          fmt::format("gave block={} back, which was claimed ahead and not used", ahead.claimed.block.to_string()));
    }
    if (done || end) continue;
    const std::lock_guard lock(ahead_mutex_);
    ahead_.push_back(std::move(ahead));  // the store is away: later
  }
}

std::string AgentService::status() const {
  agent::AgentStatus status;
  status.version = CROFT_VERSION;
  status.store = world_.store;
  status.node = world_.node;
  if (world_.describe_cache) world_.describe_cache(status);
  status.served_from_cache = from_cache_;
  status.served_from_store = from_store_;
  status.failed = failed_;
  status.commits = commits_;
  {
    const std::lock_guard lock(ahead_mutex_);
    status.blocks_ahead = ahead_.size();
  }
  return agent::encode(status);
}

namespace {

/// Calls that are served by themselves, at once.
constexpr std::size_t kAlone = 4;
/// Calls looked at for one commit.
constexpr std::size_t kBatchMax = 128;

bool is_release(const AgentCall& call) { return std::holds_alternative<wire::agent::ReleaseCall>(call.what); }

}  // namespace

Lanes::Lanes(AgentService& service, Sink sink, std::size_t room)
    : service_(service), sink_(std::move(sink)), room_(room) {
  threads_.emplace_back([this] { commit(); });
  for (std::size_t i = 0; i < kAlone; ++i) threads_.emplace_back([this] { serve_alone(); });
}

void Lanes::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  something_waits_.notify_all();
  something_is_alone_.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

/// With mutex_ held.
bool Lanes::take_in(AgentCall& call) {
  const std::size_t same = is_release(call) ? releases_waiting_ : waiting_.size() - releases_waiting_;
  if (stopping_ || same >= room_) return false;
  releases_waiting_ += is_release(call) ? 1 : 0;
  waiting_.push_back(std::move(call));
  return true;
}

std::vector<AgentCall> Lanes::add(std::vector<AgentCall> calls) {
  std::vector<AgentCall> refused;
  bool is_to_wake = false;
  {
    const std::lock_guard lock(mutex_);
    for (AgentCall& call : calls) {
      if (take_in(call)) continue;
      refused.push_back(std::move(call));
    }
    is_to_wake = !committing_ && !waiting_.empty();
  }
  // The committing thread looks by itself when it has done so.
  if (is_to_wake) something_waits_.notify_one();
  return refused;
}

/// With mutex_ held: what may go now, in its order. A call that waits behind another of its owner stays.
std::vector<AgentCall> Lanes::next_batch() {
  std::vector<AgentCall> batch;
  std::deque<AgentCall> rest;
  for (auto call = waiting_.begin(); call != waiting_.end(); ++call) {
    if (batch.size() == kBatchMax) {
      rest.insert(rest.end(), std::make_move_iterator(call), std::make_move_iterator(waiting_.end()));
      break;
    }
    if (at_work_.contains(call->owner)) {
      rest.push_back(std::move(*call));
      continue;
    }
    releases_waiting_ -= is_release(*call) ? 1 : 0;
    batch.push_back(std::move(*call));
  }
  waiting_.swap(rest);
  return batch;
}

/// With mutex_ held.
void Lanes::put_back(AgentService::Together& served) {
  for (auto call = served.waiting.rbegin(); call != served.waiting.rend(); ++call) {
    releases_waiting_ += is_release(*call) ? 1 : 0;
    waiting_.push_front(std::move(*call));
  }
  // The first of one owner's calls goes; the others wait for it, before those that nothing was done for.
  std::deque<AgentCall> behind;
  for (AgentCall& call : served.alone) {
    (at_work_.insert(call.owner).second ? alone_ : behind).push_back(std::move(call));
  }
  for (auto call = behind.rbegin(); call != behind.rend(); ++call) {
    releases_waiting_ += is_release(*call) ? 1 : 0;
    waiting_.push_front(std::move(*call));
  }
}

void Lanes::commit() {
  std::unique_lock lock(mutex_);
  for (;;) {
    std::vector<AgentCall> batch = next_batch();
    if (batch.empty()) {
      if (stopping_ && waiting_.empty()) break;
      something_waits_.wait(lock);
      continue;
    }
    committing_ = true;
    lock.unlock();
    AgentService::Together served = service_.serve_together(std::move(batch));
    if (!served.answers.empty()) sink_(std::move(served.answers));
    lock.lock();
    // Nobody waits for a claim ahead, and nobody is to wait behind it.
    if (waiting_.empty() && served.waiting.empty() && !stopping_) {
      lock.unlock();
      service_.claim_ahead();
      lock.lock();
    }
    committing_ = false;
    const std::size_t alone = served.alone.size();
    put_back(served);
    if (alone == 1) something_is_alone_.notify_one();
    if (alone > 1) something_is_alone_.notify_all();
  }
  something_is_alone_.notify_all();  // nothing more comes
}

void Lanes::serve_alone() {
  std::unique_lock lock(mutex_);
  for (;;) {
    if (alone_.empty()) {
      if (stopping_ && !committing_ && waiting_.empty()) return;
      something_is_alone_.wait(lock);
      continue;
    }
    const AgentCall call = std::move(alone_.front());
    alone_.pop_front();
    lock.unlock();
    std::vector<AgentAnswer> answers;
    answers.push_back(service_.serve_alone(call));
    sink_(std::move(answers));
    lock.lock();
    at_work_.erase(call.owner);
    something_waits_.notify_one();
  }
}

}  // namespace croft::edge
