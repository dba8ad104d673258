#include "store/etcd/client.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "store/etcd/dialer.h"
#include "store/etcd/verdict.h"
#include "store/etcd/watch_stream.h"

namespace croft::store::etcd {
namespace {

constexpr std::size_t kEndpointsMax = 16;
constexpr std::chrono::nanoseconds kPauseMin = std::chrono::milliseconds{25};

}  // namespace

/// The connection all calls share, and the loop that finds a member that answers.
class Client::Impl {
 public:
  Impl(ClientOptions options, std::vector<os::Endpoint> endpoints, const Clock& clock, Random& random)
      : dialer_(std::move(options), std::move(endpoints), clock),
        clock_(clock),
        random_(random),
        member_(random.next() % dialer_.members()),
        watch_member_(random.next() % dialer_.members()) {}

  /// Takes an answer's message in; an error when it is none, or not to what was asked.
  using Take = std::function<Result<void>(const std::string& message)>;
  [[nodiscard]] std::string names_of_all() const {
    std::string names;
    for (std::size_t i = 0; i < dialer_.members(); ++i) names += (i == 0 ? "" : ", ") + dialer_.name_of(i);
    return names;
  }
  /// `writes`: see verdict_on.
  [[nodiscard]] Result<void> call(std::string_view path, std::string_view message, bool writes, Deadline deadline,
                                  const Take& take);
  [[nodiscard]] Result<std::unique_ptr<WatchStream>> open_watch(Deadline deadline);

  [[nodiscard]] std::uint64_t history() const { return history_; }

  /// The newest revision that any answer had.
  [[nodiscard]] Revision seen();
  /// Takes note of whose answer it is to a linearizable request that was sent when `seen` was the newest.
  void note(std::uint64_t cluster, Revision revision, Revision seen);

  [[nodiscard]] Counts counts() const { return {requests_, dialer_.dials()}; }

 private:
  using Channel = std::shared_ptr<os::GrpcChannel>;
  struct Connection {
    Channel channel;
    std::string token;  ///< empty: none is needed
    bool token_is_old = false;
    std::size_t member = 0;
  };

  [[nodiscard]] Result<Connection> connection(Deadline deadline);
  [[nodiscard]] Result<Connection> connect(Deadline deadline);
  [[nodiscard]] Result<Connection> renew(Connection old, Deadline deadline);
  /// Error also: corrupt when the member's answer is none.
  [[nodiscard]] Result<std::string> log_in(os::GrpcChannel& channel, Deadline deadline);
  [[nodiscard]] Verdict attempt(const Connection& on, std::string_view path, std::string_view message, bool writes,
                                Deadline deadline, const Take& take);
  void give_up(const Channel& channel);
  void forget_token(const std::string& token);
  void pause(std::size_t attempt, Deadline deadline);
  [[nodiscard]] Deadline reply_by(bool writes, Deadline deadline) const;

  Dialer dialer_;
  const Clock& clock_;
  std::atomic<std::uint64_t> requests_{0};
  std::atomic<std::uint64_t> history_{0};

  std::mutex mutex_;
  Random& random_;             ///< guarded by mutex_
  Connection current_;         ///< guarded by mutex_; without channel: none
  std::size_t member_;         ///< guarded by mutex_: where `current_` leads to, or where to begin
  std::size_t watch_member_;   ///< guarded by mutex_
  bool connecting_ = false;    ///< guarded by mutex_: a thread is in connect()
  std::uint64_t cluster_ = 0;  ///< guarded by mutex_: of the last answer
  Revision seen_ = 0;          ///< guarded by mutex_: the newest of that cluster; 0: there was no answer
  std::condition_variable connected_;
};

namespace {

std::vector<os::Http2Header> metadata_with(const std::string& token) {
  if (token.empty()) return {};
  return {{"token", token}};
}

}  // namespace

Result<std::string> Client::Impl::log_in(os::GrpcChannel& channel, Deadline deadline) {
  const ClientOptions& options = dialer_.options();
  if (options.user.empty()) return std::string();
  std::string password = options.password;
  if (options.read_password) {
    TRY(password, options.read_password());
  }
  ++requests_;
  const auto reply = channel.call("/etcdserverpb.Auth/Authenticate",
                                  wire::etcd::encode_authenticate(options.user, password), reply_by(false, deadline));
  if (!reply.status.ok()) {
    Verdict verdict = verdict_on(reply.status, false);
    if (verdict.is_broken) verdict.error.code = ErrorCode::corrupt;
    return fail(verdict.error.in("etcd login of " + options.user));
  }
  return wire::etcd::decode_authenticate(reply.message);
}

/// With `connecting_` set and `mutex_` free.
Result<Client::Impl::Connection> Client::Impl::connect(Deadline deadline) {
  for (std::size_t i = 1;; ++i) {
    std::size_t first = 0;
    {
      const std::lock_guard lock(mutex_);
      first = member_;
    }
    TRY(auto dialed, dialer_.dial(first, false, deadline));
    {
      const std::lock_guard lock(mutex_);
      member_ = dialed.member;
    }
    auto token = log_in(*dialed.channel, deadline);
    if (token) return Connection{std::move(dialed.channel), *std::move(token), false, dialed.member};
    const bool is_broken = token.error().code == ErrorCode::corrupt;
    if (is_broken) dialer_.set_aside(dialed.member);
    {
      const std::lock_guard lock(mutex_);
      member_ = (member_ + 1) % dialer_.members();
    }
    if (!is_broken) return fail(token.error());
    if (i >= dialer_.members()) {
      return fail(ErrorCode::unavailable, fmt::format("{}: {}", dialer_.name_of(dialed.member), token.error().message));
    }
  }
}

Result<Client::Impl::Connection> Client::Impl::connection(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (connecting_) {
    const auto now = clock_.now();
    if (deadline.passed(now)) return fail(ErrorCode::deadline_exceeded, "no connection to etcd was made in time");
    constexpr std::chrono::nanoseconds kSleepMax = std::chrono::hours{1};
    connected_.wait_for(lock, std::min(deadline.at_since_boot - now.since_boot, kSleepMax));
  }
  const bool usable = current_.channel && current_.channel->is_usable();
  if (usable && !current_.token_is_old) return current_;
  connecting_ = true;
  const Connection old = std::exchange(current_, {});
  lock.unlock();
  auto made = usable ? renew(old, deadline) : connect(deadline);
  lock.lock();
  connecting_ = false;
  connected_.notify_all();
  if (!made) return made;
  current_ = *made;
  return made;
}

/// With `connecting_` set and `mutex_` free: another token for the same connection.
Result<Client::Impl::Connection> Client::Impl::renew(Connection old, Deadline deadline) {
  auto token = log_in(*old.channel, deadline);
  if (!token && token.error().code == ErrorCode::corrupt) {
    dialer_.set_aside(old.member);
    return connect(deadline);
  }
  TRY(old.token, std::move(token));
  old.token_is_old = false;
  return old;
}

Revision Client::Impl::seen() {
  const std::lock_guard lock(mutex_);
  return seen_;
}

void Client::Impl::note(std::uint64_t cluster, Revision revision, Revision seen) {
  const std::lock_guard lock(mutex_);
  const bool is_first = seen_ == 0;
  if (!is_first && (cluster != cluster_ || revision < seen)) {
    ++history_;
    seen_ = 0;
  }
  cluster_ = cluster;
  seen_ = std::max(seen_, revision);
}

/// The others that wait on it go on; new calls look for another member.
void Client::Impl::give_up(const Channel& channel) {
  const std::lock_guard lock(mutex_);
  if (current_.channel != channel) return;
  current_ = {};
  member_ = (member_ + 1) % dialer_.members();
}

void Client::Impl::forget_token(const std::string& token) {
  const std::lock_guard lock(mutex_);
  if (current_.token == token) current_.token_is_old = true;
}

Deadline Client::Impl::reply_by(bool writes, Deadline deadline) const {
  const bool elsewhere = !writes && dialer_.members() > 1;
  const auto span = elsewhere ? std::min(dialer_.options().read_timeout, dialer_.options().request_timeout)
                              : dialer_.options().request_timeout;
  return earlier(deadline, Deadline::after(clock_.now(), span));
}

void Client::Impl::pause(std::size_t attempt, Deadline deadline) {
  // The other members at once; then slower, and not all clients in step.
  if (attempt + 1 < dialer_.members()) return;
  std::chrono::nanoseconds span = kPauseMin * (1 + attempt);
  {
    const std::lock_guard lock(mutex_);
    span += span * static_cast<std::int64_t>(random_.next() % 100) / 100;
  }
  const auto left = deadline.at_since_boot - clock_.now().since_boot;
  if (left > std::chrono::nanoseconds{0}) std::this_thread::sleep_for(std::min(span, left));
}

/// One try on one connection.
Verdict Client::Impl::attempt(const Connection& on, std::string_view path, std::string_view message, bool writes,
                              Deadline deadline, const Take& take) {
  if (writes) {
    // A member that takes connections and does nothing else must not get a write whose outcome nobody learns.
    const auto ready = on.channel->wait_until_ready(deadline);
    if (!ready) {
      give_up(on.channel);
      if (ready.error().code == ErrorCode::corrupt) return verdict_on_nonsense(ready.error(), false);
      return {ready.error(), ready.error().code != ErrorCode::permission_denied, false};
    }
  }
  ++requests_;
  auto reply = on.channel->call(path, message, reply_by(writes, deadline), metadata_with(on.token));
  if (reply.status.ok()) {
    const auto taken = take(reply.message);
    if (taken) return done();
    give_up(on.channel);
    return verdict_on_nonsense(taken.error(), writes);
  }
  Verdict verdict = verdict_on(reply.status, writes);
  if (!reply.status.from_server || verdict.try_again) give_up(on.channel);
  if (verdict.log_in_again) forget_token(on.token);
  return verdict;
}

Result<void> Client::Impl::call(std::string_view path, std::string_view message, bool writes, Deadline deadline,
                                const Take& take) {
  const std::size_t attempts_max = 2 * dialer_.members() + 1;
  bool logged_in_again = false;
  Error last{ErrorCode::unavailable, "", {}};
  std::map<std::size_t, std::string> broken;  // members, and what they said
  for (std::size_t i = 0; i < attempts_max; ++i) {
    if (deadline.passed(clock_.now())) {
      return fail(ErrorCode::deadline_exceeded,
                  fmt::format("etcd: no answer in time: {}", last.message.empty() ? names_of_all() : last.message));
    }
    const auto on = connection(deadline);
    if (!on) return fail(on.error());  // all members were tried
    const Verdict verdict = attempt(*on, path, message, writes, deadline, take);
    if (verdict.done) return {};
    last = verdict.error;
    const bool is_silent = last.code == ErrorCode::unavailable || last.code == ErrorCode::deadline_exceeded ||
                           last.code == ErrorCode::unknown_outcome;
    // Somebody has to look at it, so it is named.
    const std::string name = dialer_.name_of(on->member);
    const bool is_named = last.message.find(name) != std::string::npos;
    if ((verdict.is_broken || is_silent) && !is_named) last = last.in(name);
    if (verdict.is_broken) {
      dialer_.set_aside(on->member);
      const bool is_first = broken.emplace(on->member, last.message).second;
      if (verdict.try_again && (!is_first || broken.size() == dialer_.members())) {
        // Nobody is left. All are named: they are what somebody has to look at.
        last.message.clear();
        for (const auto& [member, said] : broken) last.message += (last.message.empty() ? "" : "; ") + said;
        return fail(last.in("etcd"));
      }
    }
    const bool log_in_again = verdict.log_in_again && !dialer_.options().user.empty() && !logged_in_again;
    logged_in_again = logged_in_again || log_in_again;
    if (!verdict.try_again && !log_in_again) return fail(last.in("etcd"));
    if (i + 1 < attempts_max && !log_in_again) pause(i, deadline);
  }
  return fail(last.in("etcd"));
}

Result<std::unique_ptr<WatchStream>> Client::Impl::open_watch(Deadline deadline) {
  std::size_t first = 0;
  {
    const std::lock_guard lock(mutex_);
    // Not the last one again: why its stream ended is not known here.
    watch_member_ = (watch_member_ + 1) % dialer_.members();
    first = watch_member_;
  }
  TRY(const auto dialed, dialer_.dial(first, true, deadline));
  TRY(const std::string token, log_in(*dialed.channel, deadline));
  auto metadata = metadata_with(token);
  // A member that is cut off from the others would stay silent for ever; so it ends the stream.
  metadata.push_back({"hasleader", "true"});
  ++requests_;
  TRY(auto stream, dialed.channel->open_stream("/etcdserverpb.Watch/Watch", metadata));
  return std::make_unique<GrpcWatchStream>(std::move(stream), dialer_.options().response_bytes_max, clock_);
}

// ---------------------------------------------------------------- the client

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::make(ClientOptions options, const Clock& clock, Random& random) {
  if (options.endpoints.empty() || options.endpoints.size() > kEndpointsMax) {
    return fail(ErrorCode::invalid_argument,
                fmt::format("etcd needs 1 to {} endpoints, not {}", kEndpointsMax, options.endpoints.size()));
  }
  std::vector<os::Endpoint> endpoints;
  for (const std::string& text : options.endpoints) {
    TRY(auto endpoint, os::Endpoint::parse(text));
    if (endpoint.secure && !options.security) {
      return fail(ErrorCode::invalid_argument, fmt::format("{} needs TLS files: at least a CA", text));
    }
    endpoints.push_back(std::move(endpoint));
  }
  return std::unique_ptr<Client>(
      new Client(std::make_unique<Impl>(std::move(options), std::move(endpoints), clock, random)));
}

Result<RangeResponse> Client::range(const RangeRequest& request, Deadline deadline) {
  RangeResponse response;
  const auto take = [&](const std::string& answer) -> Result<void> {
    TRY(response, wire::etcd::decode_range(answer, request));
    return {};
  };
  const Revision seen = request.serializable ? 0 : impl_->seen();
  TRY_VOID(impl_->call("/etcdserverpb.KV/Range", wire::etcd::encode(request), false, deadline, take));
  impl_->note(response.cluster, response.revision, seen);
  return response;
}

Result<TxnResponse> Client::txn(const TxnRequest& request, Deadline deadline) {
  const bool writes = !wire::etcd::is_read_only(request);
  TxnResponse response;
  const auto take = [&](const std::string& answer) -> Result<void> {
    TRY(response, wire::etcd::decode_txn(answer, request));
    return {};
  };
  const Revision seen = impl_->seen();
  TRY_VOID(impl_->call("/etcdserverpb.KV/Txn", wire::etcd::encode(request), writes, deadline, take));
  impl_->note(response.cluster, response.revision, seen);
  return response;
}

std::uint64_t Client::history() const { return impl_->history(); }

Result<std::unique_ptr<WatchStream>> Client::open_watch(Deadline deadline) { return impl_->open_watch(deadline); }

Result<void> Client::compact(Revision revision, Deadline deadline) {
  // It changes no record, and to ask again for what is done is answered with "compacted": as harmless as a read.
  const auto answer = impl_->call("/etcdserverpb.KV/Compact", wire::etcd::encode_compaction(revision, false), false,
                                  deadline, [](const std::string&) { return Result<void>(); });
  if (!answer && !is_compacted(answer.error())) return fail(answer.error());
  return {};
}

Result<StatusResponse> Client::status(Deadline deadline) {
  StatusResponse response;
  const auto take = [&](const std::string& answer) -> Result<void> {
    TRY(response, wire::etcd::decode_status(answer));
    return {};
  };
  TRY_VOID(impl_->call("/etcdserverpb.Maintenance/Status", "", false, deadline, take));
  return response;
}

Client::Counts Client::counts() const { return impl_->counts(); }

}  // namespace croft::store::etcd
