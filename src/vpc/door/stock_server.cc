#include "vpc/door/stock_server.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "vpc/decide/assign.h"

namespace croft::edge {
namespace {

namespace vpc = wire::vpc;
namespace warm = core::warm;
using std::chrono::nanoseconds;

constexpr std::size_t kCloudThreads = 4;
/// Each waits for one answer of the API server at a time.
constexpr std::size_t kFixedThreads = 4;
// docs/notes/warm-pool.md#deadlines
constexpr nanoseconds kAddMax = std::chrono::minutes{1};  // of one that finds the stock empty
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
os::GrpcAnswer ok(os::GrpcCallId call, std::string bytes = {}) {
  return {call, os::GrpcCode::ok, {}, std::move(bytes)};
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

/// A borrower has to know whether an address may be its already.
os::GrpcAnswer no_loan(os::GrpcCallId call, const Error& error) {
  static constexpr std::array<std::pair<ErrorCode, os::GrpcCode>, 4> kSaid = {{
      {ErrorCode::unknown_outcome, os::GrpcCode::deadline_exceeded},
      {ErrorCode::exhausted, os::GrpcCode::resource_exhausted},
      {ErrorCode::permission_denied, os::GrpcCode::permission_denied},
      {ErrorCode::conflict, os::GrpcCode::aborted},
  }};
  const auto said = std::ranges::find(kSaid, error.code, &std::pair<ErrorCode, os::GrpcCode>::first);
  if (said == kSaid.end()) return failure(call, error);
  return {call, said->second, error.message, {}};
}

std::string network_answer(const core::StockAddress& address) {
  return vpc::encode(vpc::NetworkAnswer{vpc::pod_network_of(address)});
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

// The bytes of answers.

[[nodiscard]] Result<std::string> record(engine::StockKeeper& keeper, core::StockAddress told) {
  const auto interface = keeper.interface();
  if (interface && told.mac == net::Mac{}) told.mac = interface->mac;
  TRY_VOID(keeper.actor().decide_in_any_term(warm::plan_record, told));
  return std::string();
}

[[nodiscard]] Result<std::string> get_record(const engine::StockKeeper& keeper, const vpc::RecordKey& key) {
  TRY(const auto view, keeper.view());
  for (const core::StockAddress& one : view.addresses) {
    // A record that was taken in from the pod's status has no container.
    const bool is_of_sandbox = one.owner.container_id == key.sandbox_id || one.owner.container_id.empty();
    const bool is_of_pod = one.pod.name == key.pod_name && one.pod.namespace_name == key.pod_namespace;
    if (one.state == core::StockAddressState::held && is_of_sandbox && is_of_pod) return network_answer(one);
  }
  return std::string();
}

[[nodiscard]] Result<std::string> list_records(const engine::StockKeeper& keeper) {
  TRY(const auto view, keeper.view());
  vpc::NetworksAnswer answer;
  for (const core::StockAddress& one : in_state(view, core::StockAddressState::held)) {
    answer.networks.push_back(vpc::pod_network_of(one));
  }
  return vpc::encode(answer);
}

[[nodiscard]] Result<std::string> describe(const engine::StockKeeper& keeper, const Instant& now) {
  TRY(const auto view, keeper.view());
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

[[nodiscard]] Result<std::string> list_unused(engine::StockKeeper& keeper, Deadline limit) {
  TRY(const auto unused, keeper.unused(limit));
  vpc::NetworksAnswer answer;
  for (const core::StockAddress& one : unused) {
    answer.networks.push_back(vpc::pod_network_of(one));
    answer.networks.back().why = why_aside(one);
  }
  return vpc::encode(answer);
}

[[nodiscard]] Result<std::string> release(engine::StockKeeper& keeper, const std::vector<std::string>& ips,
                                          Deadline limit) {
  std::vector<net::Address> addresses;
  for (const std::string& ip : ips) {
    TRY(const net::Address address, net::Address::parse(ip));
    addresses.push_back(address);
  }
  TRY_VOID(keeper.release_unused(addresses, limit));
  return std::string();
}

/// The service knows one kind of number for a call; the door is in its upper bits.
constexpr unsigned kDoorShift = 60;

constexpr std::array kForAll = {vpc::Method::ping, vpc::Method::support_multi_subnet, vpc::Method::borrow_ip};
constexpr std::array kForOperators = {vpc::Method::list_pod_network_record,
                                      vpc::Method::describe_pool,
                                      vpc::Method::push_pool,
                                      vpc::Method::pop_pool,
                                      vpc::Method::list_unuse,
                                      vpc::Method::release_ip};

bool is_let_in(const DoorRules& rules, vpc::Method method) {
  const auto is_in = [&](const auto& methods) { return std::ranges::find(methods, method) != methods.end(); };
  return is_in(kForAll) || (is_in(kForOperators) ? rules.operators : rules.plugin);
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

StockService::Maybe StockService::take(vpc::Method method, os::GrpcRequest request) {
  const os::GrpcCallId call = request.call;
  const Deadline limit = limit_of(request, kLookMax);
  engine::StockKeeper& keeper = world_.keeper;
  // Work that rests on what a request says.
  const auto with = [&]<class Read>(engine::Workers& workers, Result<Read> read, auto run, Refuse refuse = nullptr) {
    if (!read) return Maybe(malformed(call, read.error()));
    return queue(
        workers, call, [run, read = *std::move(read)] { return run(read); }, refuse);
  };
  switch (method) {
    case vpc::Method::ping:
    case vpc::Method::support_multi_subnet:
      return ok(call);
    case vpc::Method::add_pod_network:
      return take_add(std::move(request));
    case vpc::Method::del_pod_network:
      return take_del(std::move(request));
    case vpc::Method::del_pod_network_record: {
      const auto key = vpc::decode<vpc::RecordKey>(request.message);
      if (!key) return malformed(call, key.error());
      if (key->sandbox_id.empty()) return ok(call);
      return write(call, [this, key = *key]() -> Result<std::string> {
        const warm::Release release{{"", key.sandbox_id, ""}, {key.pod_name, key.pod_namespace, ""}, {}, {}};
        TRY(const auto gone, actor_.decide_in_any_term(warm::plan_forget, release));
        for (const core::StockAddress& one : gone) {
          world_.log(fmt::format("DelPodNetworkRecord pod={}/{} container={}: {} is not the stock's any more",
                                 key.pod_namespace, key.pod_name, key.sandbox_id, one.address.to_string()));
        }
        return std::string();
      });
    }
    case vpc::Method::add_pod_network_record: {
      const auto read = vpc::decode<vpc::DelPodNetworkRequest>(request.message);
      if (!read) return malformed(call, read.error());
      if (!read->pod_network) return malformed(call, invalid_argument("PodNetwork is missing"));
      const auto told = vpc::warm_address_of(*read->pod_network);
      if (!told) return malformed(call, told.error());
      return write(call, [&keeper, told = *told] { return record(keeper, told); });
    }
    case vpc::Method::get_pod_network_record:
      return with(reads_, vpc::decode<vpc::RecordKey>(request.message),
                  [&keeper](const auto& key) { return get_record(keeper, key); });
    case vpc::Method::list_pod_network_record:
      return queue(reads_, call, [&keeper] { return list_records(keeper); });
    case vpc::Method::show_stock:
      return queue(reads_, call, [this]() -> Result<std::string> {
        TRY(const auto shown, world_.show());
        return vpc::encode(shown);
      });
    case vpc::Method::describe_pool:
      return queue(reads_, call, [&keeper, this] { return describe(keeper, world_.clock.now()); });
    case vpc::Method::borrow_ip: {
      const std::string certified = request.peer != nullptr ? request.peer->name : std::string();
      const auto borrow = [this, limit, certified](const vpc::BorrowRequest& asked) -> Result<std::string> {
        const auto mac = net::Mac::parse(asked.mac);
        if (!mac) return fail(asked.mac.empty() ? invalid_argument("MacAddr is missing") : mac.error());
        warm::Lend lend{asked.request, *mac, asked.subnet, certified};
        // An older borrower has no name for its request: each is another one.
        if (lend.request.empty()) lend.request = fmt::format("{:016x}", world_.random.next());
        TRY(const core::StockAddress lent, world_.keeper.lend(lend, limit));
        return network_answer(lent);
      };
      return with(cloud_, vpc::decode<vpc::BorrowRequest>(request.message), borrow, no_loan);
    }
    case vpc::Method::push_pool:
    case vpc::Method::pop_pool:
      return with(cloud_, vpc::decode<vpc::StockRequest>(request.message),
                  [&keeper, method, limit](const auto& asked) -> Result<std::string> {
                    std::optional<net::Address> address;
                    if (!asked.ip.empty()) {
                      TRY(address, net::Address::parse(asked.ip));
                    }
                    TRY(const core::StockAddress moved,
                        method == vpc::Method::push_pool ? keeper.push(address, limit) : keeper.pop(address, limit));
                    return network_answer(moved);
                  });
    case vpc::Method::list_unuse:
      return queue(cloud_, call, [&keeper, limit] { return list_unused(keeper, limit); });
    case vpc::Method::release_ip:
      return with(cloud_, vpc::decode<vpc::ReleaseRequest>(request.message),
                  [&keeper, limit](const auto& asked) { return release(keeper, asked.ips, limit); });
  }
  return os::GrpcAnswer{call, os::GrpcCode::unimplemented, {}, {}};
}

StockService::Maybe StockService::take_add(os::GrpcRequest request) {
  const auto read = vpc::decode<vpc::AddPodNetworkRequest>(request.message);
  if (!read) return malformed(request.call, read.error());
  if (read->sandbox_id.empty()) return malformed(request.call, invalid_argument("SandboxID is empty"));
  warm::Request wanted{{read->network, read->sandbox_id, read->interface_name},
                       {read->pod_name, read->pod_namespace, read->pod_uid},
                       read->netns,
                       read->subnet};
  if (!read->interface_id.empty()) wanted.extra["interfaceID"] = read->interface_id;
  wanted.cooldown = world_.keeper.options().reconcile.cooldown;
  const Deadline limit = limit_of(request, kAddMax);
  engine::StockCall call{request.call, engine::StockAdd{wanted}, limit, {}, std::move(request.hung_up)};
  call.is_old = !read->is_crofts;
  // The API tells what UK8S' own client wants beside an address.
  const bool may_be_fixed =
      world_.fixed != nullptr && !wanted.pod.name.empty() && (warm::has_stable_name(wanted.pod) || call.is_old);
  if (!may_be_fixed) return queue(std::move(call));
  call.since = world_.clock.now().since_boot;
  if (fixed_.run([this, call] { add_fixed(call); }, warm::promised_pod_name(wanted.pod))) return std::nullopt;
  return too_many(call.id);
}

StockService::Maybe StockService::take_del(os::GrpcRequest request) {
  const auto read = vpc::decode<vpc::DelPodNetworkRequest>(request.message);
  if (!read) return malformed(request.call, read.error());
  // Nothing is named: nothing is to be released.
  if (!read->pod_network) return ok(request.call);
  const vpc::PodNetwork& named = *read->pod_network;
  warm::Release release{{read->network, named.sandbox_id, read->interface_name},
                        {named.pod_name, named.pod_namespace, named.pod_uid}};
  release.cooldown = world_.keeper.options().reconcile.cooldown;
  if (!named.ip.empty()) {
    const auto address = net::Address::parse(named.ip);
    if (!address) return malformed(request.call, invalid_argument("VPCIP is no address: " + named.ip));
    release.address = *address;
  }
  if (named.sandbox_id.empty() && !release.address) return ok(request.call);
  const Deadline limit = limit_of(request, kDelMax);
  return queue({request.call, engine::StockDel{release}, limit, {}, std::move(request.hung_up)});
}

StockService::Maybe StockService::queue(engine::StockCall call) {
  const os::GrpcCallId id = call.id;
  const auto refused = actor_.take(call);
  if (!refused) return std::nullopt;
  const bool ends = refused->code == ErrorCode::unavailable;
  return os::GrpcAnswer{id, ends ? os::GrpcCode::unavailable : os::GrpcCode::resource_exhausted, refused->message, {}};
}

StockService::Maybe StockService::queue(engine::Workers& workers, os::GrpcCallId call,
                                        std::function<Result<std::string>()> errand, Refuse refuse) {
  const auto answered = [this, call, errand = std::move(errand), refuse] {
    auto done = errand();
    send(done ? ok(call, *std::move(done)) : (refuse != nullptr ? refuse : failure)(call, done.error()));
  };
  if (workers.run(answered)) return std::nullopt;
  return too_many(call);
}

os::GrpcAnswer StockService::too_many(os::GrpcCallId call) const {
  if (stopping_) return {call, os::GrpcCode::unavailable, engine::StockActor::ends().message, {}};
  return {call, os::GrpcCode::resource_exhausted, "too many calls wait", {}};
}

/// A write that rests on the records alone, a message like an ADD.
StockService::Maybe StockService::write(os::GrpcCallId call, std::function<Result<std::string>()> message) {
  if (stopping_) return too_many(call);
  actor_.post([this, call, message = std::move(message)] {
    auto done = message();
    send(done ? ok(call, *std::move(done)) : failure(call, done.error()));
  });
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
      // A half done ADD comes before those that have not begun.
      if (fixed_.run([this, call] { attach(call); }, name, true)) continue;
      call.error = Error{ErrorCode::exhausted, engine::StockActor::ends().message, {}};
    }
    answers.push_back(call.error ? failed(call, lines) : done(call, lines));
  }
  if (!answers.empty()) sink_(std::move(answers));
  for (const std::string& line : lines) world_.log(line);
}

/// Answers an ADD that a worker has ended. A plugin that hears `unavailable` takes from the stock itself, and knows of
/// no promise: that is for when the agent is gone.
void StockService::ended_outside(engine::StockCall call, std::optional<Error> error) {
  if (error && error->code == ErrorCode::unavailable) error->code = ErrorCode::exhausted;
  call.error = std::move(error);
  call.fixed.reset();
  actor_.post([this, call = std::move(call)] { ended({call}); });
}

os::GrpcAnswer StockService::done(engine::StockCall& call, std::vector<std::string>& lines) {
  engine::StockCallTally& tally = actor_.state.seen.calls;
  if (const auto* del = std::get_if<engine::StockDel>(&call.what)) {
    ++tally.dels;
    std::string outcome = del->answer.empty() ? "nothing held" : "released";
    for (const core::StockAddress& one : del->answer) outcome += " " + one.address.to_string();
    lines.push_back(fmt::format("DEL {} ok {}", owner_text(del->release.owner, del->release.pod), outcome));
    return ok(call.id);
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
  return ok(call.id, network_answer(address));
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
  if (stopping_) return engine::StockActor::ends();
  // For one whose caller is gone a DEL has come or will.
  if (call.hung_up != nullptr && *call.hung_up) return Error{ErrorCode::conflict, "the caller is gone", {}};
  if (!call.limit.passed(world_.clock.now())) return std::nullopt;
  return Error{ErrorCode::exhausted, "others waited for the API server or the cloud until it was too late", {}};
}

/// The address that is promised to the pod of an ADD, which may keep one by its name; nothing: it gets any. Neither
/// whether the pod keeps its address nor who has the name by now is guessed.
Result<std::optional<engine::FixedAddresses::Promise>> StockService::promise_to(engine::StockCall& call) {
  warm::Request& request = std::get<engine::StockAdd>(call.what).request;
  std::optional<engine::FixedAddresses::Promise> promise;
  // The record of the pod's older sandbox needs no API.
  const std::optional<bool> known = world_.keeper.is_known_as_fixed(request.pod);
  if (known == false) return promise;
  const Deadline patience{
      std::min(Deadline::after(world_.clock.now(), kAskMax).at_since_boot, call.limit.at_since_boot)};
  const auto wish = world_.fixed->wish_of(request.pod, patience);
  if (!wish) {
    const ErrorCode code = wish.error().code;
    if (code == ErrorCode::conflict || code == ErrorCode::refused_by_configuration) return fail(wish.error());
    if (!warm::has_stable_name(request.pod)) return promise;
    return fail(wish.error().in("whether this pod keeps its address by name is not known"));
  }
  if (request.pod.uid.empty()) request.pod.uid = wish->uid;
  if (!wish->is_fixed && !known) {
    request.extra[warm::kKeepsNoneKey] = "true";
    return promise;
  }
  call.fixed = *wish;
  TRY(promise, world_.fixed->promise_to(request.pod, call.limit));
  const auto interface = world_.keeper.interface();
  const std::string here = interface ? world_.keeper.subnet_of(*interface) : "";
  if (promise && interface && !promise->subnet.empty() && promise->subnet != here) {
    return fail(
        ErrorCode::refused_by_configuration,
        fmt::format("{} is promised to this pod in subnet {}, and this node is in {}: let the pod run on a node "
                    "of that subnet, or delete its VpcIpClaim",
                    promise->address.to_string(), promise->subnet, here));
  }
  if (promise) return promise;
  // One that was given before the promise was written is the one to promise.
  if (const auto kept = world_.keeper.kept_for(request.pod)) {
    promise.emplace().address = *kept;
  } else {
    request.extra[warm::kPromisedKey] = warm::promised_pod_name(request.pod);
  }
  return promise;
}

/// An address that is promised and cannot be had is an error, and never another one.
void StockService::add_fixed(engine::StockCall call) {
  if (auto obstacle = obstacle_of(call)) return ended_outside(std::move(call), std::move(obstacle));
  const auto promise = promise_to(call);
  if (!promise) return ended_outside(std::move(call), promise.error());
  if (!*promise) {
    // It is an ADD as any other.
    if (auto answer = queue(std::move(call))) return send(*std::move(answer));
    return go();
  }
  // The cloud takes part from here on: where it hangs, ADDs that ask the API alone go on.
  const std::string name = warm::promised_pod_name(std::get<engine::StockAdd>(call.what).request.pod);
  if (cloud_.run([this, call, promise = **promise] { give_promised(call, promise); }, name)) return;
  ended_outside(call, Error{ErrorCode::unavailable, too_many(call.id).text, {}});
}

void StockService::give_promised(engine::StockCall call, const engine::FixedAddresses::Promise& promise) {
  auto& add = std::get<engine::StockAdd>(call.what);
  if (auto obstacle = obstacle_of(call)) return ended_outside(std::move(call), std::move(obstacle));
  auto given = world_.keeper.give_promised(promise, add.request, call.limit);
  if (!given) return ended_outside(std::move(call), given.error());
  add.answer = *std::move(given);
  attach(std::move(call));
}

/// The pod holds it; the answer goes out when the cluster says so too. An address that fails in between is the same
/// pod's when it asks again (StockKeeper::kept_for).
void StockService::attach(engine::StockCall call) {
  const auto attached =
      world_.fixed->attach(std::get<engine::StockAdd>(call.what).answer.address, *call.fixed, call.limit);
  ended_outside(std::move(call), attached ? std::nullopt : std::optional(attached.error()));
}

// ---------------------------------------------------------------- the server

/// One listener's calls, in its server's thread.
class StockServer::Door final : public os::GrpcHandler {
 public:
  Door(StockService& service, const GrpcHealth& health, std::unique_ptr<os::GrpcServer> server, const DoorRules& rules,
       std::uint64_t number)
      : service_(service), health_(health), server_(std::move(server)), rules_(rules), number_(number) {}

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

  /// From any thread.
  [[nodiscard]] os::GrpcServer& server() { return *server_; }

 private:
  StockService& service_;
  const GrpcHealth& health_;
  const std::unique_ptr<os::GrpcServer> server_;
  const DoorRules rules_;
  const std::uint64_t number_;
  std::vector<os::GrpcAnswer> answers_;  ///< of this round
};

StockServer::StockServer(const StockWorld& world)
    : clock_(world.clock), service_(world, [this](std::vector<os::GrpcAnswer> answers) { send(std::move(answers)); }) {
  set_serving(false);
}

StockServer::~StockServer() { stop(Deadline{std::chrono::nanoseconds{0}}); }

Result<void> StockServer::open_door(std::unique_ptr<os::GrpcListener> listener, const DoorRules& rules) {
  os::GrpcServerOptions options;
  options.session.message_bytes_max = vpc::kRequestBytesMax;
  options.idle_max = std::chrono::minutes{5};
  TRY(auto server, os::GrpcServer::make(std::move(listener), options, clock_));
  Door* door = nullptr;
  {
    const std::lock_guard lock(mutex_);
    doors_.push_back(std::make_unique<Door>(service_, health_, std::move(server), rules, doors_.size()));
    door = doors_.back().get();
  }
  door->server().serve(*door);
  return {};
}

void StockServer::stop(Deadline deadline) {
  set_serving(false);
  // No door is opened any more; the answers below need the lock themselves.
  for (const auto& door : doors_) door->server().stop_listening();
  // Those that wait are told; the rest is done. Then their callers are waited for.
  service_.stop();
  for (const auto& door : doors_) door->server().stop(deadline);
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
    if (!by_door[i].empty()) doors_[i]->server().answer(std::move(by_door[i]));
  }
}

}  // namespace croft::edge
