#include "http/unix_listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/texts.h"
#include "os/directory.h"
#include "os/files.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

constexpr int kBacklog = 512;

Error not_ours(const std::string& path, std::string_view why) {
  return make_error(ErrorCode::already_exists, "cannot listen on {}: {}", path, why);
}

std::optional<ucred> credentials_of(int socket) {
  ucred credentials{};
  socklen_t size = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) return {};
  return credentials;
}

/// Whether something listens on a socket's file: a queue that is full has somebody behind it.
bool somebody_listens(const sockaddr_un& address, socklen_t size) {
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_open()) return true;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

}  // namespace

UnixListener::UnixListener(std::string path, const UnixListenerOptions& options, const Clock& clock)
    : path_(std::move(path)), options_(options), clock_(clock), lock_(path_ + ".lock") {}

UnixListener::~UnixListener() { UnixListener::closer()(); }

std::function<void()> UnixListener::closer() const {
  if (inode_ == 0) return [] {};
  return [path = path_, inode = inode_, device = device_] {
    struct stat status {};
    if (::lstat(path.c_str(), &status) != 0 || status.st_ino != inode || status.st_dev != device) return;
    ::unlink(path.c_str());
  };
}

/// The owner and mode that the socket's file needs, so that all who may connect can.
UnixListener::FileAccess UnixListener::file_access() const {
  std::vector<std::uint32_t> others = options_.users;
  std::erase_if(others, [](std::uint32_t user) { return user == 0 || user == ::geteuid(); });
  std::sort(others.begin(), others.end());
  others.erase(std::unique(others.begin(), others.end()), others.end());
  if (others.empty()) return {.mode = options_.file_mode, .owner = ::geteuid()};
  if (others.size() == 1 && ::geteuid() == 0) return {.mode = options_.file_mode, .owner = others.front()};
  return {.mode = 0666, .owner = ::geteuid()};
}

Result<std::unique_ptr<UnixListener>> UnixListener::listen(const std::string& path, const UnixListenerOptions& options,
                                                           const Clock& clock) {
  std::unique_ptr<UnixListener> listener(new UnixListener(path, options, clock));
  TRY_VOID(listener->open());
  return listener;
}

Result<void> UnixListener::make_directory() const {
  const std::string directory = directory_of(path_);
  struct stat status {};
  if (::stat(directory.c_str(), &status) != 0) {
    TRY_VOID(Directory::make(directory_of(directory)));
    if (::mkdir(directory.c_str(), options_.directory_mode) != 0 && errno != EEXIST) {
      return fail(path_error("mkdir", directory, errno));
    }
  }
  TRY_VOID(Directory::make(directory));  // durable, and a directory
  return {};
}

Result<void> UnixListener::open() {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path_.empty() || path_.front() != '/' || path_.size() >= sizeof address.sun_path) {
    return fail(ErrorCode::invalid_argument, "socket \"{}\" must be an absolute path of at most {} bytes", path_,
                sizeof address.sun_path - 1);
  }
  std::copy(path_.begin(), path_.end(), address.sun_path);
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + path_.size() + 1);
  TRY_VOID(make_directory());
  // Held as long as this process lives: of two that start at once one finds the other.
  const auto locked = lock_.lock(clock_, Deadline::after(clock_.now(), {}));
  if (!locked) {
    if (locked.error().code != ErrorCode::deadline_exceeded) return fail(locked.error());
    return fail(not_ours(path_, "another agent serves there (" + locked.error().message + ")"));
  }
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0) {
    if (!S_ISSOCK(status.st_mode)) return fail(not_ours(path_, "there is something that is no socket"));
    if (somebody_listens(address, size)) return fail(not_ours(path_, "another program listens there"));
    if (::unlink(path_.c_str()) != 0) return fail(system_error("replace", path_, errno));
  }
  FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.is_open()) return fail(system_error("make a socket for", path_, errno));
  const FileAccess access = file_access();
  // Before bind: Linux takes the mode of the socket for the file, so that it is never open to others.
  if (::fchmod(socket.get(), 0600) != 0) return fail(system_error("restrict", path_, errno));
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), size) != 0) {
    return fail(system_error("listen on", path_, errno));
  }
  if (::lstat(path_.c_str(), &status) != 0) return fail(system_error("look at", path_, errno));
  inode_ = status.st_ino;
  device_ = status.st_dev;
  // A group that nobody chose gets no rights: root's may be started with any.
  const bool has_group = (access.mode & 0070U) != 0 && access.mode != 0666 && ::geteuid() == 0;
  const auto group = has_group ? gid_t{0} : static_cast<gid_t>(-1);
  if ((access.owner != ::geteuid() || has_group) && ::lchown(path_.c_str(), access.owner, group) != 0) {
    return fail(system_error("change the owner of", path_, errno));
  }
  if (access.mode != 0600 && ::chmod(path_.c_str(), access.mode) != 0) {
    return fail(system_error("change the mode of", path_, errno));
  }
  if (::listen(socket.get(), kBacklog) != 0) return fail(system_error("listen on", path_, errno));
  return gate_.open(std::move(socket));
}

bool UnixListener::may_connect(int connection) const {
  const auto peer = credentials_of(connection);
  return peer && std::find(options_.users.begin(), options_.users.end(), peer->uid) != options_.users.end();
}

std::optional<Accepted> UnixListener::next() {
  auto socket = gate_.accept([this](int connection) { return may_connect(connection); });
  if (!socket) return {};
  return Accepted{socket_transport(*std::move(socket), path_)};
}

Result<std::unique_ptr<Transport>> OwnPeer::secure(std::unique_ptr<Transport> plain, const Endpoint& endpoint,
                                                   const Clock&, Deadline) const {
  const auto peer = credentials_of(plain->descriptor());
  if (peer && (peer->uid == 0 || peer->uid == ::geteuid())) return plain;
  return fail(ErrorCode::permission_denied, "{} belongs to user {}, not to root or ourselves", endpoint.text(),
              peer ? static_cast<std::int64_t>(peer->uid) : -1);
}

}  // namespace croft::os
