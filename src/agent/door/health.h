#pragma once

#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "http/grpc_handler.h"

namespace croft::edge {

/// gRPC's service of health: whether the agent serves, as a whole ("") and by the name of its service. Calls come as
/// bytes. Safe to use from several threads.
class GrpcHealth {
 public:
  static constexpr std::string_view kServiceName = "grpc.health.v1.Health";
  static constexpr std::string_view kCheckMethod = "/grpc.health.v1.Health/Check";
  static constexpr std::string_view kWatchMethod = "/grpc.health.v1.Health/Watch";

  /// The answer to Check.
  [[nodiscard]] os::GrpcAnswer check(os::GrpcCallId call, std::string_view message) const;

  /// Something to be sent to who watches.
  struct News {
    os::GrpcCallId call = 0;
    std::string message;
  };
  /// A Watch has said what it watches: what it is told first. Of a service that is not there it is told that, and stays
  /// open. Error: invalid_argument; the call is to be ended.
  [[nodiscard]] Result<News> watch(os::GrpcCallId call, std::string_view message);
  /// A Watch is no more.
  void forget(os::GrpcCallId call);

  /// From now on; what is to be sent for it. "Serving" at first.
  [[nodiscard]] std::vector<News> set_serving(bool serving);

 private:
  mutable std::mutex mutex_;
  bool serving_ = true;
  std::map<os::GrpcCallId, bool> watching_;  ///< true: a service that is there; of others there is no news
};

}  // namespace croft::edge
