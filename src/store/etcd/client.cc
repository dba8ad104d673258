#include "store/etcd/client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <type_traits>
#include <utility>

#include "base/texts.h"
#include "http/grpc_channel.h"
#include "http/shared_connection.h"
#include "http/transport.h"

namespace croft::store::etcd {
namespace {

using std::chrono::nanoseconds;

constexpr std::size_t kEndpointsMax = 16;
constexpr nanoseconds kRetryPause = std::chrono::milliseconds{25};

[[nodiscard]] Deadline earlier(Deadline a, Deadline b) { return a.at_since_boot < b.at_since_boot ? a : b; }

std::vector<os::Http2Header> metadata_with(const std::string& token) {
  if (token.empty()) return {};
  return {{"token", token}};
}

class GrpcWatchStream final : public WatchStream {
 public:
  /// `pieces_bytes_max` bounds what the pieces of an answer that is not whole may come to.
  GrpcWatchStream(std::shared_ptr<os::GrpcChannel> channel, std::string token, std::unique_ptr<os::GrpcStream> stream,
                  std::size_t pieces_bytes_max, const Clock& clock)
      : channel_(std::move(channel)),
        token_(std::move(token)),
        stream_(std::move(stream)),
        pieces_bytes_max_(pieces_bytes_max),
        clock_(clock) {}

  [[nodiscard]] Result<void> add(const WatchCreate& watch) override {
    return stream_->write(wire::etcd::encode_watch(watch));
  }
  [[nodiscard]] Result<void> cancel(std::int64_t id) override {
    return stream_->write(wire::etcd::encode_watch_cancel(id));
  }
  [[nodiscard]] Result<void> ask_progress() override { return stream_->write(wire::etcd::encode_watch_progress()); }
  [[nodiscard]] bool answers_in_order(Deadline deadline) override {
    const auto reply = channel_->call("/etcdserverpb.Maintenance/Status", "", deadline, metadata_with(token_));
    const auto version = wire::etcd::decode_version(reply.message);
    return reply.status.ok() && version && etcd::answers_in_order(*version);
  }
  [[nodiscard]] Result<std::optional<WatchResponse>> next(Deadline deadline) override {
    for (;;) {
      if (lost_) return fail(*lost_);
      auto received = stream_->read(deadline);
      if (received.status) {
        const Error why = received.status->ok() ? Error{ErrorCode::unavailable, "etcd ended the stream", {}}
                                                : verdict_on(*received.status, false).error;
        lost_ = why.in("watch");
        continue;
      }
      if (!received.message) return std::optional<WatchResponse>();
      auto response = wire::etcd::decode_watch(*received.message);
      auto whole = response ? join(*std::move(response)) : fail(response.error());
      if (!whole) lost_ = whole.error();
      if (whole && *whole) return whole;
      if (deadline.passed(clock_.now())) return std::optional<WatchResponse>();
    }
  }

 private:
  /// The message, with its earlier pieces; nothing when others are still to come.
  [[nodiscard]] Result<std::optional<WatchResponse>> join(WatchResponse response) {
    pieces_bytes_ += response.ByteSizeLong();
    if (pieces_bytes_ > pieces_bytes_max_) {
      return fail(ErrorCode::corrupt, "watch: one answer of etcd has more than {} bytes", pieces_bytes_max_);
    }
    if (response.fragment() || !pieces_.events().empty()) {
      pieces_.mutable_events()->MergeFrom(response.events());
      if (response.fragment()) return std::optional<WatchResponse>();
      response.mutable_events()->Swap(pieces_.mutable_events());
      pieces_.Clear();
    }
    pieces_bytes_ = 0;
    return std::optional(std::move(response));
  }

  const std::shared_ptr<os::GrpcChannel> channel_;
  const std::string token_;
  const std::unique_ptr<os::GrpcStream> stream_;
  const std::size_t pieces_bytes_max_;
  const Clock& clock_;
  WatchResponse pieces_;  ///< the events of those that came
  std::size_t pieces_bytes_ = 0;
  std::optional<Error> lost_;
};

/// The loop that finds a member that answers.
class EtcdClient final : public Client {
 public:
  EtcdClient(ClientOptions options, std::vector<os::Endpoint> endpoints, const Clock& clock, Random& random)
      : options_(std::move(options)),
        endpoints_(std::move(endpoints)),
        clock_(clock),
        connections_(
            "member of etcd", members(),
            [this](std::size_t member, Deadline deadline) { return dial(member, false, deadline); }, clock, random),
        watch_member_(random.next() % members()) {}

  [[nodiscard]] Result<RangeResponse> range(const RangeRequest& request, Deadline deadline) override {
    return ask("/etcdserverpb.KV/Range", request, false, deadline,
               [](const std::string& answer) { return wire::etcd::decode_range(answer); });
  }

  [[nodiscard]] Result<TxnResponse> txn(const TxnRequest& request, Deadline deadline) override {
    return ask("/etcdserverpb.KV/Txn", request, !wire::etcd::is_read_only(request), deadline,
               [&](const std::string& answer) { return wire::etcd::decode_txn(answer, request); });
  }

  [[nodiscard]] std::uint64_t history() const override { return history_; }

  [[nodiscard]] Result<std::unique_ptr<WatchStream>> open_watch(Deadline deadline) override {
    // Not the last one again: why its stream ended is not known here.
    const auto ready = [this](std::size_t member, Deadline by) { return dial(member, true, by); };
    TRY(const auto use, connections_.dial(++watch_member_ % members(), deadline, ready));
    auto metadata = metadata_with(use.connection->token);
    // A member that is cut off from the others would stay silent for ever; so it ends the stream.
    metadata.push_back({"hasleader", "true"});
    ++requests_;
    TRY(auto stream, use.connection->channel->open_stream("/etcdserverpb.Watch/Watch", metadata));
    return std::make_unique<GrpcWatchStream>(use.connection->channel, use.connection->token, std::move(stream),
                                             options_.response_bytes_max, clock_);
  }

  [[nodiscard]] Counts counts() const override { return {requests_, dials_}; }

 private:
  struct Connection {
    std::shared_ptr<os::GrpcChannel> channel;
    std::string token;  ///< empty: none is needed
    [[nodiscard]] bool is_usable() const { return channel->is_usable(); }
  };
  using Connections = os::SharedConnection<Connection>;
  /// Takes an answer's message in; an error when it is none, or not to what was asked.
  using Take = std::function<Result<void>(const std::string& message)>;

  [[nodiscard]] std::size_t members() const { return endpoints_.size(); }
  /// As it was configured.
  [[nodiscard]] std::string name_of(std::size_t member) const { return endpoints_[member].text(); }
  [[nodiscard]] std::string names_of_all() const {
    std::string names;
    for (std::size_t i = 0; i < members(); ++i) names += (i == 0 ? "" : ", ") + name_of(i);
    return names;
  }

  template <class Request, class Decode>
  [[nodiscard]] std::invoke_result_t<Decode, const std::string&> ask(std::string_view path, const Request& request,
                                                                     bool writes, Deadline deadline, Decode decode) {
    typename std::invoke_result_t<Decode, const std::string&>::value_type response;
    const Revision seen_before = seen();
    TRY_VOID(call(path, request.SerializeAsString(), writes, deadline, [&](const std::string& answer) -> Result<void> {
      TRY(response, decode(answer));
      return {};
    }));
    note(response.header().cluster_id(), response.header().revision(), seen_before);
    return response;
  }

  /// The newest revision that any answer had.
  [[nodiscard]] Revision seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  /// Takes note of whose answer it is to a request that was sent when `seen` was the newest.
  void note(std::uint64_t cluster, Revision revision, Revision seen) {
    const std::lock_guard lock(mutex_);
    const bool is_first = seen_ == 0;
    if (!is_first && (cluster != cluster_ || revision < seen)) {
      ++history_;
      seen_ = 0;
    }
    cluster_ = cluster;
    seen_ = std::max(seen_, revision);
  }

  // ---------------------------------------------------------------- connections

  /// To one member, logged in; with `ready` it has shown that it speaks HTTP/2.
  [[nodiscard]] Result<std::shared_ptr<Connection>> dial(std::size_t member, bool ready, Deadline deadline) {
    ++dials_;
    os::GrpcOptions options;
    options.http2.settings_timeout = options_.dial_timeout;
    options.message_bytes_max = options_.response_bytes_max;
    const Deadline by = earlier(deadline, Deadline::after(clock_.now(), options_.dial_timeout));
    TRY(auto channel, os::GrpcChannel::connect(endpoints_[member], options_.security.get(), options, clock_, by));
    if (ready) TRY_VOID(channel->wait_until_ready(by));
    auto token = log_in(*channel, deadline);
    if (!token) return fail(token.error().in(fmt::format("{}: login of {}", name_of(member), options_.user)));
    return std::make_shared<Connection>(std::move(channel), *std::move(token));
  }

  [[nodiscard]] Result<std::string> log_in(os::GrpcChannel& channel, Deadline deadline) {
    if (options_.user.empty()) return std::string();
    std::string password = options_.password;
    if (options_.read_password) {
      TRY(password, options_.read_password());
    }
    ++requests_;
    const auto reply =
        channel.call("/etcdserverpb.Auth/Authenticate", wire::etcd::encode_authenticate(options_.user, password),
                     reply_by(false, deadline));
    if (!reply.status.ok()) return fail(verdict_on(reply.status, false).error);
    auto token = wire::etcd::decode_authenticate(reply.message);
    if (!token) return fail(ErrorCode::unavailable, token.error().message);
    return token;
  }

  [[nodiscard]] Deadline reply_by(bool writes, Deadline deadline) const {
    const bool elsewhere = !writes && members() > 1;
    const auto span = elsewhere ? std::min(options_.read_timeout, options_.request_timeout) : options_.request_timeout;
    return earlier(deadline, Deadline::after(clock_.now(), span));
  }

  void pause(std::size_t attempt, Deadline deadline) {
    if (attempt + 1 < members()) return;  // the other members at once; then slower
    const nanoseconds span = connections_.spread(kRetryPause * (1 + attempt), 100);
    const nanoseconds left = deadline.at_since_boot - clock_.now().since_boot;
    if (left > nanoseconds{0}) std::this_thread::sleep_for(std::min(span, left));
  }

  /// One try on one connection; nothing where it has done it.
  [[nodiscard]] std::optional<Verdict> attempt(const Connections::Use& use, std::string_view path,
                                               std::string_view message, bool writes, Deadline deadline,
                                               const Take& take) {
    const Connection& on = *use.connection;
    if (writes) {
      // A member that takes connections and does nothing else must not get a write whose outcome nobody learns.
      const auto ready = on.channel->wait_until_ready(deadline);
      if (!ready) {
        connections_.leave(use);
        if (ready.error().code == ErrorCode::corrupt) return verdict_on_nonsense(ready.error(), false);
        return Verdict{ready.error(), ready.error().code != ErrorCode::permission_denied};
      }
    }
    ++requests_;
    auto reply = on.channel->call(path, message, reply_by(writes, deadline), metadata_with(on.token));
    if (reply.status.ok()) {
      const auto taken = take(reply.message);
      if (taken) return std::nullopt;
      connections_.leave(use);
      return verdict_on_nonsense(taken.error(), writes);
    }
    Verdict verdict = verdict_on(reply.status, writes);
    // One whose token is too old is made anew, with another.
    if (!reply.status.from_server || verdict.try_again || verdict.log_in_again) connections_.leave(use);
    return verdict;
  }

  /// `writes`: see verdict_on.
  [[nodiscard]] Result<void> call(std::string_view path, std::string_view message, bool writes, Deadline deadline,
                                  const Take& take) {
    const std::size_t attempts_max = 2 * members() + 1;
    bool logged_in_again = false;
    Error last{ErrorCode::unavailable, "", {}};
    std::map<std::size_t, std::string> broken;  // members, and what they said
    for (std::size_t i = 0; i < attempts_max; ++i) {
      if (deadline.passed(clock_.now())) {
        return fail(ErrorCode::deadline_exceeded, "etcd: no answer in time: {}",
                    last.message.empty() ? names_of_all() : last.message);
      }
      const auto use = connections_.get(deadline);
      if (!use) return fail(use.error());  // all members were tried
      const auto failed = attempt(*use, path, message, writes, deadline, take);
      if (!failed) return {};
      const Verdict& verdict = *failed;
      last = verdict.error;
      const bool is_silent = last.code == ErrorCode::unavailable || last.code == ErrorCode::deadline_exceeded ||
                             last.code == ErrorCode::unknown_outcome;
      // Somebody has to look at it, so it is named.
      const std::string name = name_of(use->server);
      const bool is_named = last.message.find(name) != std::string::npos;
      if ((verdict.is_broken || is_silent) && !is_named) last = last.in(name);
      if (verdict.is_broken) broken.emplace(use->server, last.message);
      if (verdict.try_again && broken.size() == members()) {
        // Nobody is left. All are named: they are what somebody has to look at.
        last.message.clear();
        for (const auto& [member, said] : broken) last.message += (last.message.empty() ? "" : "; ") + said;
        return fail(last.in("etcd"));
      }
      const bool log_in_again = verdict.log_in_again && !options_.user.empty() && !logged_in_again;
      logged_in_again = logged_in_again || log_in_again;
      if (!verdict.try_again && !log_in_again) return fail(last.in("etcd"));
      if (i + 1 < attempts_max && !log_in_again) pause(i, deadline);
    }
    return fail(last.in("etcd"));
  }

  const ClientOptions options_;
  const std::vector<os::Endpoint> endpoints_;
  const Clock& clock_;
  std::atomic<std::uint64_t> requests_{0}, dials_{0}, history_{0};

  Connections connections_;
  std::atomic<std::size_t> watch_member_;

  std::mutex mutex_;           ///< guards both below
  std::uint64_t cluster_ = 0;  ///< of the last answer
  Revision seen_ = 0;          ///< the newest of that cluster; 0: there was no answer
};

}  // namespace

Result<std::unique_ptr<Client>> Client::make(ClientOptions options, const Clock& clock, Random& random) {
  if (options.endpoints.empty() || options.endpoints.size() > kEndpointsMax) {
    return fail(ErrorCode::invalid_argument, "etcd needs 1 to {} endpoints, not {}", kEndpointsMax,
                options.endpoints.size());
  }
  std::vector<os::Endpoint> endpoints;
  for (const std::string& text : options.endpoints) {
    TRY(auto endpoint, os::Endpoint::parse(text));
    if (endpoint.secure && !options.security) {
      return fail(ErrorCode::invalid_argument, "{} needs TLS files: at least a CA", text);
    }
    endpoints.push_back(std::move(endpoint));
  }
  return std::make_unique<EtcdClient>(std::move(options), std::move(endpoints), clock, random);
}

namespace {

using os::GrpcCode;

constexpr std::string_view kCompacted = "required revision has been compacted";
constexpr std::string_view kNoSpace = "database space exceeded";
constexpr std::string_view kTooLarge = "request is too large";

bool contains(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

Error error_of(ErrorCode code, const os::GrpcStatus& status) {
  return {code, status.from_server ? fmt::format("{} ({})", status.message, name_of(status.code)) : status.message, {}};
}

/// Nobody knows: an error for reads, something worse for writes.
Verdict unclear(ErrorCode code_of_read, const os::GrpcStatus& status, bool writes) {
  if (!writes) return {error_of(code_of_read, status), true, false};
  return {error_of(ErrorCode::unknown_outcome, status).in("it may or may not have been written"), false, false};
}

Verdict refused(ErrorCode code, const os::GrpcStatus& status) { return {error_of(code, status)}; }

/// Nothing was changed. The next try may have less to write.
Verdict too_large(const os::GrpcStatus& status) {
  return {error_of(ErrorCode::storage_full, status)
              .in("larger than etcd takes at once (--max-request-bytes of its members)")};
}

Verdict on_exhausted(const os::GrpcStatus& status, bool writes) {
  if (contains(status.message, "too many requests")) return {error_of(ErrorCode::unavailable, status), true, false};
  if (contains(status.message, "message larger than max")) return too_large(status);
  if (contains(status.message, kNoSpace)) {
    // Usually said before anything is done. But the write that crosses the quota is applied first and answered so too.
    if (writes) return unclear(ErrorCode::storage_full, status, true);
    return refused(ErrorCode::storage_full, status);
  }
  return unclear(ErrorCode::unavailable, status, writes);
}

Verdict on_answer(const os::GrpcStatus& status, bool writes) {
  switch (status.code) {
    case GrpcCode::invalid_argument:
      if (contains(status.message, "revision of auth store is old")) {
        return {error_of(ErrorCode::unavailable, status), false, true};
      }
      if (contains(status.message, "user name is empty") || contains(status.message, "authentication failed")) {
        return refused(ErrorCode::permission_denied, status);
      }
      return contains(status.message, kTooLarge) ? too_large(status) : refused(ErrorCode::invalid_argument, status);
    case GrpcCode::out_of_range:
      return refused(contains(status.message, kCompacted) ? ErrorCode::conflict : ErrorCode::invalid_argument, status);
    case GrpcCode::failed_precondition:
      if (contains(status.message, "not leader")) return {error_of(ErrorCode::unavailable, status), true, false};
      return refused(ErrorCode::invalid_argument, status);
    case GrpcCode::not_found:
    case GrpcCode::already_exists:
    case GrpcCode::unimplemented:
      return refused(ErrorCode::invalid_argument, status);
    case GrpcCode::permission_denied:
      return refused(ErrorCode::permission_denied, status);
    case GrpcCode::unauthenticated:
      return {error_of(ErrorCode::permission_denied, status), false, true};
    case GrpcCode::resource_exhausted:
      return on_exhausted(status, writes);
    case GrpcCode::data_loss:
      return unclear(ErrorCode::corrupt, status, writes);
    default:
      return unclear(ErrorCode::unavailable, status, writes);
  }
}

}  // namespace

Verdict verdict_on(const os::GrpcStatus& status, bool writes) {
  if (status.from_server) return on_answer(status, writes);
  const bool may_have_written = writes && !status.surely_not_processed;
  switch (status.code) {
    case GrpcCode::deadline_exceeded:
      return unclear(ErrorCode::deadline_exceeded, status, may_have_written);
    case GrpcCode::resource_exhausted:
      // A request that is beyond our own bounds will be next time too; an answer that is, is one member's.
      if (status.surely_not_processed) return too_large(status);
      return verdict_on_nonsense(error_of(ErrorCode::unavailable, status), may_have_written);
    case GrpcCode::internal:
      return verdict_on_nonsense(error_of(ErrorCode::unavailable, status), may_have_written);
    case GrpcCode::permission_denied:
      return unclear(ErrorCode::permission_denied, status, may_have_written);
    default:
      return unclear(ErrorCode::unavailable, status, may_have_written);
  }
}

Verdict verdict_on_nonsense(const Error& error, bool writes) {
  const Error said{writes ? ErrorCode::unknown_outcome : ErrorCode::unavailable, error.message, error.details};
  if (!writes) return {said, true, false, true};
  return {said.in("it may or may not have been written"), false, false, true};
}

bool answers_in_order(std::string_view version) {
  std::array<int, 3> numbers{};
  const char* at = version.data();
  const char* const end = at + version.size();
  for (int& number : numbers) {
    const auto read = std::from_chars(at, end, number);
    if (read.ec != std::errc()) return false;
    at = read.ptr == end ? end : read.ptr + 1;
  }
  const auto is_from = [&](const std::array<int, 3>& first) { return numbers >= first; };
  return is_from({3, 5, 8}) || (is_from({3, 4, 25}) && !is_from({3, 5, 0}));
}

bool is_no_space(const Error& error) { return contains(error.message, kNoSpace); }

}  // namespace croft::store::etcd
