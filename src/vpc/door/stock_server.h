#pragma once

#include <memory>

#include "base/clock.h"
#include "base/result.h"
#include "http/grpc_listener.h"
#include "http/grpc_server.h"
#include "vpc/door/stock_service.h"

namespace croft::edge {

/// Which methods a door lets in (docs/notes/warm-pool.md#grpc).
struct DoorRules {
  bool plugin = true;     ///< ADD, DEL and the records of pods; ShowStock
  bool operators = true;  ///< DescribePool, ListPodNetworkRecord, PushPool, PopPool, ListUnuse, ReleaseIP
  /// Ping, SupportMultiSubnet and BorrowIP are let in everywhere.
};

/// The gRPC server of a stock: UK8S' protocol, and gRPC's service of health. One door is the Unix socket of the node's
/// plugins and operators; others may be opened for peers.
class StockServer {
 public:
  /// Serves nobody yet; `clock` must outlive it. Silences protobuf's own log in this process.
  StockServer(const StockWorld& world, const Clock& clock);
  /// As stop() with no patience.
  ~StockServer();
  StockServer(const StockServer&) = delete;
  StockServer& operator=(const StockServer&) = delete;

  /// Serves on this listener too, from now on.
  [[nodiscard]] Result<void> open_door(std::unique_ptr<os::GrpcListener> listener, const DoorRules& rules);

  [[nodiscard]] StockService& service();
  /// Sets what gRPC's service of health says: "not serving" at first.
  void set_serving(bool serving);
  /// Takes no more connections and calls; ADDs that wait for the stock are told that the agent ends, all others are
  /// done, until the deadline. The sockets' files are gone when it returns.
  void stop(Deadline deadline);

 private:
  class Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace croft::edge
