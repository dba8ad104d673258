#include "edge/agent/calls.h"

#include <utility>

#include "base/assert.h"
#include "wire/agent/messages.h"

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

std::optional<AgentCall> agent_call_of(std::string_view method) {
  if (method == wire::agent::kAssignMethod) return AgentCall::assign;
  if (method == wire::agent::kReleaseMethod) return AgentCall::release;
  if (method == wire::agent::kStatusMethod) return AgentCall::status;
  return std::nullopt;
}

os::GrpcAnswer serve_call(AgentService& service, AgentCall what, const os::GrpcRequest& request, const Clock& clock) {
  if (request.deadline.passed(clock.now())) {
    return {request.call, os::GrpcCode::deadline_exceeded, "it waited too long for its turn", {}};
  }
  const AgentService::HungUp hung_up = [&request] { return request.hung_up->load(); };
  switch (what) {
    case AgentCall::assign:
      return answer_of(request.call, service.assign(request.message, request.deadline, hung_up));
    case AgentCall::release:
      return answer_of(request.call, service.release(request.message, request.deadline, hung_up));
    case AgentCall::status:
      return answer_of(request.call, service.status(request.message));
  }
  CROFT_ASSERT(false);
}

os::GrpcAnswer answer_of(os::GrpcCallId call, Result<std::string> done) {
  if (!done) return {call, grpc_code_of(done.error().code), std::move(done.error().message), {}};
  return {call, os::GrpcCode::ok, {}, *std::move(done)};
}

os::GrpcAnswer too_many_wait(os::GrpcCallId call) {
  return {call, os::GrpcCode::resource_exhausted, "too many calls wait; go to the store", {}};
}

}  // namespace croft::edge
