#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "http/grpc_handler.h"

namespace croft::edge {

/// The methods of the agent's own service.
enum class AgentMethod : std::uint8_t { assign, release, status };

/// Which of them a gRPC method is; nothing when it is none.
[[nodiscard]] std::optional<AgentMethod> agent_method_of(std::string_view method);

/// The service's result of a call, as gRPC says it.
[[nodiscard]] os::GrpcAnswer answer_of(os::GrpcCallId call, Result<std::string> done);

/// A call that is not taken, as too many wait.
[[nodiscard]] os::GrpcAnswer too_many_wait(os::GrpcCallId call);

}  // namespace croft::edge
