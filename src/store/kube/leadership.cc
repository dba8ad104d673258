#include "store/kube/leadership.h"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/json/reader.h"
#include "base/time_text.h"
#include "store/kube/format/api.h"

namespace croft::store::kube {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;
using Method = Request::Method;

wire::MaybeFault read(const wire::JsonAt& at, std::string& out) {
  return wire::read_text(at, wire::kube::kApiAnswerBytesMax, out);
}
wire::MaybeFault read(const wire::JsonAt& at, std::int64_t& out) { return wire::read_integer(at, 0, INT32_MAX, out); }

template <auto kMember>
wire::MaybeFault read_member(const wire::JsonAt& at, LeaseRecord& out) {
  return read(at, out.*kMember);
}

constexpr std::array<wire::JsonMember<LeaseRecord>, 5> kSpecMembers{{
    {"holderIdentity", read_member<&LeaseRecord::holder>},
    {"leaseDurationSeconds", read_member<&LeaseRecord::duration_s>},
    {"acquireTime", read_member<&LeaseRecord::acquired>},
    {"renewTime", read_member<&LeaseRecord::renewed>},
    {"leaseTransitions", read_member<&LeaseRecord::transitions>},
}};

/// A MicroTime of Kubernetes: UTC with exactly six digits behind the point.
std::string micro_time(WallTime time) {
  const auto whole = std::chrono::floor<seconds>(time);
  std::string text = rfc3339_exact(whole);
  text.insert(text.size() - 1,
              fmt::format(".{:06}", std::chrono::floor<std::chrono::microseconds>(time - whole).count()));
  return text;
}

}  // namespace

// ---------------------------------------------------------------- the rules

bool may_take(const LeaseRecord& record, nanoseconds unchanged, std::string_view identity, nanoseconds duration) {
  if (record.holder.empty() || record.holder == identity) return true;
  return unchanged >= (record.duration_s > 0 ? nanoseconds(seconds(record.duration_s)) : duration);
}

LeaseRecord taken_record(const LeaseRecord* before, std::string_view identity, nanoseconds duration, WallTime now) {
  LeaseRecord record;
  record.holder = identity;
  record.duration_s = std::chrono::ceil<seconds>(duration).count();
  record.renewed = micro_time(now);
  const bool is_renewal = before != nullptr && before->holder == identity;
  record.acquired = is_renewal && !before->acquired.empty() ? before->acquired : record.renewed;
  // The API takes no more of them than an int32.
  const std::int64_t more = is_renewal ? 0 : 1;
  if (before != nullptr) record.transitions = std::min<std::int64_t>(before->transitions + more, INT32_MAX);
  return record;
}

// ---------------------------------------------------------------- the bytes

Result<Lease> decode_lease(std::string_view json) {
  TRY(const auto object, wire::kube::decode_object(json));
  Lease lease{{}, object.meta.resource_version};
  const auto spec = member_of(object.value, "spec");
  if (!spec) return lease;
  const wire::JsonAt at{*spec, nullptr, "spec", {}};
  const auto fault =
      wire::read_object<LeaseRecord>(at, kSpecMembers, lease.record, {.names = wire::ObjectRules::Names::exact});
  if (!fault) return lease;
  return fail(ErrorCode::corrupt, "a Lease of the API server: " + fault->to_string());
}

std::string encode_lease(std::string_view name_space, std::string_view name, std::string_view resource_version,
                         const LeaseRecord& record) {
  const std::string condition =
      resource_version.empty() ? std::string() : fmt::format(R"(,"resourceVersion":"{}")", resource_version);
  return fmt::format(
      R"({{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{{"name":"{}","namespace":"{}"{}}},)"
      R"("spec":{{"holderIdentity":"{}","leaseDurationSeconds":{},"acquireTime":"{}","renewTime":"{}",)"
      R"("leaseTransitions":{}}}}})",
      name, name_space, condition, record.holder, record.duration_s, record.acquired, record.renewed,
      record.transitions);
}

// ---------------------------------------------------------------- who leads

Result<std::unique_ptr<Leadership>> Leadership::make(Api& api, LeadershipOptions options, const Clock& clock) {
  if (options.name_space.empty()) return fail(invalid_argument("the namespace of the Lease is empty: name one"));
  TRY(std::string collection, wire::kube::collection_path({"coordination.k8s.io", "v1", "leases"}, options.name_space));
  return std::unique_ptr<Leadership>(new Leadership(api, std::move(options), std::move(collection), clock));
}

std::optional<Term> Leadership::term() const {
  const nanoseconds now = clock_.now().since_boot;
  const std::lock_guard lock(mutex_);
  return now < until_ ? std::optional(term_) : std::nullopt;
}

std::optional<Deadline> Leadership::end_of(Term term) const {
  const nanoseconds now = clock_.now().since_boot;
  const std::lock_guard lock(mutex_);
  return term == term_ && now < until_ ? std::optional(Deadline{until_}) : std::nullopt;
}

void Leadership::resign() {
  const std::lock_guard lock(mutex_);
  until_ = nanoseconds{0};
}

nanoseconds Leadership::pause(Random& random) const {
  const nanoseconds now = clock_.now().since_boot;
  const std::lock_guard lock(mutex_);
  if (now < until_) return std::min(retry_period(), until_ - now);
  // client-go's JitterFactor.
  const auto more = static_cast<std::uint64_t>((retry_period() * 6 / 5).count());
  return retry_period() + nanoseconds(static_cast<std::int64_t>(random.next() % (more + 1)));
}

// ---------------------------------------------------------------- asking the API

Result<Lease> Leadership::write(const std::optional<Lease>& before, const LeaseRecord& record, Deadline deadline) {
  Request request;
  request.method = before ? Method::patch : Method::post;
  request.path = before ? path_ : collection_;
  if (before) request.content_type = "application/merge-patch+json";
  request.body =
      encode_lease(options_.name_space, options_.name, before ? before->resource_version : std::string(), record);
  const Answer answer = api_.call(request, deadline);
  if (answer.outcome == Answer::Outcome::done) return decode_lease(answer.body);
  const ErrorCode code = answer.error.code;
  // A POST that finds nothing lacks the namespace.
  const bool is_gone = before && is_absent(answer);
  if (is_gone || code == ErrorCode::already_exists || code == ErrorCode::conflict) {
    return fail(ErrorCode::conflict, "somebody else changed the Lease first");
  }
  return fail(answer.error);
}

Leadership::Attempt Leadership::take(const std::optional<Lease>& before) {
  const Instant sent = clock_.now();
  const bool is_renewal = before && before->record.holder == options_.identity;
  auto written =
      write(before, taken_record(before ? &before->record : nullptr, options_.identity, options_.duration, sent.wall),
            Deadline::after(sent, options_.duration / 3));
  if (!written) {
    own_.reset();  // the next attempt reads first
    return {{}, std::move(written).error()};
  }
  own_ = *std::move(written);
  const nanoseconds now = clock_.now().since_boot;
  // Counted from before it was sent, as others count from when they see it.
  const nanoseconds until = sent.since_boot + options_.duration * 2 / 3;
  const std::lock_guard lock(mutex_);
  if (now >= until_ || !is_renewal) ++term_;
  until_ = until;
  if (now < until) return {options_.identity, {}};
  return {{}, Error{ErrorCode::deadline_exceeded, "the Lease was renewed too late to lead by it", {}}};
}

Leadership::Attempt Leadership::attempt() {
  if (own_ && is_leader()) {
    Attempt renewed = take(std::optional(own_));
    // Otherwise somebody wrote in between, a label only perhaps.
    if (!renewed.failure || renewed.failure->code != ErrorCode::conflict) return renewed;
  }
  own_.reset();
  const Answer answer = api_.get(path_, Deadline::after(clock_.now(), options_.duration / 3));
  if (is_absent(answer)) {
    resign();  // another one may have had it meanwhile
    return take({});
  }
  if (answer.outcome != Answer::Outcome::done) return {{}, answer.error};
  auto lease = decode_lease(answer.body);
  if (!lease) return {{}, std::move(lease).error()};
  const nanoseconds now = clock_.now().since_boot;
  if (seen_ != lease->record) seen_at_ = now;
  seen_ = lease->record;
  if (seen_->holder != options_.identity) resign();
  if (may_take(*seen_, now - seen_at_, options_.identity, options_.duration)) return take(*std::move(lease));
  return {seen_->holder, {}};
}

Result<bool> Leadership::release(Deadline deadline) {
  resign();
  const std::optional<Lease> before = std::exchange(own_, std::nullopt);
  if (!before) return false;
  const std::string now = micro_time(clock_.now().wall);
  // Over in a second for those who look at the time only.
  TRY_VOID(write(before, {{}, 1, now, now, before->record.transitions}, deadline));
  return true;
}

// ---------------------------------------------------------------- the fence

Result<Revision> FencedStore::commit(std::span<const Write> writes, const WriteToken& token, Deadline deadline) {
  const auto end = leadership_.end_of(term_);
  if (!end) return fail(ErrorCode::unavailable, "no longer the leader: another controller goes on");
  deadline.at_since_boot = std::min(deadline.at_since_boot, end->at_since_boot);
  return ForwardingStore::commit(writes, token, deadline);
}

}  // namespace croft::store::kube
