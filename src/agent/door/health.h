#pragma once

#include <atomic>
#include <string_view>

#include "http/grpc_handler.h"

namespace croft::edge {

/// Check of gRPC's service of health: whether the agent serves, as a whole ("") and by the name of its service. Calls
/// come as bytes. Its Watch is not served: clients take that for "ask by Check". Safe to use from several threads.
class GrpcHealth {
 public:
  static constexpr std::string_view kCheckMethod = "/grpc.health.v1.Health/Check";

  [[nodiscard]] os::GrpcAnswer check(os::GrpcCallId call, std::string_view message) const;

  /// "Serving" at first.
  void set_serving(bool serving) { serving_ = serving; }

 private:
  std::atomic<bool> serving_ = true;
};

}  // namespace croft::edge
