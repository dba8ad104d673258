#include "edge/agent/library_log.h"

#include <chrono>
#include <mutex>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <google/protobuf/stubs/logging.h>
#include <grpc/support/log.h>

#include "base/printable.h"

namespace croft::edge {
namespace {

constexpr std::size_t kLineBytesMax = 512;

/// The libraries know functions, no objects.
struct Told {
  std::mutex mutex;
  LibraryLog::Say say;  ///< empty: nobody listens
  const Clock* clock = nullptr;
  std::chrono::nanoseconds minute{};  ///< when it began, since boot
  int lines = 0;
  std::uint64_t left_out = 0;
};
Told& told() {
  static Told the_one;
  return the_one;
}

void pass_on(std::string_view library, std::string_view text) {
  Told& to = told();
  const std::lock_guard lock(to.mutex);
  if (!to.say) return;
  if (const auto now = to.clock->now().since_boot; now - to.minute >= std::chrono::minutes{1}) {
    to.minute = now;
    to.lines = 0;
  }
  if (++to.lines > kLibraryLinesMax) {
    ++to.left_out;
    return;
  }
  std::string line = fmt::format("{}: {}", library, printable(text.substr(0, kLineBytesMax), Printed::line));
  if (to.left_out > 0) line += fmt::format(" ({} lines before it were left out)", std::exchange(to.left_out, 0));
  to.say(line);
}

void of_grpc(gpr_log_func_args* args) {
  // What the HTTP/2 and chttp2 code says of frames and metadata quotes the peer.
  const std::string_view file(args->file);
  const bool is_of_a_peer = file.find("/transport/") != file.npos;
  if (is_of_a_peer || args->severity < GPR_LOG_SEVERITY_ERROR) return;
  pass_on("grpc", args->message);
}

void of_protobuf(google::protobuf::LogLevel level, const char*, int, const std::string& message) {
  // That a field is no UTF-8 is the peer's fault; the message is refused.
  const bool is_of_a_peer = message.find("invalid UTF-8") != message.npos;
  if (is_of_a_peer || level < google::protobuf::LOGLEVEL_ERROR) return;
  pass_on("protobuf", message);
}

}  // namespace

LibraryLog::LibraryLog(const Clock& clock, Say say) {
  Told& to = told();
  {
    const std::lock_guard lock(to.mutex);
    to.say = std::move(say);
    to.lines = 0;
    to.left_out = 0;
    to.clock = &clock;
    to.minute = clock.now().since_boot;
  }
  gpr_set_log_function(of_grpc);
  google::protobuf::SetLogHandler(of_protobuf);
}

LibraryLog::~LibraryLog() {
  Told& to = told();
  const std::lock_guard lock(to.mutex);
  to.say = nullptr;
}

}  // namespace croft::edge
