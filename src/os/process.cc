#include "os/process.h"

#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/letters.h"
#include "base/result.h"
#include "os/file_descriptor.h"
#include "os/files.h"
#include "os/system_error.h"

namespace croft::os {

std::uint32_t own_process() { return static_cast<std::uint32_t>(::getpid()); }

void make_files_private() { ::umask(077); }

void keep_freed_memory(std::size_t bytes) {
  ::mallopt(M_TRIM_THRESHOLD, static_cast<int>(std::min<std::size_t>(bytes, INT_MAX)));
}

void fill_standard_streams() {
  struct Stream {
    int number, flags;
  };
  // In order, for each one opened gets the lowest number that is free. A write to what is open for reading fails.
  for (const Stream& stream :
       {Stream{STDIN_FILENO, O_RDONLY}, Stream{STDOUT_FILENO, O_RDONLY}, Stream{STDERR_FILENO, O_WRONLY}}) {
    if (::fcntl(stream.number, F_GETFD) >= 0 || errno != EBADF) continue;
    // Where there is no /dev there is a root.
    if (::open("/dev/null", stream.flags) < 0) static_cast<void>(!::open("/", O_RDONLY | O_DIRECTORY));
  }
}

void prepare_plugin_process() {
  fill_standard_streams();
  static_cast<void>(::close_range(3, UINT_MAX, 0));
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  survive_file_size_limit();
  // It ends soon, and nothing is given back before: a page that is asked for again costs as much as ten calls.
  keep_freed_memory(INT_MAX);
  ::mallopt(M_TOP_PAD, 1 << 18);
}

void survive_file_size_limit() { static_cast<void>(std::signal(SIGXFSZ, SIG_IGN)); }

Result<std::string> host_name() {
  std::array<char, HOST_NAME_MAX + 1> buffer{};
  if (::gethostname(buffer.data(), buffer.size()) != 0) return fail(system_error("read", "the host name", errno));
  return lowered(std::string(buffer.data()));
}

Result<std::string> read_standard_input(std::size_t bytes_max) {
  std::string text;
  std::array<char, 4096> buffer;  // uninitialised: each page touched costs a plugin as much as ten calls
  while (text.size() < bytes_max) {
    const ssize_t n = ::read(STDIN_FILENO, buffer.data(), std::min(buffer.size(), bytes_max - text.size()));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return fail(system_error("read", "standard input", errno));
    if (n == 0) break;
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

std::optional<std::string> ask_on_terminal(std::string_view question) {
  if (::isatty(STDIN_FILENO) != 1 || ::isatty(STDERR_FILENO) != 1 || !write_standard_error(question)) return {};
  std::string answer;
  for (char c = 0; answer.size() < 100 && ::read(STDIN_FILENO, &c, 1) == 1 && c != '\n';) answer += c;
  return answer;
}

void end_process(int exit_code) { ::_exit(exit_code); }

bool write_standard_output(std::string_view text, Printed how) {
  return write_all(STDOUT_FILENO, printable(text, how)) == 0;
}
bool write_json_to_standard_output(std::string_view json) { return write_standard_output(json, Printed::json); }
bool write_standard_error(std::string_view text) {
  return write_all(STDERR_FILENO, printable(text, Printed::text)) == 0;
}
void write_last_words_to_standard_output(std::string_view text) { static_cast<void>(write_all(STDOUT_FILENO, text)); }
void write_last_words_to_standard_error(std::string_view text) { static_cast<void>(write_all(STDERR_FILENO, text)); }

bool standard_output_is_terminal() { return ::isatty(STDOUT_FILENO) == 1; }

std::size_t standard_output_width() {
  struct winsize size {};
  return ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

std::uint64_t own_network_namespace() {
  struct stat own {};
  return ::stat("/proc/self/ns/net", &own) == 0 ? own.st_ino : 0;
}

SameNamespace is_own_network_namespace(const std::string& path) {
  struct stat own {};
  if (::stat("/proc/self/ns/net", &own) != 0) return SameNamespace::own_cannot_open;
  const FileDescriptor other(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat theirs {};
  if (!other.is_open() || ::fstat(other.get(), &theirs) != 0) return SameNamespace::cannot_open;
  return own.st_dev == theirs.st_dev && own.st_ino == theirs.st_ino ? SameNamespace::yes : SameNamespace::no;
}

void tell_service_manager(std::string_view state) {
  const char* path = std::getenv("NOTIFY_SOCKET");  // NOLINT(concurrency-mt-unsafe): nothing here sets a variable
  const std::size_t length = path != nullptr ? std::strlen(path) : 0;
  sockaddr_un to{};
  if (length < 2 || length >= sizeof(to.sun_path) || (*path != '/' && *path != '@')) return;
  to.sun_family = AF_UNIX;
  std::memcpy(to.sun_path, path, length);
  if (*path == '@') to.sun_path[0] = '\0';  // an abstract one
  const FileDescriptor socket(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.is_open()) return;
  static_cast<void>(::sendto(socket.get(), state.data(), state.size(), MSG_NOSIGNAL | MSG_DONTWAIT,
                             reinterpret_cast<const sockaddr*>(&to),
                             static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + length)));
}

namespace {

/// Standard input from now on: a file in memory, so that no pipe has to be held open.
[[nodiscard]] int replace_standard_input(std::string_view input) {
  constexpr unsigned kNotToBeRun = 8;  // MFD_NOEXEC_SEAL, which some nodes insist on and kernels before 6.3 do not know
  FileDescriptor memory(::memfd_create("configuration", MFD_CLOEXEC | kNotToBeRun));
  if (!memory.is_open() && errno == EINVAL) memory = FileDescriptor(::memfd_create("configuration", MFD_CLOEXEC));
  if (!memory.is_open()) return errno;
  if (const int trouble = write_all(memory.get(), input); trouble != 0) return trouble;
  if (::lseek(memory.get(), 0, SEEK_SET) != 0) return errno;
  return ::dup2(memory.get(), STDIN_FILENO) == STDIN_FILENO ? 0 : errno;
}

/// The directory of this program's file, also where it was replaced meanwhile: the link then has " (deleted)" behind
/// its name.
[[nodiscard]] Result<std::string> own_directory() {
  std::string own(PATH_MAX, '\0');
  const ssize_t length = ::readlink("/proc/self/exe", own.data(), own.size());
  if (length <= 0) return fail(system_error("read", "/proc/self/exe", errno));
  own.resize(static_cast<std::size_t>(length));
  return directory_of(own);
}

/// In front of what is said to this process, which execve() leaves its number.
[[nodiscard]] std::string sign() { return fmt::format("{} ", ::getpid()); }

}  // namespace

std::optional<std::string> handed_over(const std::string& variable) {
  const char* value = std::getenv(variable.c_str());
  if (value == nullptr) return std::nullopt;
  const std::string own = sign();
  if (!std::string_view(value).starts_with(own)) return std::nullopt;
  return value + own.size();
}

Error become_sibling(const SiblingCall& call) {
  const auto directory = own_directory();
  if (!directory) return directory.error();
  const std::string path = fmt::format("{}/{}", *directory, call.file);
  if (handed_over(call.variable)) {
    return {ErrorCode::already_exists, fmt::format("{} is {} once more, not {}", path, call.called_as, call.file), {}};
  }
  if (const int trouble = replace_standard_input(call.input); trouble != 0) {
    return system_error("hand the configuration to", path, trouble);
  }
  const std::string name = call.variable + '=';
  std::vector<std::string> kept;
  for (char** one = environ; *one != nullptr; ++one) {
    if (!std::string_view(*one).starts_with(name)) kept.emplace_back(*one);
  }
  kept.push_back(name + sign() + call.said);
  std::vector<char*> environment;
  for (std::string& one : kept) environment.push_back(one.data());
  environment.push_back(nullptr);
  std::string called_as = call.called_as;
  char* arguments[] = {called_as.data(), nullptr};  // NOLINT(*-avoid-c-arrays): as execve() takes them
  ::execve(path.c_str(), arguments, environment.data());
  return system_error("start", path, errno);
}

namespace {

/// A wait is cut into pieces, so that a machine that slept goes on soon after, whichever clock the kernel waits by.
constexpr std::chrono::seconds kPiece{60};

bool is_readable_within(int descriptor, int timeout_ms) {
  pollfd wanted{descriptor, POLLIN, 0};
  while (::poll(&wanted, 1, timeout_ms) < 0 && errno == EINTR) {
  }
  return wanted.revents != 0;
}

}  // namespace

void ask_to_end() { ::kill(::getpid(), SIGTERM); }

StopSignal::StopSignal(std::chrono::milliseconds patience) : patience_(patience) {
  sigset_t signals;
  ::sigemptyset(&signals);
  ::sigaddset(&signals, SIGTERM);
  ::sigaddset(&signals, SIGINT);
  ::pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  static_cast<void>(std::signal(SIGPIPE, SIG_IGN));
  static_cast<void>(std::signal(SIGHUP, SIG_IGN));
  signals_ = FileDescriptor(::signalfd(-1, &signals, SFD_CLOEXEC));
  ended_ = FileDescriptor(::eventfd(0, EFD_CLOEXEC));
  CROFT_ASSERT(signals_.is_open() && ended_.is_open());
  thread_ = std::thread([this] { run(); });
}

StopSignal::~StopSignal() {
  const std::uint64_t one = 1;
  static_cast<void>(!::write(ended_.get(), &one, sizeof one));
  thread_.join();
}

void StopSignal::run() {
  std::array<pollfd, 2> wanted{pollfd{signals_.get(), POLLIN, 0}, pollfd{ended_.get(), POLLIN, 0}};
  while (wanted[0].revents == 0 && wanted[1].revents == 0) static_cast<void>(::poll(wanted.data(), wanted.size(), -1));
  if (wanted[1].revents != 0) return;
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  wake_.notify_all();
  if (is_readable_within(ended_.get(), static_cast<int>(patience_.count()))) return;
  const std::lock_guard lock(mutex_);
  if (last_act_) last_act_();
  if (cuts_off_ == CutsOff::reading) end_process(0);
  static_cast<void>(write_standard_error("told to stop; what is under way takes too long and is cut off\n"));
  end_process(1);
}

void StopSignal::before_forced_end(std::function<void()> last_act, CutsOff what) {
  const std::lock_guard lock(mutex_);
  last_act_ = std::move(last_act);
  cuts_off_ = what;
}

bool StopSignal::wait_for(std::chrono::nanoseconds span) {
  const auto since_boot = [] {
    timespec time{};
    ::clock_gettime(CLOCK_BOOTTIME, &time);
    return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
  };
  const auto end = since_boot() + std::min<std::chrono::nanoseconds>(span, std::chrono::hours(24 * 365));
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    const auto left = std::clamp<std::chrono::nanoseconds>(end - since_boot(), std::chrono::nanoseconds(0), kPiece);
    if (left.count() == 0) break;
    wake_.wait_for(lock, left, [&] { return stopped_; });
  }
  return stopped_;
}

}  // namespace croft::os
