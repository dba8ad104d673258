#include "store/kube/verdict.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/printable.h"

namespace croft::store::kube {
namespace {

using std::chrono::seconds;
using wire::kube::ApiStatus;
using Outcome = Answer::Outcome;
using Next = Verdict::Next;

constexpr seconds kRetryAfterUnsaid{1};
constexpr std::int64_t kRetryAfterMax = 86'400;
constexpr std::size_t kForeignBytesMax = 256;  // of what is no Status

const std::string* find(const std::vector<os::Http2Header>& headers, std::string_view name) {
  for (const os::Http2Header& h : headers) {
    if (h.name == name) return &h.value;
  }
  return nullptr;
}

/// The header in seconds. The other form, a date, no API server writes: it counts as said, without a time.
std::optional<seconds> retry_after_of(const std::vector<os::Http2Header>& headers) {
  const std::string* text = find(headers, "retry-after");
  if (text == nullptr) return {};
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc() || end != text->data() + text->size() || value < 0) return kRetryAfterUnsaid;
  return seconds{std::min(value, kRetryAfterMax)};
}

/// What the server says; in its own words where that is no Status, as of what stands between.
ApiStatus status_of(int http_status, const std::string& body) {
  auto status = wire::kube::decode_status(body);
  if (!status) {
    status.emplace();
    status->message = body.substr(0, std::min(body.find_first_of("\r\n"), kForeignBytesMax));
  }
  status->code = http_status;  // the body's is a copy
  return *std::move(status);
}

std::string_view name_of(Request::Method method) {
  switch (method) {
    case Request::Method::get:
      return "GET";
    case Request::Method::post:
      return "POST";
    case Request::Method::put:
      return "PUT";
    case Request::Method::delete_object:
      return "DELETE";
    case Request::Method::patch:
      return "PATCH";
  }
  return "";
}

std::string asked(const Request& request) {
  return fmt::format("{} {}", name_of(request.method),
                     std::string_view(request.path).substr(0, request.path.find('?')));
}

Error error_of(ErrorCode code, const Request& request, const ApiStatus& status) {
  return {code,
          fmt::format("{}: {} ({}{}HTTP {})", asked(request), printable(status.message, Printed::line),
                      printable(status.reason, Printed::line), status.reason.empty() ? "" : ", ", status.code),
          {}};
}

/// Nobody knows: for a read nothing has happened.
Verdict unclear(const Request& request, Error error) {
  Verdict verdict;
  if (request.is_read()) {
    verdict.answer.outcome = Outcome::not_done;
    verdict.next = Next::elsewhere;
  } else {
    verdict.answer.outcome = Outcome::unknown;
    error.code = ErrorCode::unknown_outcome;
    error = error.in("it may or may not have been written");
  }
  verdict.answer.error = std::move(error);
  return verdict;
}

Verdict refused(const Request& request, ApiStatus status) {
  Verdict verdict;
  verdict.answer.outcome = Outcome::refused;
  verdict.answer.error = error_of(code_of(status), request, status);
  verdict.answer.status = std::move(status);
  return verdict;
}

/// 500 and above without a time to wait: the server, or what stands before it, may have got some way.
Verdict failed(const Request& request, ApiStatus status) {
  Verdict verdict = unclear(request, error_of(code_of(status), request, status));
  verdict.answer.status = std::move(status);
  // The server has answered: a read that nobody else serves is refused.
  if (request.is_read()) verdict.answer.outcome = Outcome::refused;
  return verdict;
}

/// What the API server does not answer: something that stands before it does. Whether that passed a write on, nobody
/// knows.
Verdict nonsense(const Request& request, int http_status, const std::vector<os::Http2Header>& headers) {
  const std::string* type = find(headers, "content-type");
  Verdict verdict = unclear(
      request,
      {ErrorCode::unavailable,
       fmt::format("{}: HTTP status {}{} is no answer of Kubernetes: it is not the API server that answers, but "
                   "a proxy, a login page or another server; look at the server's address and at what is "
                   "before it",
                   asked(request), http_status,
                   type == nullptr ? "" : fmt::format(" with {}", printable(*type, Printed::line))),
       {}});
  verdict.server_is_bad = true;
  return verdict;
}

/// Whether it is a page for a browser, as the API server has none.
[[nodiscard]] bool is_page(const std::vector<os::Http2Header>& headers, std::string_view body) {
  const std::string* type = find(headers, "content-type");
  if (type != nullptr && type->find("html") != type->npos) return true;
  const std::size_t begin = body.find_first_not_of(" \t\r\n");
  return begin != body.npos && body[begin] == '<';
}

[[nodiscard]] bool is_foreign_success(const std::vector<os::Http2Header>& headers, std::string_view body) {
  const std::string* type = find(headers, "content-type");
  const bool is_other = type != nullptr && type->find("json") == type->npos;
  return is_other || is_page(headers, body);
}

/// A refusal that nobody may conclude from that something is not there, or is otherwise than it was. The API server
/// says each of these in a Status, but for a group that it does not serve.
[[nodiscard]] bool is_foreign_refusal(int http_status, const std::vector<os::Http2Header>& headers,
                                      std::string_view body) {
  const bool concludes = http_status == 404 || http_status == 405 || http_status == 409 || http_status == 410;
  const bool is_anybodys = http_status == 401 || http_status == 403 || http_status == 413 || http_status == 429;
  if (http_status >= 500 || is_anybodys) return false;
  if (!concludes && !is_page(headers, body)) return false;
  if (http_status == 404 && body.starts_with("404 page not found")) return false;
  return !wire::kube::decode_status(body).has_value();
}

}  // namespace

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
    case 504:
      return ErrorCode::deadline_exceeded;
    default:
      // What was sent is Croft's own: that an admission policy or a schema won't have it is not the caller's mistake.
      return status.code >= 500 ? ErrorCode::unavailable : ErrorCode::refused_by_configuration;
  }
}

int http_status_of(const std::vector<os::Http2Header>& headers) {
  const std::string* text = find(headers, ":status");
  int status = 0;
  if (text != nullptr) std::from_chars(text->data(), text->data() + text->size(), status);
  return status;
}

Verdict verdict_on_answer(const Request& request, const std::vector<os::Http2Header>& headers, std::string body) {
  const int http_status = http_status_of(headers);
  Verdict verdict;
  if (http_status >= 200 && http_status < 300 && is_foreign_success(headers, body)) {
    verdict = nonsense(request, http_status, headers);
  } else if (http_status >= 200 && http_status < 300) {
    verdict.answer.outcome = Outcome::done;
    verdict.answer.body = std::move(body);
  } else if (http_status < 400 || http_status > 599 || is_foreign_refusal(http_status, headers, body)) {
    verdict = nonsense(request, http_status, headers);
  } else {
    ApiStatus status = status_of(http_status, body);
    if (const auto header = retry_after_of(headers)) status.retry_after = header;
    const auto retry_after = status.retry_after;
    const bool asks_to_wait = http_status == 429 || (http_status == 503 && find(headers, "retry-after") != nullptr);
    verdict =
        asks_to_wait || http_status < 500 ? refused(request, std::move(status)) : failed(request, std::move(status));
    if (asks_to_wait) {
      verdict.next = Next::wait;
      verdict.wait = retry_after.value_or(kRetryAfterUnsaid);
    }
    if (http_status == 401) verdict.next = Next::log_in;
    verdict.server_is_bad = http_status >= 502 && http_status <= 504;
  }
  verdict.answer.http_status = http_status;
  return verdict;
}

Verdict verdict_on_failure(const Request& request, const os::Http2Failure& failure) {
  Error error = failure.error.in(asked(request));
  // Nothing of the register is damaged: the peer is none that keeps one.
  if (error.code == ErrorCode::corrupt) {
    error.code = ErrorCode::unavailable;
    error.message += "; it is not the API server that answers; look at the server's address and at what is before it";
  }
  if (failure.surely_not_processed) {
    Verdict verdict;
    verdict.answer.error = std::move(error);
    // What is beyond our own bounds will be so everywhere.
    if (failure.error.code != ErrorCode::invalid_argument) verdict.next = Next::elsewhere;
    return verdict;
  }
  const bool is_too_long = failure.error.code == ErrorCode::invalid_argument;
  Verdict verdict = unclear(request, std::move(error));
  if (is_too_long) verdict.next = Next::end;
  verdict.server_is_bad = failure.error.code == ErrorCode::corrupt;
  return verdict;
}

}  // namespace croft::store::kube
