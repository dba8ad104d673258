#include "store/kube/verdict.h"

#include <algorithm>
#include <array>
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
