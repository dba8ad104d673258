#pragma once

#include <string>
#include <utility>

#include "base/error.h"
#include "http/grpc_handler.h"
#include "vpc/format/messages.h"
#include "vpc/format/methods.h"

// How a StockService answers. Its own files include this.

namespace croft::edge {

[[nodiscard]] inline os::GrpcCode code_of(wire::vpc::RpcStatus status) { return static_cast<os::GrpcCode>(status); }

/// A call that was done.
template <class Message>
[[nodiscard]] os::GrpcAnswer ok(os::GrpcCallId call, const Message& message) {
  return {call, os::GrpcCode::ok, {}, wire::vpc::encode(message)};
}

/// As the protocol answers a failure. What is only not now is said as gRPC says it, so that a caller may try again.
[[nodiscard]] inline os::GrpcAnswer answer_of(os::GrpcCallId call, wire::vpc::Method method, wire::vpc::Failure failure,
                                              const Error& error) {
  const auto row = wire::vpc::answer_of(method, failure);
  os::GrpcCode code = row ? code_of(row->status) : os::GrpcCode::internal;
  if (code == os::GrpcCode::internal && error.code == ErrorCode::deadline_exceeded) {
    code = os::GrpcCode::deadline_exceeded;
  }
  std::string text = error.message;
  if (!error.details.empty()) text += "\n" + error.details;
  return {call, code, std::move(text), {}};
}

/// One that could not be read, or names nonsense.
[[nodiscard]] inline os::GrpcAnswer malformed(os::GrpcCallId call, const Error& error) {
  return {call, os::GrpcCode::invalid_argument, error.message, {}};
}

}  // namespace croft::edge
