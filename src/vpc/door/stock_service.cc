#include "vpc/door/stock_service.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/quoted.h"
#include "vpc/decide/promised.h"
#include "vpc/door/stock_answers.h"
#include "vpc/use/warm_stock.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;
namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr std::size_t kQueueMax = 4096;
constexpr std::size_t kErrandsMax = 256;
constexpr std::size_t kRecordThreads = 2;
constexpr std::size_t kCloudThreads = 4;
/// Each waits for one answer of the API server at a time.
constexpr std::size_t kFixedThreads = 4;
constexpr std::size_t kBatchMax = 128;
// docs/notes/warm-pool.md#deadlines
/// UK8S' plugin holds one lock of its node for an ADD: one without hope would keep away the DEL that frees an address.
constexpr nanoseconds kOldWaitMax = std::chrono::seconds{4};
constexpr nanoseconds kDelMax = std::chrono::seconds{5};
constexpr nanoseconds kLookMax = std::chrono::seconds{10};
constexpr nanoseconds kTellingTime = std::chrono::milliseconds{200};
/// Waiting ADDs are looked at this often whatever happens: an address may have cooled off.
constexpr nanoseconds kLookAgain = std::chrono::seconds{1};
constexpr std::chrono::milliseconds kHangUpsAreSeen{100};

std::string owner_text(const core::Owner& owner, const core::PodIdentity& pod) {
  return fmt::format("pod={}/{} container={} ifname={}", pod.namespace_name, pod.name, owner.container_id,
                     owner.interface_name);
}

std::size_t bucket_of(nanoseconds delay) {
  std::size_t bucket = 0;
  for (nanoseconds limit = kDelayFirst; delay > limit && bucket + 1 < kDelayBuckets; limit *= 2) ++bucket;
  return bucket;
}

Error ends() { return {ErrorCode::unavailable, "the agent ends", {}}; }

}  // namespace

StockService::StockService(const StockWorld& world, Sink sink) : world_(world), sink_(std::move(sink)) {
  threads_.emplace_back([this] { move_on(); });
  const auto serve = [this](Lane& lane, std::size_t threads) {
    for (std::size_t i = 0; i < threads; ++i) threads_.emplace_back([this, &lane] { run_errands(lane); });
  };
  serve(records_, kRecordThreads);
  serve(cloud_, kCloudThreads);
  if (world_.fixed != nullptr) serve(fixed_, kFixedThreads);
}

void StockService::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  moving_comes_.notify_all();
  refuse_fixed();
  for (Lane* lane : {&records_, &cloud_, &fixed_}) lane->comes.notify_all();
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

StockServiceTally StockService::tally() const {
  const std::lock_guard lock(mutex_);
  StockServiceTally tally = tally_;
  tally.waiting = static_cast<std::uint32_t>(waiting_.size());
  return tally;
}

engine::Context StockService::direct(Deadline limit) const {
  engine::Context context{world_.direct, world_.clock, world_.random};
  context.not_after = limit;
  return context;
}

/// What the caller is told has to reach it before it has stopped listening.
Deadline StockService::limit_of(const os::GrpcRequest& request, nanoseconds span) const {
  const Instant now = world_.clock.now();
  Deadline limit{std::min(Deadline::after(now, span).at_since_boot, request.deadline.at_since_boot)};
  const nanoseconds left = limit.at_since_boot - now.since_boot;
  limit.at_since_boot -= std::clamp<nanoseconds>(left / 10, nanoseconds{0}, kTellingTime);
  return limit;
}

// ---------------------------------------------------------------- coming in

std::optional<os::GrpcAnswer> StockService::take(vpc::Method method, os::GrpcRequest request) {
  const os::GrpcCallId call = request.call;
  switch (method) {
    case vpc::Method::ping: {
      const auto read = vpc::decode_ping(request.message);
      if (!read) return malformed(call, read.error());
      if (auto refusal = check_speech(call, method, read->speech)) return refusal;
      return ok(call, vpc::Ping{vpc::own_speech(world_.oldest_speech)});
    }
    case vpc::Method::support_multi_subnet:
      return ok(call, vpc::SupportAnswer{vpc::CniCode::success, false});
    case vpc::Method::add_pod_network:
      return take_add(std::move(request));
    case vpc::Method::del_pod_network:
      return take_del(std::move(request));
    case vpc::Method::del_pod_network_record: {
      auto key = vpc::decode_record_key(request.message);
      if (!key) return malformed(call, key.error());
      if (key->sandbox_id.empty()) return ok(call, vpc::CodeAnswer{});
      return queue(records_, call, {[this, call, key = *std::move(key)] { return forget(call, key); }});
    }
    case vpc::Method::add_pod_network_record: {
      const auto read = vpc::decode_record_request(request.message);
      if (!read) return malformed(call, read.error());
      if (!read->pod_network) return malformed(call, invalid_argument("PodNetwork is missing"));
      auto told = vpc::warm_address_of(*read->pod_network);
      if (!told) return malformed(call, told.error());
      return queue(records_, call, {[this, call, told = *std::move(told)] { return record(call, told); }});
    }
    case vpc::Method::get_pod_network_record: {
      auto key = vpc::decode_record_key(request.message);
      if (!key) return malformed(call, key.error());
      return queue(records_, call, {[this, call, key = *std::move(key)] { return get_record(call, key); }});
    }
    case vpc::Method::list_pod_network_record:
      return queue(records_, call, {[this, call] { return list_records(call); }});
    case vpc::Method::show_stock:
      return queue(records_, call, {[this, call] { return show(call); }});
    case vpc::Method::describe_pool:
      return queue(records_, call, {[this, call] { return describe(call); }});
    case vpc::Method::borrow_ip: {
      auto read = vpc::decode_borrow_request(request.message);
      if (!read) return malformed(call, read.error());
      if (auto refusal = check_speech(call, method, read->speech)) return refusal;
      if (auto refusal = check_node(request, *read)) return refusal;
      const Deadline limit = limit_of(request, kLookMax);
      const std::string certified = request.peer != nullptr ? request.peer->name : std::string();
      if (request.peer != nullptr) read->node = certified;
      return queue(cloud_, call, {[this, call, limit, certified, read = *std::move(read)] {
                     return borrow(call, read, certified, limit);
                   }});
    }
    case vpc::Method::push_pool:
    case vpc::Method::pop_pool: {
      auto read = vpc::decode_stock_request(request.message);
      if (!read) return malformed(call, read.error());
      const Deadline limit = limit_of(request, kLookMax);
      const bool is_push = method == vpc::Method::push_pool;
      return queue(cloud_, call, {[this, call, limit, is_push, ip = std::move(read->ip)] {
                     return is_push ? push(call, ip, limit) : pop(call, ip, limit);
                   }});
    }
    case vpc::Method::list_unuse: {
      const Deadline limit = limit_of(request, kLookMax);
      return queue(cloud_, call, {[this, call, limit] { return list_unused(call, limit); }});
    }
    case vpc::Method::release_ip: {
      auto read = vpc::decode_release_request(request.message);
      if (!read) return malformed(call, read.error());
      const Deadline limit = limit_of(request, kLookMax);
      return queue(cloud_, call,
                   {[this, call, limit, ips = std::move(read->ips)] { return release(call, ips, limit); }});
    }
  }
  return os::GrpcAnswer{call, os::GrpcCode::unimplemented, {}, {}};
}

void StockService::heard(std::string call, std::string who, std::string outcome) {
  constexpr std::size_t kHeardMax = 16;
  const std::lock_guard lock(mutex_);
  heard_.push_front({world_.clock.now().since_boot, std::move(call), std::move(who), std::move(outcome)});
  if (heard_.size() > kHeardMax) heard_.pop_back();
}

std::optional<os::GrpcAnswer> StockService::check_speech(os::GrpcCallId call, vpc::Method method,
                                                         const vpc::Speech& other) {
  const auto skew = vpc::skew_between(vpc::own_speech(world_.oldest_speech), other);
  if (!skew) return std::nullopt;
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    is_news = std::exchange(told_skew_, *skew) != *skew;
  }
  // Who is refused asks again and again.
  if (is_news && world_.log) world_.log(fmt::format("{} refused: {}", vpc::name_of(method), *skew));
  return os::GrpcAnswer{call, os::GrpcCode::failed_precondition, *skew, {}};
}

/// Of a borrower that came with a certificate: it speaks for the node that the certificate is of. Who names none, a
/// Croft of before, is that node.
std::optional<os::GrpcAnswer> StockService::check_node(const os::GrpcRequest& request, const vpc::BorrowRequest& read) {
  if (request.peer == nullptr || read.node.empty() || read.node == request.peer->name) return std::nullopt;
  const std::string why = fmt::format(
      "the certificate is of {}, and the request says that it is of node {}: each node's agent has a certificate with "
      "its own node's name (docs/runbooks/vpc-certificates.md)",
      in_quotes(request.peer->name), in_quotes(read.node));
  bool is_news = false;
  {
    const std::lock_guard lock(mutex_);
    is_news = std::exchange(told_stranger_, why) != why;
  }
  heard("BorrowIP", "node " + request.peer->name, why);
  if (is_news && world_.log) world_.log(fmt::format("BorrowIP from {} refused: {}", request.peer->address, why));
  return os::GrpcAnswer{request.call, os::GrpcCode::permission_denied, why, {}};
}

std::optional<os::GrpcAnswer> StockService::take_add(os::GrpcRequest request) {
  auto read = vpc::decode_add_pod_network_request(request.message);
  if (!read) return malformed(request.call, read.error());
  if (read->sandbox_id.empty()) return malformed(request.call, invalid_argument("SandboxID is empty"));
  if (auto refusal = check_speech(request.call, vpc::Method::add_pod_network, read->speech)) return refusal;
  StockAdd add;
  add.request.owner = {std::move(read->network), std::move(read->sandbox_id), std::move(read->interface_name)};
  add.request.pod = {std::move(read->pod_name), std::move(read->pod_namespace), std::move(read->pod_uid)};
  add.request.netns = std::move(read->netns);
  add.request.subnet = std::move(read->subnet);
  if (!read->interface_id.empty()) add.request.extra["interfaceID"] = std::move(read->interface_id);
  add.request.cooldown = world_.keeper.options().cooldown;
  Moving moving;
  moving.id = request.call;
  moving.limit = limit_of(request, world_.wait_max);
  moving.hung_up = std::move(request.hung_up);
  moving.is_old = read->speech.newest == 0;
  const core::PodIdentity pod = add.request.pod;
  // Of a client of version 0 the API tells also what it wants beside an address.
  const bool may_be_fixed =
      world_.fixed != nullptr && !pod.name.empty() && (warm::has_stable_name(pod) || moving.is_old);
  moving.what = std::move(add);
  if (!may_be_fixed) return queue(std::move(moving));
  moving.since = world_.clock.now().since_boot;
  const os::GrpcCallId call = moving.id;
  const auto shared = std::make_shared<Moving>(std::move(moving));
  Errand errand{[this, shared] { return add_fixed(std::move(*shared)); }, warm::promise_of(pod), shared};
  return queue(fixed_, call, std::move(errand));
}

std::optional<os::GrpcAnswer> StockService::take_del(os::GrpcRequest request) {
  auto read = vpc::decode_del_pod_network_request(request.message);
  if (!read) return malformed(request.call, read.error());
  // Nothing is named: nothing is to be released.
  if (!read->pod_network) return ok(request.call, vpc::CodeAnswer{});
  const vpc::PodNetwork& named = *read->pod_network;
  StockDel del;
  del.release.owner = {read->network, named.sandbox_id, read->interface_name};
  del.release.pod = {named.pod_name, named.pod_namespace, named.pod_uid};
  del.release.cooldown = world_.keeper.options().cooldown;
  if (!named.ip.empty()) {
    del.release.address = vpc::parsed_ip(named);
    if (!del.release.address) return malformed(request.call, invalid_argument("VPCIP is no address: " + named.ip));
  }
  if (named.sandbox_id.empty() && !del.release.address) return ok(request.call, vpc::CodeAnswer{});
  Moving moving;
  moving.id = request.call;
  moving.limit = limit_of(request, kDelMax);
  moving.hung_up = std::move(request.hung_up);
  moving.what = std::move(del);
  return queue(std::move(moving));
}

std::optional<os::GrpcAnswer> StockService::queue(Moving moving) {
  // One that an errand has looked at came before that.
  if (moving.since == nanoseconds{0}) moving.since = world_.clock.now().since_boot;
  const std::lock_guard lock(mutex_);
  if (stopping_) return os::GrpcAnswer{moving.id, os::GrpcCode::unavailable, ends().message, {}};
  if (queue_.size() + waiting_.size() >= kQueueMax) {
    return os::GrpcAnswer{moving.id, os::GrpcCode::resource_exhausted, "too many calls wait", {}};
  }
  queue_.push_back(std::make_unique<Moving>(std::move(moving)));
  return std::nullopt;
}

std::optional<os::GrpcAnswer> StockService::queue(Lane& lane, os::GrpcCallId call, Errand errand) {
  const std::lock_guard lock(mutex_);
  if (stopping_) return os::GrpcAnswer{call, os::GrpcCode::unavailable, ends().message, {}};
  if (lane.errands.size() >= kErrandsMax) {
    return os::GrpcAnswer{call, os::GrpcCode::resource_exhausted, "too many calls wait", {}};
  }
  lane.errands.push_back(std::move(errand));
  return std::nullopt;
}

void StockService::go() {
  const std::lock_guard lock(mutex_);
  if (!queue_.empty() && !is_serving_) moving_comes_.notify_one();
  for (Lane* lane : {&records_, &cloud_, &fixed_}) {
    if (!lane->errands.empty()) lane->comes.notify_all();
  }
}

void StockService::stocked() {
  {
    const std::lock_guard lock(mutex_);
    if (waiting_.empty()) return;
    stocked_ = true;
  }
  moving_comes_.notify_one();
}

// ---------------------------------------------------------------- ADD and DEL

/// With mutex_ held: what may go now, in the order of arrival. A DEL ends the ADD of its container that waits.
std::vector<std::unique_ptr<StockService::Moving>> StockService::next_batch() {
  std::vector<std::unique_ptr<Moving>> batch;
  const nanoseconds now = world_.clock.now().since_boot;
  if (stocked_ || now >= look_again_ || stopping_) {
    stocked_ = false;
    look_again_ = nanoseconds::max();
    for (auto it = waiting_.rbegin(); it != waiting_.rend(); ++it) queue_.push_front(std::move(*it));
    waiting_.clear();
  }
  while (!queue_.empty() && batch.size() < kBatchMax) {
    batch.push_back(std::move(queue_.front()));
    queue_.pop_front();
  }
  return batch;
}

void StockService::move_on() {
  for (;;) {
    std::vector<std::unique_ptr<Moving>> batch;
    {
      std::unique_lock lock(mutex_);
      while (queue_.empty() && !stocked_ && !stopping_) {
        const nanoseconds now = world_.clock.now().since_boot;
        if (now >= look_again_) break;
        if (look_again_ == nanoseconds::max()) {
          moving_comes_.wait(lock);
        } else {
          moving_comes_.wait_for(lock, look_again_ - now);
        }
      }
      batch = next_batch();
      if (batch.empty() && stopping_) return;
      is_serving_ = true;
    }
    serve(std::move(batch));
    const std::lock_guard lock(mutex_);
    is_serving_ = false;
  }
}

/// Whatever kept the stock empty, the caller is told that it gets no address, and has no use of asking elsewhere.
Error StockService::none_in_time() const {
  Error why = world_.keeper.trouble().value_or(Error{{}, "no address came into the stock in time", {}});
  why.code = ErrorCode::exhausted;
  return why;
}

bool StockService::is_without_hope(const Moving& add, const Instant& now) {
  return add.is_old && !add.may_hope && now.since_boot - add.since >= kOldWaitMax;
}

void StockService::serve(std::vector<std::unique_ptr<Moving>> batch) {
  std::vector<os::GrpcAnswer> answers;
  const Instant now = world_.clock.now();
  bool is_stopping = false;
  {
    const std::lock_guard lock(mutex_);
    is_stopping = stopping_;
  }
  std::erase_if(batch, [&](std::unique_ptr<Moving>& moving) {
    // Whose caller is gone is not begun: for an ADD that waited, a DEL has come or will.
    const bool is_gone =
        moving->hung_up != nullptr && *moving->hung_up && std::holds_alternative<StockAdd>(moving->what);
    if (!is_gone && !moving->limit.passed(now)) return false;
    Error why{ErrorCode::deadline_exceeded, "it is too late", {}};
    if (moving->has_waited) why = none_in_time();
    answers.push_back(failed(*moving, why));
    return true;
  });

  std::vector<engine::BatchedCall> calls;
  calls.reserve(batch.size());
  for (const auto& moving : batch) {
    if (auto* add = std::get_if<StockAdd>(&moving->what)) {
      calls.push_back(engine::assign_from_stock_in_batch(add->request, moving->limit, add->answer, writer_));
    } else {
      auto& del = std::get<StockDel>(moving->what);
      calls.push_back(engine::release_to_stock_in_batch(del.release, moving->limit, del.answer, writer_));
    }
  }
  engine::BatchDone did;
  if (!calls.empty()) {
    const engine::Context context{world_.direct, world_.clock, world_.random};
    did = engine::commit_together(context, world_.cached, calls);
  }
  std::vector<std::unique_ptr<Moving>> again, empty_handed;
  // A DEL of the container, done or still to come, ends the ADD before it: nobody waits for that any more.
  const auto is_deleted_behind = [&](std::size_t i, const std::string& container) {
    return std::any_of(batch.begin() + static_cast<std::ptrdiff_t>(i), batch.end(), [&](const auto& other) {
      const auto* del = other != nullptr ? std::get_if<StockDel>(&other->what) : nullptr;
      return del != nullptr && del->release.owner.container_id == container;
    });
  };
  const auto deleted = [](const Moving& add) {
    return os::GrpcAnswer{add.id, os::GrpcCode::aborted, "the container was deleted meanwhile", {}};
  };
  bool is_term_over = false;
  for (std::size_t i = 0; i < batch.size(); ++i) {
    switch (calls[i].fate) {
      case engine::BatchFate::done:
        finish(batch[i], answers);
        break;
      case engine::BatchFate::failed:
        answers.push_back(failed(*batch[i], *calls[i].error));
        break;
      case engine::BatchFate::waits:
        again.push_back(std::move(batch[i]));
        break;
      case engine::BatchFate::alone:
        if (is_term_over) {
          again.push_back(std::move(batch[i]));
        } else if (const auto served = serve_alone(*batch[i])) {
          if (*served) {
            finish(batch[i], answers);
          } else if (warm::is_term_over(served->error())) {
            is_term_over = true;
            again.push_back(std::move(batch[i]));
          } else {
            answers.push_back(failed(*batch[i], served->error()));
          }
        } else if (is_stopping) {
          answers.push_back(failed(*batch[i], ends()));
        } else if (is_deleted_behind(i, std::get<StockAdd>(batch[i]->what).request.owner.container_id)) {
          answers.push_back(deleted(*batch[i]));
        } else if (is_without_hope(*batch[i], now)) {
          answers.push_back(failed(*batch[i], none_in_time()));
        } else {
          empty_handed.push_back(std::move(batch[i]));
        }
        break;
    }
  }
  if (is_term_over) {
    world_.keeper.take_term();
    // Plugins that have done their calls themselves have hung up: that is seen by then.
    std::this_thread::sleep_for(kHangUpsAreSeen);
  }
  {
    const std::lock_guard lock(mutex_);
    tally_.commits += did.commits;
    for (auto it = again.rbegin(); it != again.rend(); ++it) queue_.push_front(std::move(*it));
    std::erase_if(waiting_, [&](std::unique_ptr<Moving>& add) {
      if (!is_deleted_behind(0, std::get<StockAdd>(add->what).request.owner.container_id)) return false;
      answers.push_back(deleted(*add));
      return true;
    });
    for (auto& add : empty_handed) {
      tally_.waited += add->has_waited ? 0U : 1U;
      add->has_waited = true;
      waiting_.push_back(std::move(add));
    }
    tally_.waiting_max = std::max(tally_.waiting_max, static_cast<std::uint32_t>(waiting_.size()));
    if (!waiting_.empty()) look_again_ = std::min(look_again_, world_.clock.now().since_boot + kLookAgain);
    // Whose time is up is told so then, and not at the next look.
    for (const auto& add : waiting_) look_again_ = std::min(look_again_, add->limit.at_since_boot);
  }
  if (!answers.empty()) sink_(std::move(answers));
  tell_waiting();
}

void StockService::tell_waiting() {
  std::uint32_t waiting = 0;
  {
    const std::lock_guard lock(mutex_);
    waiting = static_cast<std::uint32_t>(waiting_.size());
  }
  // Who waits for a look (StockKeeper::may_give) is served from what is there.
  world_.keeper.set_waiting(writer_.may_give() ? waiting : 0);
}

/// Nothing when it has to wait for the stock.
std::optional<Result<void>> StockService::serve_alone(Moving& moving) {
  const engine::Context context = direct(moving.limit);
  if (auto* del = std::get_if<StockDel>(&moving.what)) {
    auto let_go = engine::release_to_stock(context, del->release, writer_);
    if (!let_go) return Result<void>(fail(let_go.error()));
    del->answer = *std::move(let_go);
    return Result<void>();
  }
  auto& add = std::get<StockAdd>(moving.what);
  auto answer = engine::assign_from_stock(context, add.request, writer_);
  if (!answer) return Result<void>(fail(answer.error()));
  auto* assigned = std::get_if<warm::Assigned>(&*answer);
  if (assigned == nullptr) {
    const warm::Counts& counts = std::get<warm::Empty>(*answer).counts;
    moving.may_hope = counts.probing + counts.asked > 0 || !writer_.may_give();
    return std::nullopt;
  }
  add.answer = std::move(*assigned);
  return Result<void>();
}

/// What was done is answered, but for the ADD of a pod that keeps its address, which goes: that is promised to it
/// first.
void StockService::finish(std::unique_ptr<Moving>& moving, std::vector<os::GrpcAnswer>& answers) {
  if (!moving->fixed) return answers.push_back(done(*moving));
  const std::shared_ptr<Moving> shared = std::move(moving);
  const std::string name = warm::promise_of(std::get<StockAdd>(shared->what).request.pod);
  {
    const std::lock_guard lock(mutex_);
    // What is half done comes before what has not begun.
    if (!stopping_) fixed_.errands.push_front({[this, shared] { return attach(*shared); }, name});
    if (!stopping_) return fixed_.comes.notify_all();
  }
  answers.push_back(failed(*shared, Error{ErrorCode::exhausted, ends().message, {}}));
}

os::GrpcAnswer StockService::done(Moving& moving) {
  if (const auto* del = std::get_if<StockDel>(&moving.what)) {
    {
      const std::lock_guard lock(mutex_);
      ++tally_.dels;
    }
    std::string addresses;
    for (const core::WarmAddress& one : del->answer) addresses += " " + one.address.to_string();
    heard("DEL", owner_text(del->release.owner, del->release.pod),
          addresses.empty() ? "ok, nothing held" : "ok, released" + addresses);
    if (world_.log) {
      world_.log(fmt::format("DEL {} ok{}", owner_text(del->release.owner, del->release.pod),
                             addresses.empty() ? " nothing held" : " released" + addresses));
    }
    return ok(moving.id, vpc::CodeAnswer{});
  }
  const auto& add = std::get<StockAdd>(moving.what);
  const core::WarmAddress& address = add.answer.address;
  const nanoseconds took = world_.clock.now().since_boot - moving.since;
  {
    const std::lock_guard lock(mutex_);
    ++tally_.adds;
    ++tally_.add_delays.at(bucket_of(took));
    tally_.add_delay_sum += took;
  }
  if (world_.log) {
    world_.log(fmt::format("ADD {} ok {} ms={:.1f}{}{}", owner_text(add.request.owner, add.request.pod),
                           address.address.to_string(), static_cast<double>(took.count()) / 1e6,
                           add.answer.was_held ? " held-already" : "", moving.has_waited ? " waited" : ""));
  }
  heard("ADD", owner_text(add.request.owner, add.request.pod), "ok, " + address.address.to_string());
  if (world_.assigned) world_.assigned(add.request.pod, address.address);
  return ok(moving.id, vpc::NetworkAnswer{vpc::CniCode::success, vpc::pod_network_of(address)});
}

os::GrpcAnswer StockService::failed(const Moving& moving, const Error& error) {
  const auto* del = std::get_if<StockDel>(&moving.what);
  {
    const std::lock_guard lock(mutex_);
    ++(del != nullptr ? tally_.dels_failed : tally_.adds_failed);
  }
  const core::Owner& owner = del != nullptr ? del->release.owner : std::get<StockAdd>(moving.what).request.owner;
  const core::PodIdentity& pod = del != nullptr ? del->release.pod : std::get<StockAdd>(moving.what).request.pod;
  if (world_.log) {
    world_.log(fmt::format("{} {} failed: {}", del != nullptr ? "DEL" : "ADD", owner_text(owner, pod), error.message));
  }
  heard(del != nullptr ? "DEL" : "ADD", owner_text(owner, pod), "failed: " + error.message);
  if (del == nullptr && world_.refused) world_.refused(pod, error);
  if (error.code == ErrorCode::unavailable) return {moving.id, os::GrpcCode::unavailable, error.message, {}};
  if (del != nullptr) return answer_of(moving.id, vpc::Method::del_pod_network, vpc::Failure::not_released, error);
  return answer_of(moving.id, vpc::Method::add_pod_network, vpc::Failure::no_address, error);
}

}  // namespace croft::edge
