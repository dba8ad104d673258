#include "vpc/door/stock_server.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "agent/door/server.h"
#include "http/grpc_server.h"
#include "vpc/decide/assign.h"
#include "vpc/use/stock_calls.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;
namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr std::size_t kCloudThreads = 4;
/// Each waits for one answer of the API server at a time.
constexpr std::size_t kFixedThreads = 4;
// docs/notes/warm-pool.md#deadlines
constexpr nanoseconds kDelMax = std::chrono::seconds{5};
constexpr nanoseconds kLookMax = std::chrono::seconds{10};
constexpr nanoseconds kTellingTime = std::chrono::milliseconds{200};
/// How long the question is waited for that is asked for every pod whose name could be a StatefulSet's: an API server
/// that takes longer is away.
constexpr std::chrono::seconds kAskMax{3};

std::string owner_text(const core::Owner& owner, const core::PodIdentity& pod) {
  return fmt::format("pod={}/{} container={} ifname={}", pod.namespace_name, pod.name, owner.container_id,
                     owner.interface_name);
}

/// A call that was done.
template <class Message>
os::GrpcAnswer ok(os::GrpcCallId call, const Message& message) {
  return {call, os::GrpcCode::ok, {}, vpc::encode(message)};
}

/// One that could not be read, or names nonsense.
os::GrpcAnswer malformed(os::GrpcCallId call, const Error& error) {
  return {call, os::GrpcCode::invalid_argument, error.message, {}};
}

/// The protocol says INTERNAL of each failure; that of which a caller may try again at once is said as gRPC says it.
os::GrpcAnswer failure(os::GrpcCallId call, const Error& error) {
  if (error.code == ErrorCode::invalid_argument) return malformed(call, error);
  const bool is_late = error.code == ErrorCode::deadline_exceeded;
  std::string text = error.message;
  if (!error.details.empty()) text += "\n" + error.details;
  return {call, is_late ? os::GrpcCode::deadline_exceeded : os::GrpcCode::internal, std::move(text), {}};
}

os::GrpcAnswer answer_of(os::GrpcCallId call, Result<std::string> done) {
  if (!done) return failure(call, done.error());
  return {call, os::GrpcCode::ok, {}, *std::move(done)};
}

/// A borrower has to know whether an address may be its already.
os::GrpcAnswer no_loan(os::GrpcCallId call, const Error& error) {
  switch (error.code) {
    case ErrorCode::unknown_outcome:
      return {call, os::GrpcCode::deadline_exceeded, error.message, {}};
    case ErrorCode::exhausted:
      return {call, os::GrpcCode::resource_exhausted, error.message, {}};
    case ErrorCode::permission_denied:
      return {call, os::GrpcCode::permission_denied, error.message, {}};
    case ErrorCode::conflict:
      return {call, os::GrpcCode::aborted, error.message, {}};
    default:
      return failure(call, error);
  }
}

std::string network_answer(const core::StockAddress& address) {
  return vpc::encode(vpc::NetworkAnswer{vpc::pod_network_of(address)});
}

[[nodiscard]] Result<std::optional<net::Address>> address_of(const std::string& text) {
  if (text.empty()) return std::optional<net::Address>();
  TRY(const net::Address address, net::Address::parse(text));
  return std::optional(address);
}

/// Why no pod gets it; empty: one may, has it, or had it and it cools.
std::string why_aside(const core::StockAddress& one) {
  if (one.state == core::StockAddressState::quarantined) return one.why;
  if (one.state == core::StockAddressState::releasing)
    return "it is being given back" + std::string(vpc::kNotConfirmed);
  if (one.state == core::StockAddressState::lending) {
    return fmt::format("it is being lent to {}{}", one.peer, vpc::kNotConfirmed);
  }
  std::string doubts;
  for (const core::StockDoubt doubt : one.doubts) {
    doubts += doubts.empty() ? "" : "; ";
    doubts += doubt == core::StockDoubt::not_in_cloud   ? "the cloud does not show it here"
              : doubt == core::StockDoubt::used_by_host ? "the host uses it"
                                                        : "a pod says that it has it";
  }
  return doubts;
}

/// A plugin that hears `unavailable` takes from the stock itself, and knows of no promise: that is for when the agent
/// is gone.
Error told(Error error) {
  if (error.code == ErrorCode::unavailable) error.code = ErrorCode::exhausted;
  return error;
}

/// The service knows one kind of number for a call; the door is in its upper bits.
constexpr unsigned kDoorShift = 60;

bool is_let_in(const DoorRules& rules, vpc::Method method) {
  switch (method) {
    case vpc::Method::ping:
    case vpc::Method::support_multi_subnet:
    case vpc::Method::borrow_ip:
      return true;
    case vpc::Method::list_pod_network_record:
    case vpc::Method::describe_pool:
    case vpc::Method::push_pool:
    case vpc::Method::pop_pool:
    case vpc::Method::list_unuse:
    case vpc::Method::release_ip:
      return rules.operators;
    default:
      return rules.plugin;
  }
}

}  // namespace

StockService::StockService(const StockWorld& world, Sink sink)
    : world_(world), sink_(std::move(sink)), cloud_(kCloudThreads), fixed_(world.fixed != nullptr ? kFixedThreads : 0) {
  actor_.serve([this](std::vector<engine::StockCall> calls) { ended(std::move(calls)); });
}

void StockService::stop() {
  stopping_ = true;
  actor_.end_calls();
  for (engine::Workers* workers : {&reads_, &cloud_, &fixed_}) workers->stop();
  actor_.ask([] {});  // what they have left is answered
}

/// The answer has to reach the caller before it has stopped listening.
Deadline StockService::limit_of(const os::GrpcRequest& request, nanoseconds span) const {
  const Instant now = world_.clock.now();
  Deadline limit{std::min(Deadline::after(now, span).at_since_boot, request.deadline.at_since_boot)};
  const nanoseconds left = limit.at_since_boot - now.since_boot;
  limit.at_since_boot -= std::clamp<nanoseconds>(left / 10, nanoseconds{0}, kTellingTime);
  return limit;
}

// ---------------------------------------------------------------- coming in

template <class Read, class Run>
StockService::Maybe StockService::with(engine::Workers& workers, os::GrpcCallId call, Result<Read> read, Run run) {
  if (!read) return malformed(call, read.error());
  return queue(workers, call, [call, run, read = *std::move(read)] { return answer_of(call, run(read)); });
}

StockService::Maybe StockService::take(vpc::Method method, os::GrpcRequest request) {
  const os::GrpcCallId call = request.call;
  const std::string& message = request.message;
  const Result<vpc::Nothing> nothing = vpc::Nothing{};
  const Deadline limit = limit_of(request, kLookMax);
  switch (method) {
    case vpc::Method::ping:
    case vpc::Method::support_multi_subnet:
      return ok(call, *nothing);
    case vpc::Method::add_pod_network:
      return take_add(std::move(request));
    case vpc::Method::del_pod_network:
      return take_del(std::move(request));
    case vpc::Method::del_pod_network_record: {
      auto key = vpc::decode_record_key(message);
      if (!key) return malformed(call, key.error());
      if (key->sandbox_id.empty()) return ok(call, vpc::Nothing{});
      return write(call, [this, key = *std::move(key)] { return forget(key); });
    }
    case vpc::Method::add_pod_network_record: {
      const auto read = vpc::decode_del_pod_network_request(message);
      if (!read) return malformed(call, read.error());
      if (!read->pod_network) return malformed(call, invalid_argument("PodNetwork is missing"));
      auto told = vpc::warm_address_of(*read->pod_network);
      if (!told) return malformed(call, told.error());
      return write(call, [this, told = *std::move(told)] { return record(told); });
    }
    case vpc::Method::get_pod_network_record:
      return with(reads_, call, vpc::decode_record_key(message), [this](const auto& key) { return get_record(key); });
    case vpc::Method::list_pod_network_record:
      return with(reads_, call, nothing, [this](const auto&) { return list_records(); });
    case vpc::Method::show_stock:
      return with(reads_, call, nothing, [this](const auto&) -> Result<std::string> {
        TRY(const auto shown, world_.show());
        return vpc::encode(shown);
      });
    case vpc::Method::describe_pool:
      return with(reads_, call, nothing, [this](const auto&) { return describe(); });
    case vpc::Method::borrow_ip: {
      auto read = vpc::decode_borrow_request(message);
      if (!read) return malformed(call, read.error());
      const std::string certified = request.peer != nullptr ? request.peer->name : std::string();
      return queue(cloud_, call, [this, call, limit, certified, read = *std::move(read)] {
        return borrow(call, read, certified, limit);
      });
    }
    case vpc::Method::push_pool:
      return with(cloud_, call, vpc::decode_stock_request(message),
                  [this, limit](const auto& asked) { return move_one(&engine::StockKeeper::push, asked.ip, limit); });
    case vpc::Method::pop_pool:
      return with(cloud_, call, vpc::decode_stock_request(message),
                  [this, limit](const auto& asked) { return move_one(&engine::StockKeeper::pop, asked.ip, limit); });
    case vpc::Method::list_unuse:
      return with(cloud_, call, nothing, [this, limit](const auto&) { return list_unused(limit); });
    case vpc::Method::release_ip:
      return with(cloud_, call, vpc::decode_release_request(message),
                  [this, limit](const auto& asked) { return release(asked.ips, limit); });
  }
  return os::GrpcAnswer{call, os::GrpcCode::unimplemented, {}, {}};
}

StockService::Maybe StockService::take_add(os::GrpcRequest request) {
  auto read = vpc::decode_add_pod_network_request(request.message);
  if (!read) return malformed(request.call, read.error());
  if (read->sandbox_id.empty()) return malformed(request.call, invalid_argument("SandboxID is empty"));
  engine::StockAdd add;
  add.request.owner = {std::move(read->network), std::move(read->sandbox_id), std::move(read->interface_name)};
  add.request.pod = {std::move(read->pod_name), std::move(read->pod_namespace), std::move(read->pod_uid)};
  add.request.netns = std::move(read->netns);
  add.request.subnet = std::move(read->subnet);
  if (!read->interface_id.empty()) add.request.extra["interfaceID"] = std::move(read->interface_id);
  add.request.cooldown = world_.keeper.options().reconcile.cooldown;
  engine::StockCall call;
  call.id = request.call;
  call.limit = limit_of(request, world_.wait_max);
  call.hung_up = std::move(request.hung_up);
  call.is_old = !read->is_crofts;
  const core::PodIdentity pod = add.request.pod;
  // The API tells what UK8S' own client wants beside an address.
  const bool may_be_fixed = world_.fixed != nullptr && !pod.name.empty() && (warm::has_stable_name(pod) || call.is_old);
  call.what = std::move(add);
  if (!may_be_fixed) return queue(std::move(call));
  call.since = world_.clock.now().since_boot;
  const os::GrpcCallId id = call.id;
  const auto shared = std::make_shared<engine::StockCall>(std::move(call));
  if (fixed_.run([this, shared] { add_fixed(std::move(*shared)); }, warm::promised_pod_name(pod))) return std::nullopt;
  return too_many(id);
}

StockService::Maybe StockService::take_del(os::GrpcRequest request) {
  auto read = vpc::decode_del_pod_network_request(request.message);
  if (!read) return malformed(request.call, read.error());
  // Nothing is named: nothing is to be released.
  if (!read->pod_network) return ok(request.call, vpc::Nothing{});
  const vpc::PodNetwork& named = *read->pod_network;
  engine::StockDel del;
  del.release.owner = {read->network, named.sandbox_id, read->interface_name};
  del.release.pod = {named.pod_name, named.pod_namespace, named.pod_uid};
  del.release.cooldown = world_.keeper.options().reconcile.cooldown;
  if (!named.ip.empty()) {
    del.release.address = vpc::parsed_ip(named);
    if (!del.release.address) return malformed(request.call, invalid_argument("VPCIP is no address: " + named.ip));
  }
  if (named.sandbox_id.empty() && !del.release.address) return ok(request.call, vpc::Nothing{});
  engine::StockCall call;
  call.id = request.call;
  call.limit = limit_of(request, kDelMax);
  call.hung_up = std::move(request.hung_up);
  call.what = std::move(del);
  return queue(std::move(call));
}

StockService::Maybe StockService::queue(engine::StockCall call) {
  const os::GrpcCallId id = call.id;
  const auto refused = actor_.take(call);
  if (!refused) return std::nullopt;
  const bool ends = refused->code == ErrorCode::unavailable;
  return os::GrpcAnswer{id, ends ? os::GrpcCode::unavailable : os::GrpcCode::resource_exhausted, refused->message, {}};
}

StockService::Maybe StockService::queue(engine::Workers& workers, os::GrpcCallId call,
                                        std::function<os::GrpcAnswer()> errand) {
  if (workers.run([this, errand = std::move(errand)] { send(errand()); })) return std::nullopt;
  return too_many(call);
}

os::GrpcAnswer StockService::too_many(os::GrpcCallId call) const {
  if (stopping_) return {call, os::GrpcCode::unavailable, engine::StockActor::ends().message, {}};
  return {call, os::GrpcCode::resource_exhausted, "too many calls wait", {}};
}

/// A write that rests on the records alone, a message like an ADD.
StockService::Maybe StockService::write(os::GrpcCallId call, std::function<Result<std::string>()> message) {
  if (stopping_) return too_many(call);
  actor_.post([this, call, message = std::move(message)] { send(answer_of(call, message())); });
  return std::nullopt;
}

void StockService::send(os::GrpcAnswer answer) {
  std::vector<os::GrpcAnswer> answers;
  answers.push_back(std::move(answer));
  sink_(std::move(answers));
}

// ---------------------------------------------------------------- ADD and DEL

/// In the actor's loop. Each call is answered, but for the ADD of a pod that keeps its address: the address is promised
/// to it first.
void StockService::ended(std::vector<engine::StockCall> calls) {
  std::vector<os::GrpcAnswer> answers;
  std::vector<std::string> lines;  // written once the callers go on
  answers.reserve(calls.size());
  for (engine::StockCall& call : calls) {
    if (!call.error && call.fixed) {
      const std::string name = warm::promised_pod_name(std::get<engine::StockAdd>(call.what).request.pod);
      const auto shared = std::make_shared<engine::StockCall>(std::move(call));
      // A half done ADD comes before those that have not begun.
      if (fixed_.run([this, shared] { attach(std::move(*shared)); }, name, true)) continue;
      call = std::move(*shared);
      call.error = told(engine::StockActor::ends());
    }
    answers.push_back(call.error ? failed(call, lines) : done(call, lines));
  }
  if (!answers.empty()) sink_(std::move(answers));
  for (const std::string& line : lines) world_.log(line);
}

/// Answers an ADD that a worker has ended.
void StockService::ended_outside(engine::StockCall call, std::optional<Error> error) {
  call.error = std::move(error);
  call.fixed.reset();
  const auto shared = std::make_shared<std::vector<engine::StockCall>>();
  shared->push_back(std::move(call));
  actor_.post([this, shared] { ended(std::move(*shared)); });
}

os::GrpcAnswer StockService::done(engine::StockCall& call, std::vector<std::string>& lines) {
  engine::StockCallTally& tally = actor_.state.seen.calls;
  if (const auto* del = std::get_if<engine::StockDel>(&call.what)) {
    ++tally.dels;
    std::string outcome = del->answer.empty() ? "nothing held" : "released";
    for (const core::StockAddress& one : del->answer) outcome += " " + one.address.to_string();
    lines.push_back(fmt::format("DEL {} ok {}", owner_text(del->release.owner, del->release.pod), outcome));
    return ok(call.id, vpc::Nothing{});
  }
  const auto& add = std::get<engine::StockAdd>(call.what);
  const core::StockAddress& address = add.answer.address;
  const nanoseconds took = world_.clock.now().since_boot - call.since;
  ++tally.adds;
  tally.add_delays.count(took);
  lines.push_back(fmt::format("ADD {} ok {} ms={:.1f}{}{}", owner_text(add.request.owner, add.request.pod),
                              address.address.to_string(), static_cast<double>(took.count()) / 1e6,
                              add.answer.was_held ? " held-already" : "", call.has_waited ? " waited" : ""));
  if (world_.assigned) world_.assigned(add.request.pod, address.address);
  return ok(call.id, vpc::NetworkAnswer{vpc::pod_network_of(address)});
}

os::GrpcAnswer StockService::failed(const engine::StockCall& call, std::vector<std::string>& lines) {
  const Error& error = *call.error;
  if (call.was_deleted) return {call.id, os::GrpcCode::aborted, error.message, {}};
  const auto* del = std::get_if<engine::StockDel>(&call.what);
  engine::StockCallTally& tally = actor_.state.seen.calls;
  ++(del != nullptr ? tally.dels_failed : tally.adds_failed);
  const core::Owner& owner = del != nullptr ? del->release.owner : std::get<engine::StockAdd>(call.what).request.owner;
  const core::PodIdentity& pod = del != nullptr ? del->release.pod : std::get<engine::StockAdd>(call.what).request.pod;
  lines.push_back(
      fmt::format("{} {} failed: {}", del != nullptr ? "DEL" : "ADD", owner_text(owner, pod), error.message));
  if (del == nullptr && world_.refused) world_.refused(pod, error);
  if (error.code == ErrorCode::unavailable) return {call.id, os::GrpcCode::unavailable, error.message, {}};
  return failure(call.id, error);
}

/// Why an ADD that has waited for a worker is not begun.
std::optional<Error> StockService::obstacle_of(const engine::StockCall& call) const {
  if (stopping_) return told(engine::StockActor::ends());
  // For one whose caller is gone a DEL has come or will.
  if (call.hung_up != nullptr && *call.hung_up) return Error{ErrorCode::conflict, "the caller is gone", {}};
  if (!call.limit.passed(world_.clock.now())) return std::nullopt;
  return Error{ErrorCode::exhausted, "others waited for the API server or the cloud until it was too late", {}};
}

/// An ADD of a pod that may keep its address by name. Whether the pod keeps its address is not guessed; what
/// is promised to it and cannot be had is an error, and never another address.
void StockService::add_fixed(engine::StockCall call) {
  auto& add = std::get<engine::StockAdd>(call.what);
  if (auto obstacle = obstacle_of(call)) return ended_outside(std::move(call), std::move(obstacle));
  // The record of the pod's older sandbox needs no API.
  const std::optional<bool> known = world_.keeper.is_known_as_fixed(add.request.pod);
  if (known == false) return queue_again(std::move(call));
  const Deadline patience{
      std::min(Deadline::after(world_.clock.now(), kAskMax).at_since_boot, call.limit.at_since_boot)};
  auto wish = world_.fixed->wish_of(add.request.pod, patience);
  // The pod that has the name by now is not guessed either.
  if (!wish) {
    const ErrorCode code = wish.error().code;
    if (code == ErrorCode::conflict || code == ErrorCode::refused_by_configuration) {
      return ended_outside(std::move(call), wish.error());
    }
    if (!warm::has_stable_name(add.request.pod)) return queue_again(std::move(call));
    return ended_outside(std::move(call),
                         told(wish.error().in("whether this pod keeps its address by name is not known")));
  }
  if (add.request.pod.uid.empty()) add.request.pod.uid = wish->uid;
  if (!wish->is_fixed && !known) {
    add.request.extra[warm::kKeepsNoneKey] = "true";
    return queue_again(std::move(call));
  }
  call.fixed = *std::move(wish);
  const auto promise = world_.fixed->promise_to(add.request.pod, call.limit);
  if (!promise) return ended_outside(std::move(call), told(promise.error()));
  const auto interface = world_.keeper.interface();
  if (*promise && interface && !(*promise)->subnet.empty()) {
    const std::string& here =
        world_.keeper.options().subnet.empty() ? interface->subnet : world_.keeper.options().subnet;
    if ((*promise)->subnet != here) {
      return ended_outside(std::move(call),
                           Error{ErrorCode::refused_by_configuration,
                                 (*promise)->address.to_string() + " is promised to this pod in subnet " +
                                     (*promise)->subnet + ", and this node is in " + here +
                                     ": let the pod run on a node of that subnet, or delete its VpcIpClaim",
                                 {}});
    }
  }
  // One that was given before the promise was written is the one to promise.
  auto promised = *promise;
  if (!promised) {
    if (const auto kept = world_.keeper.kept_for(add.request.pod)) promised.emplace().address = *kept;
  }
  if (!promised) {
    add.request.extra[warm::kPromisedKey] = warm::promised_pod_name(add.request.pod);
    return queue_again(std::move(call));
  }
  // The cloud takes part from here on: where it hangs, ADDs that ask the API alone go on.
  const std::string name = warm::promised_pod_name(add.request.pod);
  const auto shared = std::make_shared<engine::StockCall>(std::move(call));
  const auto errand = [this, shared, promise = *promised] { give_promised(std::move(*shared), promise); };
  if (cloud_.run(errand, name)) return;
  ended_outside(std::move(*shared), told({ErrorCode::unavailable, too_many(shared->id).text, {}}));
}

void StockService::give_promised(engine::StockCall call, const engine::FixedAddresses::Promise& promise) {
  auto& add = std::get<engine::StockAdd>(call.what);
  if (auto obstacle = obstacle_of(call)) return ended_outside(std::move(call), std::move(obstacle));
  auto given = world_.keeper.give_promised(promise, add.request, call.limit);
  if (!given) return ended_outside(std::move(call), told(given.error()));
  add.answer = *std::move(given);
  attach(std::move(call));
}

/// It is an ADD as any other.
void StockService::queue_again(engine::StockCall call) {
  if (auto answer = queue(std::move(call))) return send(*std::move(answer));
  go();
}

/// The pod holds it; the answer goes out when the cluster says so too. An address that fails in between is the same
/// pod's when it asks again (StockKeeper::kept_for).
void StockService::attach(engine::StockCall call) {
  const auto attached =
      world_.fixed->attach(std::get<engine::StockAdd>(call.what).answer.address, *call.fixed, call.limit);
  ended_outside(std::move(call), attached ? std::nullopt : std::optional(told(attached.error())));
}

// ---------------------------------------------------------------- all else

Result<std::string> StockService::record(const core::StockAddress& told) {
  core::StockAddress whole = told;
  const auto interface = world_.keeper.interface();
  if (interface && whole.mac == net::Mac{}) whole.mac = interface->mac;
  TRY_VOID(actor_.decide_in_any_term(warm::plan_record, whole));
  return vpc::encode(vpc::Nothing{});
}

Result<std::string> StockService::forget(const vpc::RecordKey& key) {
  const warm::Release release{{"", key.sandbox_id, ""}, {key.pod_name, key.pod_namespace, ""}, {}, {}};
  TRY(const auto gone, actor_.decide_in_any_term(warm::plan_forget, release));
  for (const core::StockAddress& one : gone) {
    world_.log(fmt::format("DelPodNetworkRecord pod={}/{} container={}: {} is not the stock's any more",
                           key.pod_namespace, key.pod_name, key.sandbox_id, one.address.to_string()));
  }
  return vpc::encode(vpc::Nothing{});
}

Result<std::string> StockService::get_record(const vpc::RecordKey& key) {
  TRY(const auto view, engine::view_stock(actor_.context()));
  for (const core::StockAddress& one : view.addresses) {
    // A record that was taken in from the pod's status has no container.
    const bool is_of_sandbox = one.owner.container_id == key.sandbox_id || one.owner.container_id.empty();
    const bool is_of_pod = one.pod.name == key.pod_name && one.pod.namespace_name == key.pod_namespace;
    if (one.state == core::StockAddressState::held && is_of_sandbox && is_of_pod) return network_answer(one);
  }
  return vpc::encode(vpc::NetworkAnswer{});
}

Result<std::string> StockService::list_records() {
  TRY(const auto view, engine::view_stock(actor_.context()));
  vpc::NetworksAnswer answer;
  for (const core::StockAddress& one : view.addresses) {
    if (one.state == core::StockAddressState::held) answer.networks.push_back(vpc::pod_network_of(one));
  }
  return vpc::encode(answer);
}

Result<std::string> StockService::describe() {
  TRY(const auto view, engine::view_stock(actor_.context()));
  const Instant now = world_.clock.now();
  vpc::StockAnswer answer;
  for (const core::StockAddress& one : view.addresses) {
    if (core::is_free_at(one, now)) {
      answer.pool.push_back(vpc::pod_network_of(one));
    } else if (one.state == core::StockAddressState::cooling && one.doubts.empty()) {
      answer.cooldown.push_back(vpc::pod_network_of(one));
    }
  }
  return vpc::encode(answer);
}

os::GrpcAnswer StockService::borrow(os::GrpcCallId call, const vpc::BorrowRequest& request,
                                    const std::string& certified, Deadline limit) {
  const auto mac = net::Mac::parse(request.mac);
  if (!mac) return malformed(call, request.mac.empty() ? invalid_argument("MacAddr is missing") : mac.error());
  warm::Lend lend{request.request, *mac, request.subnet, certified};
  // An older borrower has no name for its request: each is another one.
  if (lend.request.empty()) lend.request = fmt::format("{:016x}", world_.random.next());
  const auto lent = world_.keeper.lend(lend, limit);
  if (!lent) return no_loan(call, lent.error());
  return answer_of(call, network_answer(*lent));
}

Result<std::string> StockService::move_one(Mover move, const std::string& ip, Deadline limit) {
  TRY(const auto address, address_of(ip));
  TRY(const core::StockAddress moved, (world_.keeper.*move)(address, limit));
  return network_answer(moved);
}

Result<std::string> StockService::list_unused(Deadline limit) {
  TRY(const auto unused, world_.keeper.unused(limit));
  vpc::NetworksAnswer answer;
  for (const core::StockAddress& one : unused) {
    answer.networks.push_back(vpc::pod_network_of(one));
    answer.networks.back().why = why_aside(one);
  }
  return vpc::encode(answer);
}

Result<std::string> StockService::release(const std::vector<std::string>& ips, Deadline limit) {
  std::vector<net::Address> addresses;
  for (const std::string& ip : ips) {
    TRY(const net::Address address, net::Address::parse(ip));
    addresses.push_back(address);
  }
  TRY_VOID(world_.keeper.release_unused(addresses, limit));
  return vpc::encode(vpc::Nothing{});
}

// ---------------------------------------------------------------- the server

/// One listener's calls, in its server's thread.
class StockServer::Door final : public os::GrpcHandler {
 public:
  Door(StockService& service, std::unique_ptr<os::GrpcServer> server, const DoorRules& rules, std::uint64_t number)
      : service_(service), server_(std::move(server)), rules_(rules), number_(number) {
    health_.set_serving(false);
  }
  void serve() { server_->serve(*this); }

  [[nodiscard]] bool serves(std::string_view method) override {
    const auto known = vpc::method_of(method);
    return (known && is_let_in(rules_, *known)) || method == GrpcHealth::kCheckMethod;
  }
  /// A client with a certificate of the cluster's CA is another agent, or an operator where those are let in.
  [[nodiscard]] bool serves_peer(const os::GrpcPeer&, std::string_view method) override { return serves(method); }
  void on_request(os::GrpcRequest request) override {
    const auto method = vpc::method_of(request.method);
    if (!method) return answers_.push_back(health_.check(request.call, request.message));
    const os::GrpcCallId own = request.call;
    request.call |= number_ << kDoorShift;
    if (auto answer = service_.take(*method, std::move(request))) {
      answer->call = own;
      answers_.push_back(*std::move(answer));
    }
  }
  void on_batch_end() override {
    service_.go();
    if (!answers_.empty()) server_->answer(std::exchange(answers_, {}));
  }

  // From any thread.

  void answer(std::vector<os::GrpcAnswer> answers) { server_->answer(std::move(answers)); }
  void set_serving(bool serving) { health_.set_serving(serving); }
  void stop_listening() { server_->stop_listening(); }
  void stop(Deadline deadline) { server_->stop(deadline); }

 private:
  StockService& service_;
  const std::unique_ptr<os::GrpcServer> server_;
  const DoorRules rules_;
  const std::uint64_t number_;
  GrpcHealth health_;
  std::vector<os::GrpcAnswer> answers_;  ///< of this round
};

StockServer::StockServer(const StockWorld& world, const Clock& clock)
    : clock_(clock), service_(world, [this](std::vector<os::GrpcAnswer> answers) { send(std::move(answers)); }) {}

StockServer::~StockServer() { stop(Deadline{std::chrono::nanoseconds{0}}); }

Result<void> StockServer::open_door(std::unique_ptr<os::GrpcListener> listener, const DoorRules& rules) {
  os::GrpcServerOptions options;
  options.session.message_bytes_max = vpc::kRequestBytesMax;
  options.idle_max = std::chrono::minutes{5};
  TRY(auto server, os::GrpcServer::make(std::move(listener), options, clock_));
  Door* door = nullptr;
  {
    const std::lock_guard lock(mutex_);
    doors_.push_back(std::make_unique<Door>(service_, std::move(server), rules, doors_.size()));
    door = doors_.back().get();
    door->set_serving(serving_);
  }
  door->serve();
  return {};
}

void StockServer::set_serving(bool serving) {
  const std::lock_guard lock(mutex_);
  serving_ = serving;
  for (const auto& door : doors_) door->set_serving(serving);
}

void StockServer::stop(Deadline deadline) {
  set_serving(false);
  // No door is opened any more; the answers below need the lock themselves.
  for (const auto& door : doors_) door->stop_listening();
  // Those that wait are told; the rest is done. Then their callers are waited for.
  service_.stop();
  for (const auto& door : doors_) door->stop(deadline);
}

void StockServer::send(std::vector<os::GrpcAnswer> answers) {
  const std::lock_guard lock(mutex_);
  std::vector<std::vector<os::GrpcAnswer>> by_door(doors_.size());
  for (os::GrpcAnswer& answer : answers) {
    const std::size_t door = static_cast<std::size_t>(answer.call >> kDoorShift);
    answer.call &= (std::uint64_t{1} << kDoorShift) - 1;
    by_door.at(door).push_back(std::move(answer));
  }
  for (std::size_t i = 0; i < by_door.size(); ++i) {
    if (!by_door[i].empty()) doors_[i]->answer(std::move(by_door[i]));
  }
}

}  // namespace croft::edge
