#pragma once

#include <chrono>

namespace croft::os {

/// Turns SIGTERM and SIGINT into a question that a daemon asks between two pieces of work. Made once, by main(), before
/// any thread: the signals are blocked from then on in all of them, so that no work is cut in the middle.
class StopSignal {
 public:
  StopSignal();

  /// Waits; true as soon as the process is told to end, also when that was before the call. Once true, always true.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds span);

 private:
  bool stopped_ = false;
};

}  // namespace croft::os
