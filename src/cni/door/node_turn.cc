#include "cni/door/node_turn.h"

#include <utility>

#include "os/files.h"

namespace croft::edge {

NodeTurn::NodeTurn(const CniCall& call, const Clock& clock, std::string lock_file, Deadline deadline,
                   const std::function<void()>& before_waiting)
    : lock_(std::move(lock_file)) {
  const auto made = os::make_shared_directories(os::directory_of(lock_.path()));
  auto locked = made ? lock_.lock(clock, before_waiting ? Deadline{{}} : deadline) : Result<void>(fail(made.error()));
  if (!locked && before_waiting && locked.error().code == ErrorCode::deadline_exceeded) {
    before_waiting();
    locked = lock_.lock(clock, deadline);
  }
  if (!locked) call.warn("going on without the host-wide lock: " + locked.error().message);
}

}  // namespace croft::edge
