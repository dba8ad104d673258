#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/result.h"
#include "store/kube/format/api.h"

// A Kubernetes API as the store sees it. An interface, so that decorators and tests can stand between.
namespace croft::store::kube {

/// One request. `path` is relative to the server's root, with its query, as store/kube/format/api.h makes it.
struct Request {
  enum class Method : std::uint8_t { get, post, put, delete_object, patch } method = Method::get;
  std::string path;
  std::string body;  ///< none for a GET
  std::string content_type = "application/json";
  std::string accept = "application/json";
  bool keeps_nothing = false;
  /// Whether it changes nothing, so that it may be asked twice.
  [[nodiscard]] bool is_read() const { return method == Method::get || keeps_nothing; }
  /// A POST of which the server keeps nothing, as a review or a TokenRequest.
  [[nodiscard]] static Request question(std::string path, std::string body) {
    return {Method::post, std::move(path), std::move(body), "application/json", "application/json", true};
  }
};

/// The result of a request. Exactly one of four, and never a guess (docs/notes/reliability.md#unknown-outcomes).
struct Answer {
  enum class Outcome : std::uint8_t {
    done,      ///< 2xx; `body`
    refused,   ///< the server says why not, and nothing was changed; `status`
    not_done,  ///< nobody has processed it: no server could be reached, no time was left. Also every read without
               ///< answer
    unknown,   ///< it was sent, and may or may not have been processed; read back before deciding anything
  } outcome = Outcome::not_done;
  int http_status = 0;  ///< 0: there was no answer
  std::string body;     ///< done
  /// refused; also unknown, where an answer said why. Its texts are the server's: not fit for a terminal.
  wire::kube::ApiStatus status;
  /// Unless done: one line, with the code a store would give. Conflict (409), already_exists, not_found (404), too_old
  /// (410), permission_denied (401, 403), refused_by_configuration (400, 422, …), storage_full (413), unavailable (429,
  /// 5xx, no connection), deadline_exceeded, unknown_outcome (exactly when `unknown`); corrupt when a server answers
  /// nonsense.
  Error error;
};

/// A right is missing, which it helps to give. A certificate or a token that is refused has the same code,
/// permission_denied, and another remedy.
[[nodiscard]] inline bool lacks_right(const Answer& answer) {
  return answer.http_status == 403 && answer.error.code == ErrorCode::permission_denied;
}

/// The error of an answer with what was asked for before it, and behind it what to do where a right is missing.
[[nodiscard]] inline Error error_in(const Answer& answer, std::string_view what, std::string_view remedy) {
  Error error = answer.error.in(what);
  if (lacks_right(answer)) error.message.append("; ").append(remedy);
  return error;
}

/// There is no such object.
[[nodiscard]] inline bool is_absent(const Answer& answer) {
  return answer.outcome == Answer::Outcome::refused && answer.status.code == 404 && !answer.status.name.empty();
}

/// The API does not know what was asked for: a CustomResourceDefinition is missing, or not served.
[[nodiscard]] inline bool is_unknown(const Answer& answer) {
  return answer.outcome == Answer::Outcome::refused && answer.status.code == 404 && answer.status.name.empty();
}

/// An open watch. For one thread. Destroying it ends the watch.
class WatchStream {
 public:
  virtual ~WatchStream() = default;
  /// The next event, or nothing when the deadline comes first. Errors, after which it is of no use: unavailable, the
  /// watch has ended, as servers end all of them after some time, or the connection was lost: open another from the
  /// last resourceVersion that was seen; corrupt, what comes is none: list again. An event of the type `error` comes as
  /// an event, the end behind it.
  [[nodiscard]] virtual Result<std::optional<wire::kube::ApiEvent>> next(Deadline deadline) = 0;
};

/// The result of opening a watch: `done` with `stream`, or as any read.
struct WatchAnswer {
  Answer answer;
  std::unique_ptr<WatchStream> stream;
};

/// Safe to use from several threads.
class Api {
 public:
  virtual ~Api() = default;
  /// Asks, and waits for the whole answer, until the deadline.
  [[nodiscard]] virtual Answer call(const Request& request, Deadline deadline) = 0;
  [[nodiscard]] Answer get(std::string path, Deadline deadline) {
    return call({Request::Method::get, std::move(path), {}}, deadline);
  }
  /// The same of several that do not depend on each other, in their order; together where the way allows it.
  [[nodiscard]] virtual std::vector<Answer> call_all(std::span<const Request> requests, Deadline deadline) {
    std::vector<Answer> answers;
    for (const Request& request : requests) answers.push_back(call(request, deadline));
    return answers;
  }
  /// Opens a watch: `path` as wire::kube::watch_path makes it. Waits until the server has taken it, not for an event.
  [[nodiscard]] virtual WatchAnswer watch(const std::string& path, Deadline deadline) = 0;
};

}  // namespace croft::store::kube
