#include "agent/door/health.h"

#include <utility>

#include <grpc/health.pb.h>

#include "agent/format/messages.h"

namespace croft::edge {
namespace {

namespace health_pb = ::grpc::health::v1;

std::string told(health_pb::HealthCheckResponse::ServingStatus status) {
  health_pb::HealthCheckResponse response;
  response.set_status(status);
  return response.SerializeAsString();
}

std::string told(bool serving) {
  return told(serving ? health_pb::HealthCheckResponse::SERVING : health_pb::HealthCheckResponse::NOT_SERVING);
}

/// The service that is asked for.
[[nodiscard]] Result<std::string> asked_for(std::string_view message) {
  health_pb::HealthCheckRequest request;
  if (!request.ParseFromArray(message.data(), static_cast<int>(message.size()))) {
    return fail(ErrorCode::invalid_argument, "this is no HealthCheckRequest");
  }
  return request.service();
}

bool is_ours(std::string_view service) { return service.empty() || service == wire::agent::kServiceName; }

}  // namespace

os::GrpcAnswer GrpcHealth::check(os::GrpcCallId call, std::string_view message) const {
  const auto service = asked_for(message);
  if (!service) return {call, os::GrpcCode::invalid_argument, service.error().message, {}};
  if (!is_ours(*service)) return {call, os::GrpcCode::not_found, "there is no such service", {}};
  const std::lock_guard lock(mutex_);
  return {call, os::GrpcCode::ok, {}, told(serving_)};
}

Result<GrpcHealth::News> GrpcHealth::watch(os::GrpcCallId call, std::string_view message) {
  TRY(const std::string service, asked_for(message));
  const bool ours = is_ours(service);
  const std::lock_guard lock(mutex_);
  if (!watching_.emplace(call, ours).second) return fail(ErrorCode::invalid_argument, "a Watch has one message");
  return News{call, ours ? told(serving_) : told(health_pb::HealthCheckResponse::SERVICE_UNKNOWN)};
}

void GrpcHealth::forget(os::GrpcCallId call) {
  const std::lock_guard lock(mutex_);
  watching_.erase(call);
}

std::vector<GrpcHealth::News> GrpcHealth::set_serving(bool serving) {
  std::vector<News> news;
  const std::lock_guard lock(mutex_);
  if (std::exchange(serving_, serving) == serving) return news;
  for (const auto& [call, ours] : watching_) {
    if (ours) news.push_back({call, told(serving)});
  }
  return news;
}

}  // namespace croft::edge
