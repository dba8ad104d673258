#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace croft::os {

/// A call with a stack of its own, which may stop in the middle and go on later, all in one thread. So code that waits
/// can run on simulated time. Not to be moved to another thread.
class Fiber {
 public:
  /// An exception of `body` ends the program: it catches what it expects.
  explicit Fiber(std::function<void()> body);
  /// The body has ended, or has not begun.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  /// Runs the body until it stops or ends. Not from within itself.
  void resume();
  /// Stops the fiber that runs, until it is resumed. Only within one.
  static void stop();
  [[nodiscard]] bool has_ended() const;

  struct Parts;

 private:
  std::unique_ptr<Parts> parts_;
};

}  // namespace croft::os
