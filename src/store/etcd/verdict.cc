#include "store/etcd/verdict.h"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "store/etcd/client.h"

namespace croft::store::etcd {
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

Verdict refused(ErrorCode code, const os::GrpcStatus& status) { return {error_of(code, status), false, false}; }
Verdict refused(ErrorCode code, const os::GrpcStatus& status, std::string_view why) {
  return {error_of(code, status).in(why), false, false};
}

/// Nothing was changed. The next try may have less to write.
Verdict too_large(const os::GrpcStatus& status) {
  return refused(ErrorCode::storage_full, status,
                 "larger than etcd takes at once (--max-request-bytes of its members)");
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

bool is_no_space(const Error& error) { return contains(error.message, kNoSpace); }

}  // namespace croft::store::etcd
