#pragma once

#include <functional>
#include <string>

#include "base/clock.h"

namespace croft::edge {

/// While it lives, what gRPC and protobuf have to say goes to `say`, a line each, made printable: they quote what a
/// peer sent, and would write it raw on standard error. What only tells of a peer's faults is left out; of the rest no
/// more than kLibraryLinesMax lines a minute pass, and how many were left out comes with the next. One at a time in a
/// process; `clock` must outlive it. `say` may be called from any thread, one call at a time.
class LibraryLog {
 public:
  using Say = std::function<void(const std::string& line)>;
  LibraryLog(const Clock& clock, Say say);
  ~LibraryLog();
  LibraryLog(const LibraryLog&) = delete;
  LibraryLog& operator=(const LibraryLog&) = delete;
};
inline constexpr int kLibraryLinesMax = 10;

}  // namespace croft::edge
