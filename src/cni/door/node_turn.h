#pragma once

#include <functional>
#include <string>

#include "base/clock.h"
#include "cni/door/personality.h"
#include "os/file_lock.h"

namespace croft::edge {

/// The turn of a call among those of its node that go to the store themselves: 110 at once are a queue then, and no
/// race for one block. The kernel drops it with the process. Nothing rests on it: who can't have it until `deadline`
/// goes on without, and a line in the log says why. The file's directory is made when it is missing.
/// `before_waiting` is called once where another has the turn: for what then need not be done in it.
class NodeTurn {
 public:
  NodeTurn(const CniCall& call, const Clock& clock, std::string lock_file, Deadline deadline,
           const std::function<void()>& before_waiting = {});

 private:
  os::FileLock lock_;
};

}  // namespace croft::edge
