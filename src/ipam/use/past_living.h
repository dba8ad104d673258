#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>

#include "base/clock.h"
#include "base/net/address.h"
#include "base/result.h"
#include "ipam/decide/assign.h"
#include "ipam/use/transact.h"
#include "register/snapshot.h"

// A register that was put back to an older state has as free what living pods have. The kernel of the node knows those
// of its own: it is asked between decision and commit, and an address that lives is passed over.

namespace croft::engine {

/// The device over which the kernel of this node leads to somebody who lives with the address (os/host_route.h);
/// nothing: it leads to nobody. May be called from several threads.
using DeviceOf = std::function<Result<std::optional<std::string>>(const net::Address& address)>;

/// How an ADD learns who lives on its node.
struct Living {
  DeviceOf device_of = nullptr;  ///< null: nobody is asked
  /// Takes one line: what was passed over, or that the kernel could not be asked. May be called from several threads.
  std::function<void(const std::string& line)> warn = [](const std::string& /*line*/) {};
};

/// How many addresses one decision passes over: more than a node has pods.
inline constexpr std::size_t kLivingMax = 512;
/// Decides an ADD so that it gets no address that somebody on its node lives with: what it holds already may be its own
/// and is not asked about. Living addresses join AssignRequest::living, and it is decided again. Nothing is written for
/// it. Where the kernel can't be asked the ADD goes on without, and a line says so.
class PastLiving {
 public:
  /// Both must outlive it; `living` may be null.
  PastLiving(const core::AssignRequest& request, const Living* living) : request_(request), living_(living) {}

  /// As core::plan_assign. A refusal after something was passed over is `unavailable`, and says what lives.
  [[nodiscard]] core::Step<core::AssignAnswer> plan(const core::Snapshot& snapshot, const Instant& now);

 private:
  [[nodiscard]] bool add_living(const core::Assigned& assigned);
  void tell_once();
  [[nodiscard]] core::Refusal refusal_of(core::Refusal refusal) const;

  const core::AssignRequest& request_;
  const Living* const living_;
  std::optional<core::AssignRequest> narrowed_;  ///< the request with what lives; absent: nothing does
  bool is_deaf_ = false;                         ///< the kernel can't be asked
  bool has_told_ = false;
};

}  // namespace croft::engine
