#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "os/file_descriptor.h"

namespace croft::os {

/// How long a daemon has to end by itself after it was told to; then it is ended.
inline constexpr std::chrono::milliseconds kStopPatience{4500};

/// Tells this process to end, as SIGTERM does: for what a service manager has to start it anew.
void ask_to_end();

/// Turns SIGTERM and SIGINT into a question that a daemon asks between two pieces of work, and ends the process itself
/// when that takes too long. Made once, by main(), before any thread: the signals are blocked from then on in all of
/// them, so that no work is cut in the middle without need. SIGHUP does nothing from then on: there is nothing that is
/// read again.
class StopSignal {
 public:
  explicit StopSignal(std::chrono::milliseconds patience = kStopPatience);
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  /// Waits; true as soon as the process is told to end, also when that was before the call. Once true, always true.
  [[nodiscard]] bool wait_for(std::chrono::nanoseconds span);

  /// The thing that a forced end cuts off: work, as by a crash, which is code 1; or reading that nobody waits for,
  /// which is an orderly end.
  enum class CutsOff { work, reading };
  /// The last act, in a thread of ours, when the process did not end within the patience. It must wait for nothing that
  /// work may hold. Replaces what was given before.
  void before_forced_end(std::function<void()> last_act, CutsOff what = CutsOff::work);

 private:
  void run();

  const std::chrono::milliseconds patience_;
  FileDescriptor signals_;
  FileDescriptor ended_;  ///< readable when this object goes
  std::mutex mutex_;      ///< guards the three below
  bool stopped_ = false;
  std::function<void()> last_act_;
  CutsOff cuts_off_ = CutsOff::work;
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace croft::os
