#include "store/kube/leadership.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "store/kube/format/requests.h"
#include "store/kube/objects.h"

namespace croft::store::kube {
namespace {

using std::chrono::nanoseconds;
using wire::kube::Lease;
using wire::kube::LeaseRecord;
using Outcome = Answer::Outcome;
using Method = Request::Method;

Request request_of(Method method, const std::string& path, std::string body = {}) {
  Request request;
  request.method = method;
  request.path = path;
  request.body = std::move(body);
  return request;
}

}  // namespace

Result<std::unique_ptr<Leadership>> Leadership::make(Api& api, LeadershipOptions options, const Clock& clock) {
  TRY_VOID(check_lease_times(options.times));
  if (options.identity.empty()) return fail(invalid_argument("the identity of a candidate is empty: give it one"));
  if (options.name_space.empty()) return fail(invalid_argument("the namespace of the Lease is empty: name one"));
  TRY(std::string collection, wire::kube::collection_path(wire::kube::kLeases, options.name_space));
  TRY(std::string path, wire::kube::object_path(wire::kube::kLeases, options.name_space, options.name));
  return std::unique_ptr<Leadership>(
      new Leadership(api, std::move(options), std::move(collection), std::move(path), clock));
}

Leadership::Leadership(Api& api, LeadershipOptions options, std::string collection, std::string path,
                       const Clock& clock)
    : api_(api),
      options_(std::move(options)),
      collection_(std::move(collection)),
      path_(std::move(path)),
      clock_(clock) {}

// ---------------------------------------------------------------- who leads

std::optional<Term> Leadership::term() const {
  const nanoseconds now = clock_.now().since_boot;
  const std::lock_guard lock(mutex_);
  if (now >= until_) return std::nullopt;
  return term_;
}

std::optional<Deadline> Leadership::end_of(Term term) const {
  const nanoseconds now = clock_.now().since_boot;
  const std::lock_guard lock(mutex_);
  if (term != term_ || now >= until_) return std::nullopt;
  return Deadline{until_};
}

void Leadership::lose() {
  own_.reset();
  const std::lock_guard lock(mutex_);
  until_ = nanoseconds{0};
}

void Leadership::resign() {
  const std::lock_guard lock(mutex_);
  resigned_ = true;
  until_ = nanoseconds{0};
}

nanoseconds Leadership::pause(Random& random) const {
  const nanoseconds now = clock_.now().since_boot;
  {
    const std::lock_guard lock(mutex_);
    if (now < until_) return std::min(options_.times.retry_period, until_ - now);
  }
  return candidate_pause(options_.times, random);
}

// ---------------------------------------------------------------- asking the API

Deadline Leadership::deadline_of_request() const {
  const Instant now = clock_.now();
  Deadline deadline = Deadline::after(now, options_.times.renew_deadline / 2);
  const std::lock_guard lock(mutex_);
  // Who leads has to know in time that it does no more.
  if (now.since_boot < until_) deadline.at_since_boot = std::min(deadline.at_since_boot, until_);
  return deadline;
}

wire::kube::ApiObjectOf Leadership::lease_of() const {
  return wire::kube::lease_of(options_.name_space, options_.name);
}

Result<std::optional<Lease>> Leadership::read(Deadline deadline) {
  Answer answer = api_.call(request_of(Method::get, path_), deadline);
  read_version_.clear();
  if (is_absent(answer)) return std::optional<Lease>();
  if (answer.outcome != Outcome::done) return fail(std::move(answer.error));
  TRY(Lease lease, wire::kube::decode_lease(std::move(answer.body), lease_of()));
  sight_.see(lease.record, clock_.now());
  read_version_ = lease.meta.resource_version;
  return std::optional(std::move(lease));
}

Result<Lease> Leadership::write(const Lease* before, const LeaseRecord& record, Deadline deadline) {
  Request request = request_of(Method::post, collection_);
  if (before == nullptr) {
    request.body = wire::kube::encode_new_lease(options_.name_space, options_.name, record);
  } else {
    request.method = Method::put;
    request.path = path_;
    TRY(request.body, wire::kube::encode_changed_lease(*before, record));
  }
  Answer answer = api_.call(request, deadline);
  if (answer.outcome == Outcome::done) {
    TRY(Lease lease, wire::kube::decode_lease(std::move(answer.body), lease_of()));
    sight_.see(lease.record, clock_.now());
    return lease;
  }
  const ErrorCode code = answer.error.code;
  // What a POST does not find is the namespace.
  const bool is_gone = before != nullptr && is_absent(answer);
  if (is_gone || code == ErrorCode::already_exists || code == ErrorCode::conflict) {
    return fail(ErrorCode::conflict, "somebody else changed the Lease first");
  }
  return fail(std::move(answer.error));
}

Leadership::Attempt Leadership::failed(Error error) const {
  Attempt attempt;
  attempt.leads = is_leader();
  if (attempt.leads) attempt.holder = options_.identity;
  attempt.failure = std::move(error);
  return attempt;
}

Leadership::Attempt Leadership::take(const Lease* before) {
  const Instant sent = clock_.now();
  const LeaseRecord record =
      taken_record(before == nullptr ? nullptr : &before->record, options_.identity, options_.times, sent.wall);
  auto written = write(before, record, deadline_of_request());
  // A conflict may be with this very write: somebody in between sent it twice, and the first answer was lost.
  const bool is_in_doubt =
      !written && (written.error().code == ErrorCode::unknown_outcome || written.error().code == ErrorCode::conflict);
  if (is_in_doubt) {
    auto found = read(deadline_of_request());
    // Only this process writes this identity with this time.
    if (found && *found && (*found)->record == record) written = **std::move(found);
  }
  if (!written) {
    own_.reset();  // the next attempt reads first
    return failed(std::move(written).error());
  }
  watch_.reset();
  const bool is_renewal = before != nullptr && before->record.holder == options_.identity;
  own_ = *std::move(written);
  const nanoseconds now = clock_.now().since_boot;
  const std::lock_guard lock(mutex_);
  const bool was_leading = now < until_;
  // Counted from before it was sent, as others count from when they see it.
  const nanoseconds until = sent.since_boot + options_.times.renew_deadline;
  Attempt attempt;
  attempt.holder = options_.identity;
  if (resigned_) return attempt;
  if (now >= until) {
    until_ = nanoseconds{0};
    attempt.failure = Error{ErrorCode::deadline_exceeded, "the Lease was renewed too late to lead by it", {}};
    return attempt;
  }
  if (!was_leading || !is_renewal) ++term_;
  until_ = until;
  attempt.leads = true;
  return attempt;
}

Leadership::Attempt Leadership::attempt() {
  {
    const std::lock_guard lock(mutex_);
    if (resigned_) return {};
  }
  if (own_ && is_leader()) {
    const Lease before = *own_;
    Attempt renewed = take(&before);
    // Otherwise somebody wrote in between, a label only perhaps.
    if (!renewed.failure || renewed.failure->code != ErrorCode::conflict) return renewed;
  }
  auto found = read(deadline_of_request());
  if (!found) return failed(std::move(found).error());
  if (!*found) {
    lose();
    return take(nullptr);
  }
  const Lease& lease = **found;
  const bool is_own = lease.record.holder == options_.identity;
  if (!is_own) lose();
  if (sight_.may_take(options_.identity, options_.times, clock_.now())) return take(&lease);
  Attempt attempt;
  attempt.holder = lease.record.holder;
  return attempt;
}

Leadership::Heard Leadership::listen(Deadline deadline) {
  if (watch_ == nullptr) {
    if (read_version_.empty()) return Heard::no_watch;
    wire::kube::ApiWatchQuery query;
    query.select.field_selector = "metadata.name=" + options_.name;
    query.resource_version = read_version_;
    watch_ = api_.watch(wire::kube::watch_path(collection_, query), deadline_of_request()).stream;
    if (watch_ == nullptr) return Heard::no_watch;
  }
  using Type = wire::kube::ApiEvent::Type;
  // Events that are there already come however late it is: a Lease that changes all the time must not keep anybody.
  for (bool is_first = true; is_first || !deadline.passed(clock_.now()); is_first = false) {
    const auto event = watch_->next(deadline);
    if (event && !*event) return Heard::nothing;
    if (!event || (*event)->type == Type::error) {
      watch_.reset();
      return Heard::no_watch;
    }
    // One that tells of something else may have left out what was asked for.
    if (!wire::kube::check_event(**event, {lease_of().api_version, lease_of().kind, true}, options_.name)) {
      watch_.reset();
      return Heard::no_watch;
    }
    if ((*event)->type == Type::deleted) return Heard::release;
    if ((*event)->type == Type::bookmark || !(*event)->object) continue;
    const auto record = wire::kube::decode_lease_record((*event)->object->value);
    if (!record) continue;  // the next attempt says so
    sight_.see(*record, clock_.now());
    if (record->holder.empty()) return Heard::release;
  }
  return Heard::nothing;
}

// ---------------------------------------------------------------- giving it back

Result<void> Leadership::release(Deadline deadline) {
  resign();
  std::optional<Lease> before = std::exchange(own_, std::nullopt);
  constexpr int kTries = 2;
  Error last{ErrorCode::conflict, "the Lease changes all the time", {}};
  for (int tries = 0; tries < kTries; ++tries) {
    if (!before) {
      TRY(before, read(deadline));
    }
    if (!before || before->record.holder != options_.identity) return {};
    const auto done = write(&*before, released_record(before->record, clock_.now().wall), deadline);
    if (done) return {};
    last = done.error();
    before.reset();
  }
  return fail(std::move(last));
}

}  // namespace croft::store::kube
