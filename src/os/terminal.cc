#include "os/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string>

namespace croft::os {
namespace {

// xterm's, which all terminals of today know. Lines are cut at the edge.
constexpr std::string_view kOtherScreen = "\x1b[?1049h\x1b[?25l\x1b[?7l";
constexpr std::string_view kScreenBefore = "\x1b[?7h\x1b[?25h\x1b[?1049l";
constexpr std::string_view kHome = "\x1b[H";
constexpr std::string_view kRestOfLine = "\x1b[K";
constexpr std::string_view kRestOfScreen = "\x1b[J";

termios before;  ///< of the one Screen

/// Past printable(), which would show them as text.
bool write_raw(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, text.data(), text.size());
    if (count <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  return true;
}

void give_back() {
  static_cast<void>(write_raw(kScreenBefore));
  ::tcsetattr(STDIN_FILENO, TCSANOW, &before);
}

/// It calls only what a handler may.
void end_by(int number) {
  give_back();
  static_cast<void>(std::signal(number, SIG_DFL));
  static_cast<void>(std::raise(number));
}

}  // namespace

Result<std::unique_ptr<Screen>> Screen::open() {
  const bool is_terminal = ::isatty(STDOUT_FILENO) == 1 && ::tcgetattr(STDIN_FILENO, &before) == 0;
  if (!is_terminal) return fail(ErrorCode::invalid_argument, "standard input and output are no terminal");
  for (const int number : {SIGTERM, SIGINT, SIGHUP}) static_cast<void>(std::signal(number, end_by));
  termios raw = before;
  raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
  // Ctrl-C is heard at once, and these would leave the screen as it is.
  raw.c_cc[VSUSP] = raw.c_cc[VQUIT] = _POSIX_VDISABLE;
  ::tcsetattr(STDIN_FILENO, TCSANOW, &raw);
  static_cast<void>(write_raw(kOtherScreen));
  return std::unique_ptr<Screen>(new Screen());
}

Screen::~Screen() { give_back(); }

bool Screen::show(std::string_view text, Printed how) {
  winsize size{};
  const std::size_t lines = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 ? size.ws_row : 24;
  std::string drawn(kHome);
  for (std::size_t line = 0; line + 1 < lines && !text.empty(); ++line) {
    const std::string_view next = text.substr(0, text.find('\n'));
    drawn += printable(next, how);
    drawn += kRestOfLine;
    drawn += '\n';
    text.remove_prefix(std::min(text.size(), next.size() + 1));
  }
  drawn += kRestOfScreen;
  return write_raw(drawn);
}

std::optional<char> Screen::key(std::chrono::nanoseconds span) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const auto ms = std::chrono::ceil<std::chrono::milliseconds>(std::max(span, std::chrono::nanoseconds(0)));
  if (::poll(&input, 1, static_cast<int>(std::min<std::int64_t>(ms.count(), 60'000))) <= 0) return std::nullopt;
  char bytes[16];
  const ssize_t count = ::read(STDIN_FILENO, bytes, sizeof bytes);
  if (count <= 0) return 'q';
  return count == 1 && bytes[0] > ' ' && bytes[0] < 127 ? bytes[0] : '\0';
}

}  // namespace croft::os
