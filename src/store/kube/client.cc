#include "store/kube/client.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "store/kube/credentials.h"
#include "store/kube/dialer.h"
#include "store/kube/verdict.h"
#include "store/kube/watch_stream.h"

namespace croft::store::kube {
namespace {

using std::chrono::nanoseconds;
using Next = Verdict::Next;

constexpr nanoseconds kPauseMin = std::chrono::milliseconds{25};
/// Requests on their way at once; a server takes about 100 streams, and watches have some of them.
constexpr std::size_t kTogether = 48;
/// In the order of Request::Method.
constexpr std::array<std::string_view, 5> kMethodNames = {"GET", "POST", "PUT", "DELETE", "PATCH"};

Answer not_done(Error error) {
  Answer answer;
  answer.error = std::move(error);
  return answer;
}

/// Without its file the API can't be asked, and that passes when the file comes.
Error as_away(Error error) {
  if (error.code == ErrorCode::not_found || error.code == ErrorCode::invalid_argument) {
    error.code = ErrorCode::unavailable;
  }
  return error;
}

}  // namespace

/// The connection all calls share, and the loop that finds a server that answers.
class Client::Impl {
 public:
  Impl(ClientOptions options, const Clock& clock, Random& random)
      : options_(std::move(options)),
        dialer_(options_, clock),
        credentials_(options_.access, options_.token_age_max, clock),
        clock_(clock),
        random_(random),
        server_(random.next() % dialer_.servers()) {}

  /// An answer; when a watch was asked for and is `done`, its stream, whose body has not been read.
  struct Reply {
    Answer answer;
    std::shared_ptr<os::Http2Stream> stream;
  };
  [[nodiscard]] Reply run(const Request& request, bool is_watch, Deadline deadline);
  /// All at once over one connection; what that does not settle runs by itself.
  [[nodiscard]] std::vector<Answer> run_together(std::span<const Request> requests, Deadline deadline);
  [[nodiscard]] const ClientOptions& options() const { return options_; }
  [[nodiscard]] Counts counts() const { return {requests_, dialer_.dials()}; }

 private:
  struct Connection {
    std::shared_ptr<os::Http2Connection> http2;
    std::size_t server = 0;
  };
  struct Attempt {
    Verdict verdict;
    std::shared_ptr<os::Http2Stream> stream;
  };
  /// What has been tried for one request.
  struct Tries {
    std::size_t failures = 0;
    int waits = 0;
    std::size_t moves = 0;  ///< to another server instead of waiting
    bool logged_in = false;
  };

  [[nodiscard]] Result<Connection> connection(Deadline deadline);
  /// A request on its way; `failed` when it is not.
  struct Begun {
    std::shared_ptr<os::Http2Stream> stream;
    std::optional<Verdict> failed;
  };
  [[nodiscard]] Begun begin(const Connection& on, const Request& request, const std::string& token, Deadline deadline);
  [[nodiscard]] Attempt finish(const Begun& begun, const Request& request, bool is_watch, Deadline deadline);
  /// Says where an answer that is no good came from, and keeps others from that server if need be.
  void note_failure(Verdict& verdict, const Connection& on);
  [[nodiscard]] std::vector<os::Http2Header> headers(const wire::kube::KubeServer& server, const Request& request,
                                                     const std::string& token) const;
  /// Does what the verdict asks for; false when there is nothing to do, or no time for it.
  [[nodiscard]] bool goes_on(const Verdict& verdict, const Connection& on, const std::string& token, Tries& tries,
                             Deadline deadline);
  [[nodiscard]] bool waits(const Verdict& verdict, const Connection& on, Tries& tries, Deadline deadline);
  void give_up(const Connection& on);
  [[nodiscard]] Deadline reply_by(const Request& request, Deadline deadline) const;
  [[nodiscard]] nanoseconds jittered(nanoseconds span, int percent);
  void sleep(nanoseconds span);

  const ClientOptions options_;
  Dialer dialer_;
  Credentials credentials_;
  const Clock& clock_;
  std::atomic<std::uint64_t> requests_{0};

  std::mutex mutex_;
  Random& random_;           ///< guarded by mutex_
  Connection current_;       ///< guarded by mutex_; without http2: none
  std::size_t server_;       ///< guarded by mutex_: where `current_` leads to, or where to begin
  bool connecting_ = false;  ///< guarded by mutex_: a thread is dialing
  std::condition_variable connected_;
};

// ---------------------------------------------------------------- connections

Result<Client::Impl::Connection> Client::Impl::connection(Deadline deadline) {
  std::unique_lock lock(mutex_);
  while (connecting_) {
    const auto now = clock_.now();
    if (deadline.passed(now)) {
      return fail(ErrorCode::deadline_exceeded, "no connection to a Kubernetes API server was made in time");
    }
    constexpr nanoseconds kSleepMax = std::chrono::hours{1};
    connected_.wait_for(lock, std::min(deadline.at_since_boot - now.since_boot, kSleepMax));
  }
  if (current_.http2 && current_.http2->is_usable()) return current_;
  // A server that says goodbye wants its clients elsewhere.
  if (current_.http2) server_ = (server_ + 1) % dialer_.servers();
  connecting_ = true;
  current_ = {};
  const std::size_t first = server_;
  lock.unlock();
  auto dialed = dialer_.dial(first, deadline);
  lock.lock();
  connecting_ = false;
  connected_.notify_all();
  if (!dialed) return fail(dialed.error());
  server_ = dialed->server;
  current_ = {std::move(dialed->connection), dialed->server};
  return current_;
}

/// The others that wait on it go on, watches too; new calls look for another server.
void Client::Impl::give_up(const Connection& on) {
  const std::lock_guard lock(mutex_);
  if (current_.http2 != on.http2) return;
  current_ = {};
  server_ = (server_ + 1) % dialer_.servers();
}

// ---------------------------------------------------------------- one attempt

std::vector<os::Http2Header> Client::Impl::headers(const wire::kube::KubeServer& server, const Request& request,
                                                   const std::string& token) const {
  std::vector<os::Http2Header> headers = {
      {":method", std::string(kMethodNames[static_cast<std::size_t>(request.method)])},
      {":scheme", server.secure ? "https" : "http"},
      {":path", server.path_prefix + request.path},
      {":authority", server.authority()},
      {"user-agent", "croft/" CROFT_VERSION},
      {"accept", request.accept}};
  if (!request.body.empty()) headers.push_back({"content-type", request.content_type});
  if (!token.empty()) headers.push_back({"authorization", "Bearer " + token});
  return headers;
}

Deadline Client::Impl::reply_by(const Request& request, Deadline deadline) const {
  const bool elsewhere = request.is_read() && dialer_.servers() > 1;
  const auto span = elsewhere ? std::min(options_.read_timeout, options_.request_timeout) : options_.request_timeout;
  return earlier(deadline, Deadline::after(clock_.now(), span));
}

Client::Impl::Begun Client::Impl::begin(const Connection& on, const Request& request, const std::string& token,
                                        Deadline deadline) {
  if (!request.is_read()) {
    // A server that takes connections and does nothing else must not get a write whose outcome nobody learns.
    const auto ready = on.http2->wait_until_ready(deadline);
    if (!ready) return {nullptr, verdict_on_failure(request, {ready.error(), true})};
  }
  auto opened =
      on.http2->open(headers(dialer_.server(on.server), request, token), request.body, true, options_.answer_bytes_max);
  if (!opened) return {nullptr, verdict_on_failure(request, {opened.error(), true})};
  ++requests_;
  return {*std::move(opened), std::nullopt};
}

Client::Impl::Attempt Client::Impl::finish(const Begun& begun, const Request& request, bool is_watch,
                                           Deadline deadline) {
  if (begun.failed) return {*begun.failed, nullptr};
  const auto& stream = begun.stream;
  const Deadline by = reply_by(request, deadline);
  if (is_watch) {
    if (!stream->wait_for_headers(by)) {
      const Error error{ErrorCode::deadline_exceeded, "no answer in time", {}};
      return {verdict_on_failure(request, {error, stream->nothing_sent()}), nullptr};
    }
    if (const auto found = stream->headers(); http_status_of(found) == 200) {
      return {verdict_on_answer(request, found, {}), stream};
    }
  }
  auto received = stream->read_all(by);
  if (received.failure) return {verdict_on_failure(request, *received.failure), nullptr};
  Verdict verdict = verdict_on_answer(request, stream->headers(), std::move(received.bytes));
  if (is_watch && verdict.answer.outcome == Answer::Outcome::done) {
    const int http_status = std::exchange(verdict.answer, {}).http_status;
    verdict.answer.error = {ErrorCode::corrupt, fmt::format("HTTP status {} is no answer to a watch", http_status), {}};
    verdict.answer.http_status = http_status;
  }
  return {std::move(verdict), nullptr};
}

// ---------------------------------------------------------------- the loop

nanoseconds Client::Impl::jittered(nanoseconds span, int percent) {
  const std::lock_guard lock(mutex_);
  return span + span / 100 * static_cast<std::int64_t>(random_.next() % static_cast<std::uint64_t>(percent + 1));
}

void Client::Impl::sleep(nanoseconds span) {
  if (span.count() <= 0) return;
  if (options_.sleep) return options_.sleep(span);
  std::this_thread::sleep_for(span);
}

bool Client::Impl::waits(const Verdict& verdict, const Connection& on, Tries& tries, Deadline deadline) {
  // One that is busy (429) stays the one to ask; one that ends (503, or GOAWAY behind its answer) has others beside it.
  const bool is_leaving = verdict.answer.http_status == 503 || !on.http2->is_usable();
  if (is_leaving) {
    give_up(on);
    if (++tries.moves < dialer_.servers()) return true;
  }
  if (++tries.waits > options_.waits_max) return false;
  // Not all clients in step.
  const nanoseconds span = jittered(verdict.wait, 10);
  if (clock_.now().since_boot + span >= deadline.at_since_boot) return false;
  sleep(span);
  return true;
}

bool Client::Impl::goes_on(const Verdict& verdict, const Connection& on, const std::string& token, Tries& tries,
                           Deadline deadline) {
  if (deadline.passed(clock_.now())) return false;  // what was said last says more than that
  switch (verdict.next) {
    case Next::end:
      return false;
    case Next::log_in:
      return !std::exchange(tries.logged_in, true) && credentials_.has_other_than(token);
    case Next::wait:
      return waits(verdict, on, tries, deadline);
    case Next::elsewhere:
      break;
  }
  const std::size_t failures = ++tries.failures;
  if (failures > 2 * dialer_.servers()) return false;
  // The other servers at once; then slower.
  if (failures >= dialer_.servers()) {
    const nanoseconds span = jittered(kPauseMin * failures, 100);
    const nanoseconds now = clock_.now().since_boot;
    if (now + span >= deadline.at_since_boot) return false;
    sleep(span);
  }
  return true;
}

Client::Impl::Reply Client::Impl::run(const Request& request, bool is_watch, Deadline deadline) {
  Tries tries;
  for (;;) {
    if (deadline.passed(clock_.now())) {
      return {not_done({ErrorCode::deadline_exceeded, "Kubernetes: no time was left to ask", {}}), nullptr};
    }
    auto token = credentials_.token();
    if (!token) return {not_done(as_away(token.error())), nullptr};
    const auto on = connection(deadline);
    if (!on) return {not_done(on.error()), nullptr};  // all servers were tried
    Attempt made = finish(begin(*on, request, *token, deadline), request, is_watch, deadline);
    Verdict& verdict = made.verdict;
    if (verdict.answer.outcome == Answer::Outcome::done) {
      return {std::move(verdict.answer), std::move(made.stream)};
    }
    if (verdict.answer.http_status == 401) {
      verdict.answer.error.message += "; " + credentials_.refusal_of(*token);
    }
    note_failure(verdict, *on);
    if (!goes_on(verdict, *on, *token, tries, deadline)) return {std::move(verdict.answer), nullptr};
  }
}

void Client::Impl::note_failure(Verdict& verdict, const Connection& on) {
  verdict.answer.error = verdict.answer.error.in(dialer_.server(on.server).text());
  if (verdict.server_is_bad) dialer_.set_aside(on.server);
  if (verdict.answer.http_status == 0 || verdict.server_is_bad) give_up(on);
}

std::vector<Answer> Client::Impl::run_together(std::span<const Request> requests, Deadline deadline) {
  std::vector<Answer> answers(requests.size());
  for (std::size_t from = 0; from < requests.size(); from += kTogether) {
    const auto some = requests.subspan(from, std::min(kTogether, requests.size() - from));
    std::vector<Begun> begun;
    const auto token = credentials_.token();
    const auto on =
        token && some.size() > 1 ? connection(deadline) : Result<Connection>(fail(ErrorCode::unavailable, ""));
    if (on) {
      for (const Request& request : some) begun.push_back(begin(*on, request, *token, deadline));
    }
    for (std::size_t i = 0; i < some.size(); ++i) {
      Answer& answer = answers[from + i];
      if (!on) {
        answer = run(some[i], false, deadline).answer;
        continue;
      }
      Attempt made = finish(begun[i], some[i], false, deadline);
      const bool is_done = made.verdict.answer.outcome == Answer::Outcome::done;
      if (!is_done) note_failure(made.verdict, *on);
      // What nobody has processed, and reads, may be asked again.
      const bool is_final = is_done || made.verdict.next == Next::end;
      answer = is_final ? std::move(made.verdict.answer) : run(some[i], false, deadline).answer;
      begun[i].stream.reset();
    }
  }
  return answers;
}

// ---------------------------------------------------------------- the client

Client::Client(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Client::~Client() = default;

Result<std::unique_ptr<Client>> Client::make(ClientOptions options, const Clock& clock, Random& random) {
  TRY_VOID(Dialer::check(options));
  return std::unique_ptr<Client>(new Client(std::make_unique<Impl>(std::move(options), clock, random)));
}

Answer Client::call(const Request& request, Deadline deadline) { return impl_->run(request, false, deadline).answer; }

std::vector<Answer> Client::call_all(std::span<const Request> requests, Deadline deadline) {
  return impl_->run_together(requests, deadline);
}

WatchAnswer Client::watch(const std::string& path, Deadline deadline) {
  Request request;
  request.path = path;
  auto reply = impl_->run(request, true, deadline);
  WatchAnswer watch{std::move(reply.answer), nullptr};
  if (reply.stream) {
    watch.stream = std::make_unique<Http2WatchStream>(std::move(reply.stream), impl_->options().answer_bytes_max);
  }
  return watch;
}

Client::Counts Client::counts() const { return impl_->counts(); }

}  // namespace croft::store::kube
