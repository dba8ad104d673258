#include "agent/door/methods.h"

#include <utility>

#include "agent/format/messages.h"

namespace croft::edge {
namespace {

os::GrpcCode grpc_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_argument:
      return os::GrpcCode::invalid_argument;
    case ErrorCode::refused_by_configuration:
      return os::GrpcCode::failed_precondition;
    case ErrorCode::deadline_exceeded:
      return os::GrpcCode::deadline_exceeded;
    case ErrorCode::unavailable:
      return os::GrpcCode::unavailable;
    default:
      return os::GrpcCode::internal;
  }
}

}  // namespace

std::optional<AgentMethod> agent_method_of(std::string_view method) {
  if (method == wire::agent::kAssignMethod) return AgentMethod::assign;
  if (method == wire::agent::kReleaseMethod) return AgentMethod::release;
  if (method == wire::agent::kStatusMethod) return AgentMethod::status;
  return std::nullopt;
}

os::GrpcAnswer answer_of(os::GrpcCallId call, Result<std::string> done) {
  if (!done) return {call, grpc_code_of(done.error().code), std::move(done.error().message), {}};
  return {call, os::GrpcCode::ok, {}, *std::move(done)};
}

os::GrpcAnswer too_many_wait(os::GrpcCallId call) {
  return {call, os::GrpcCode::resource_exhausted, "too many calls wait; go to the store", {}};
}

}  // namespace croft::edge
