#include "store/kube/client.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"
#include "base/time_text.h"
#include "http/shared_connection.h"
#include "http/url/url.h"
#include "os/files.h"
#include "store/kube/format/kubeconfig.h"
#include "store/kube/format/yaml.h"

namespace croft::store::kube {
namespace {

using std::chrono::nanoseconds;
using Next = Verdict::Next;

constexpr std::chrono::minutes kTokenAgeMax{1};
/// API servers allow as much.
constexpr std::chrono::minutes kSkewMax{1};
constexpr nanoseconds kRetryPause = std::chrono::milliseconds{25};
/// How often a request that was told to wait (429, 503) is sent again; as client-go.
constexpr std::size_t kWaitsMax = 10;
/// Requests on their way at once; a server takes about 100 streams, and watches have some of them.
constexpr std::size_t kTogether = 48;
/// The bytes of a page of a list, and of what else is asked for meanwhile.
constexpr std::size_t kUnreadBytesMax = std::size_t{32} << 20;

[[nodiscard]] Deadline earlier(Deadline a, Deadline b) { return a.at_since_boot < b.at_since_boot ? a : b; }

[[nodiscard]] os::TlsFiles tls_files(const wire::kube::KubeAccess& access, const wire::Url& server) {
  const bool has_name = access.tls_server_name.empty() && !server.is_numeric;
  return {.ca_file = access.ca.file,
          .certificate_file = access.certificate.file,
          .key_file = access.key.file,
          .server_name = has_name ? server.host : access.tls_server_name,
          .ca_pem = access.ca.data,
          .certificate_pem = access.certificate.data,
          .key_pem = access.key.data};
}

/// The bearer token of a KubeAccess. One in a file is read again after a minute: kubelet renews those of pods when 80 %
/// of their time is over (client-go reads every minute). Safe to use from several threads.
class Credentials {
 public:
  Credentials(const wire::kube::KubeAccess& access, const Clock& clock)
      : file_(access.token_file),
        is_pod_(!access.namespace_file.empty()),
        clock_(clock),
        token_(access.token_file.empty() ? access.token : std::string()) {}

  /// The token to send; empty: none. The file is read now when the server has refused the token, `refused`. One that
  /// cannot be read just now leaves the token before it in use, as in client-go. Errors, when there is none before it:
  /// as os::read_secret_file, and unavailable when there is no file, or no token in it: that passes when it comes. The
  /// mode is not judged in a pod. Kubelet makes it, 0644 where its containers run as several users, and nobody but the
  /// pod sees the file (Kubernetes, "Configure Service Accounts for Pods").
  [[nodiscard]] Result<std::string> token(std::string_view refused = {}) {
    const std::lock_guard lock(mutex_);
    const bool is_old = !read_at_ || clock_.now().since_boot - *read_at_ >= kTokenAgeMax;
    if (!file_.empty() && (is_old || token_ == refused)) {
      if (const auto done = read(); !done && token_.empty()) return fail(done.error());
    }
    return token_;
  }

  /// The server has refused `token`: where it is from, when it ended, and what to do, for a person.
  [[nodiscard]] std::string refusal_of(const std::string& token) const {
    if (token.empty()) {
      return "the kubeconfig has no token, and no client certificate that the API server takes: there is none, it "
             "ended, or its CA is another; write a new one into the kubeconfig";
    }
    const std::string which = file_.empty() ? "the token of the kubeconfig" : fmt::format("the token in {}", file_);
    const WallTime now = clock_.now().wall;
    const auto life = wire::kube::life_of_token(token);
    if (life && life->end <= now) {
      return fmt::format(
          "{} ended at {}; write a new one there (kubectl create token; croftd install makes one, and the "
          "agent renews it)",
          which, rfc3339_exact(life->end));
    }
    if (life && life->made > now + kSkewMax) {
      return fmt::format("{} was made at {}, which this machine's clock takes for the future; set the clock", which,
                         rfc3339_exact(life->made));
    }
    return fmt::format(
        "{}{} was revoked (its service account was deleted or made anew), is of another cluster, or the "
        "API server's clock differs; write a new one there",
        which, life ? fmt::format(", good until {},", rfc3339_exact(life->end)) : "");
  }

 private:
  /// With `mutex_` held.
  [[nodiscard]] Result<void> read() {
    read_at_ = clock_.now().since_boot;
    const auto content = is_pod_ ? os::read_file(file_, wire::kube::kTokenBytesMax)
                                 : os::read_secret_file(file_, wire::kube::kTokenBytesMax);
    if (!content) {
      const bool is_absent = content.error().code == ErrorCode::not_found;
      return fail(is_absent ? ErrorCode::unavailable : content.error().code, "token file: " + content.error().message);
    }
    const std::string_view token = wire::kube::trimmed_token(*content);
    if (!wire::kube::is_bearer_token(token)) {
      return fail(ErrorCode::unavailable, fmt::format("token file {}: it is empty, or has no token", file_));
    }
    token_ = token;
    return {};
  }

  const std::string file_;
  const bool is_pod_;
  const Clock& clock_;
  std::mutex mutex_;
  std::string token_;                   ///< guarded by mutex_
  std::optional<nanoseconds> read_at_;  ///< guarded by mutex_: since boot
};

/// A watch on an HTTP/2 stream, whose answer has begun with 200.
class Http2WatchStream final : public WatchStream {
 public:
  Http2WatchStream(std::shared_ptr<os::Http2Stream> stream, std::size_t event_bytes_max)
      : stream_(std::move(stream)), lines_(event_bytes_max) {}

  [[nodiscard]] Result<std::optional<wire::kube::ApiEvent>> next(Deadline deadline) override {
    for (bool late = false;;) {
      TRY(const auto line, lines_.next());
      if (line) {
        TRY(auto event, wire::kube::decode_event(*line));
        return std::optional(std::move(event));
      }
      if (end_) return fail(lines_.has_rest() ? end_->in("a watch broke off within an event") : *end_);
      // An event that comes byte by byte must not be waited for beyond the deadline.
      if (late) return std::optional<wire::kube::ApiEvent>();
      auto received = stream_->read(deadline);
      if (received.timed_out) return std::optional<wire::kube::ApiEvent>();
      late = received.late;
      lines_.add(received.bytes);
      if (received.ended) end_ = Error{ErrorCode::unavailable, "the API server has ended the watch", {}};
      if (received.failure) {
        end_ = received.failure->error.in("watch");
        // Too much at once is also nothing that can be read.
        end_->code = end_->code == ErrorCode::invalid_argument || end_->code == ErrorCode::corrupt
                         ? ErrorCode::corrupt
                         : ErrorCode::unavailable;
      }
    }
  }

 private:
  std::shared_ptr<os::Http2Stream> stream_;
  wire::kube::WatchLines lines_;
  std::optional<Error> end_;  ///< of the stream, behind what `lines_` has
};

/// The loop that finds a server that answers.
class Client final : public Api {
 public:
  Client(ClientOptions options, const Clock& clock, Random& random)
      : options_(std::move(options)),
        credentials_(options_.access, clock),
        clock_(clock),
        connections_(
            "Kubernetes API server", options_.access.servers.size(),
            [this](std::size_t index, Deadline deadline) { return dial(index, deadline); }, clock, random) {
    for (const wire::Url& server : options_.access.servers) {
      security_.push_back(server.secure ? options_.make_security(tls_files(options_.access, server)) : nullptr);
    }
  }

  [[nodiscard]] Answer call(const Request& request, Deadline deadline) override {
    return run(request, false, deadline, begin(request, deadline)).answer;
  }
  /// All at once over one connection.
  [[nodiscard]] std::vector<Answer> call_all(std::span<const Request> requests, Deadline deadline) override {
    std::vector<Answer> answers;
    for (std::size_t from = 0; from < requests.size(); from += kTogether) {
      const auto some = requests.subspan(from, std::min(kTogether, requests.size() - from));
      std::vector<Result<Attempt>> begun;
      for (const Request& request : some) begun.push_back(begin(request, deadline));
      for (std::size_t i = 0; i < some.size(); ++i) {
        answers.push_back(run(some[i], false, deadline, std::move(begun[i])).answer);
      }
    }
    return answers;
  }
  [[nodiscard]] WatchAnswer watch(const std::string& path, Deadline deadline) override {
    Request request;
    request.path = path;
    return run(request, true, deadline, begin(request, deadline));
  }

 private:
  using Connections = os::SharedConnection<os::Http2Connection>;
  /// A request on its way; `failed` when it is not.
  struct Attempt {
    Connections::Use on;
    std::string token;
    std::shared_ptr<os::Http2Stream> stream;
    std::optional<Verdict> failed;
  };
  /// The attempts at one request.
  struct Tries {
    std::size_t failures = 0, waits = 0;
    bool logged_in = false;
  };

  [[nodiscard]] const wire::Url& server(std::size_t index) const { return options_.access.servers[index]; }
  [[nodiscard]] std::size_t servers() const { return options_.access.servers.size(); }

  [[nodiscard]] Result<std::shared_ptr<os::Http2Connection>> dial(std::size_t index, Deadline calls) const {
    const wire::Url& to = server(index);
    const Deadline deadline = earlier(calls, Deadline::after(clock_.now(), options_.dial_timeout));
    std::vector<std::string> addresses{to.host};
    if (!to.is_numeric) {
      auto found = options_.look_up(to.host, deadline);
      if (!found) return fail(found.error().in(to.text()));
      addresses = *std::move(found);
    }
    Error last{ErrorCode::unavailable, fmt::format("{} has no address", to.text()), {}};
    for (const std::string& address : addresses) {
      const os::Endpoint endpoint{os::Endpoint::Kind::tcp, to.secure, address, to.port, {}};
      auto transport = os::connect_transport(endpoint, security_[index].get(), clock_, deadline);
      if (transport) {
        os::Http2Options options;
        options.settings_timeout = options_.dial_timeout;
        options.unread_bytes_max = kUnreadBytesMax;
        return os::Http2Connection::make(*std::move(transport), to.text(), options, clock_);
      }
      last = transport.error();
      if (deadline.passed(clock_.now())) break;
    }
    return fail(last);
  }

  /// Errors: no time, no token, no server.
  [[nodiscard]] Result<Attempt> begin(const Request& request, Deadline deadline) {
    if (deadline.passed(clock_.now())) {
      return fail(ErrorCode::deadline_exceeded, "Kubernetes: no time was left to ask");
    }
    TRY(std::string token, credentials_.token());
    TRY(Connections::Use on, connections_.get(deadline));
    Attempt made{std::move(on), std::move(token), nullptr, std::nullopt};
    const auto failed = [&](const Error& error) {
      made.failed = verdict_on_failure(request, {error, true});
      return made;
    };
    if (!request.is_read()) {
      // A server that takes connections and does nothing else must not get a write whose outcome nobody learns.
      const auto ready = made.on.connection->wait_until_ready(deadline);
      if (!ready) return failed(ready.error());
    }
    const wire::Url& to = server(made.on.server);
    std::vector<os::Http2Header> headers = {{":method", std::string(name_of(request.method))},
                                            {":scheme", to.secure ? "https" : "http"},
                                            {":path", to.path + request.path},
                                            {":authority", to.authority()},
                                            {"user-agent", "croft/" CROFT_VERSION},
                                            {"accept", request.accept}};
    if (!request.body.empty()) headers.push_back({"content-type", request.content_type});
    if (!made.token.empty()) headers.push_back({"authorization", "Bearer " + made.token});
    auto opened = made.on.connection->open(headers, request.body, true, options_.answer_bytes_max);
    if (!opened) return failed(opened.error());
    made.stream = *std::move(opened);
    return made;
  }

  [[nodiscard]] Verdict finish(const Attempt& made, const Request& request, bool is_watch, Deadline deadline) {
    if (made.failed) return *made.failed;
    const bool has_others = request.is_read() && servers() > 1;
    const nanoseconds time = has_others ? options_.request_timeout / 2 : options_.request_timeout;
    const Deadline by = earlier(deadline, Deadline::after(clock_.now(), time));
    if (is_watch) {
      if (!made.stream->wait_for_headers(by)) {
        const Error late{ErrorCode::deadline_exceeded, "no answer in time", {}};
        return verdict_on_failure(request, {late, made.stream->nothing_sent()});
      }
      Verdict begins = verdict_on_answer(request, made.stream->headers(), {});
      if (begins.answer.outcome == Answer::Outcome::done) return begins;
    }
    auto received = made.stream->read_all(by);
    if (received.failure) return verdict_on_failure(request, *received.failure);
    return verdict_on_answer(request, made.stream->headers(), std::move(received.bytes));
  }

  /// Finishes what was begun, and begins again as long as that may help.
  [[nodiscard]] WatchAnswer run(const Request& request, bool is_watch, Deadline deadline, Result<Attempt> made) {
    for (Tries tries;; made = begin(request, deadline)) {
      if (!made) return {{Answer::Outcome::not_done, 0, {}, {}, made.error()}, nullptr};
      Verdict verdict = finish(*made, request, is_watch, deadline);
      Answer& answer = verdict.answer;
      if (answer.outcome == Answer::Outcome::done) {
        auto stream = is_watch ? std::make_unique<Http2WatchStream>(made->stream, options_.answer_bytes_max) : nullptr;
        return {std::move(answer), std::move(stream)};
      }
      if (answer.http_status == 401) answer.error.message += "; " + credentials_.refusal_of(made->token);
      answer.error = answer.error.in(server(made->on.server).text());
      if (verdict.server_is_bad) connections_.leave(made->on);
      if (!goes_on(verdict, *made, tries, deadline)) return {std::move(answer), nullptr};
    }
  }

  /// Does what the verdict asks for; false when there is nothing to do, or no time for it.
  [[nodiscard]] bool goes_on(const Verdict& verdict, const Attempt& made, Tries& tries, Deadline deadline) {
    const Instant now = clock_.now();
    if (verdict.next == Next::end || deadline.passed(now)) return false;  // what was said last says more than that
    if (verdict.next == Next::log_in) {
      return !std::exchange(tries.logged_in, true) && credentials_.token(made.token).value_or("") != made.token;
    }
    const bool waits = verdict.next == Next::wait;
    const std::size_t count = waits ? ++tries.waits : ++tries.failures;
    if (count > (waits ? kWaitsMax : 2 * servers())) return false;
    // A busy server (429) stays the one to ask; one that ends (503, or GOAWAY behind its answer) has others beside it.
    const bool stays = waits && verdict.answer.http_status != 503 && made.on.connection->is_usable();
    if (!stays && servers() > 1) connections_.leave(made.on);
    if (!stays && count < servers()) return true;  // the other servers at once; then slower
    const nanoseconds span = waits ? verdict.wait : kRetryPause * static_cast<std::int64_t>(count);
    const nanoseconds pause = connections_.spread(span, 10);
    if (now.since_boot + pause >= deadline.at_since_boot) return false;
    if (options_.sleep) {
      options_.sleep(pause);
    } else {
      std::this_thread::sleep_for(pause);
    }
    return true;
  }

  const ClientOptions options_;
  std::vector<std::shared_ptr<const os::TransportSecurity>> security_;  ///< one a server; none: http
  Credentials credentials_;
  const Clock& clock_;
  Connections connections_;
};

}  // namespace

Result<wire::kube::KubeAccess> read_kubeconfig(const std::string& path, std::string_view context) {
  TRY(const std::string text, os::read_file(path, wire::kube::kKubeconfigBytesMax));
  const auto json = wire::kubeconfig_json(text);
  if (!json) return fail(json.error().in(path));
  auto access = wire::kube::decode_kubeconfig(*json, os::directory_of(path), context);
  if (!access) return fail(access.error().in(path));
  // Only now it is known whether there is anything to hide.
  if (access->carries_secret()) TRY_VOID(os::read_secret_file(path, wire::kube::kKubeconfigBytesMax));
  return access;
}

Result<std::unique_ptr<Api>> make_client(ClientOptions options, const Clock& clock, Random& random) {
  TRY_VOID(wire::kube::check_access(options.access));
  for (const wire::Url& server : options.access.servers) {
    if (server.secure && !options.make_security) {
      return fail(invalid_argument(fmt::format("{}: this program has no part for https", server.text())));
    }
    if (!server.is_numeric && !options.look_up) {
      return fail(invalid_argument(fmt::format(
          "{}: names are not looked up here; write the server's numeric address, and its name as tls-server-name",
          server.text())));
    }
  }
  return std::make_unique<Client>(std::move(options), clock, random);
}

namespace {

using std::chrono::seconds;
using wire::kube::ApiStatus;
using Outcome = Answer::Outcome;

constexpr std::size_t kForeignBytesMax = 256;  // of what is no Status

const std::string* find(const std::vector<os::Http2Header>& headers, std::string_view name) {
  const auto header = std::ranges::find(headers, name, &os::Http2Header::name);
  return header == headers.end() ? nullptr : &header->value;
}

/// A number of at most nine digits; nothing for anything else.
std::optional<std::uint32_t> number_in(const std::string* text) {
  std::uint32_t value = 0;
  if (text == nullptr) return {};
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value >= 1'000'000'000) return {};
  return value;
}

ErrorCode code_of(const ApiStatus& status) {
  switch (status.code) {
    case 401:
    case 403:
      return ErrorCode::permission_denied;
    case 404:
      return ErrorCode::not_found;
    case 409:
      return status.reason == "AlreadyExists" ? ErrorCode::already_exists : ErrorCode::conflict;
    case 410:
      return ErrorCode::too_old;
    case 413:
      return ErrorCode::storage_full;  // whoever asks again may have less to write
    case 429:
      return ErrorCode::unavailable;
    default:
      // Croft itself made what was sent: a refusal by an admission policy or a schema is not the caller's mistake.
      return status.code >= 500 ? ErrorCode::unavailable : ErrorCode::refused_by_configuration;
  }
}

std::string asked(const Request& request) {
  return fmt::format("{} {}", name_of(request.method),
                     std::string_view(request.path).substr(0, request.path.find('?')));
}

/// Nobody knows: for a read nothing has happened.
Verdict unclear(const Request& request, Error error) {
  Verdict verdict;
  if (request.is_read()) {
    verdict.next = Next::elsewhere;
  } else {
    verdict.answer.outcome = Outcome::unknown;
    error.code = ErrorCode::unknown_outcome;
    error = error.in("it may or may not have been written");
  }
  verdict.answer.error = std::move(error);
  return verdict;
}

/// Whether something that stands before the API server answers. Nobody may conclude from that that something is not
/// there, or is otherwise than it was. The API server says a refusal in a Status, but for a group that it does not
/// serve; those of `is_anybodys` conclude nothing.
bool is_foreign(int http_status, const std::string* type, std::string_view body) {
  const int hundreds = http_status / 100;
  if (hundreds != 2 && hundreds != 4 && hundreds != 5) return true;
  if (http_status < 300) return type == nullptr ? body.starts_with('<') : type->find("json") == type->npos;
  const bool is_anybodys =
      http_status >= 500 || http_status == 401 || http_status == 403 || http_status == 413 || http_status == 429;
  return !is_anybodys && !body.starts_with("404 page not found") && !wire::kube::decode_status(body);
}

/// 400 and above.
Verdict refusal(const Request& request, int http_status, const std::string* retry_after, const std::string& body) {
  ApiStatus status;
  if (auto said = wire::kube::decode_status(body)) {
    status = *std::move(said);
  } else {
    status.message = body.substr(0, std::min(body.find_first_of("\r\n"), kForeignBytesMax));
  }
  status.code = http_status;  // the body's is a copy
  // The other form of the header, a date, no API server writes.
  if (retry_after != nullptr) status.retry_after = seconds{number_in(retry_after).value_or(1)};
  Error error{code_of(status),
              fmt::format("{}: {} ({}{}HTTP {})", asked(request), printable(status.message, Printed::line),
                          printable(status.reason, Printed::line), status.reason.empty() ? "" : ", ", http_status),
              {}};
  Verdict verdict;
  const bool asks_to_wait = http_status == 429 || (http_status == 503 && retry_after != nullptr);
  if (asks_to_wait) {
    verdict.next = Next::wait;
    verdict.wait = status.retry_after.value_or(seconds{1});
  } else if (http_status == 401) {
    verdict.next = Next::log_in;
  } else if (http_status >= 500) {  // the server, or what stands before it, may have got some way
    verdict = unclear(request, error);
  }
  // The server has answered: a read that nobody else serves is refused.
  if (verdict.answer.outcome != Outcome::unknown) {
    verdict.answer.outcome = Outcome::refused;
    verdict.answer.error = std::move(error);
  }
  verdict.answer.status = std::move(status);
  verdict.server_is_bad = http_status >= 502 && http_status <= 504;
  return verdict;
}

}  // namespace

std::string_view name_of(Request::Method method) {
  constexpr std::array<std::string_view, 5> kNames = {"GET", "POST", "PUT", "DELETE", "PATCH"};
  return kNames.at(static_cast<std::size_t>(method));
}

Verdict verdict_on_answer(const Request& request, const std::vector<os::Http2Header>& headers, std::string body) {
  const int http_status = static_cast<int>(number_in(find(headers, ":status")).value_or(0));
  const std::string* type = find(headers, "content-type");
  Verdict verdict;
  if (is_foreign(http_status, type, body)) {
    const std::string with = type == nullptr ? "" : fmt::format(" with {}", printable(*type, Printed::line));
    verdict = unclear(request, {ErrorCode::unavailable,
                                fmt::format("{}: HTTP status {}{} is no answer of Kubernetes: it is not the API server "
                                            "that answers, but a proxy, a login page or another server; look at the "
                                            "server's address and at what is before it",
                                            asked(request), http_status, with),
                                {}});
    verdict.server_is_bad = true;
  } else if (http_status < 300) {
    verdict.answer.outcome = Outcome::done;
    verdict.answer.body = std::move(body);
  } else {
    verdict = refusal(request, http_status, find(headers, "retry-after"), body);
  }
  verdict.answer.http_status = http_status;
  return verdict;
}

Verdict verdict_on_failure(const Request& request, const os::Http2Failure& failure) {
  const ErrorCode code = failure.error.code;
  Error error = failure.error.in(asked(request));
  // Nothing of the register is damaged: the peer is none that keeps one.
  if (code == ErrorCode::corrupt) {
    error.code = ErrorCode::unavailable;
    error.message += "; it is not the API server that answers; look at the server's address and at what is before it";
  }
  Verdict verdict;
  if (failure.surely_not_processed) {
    verdict.answer.error = std::move(error);
    verdict.next = Next::elsewhere;
  } else {
    verdict = unclear(request, std::move(error));
  }
  // An answer beyond our own bounds will be so everywhere.
  if (code == ErrorCode::invalid_argument) verdict.next = Next::end;
  verdict.server_is_bad = true;
  return verdict;
}

}  // namespace croft::store::kube
