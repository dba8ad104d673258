#include "agent/door/health.h"

#include <grpc/health.pb.h>

#include "agent/format/messages.h"

namespace croft::edge {

os::GrpcAnswer GrpcHealth::check(os::GrpcCallId call, std::string_view message) const {
  ::grpc::health::v1::HealthCheckRequest request;
  if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return {call, os::GrpcCode::invalid_argument, "this is no HealthCheckRequest", {}};
  }
  const bool is_ours = request.service().empty() || request.service() == wire::agent::kServiceName;
  if (!is_ours) return {call, os::GrpcCode::not_found, "there is no such service", {}};
  ::grpc::health::v1::HealthCheckResponse response;
  response.set_status(serving_ ? ::grpc::health::v1::HealthCheckResponse::SERVING
                               : ::grpc::health::v1::HealthCheckResponse::NOT_SERVING);
  return {call, os::GrpcCode::ok, {}, response.SerializeAsString()};
}

}  // namespace croft::edge
