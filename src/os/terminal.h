#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string_view>

#include "base/printable.h"
#include "base/result.h"

namespace croft::os {

/// The terminal of a program that draws its whole screen. Keys come one by one and are not shown; Ctrl-C is one, and
/// reads as q. The screen of before is there again when this object goes, or a signal ends the process. One a process.
class Screen {
 public:
  /// Error: invalid_argument where standard input or output is no terminal.
  [[nodiscard]] static Result<std::unique_ptr<Screen>> open();
  ~Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  /// Shows as much as there is room for, in place of what was there. False: nobody sees it any more.
  [[nodiscard]] bool show(std::string_view text, Printed how);
  /// The next key, if one comes within the span; 0 for one that is none of a letter, digit or sign.
  [[nodiscard]] std::optional<char> key(std::chrono::nanoseconds span);

 private:
  Screen() = default;
};

}  // namespace croft::os
