#include "http/unix_listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <functional>
#include <optional>

#include "base/texts.h"
#include "os/directory.h"
#include "os/file_descriptor.h"
#include "os/file_lock.h"
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
bool somebody_listens(const sockaddr_storage& address, socklen_t size) {
  const FileDescriptor probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.is_open()) return true;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
  if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0) return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

class SocketFile final : public UnixListener {
 public:
  SocketFile(std::string path, const UnixListenerOptions& options)
      : path_(std::move(path)), options_(options), lock_(path_ + ".lock") {}
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile() override { SocketFile::closer()(); }

  [[nodiscard]] std::function<void()> closer() const override {
    if (inode_ == 0) return [] {};
    return [path = path_, inode = inode_, device = device_] {
      struct stat status {};
      if (::lstat(path.c_str(), &status) != 0 || status.st_ino != inode || status.st_dev != device) return;
      ::unlink(path.c_str());
    };
  }
  [[nodiscard]] std::string where() const override { return path_; }
  [[nodiscard]] std::optional<Accepted> next() override {
    auto socket = accept([this](int connection) {
      const auto peer = credentials_of(connection);
      return peer && std::find(options_.users.begin(), options_.users.end(), peer->uid) != options_.users.end();
    });
    if (!socket) return {};
    return Accepted{socket_transport(*std::move(socket), path_)};
  }

  [[nodiscard]] Result<void> open(const Clock& clock) {
    sockaddr_storage address{};
    const auto size = socket_address({Endpoint::Kind::unix_socket, false, {}, 0, path_}, address);
    if (!size || path_.front() != '/') {
      return fail(ErrorCode::invalid_argument, "socket \"{}\" must be an absolute path of at most {} bytes", path_,
                  sizeof(sockaddr_un::sun_path) - 1);
    }
    TRY_VOID(make_directory());
    // Held as long as this process lives: of two that start at once one finds the other.
    const auto locked = lock_.lock(clock, Deadline::after(clock.now(), {}));
    if (!locked) {
      if (locked.error().code != ErrorCode::deadline_exceeded) return fail(locked.error());
      return fail(not_ours(path_, "another agent serves there (" + locked.error().message + ")"));
    }
    struct stat status {};
    if (::lstat(path_.c_str(), &status) == 0) {
      if (!S_ISSOCK(status.st_mode)) return fail(not_ours(path_, "there is something that is no socket"));
      if (somebody_listens(address, *size)) return fail(not_ours(path_, "another program listens there"));
      if (::unlink(path_.c_str()) != 0) return fail(system_error("replace", path_, errno));
    }
    FileDescriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!socket.is_open()) return fail(system_error("make a socket for", path_, errno));
    const FileAccess access = file_access();
    // Before bind: Linux takes the mode of the socket for the file, so that it is never open to others.
    if (::fchmod(socket.get(), 0600) != 0) return fail(system_error("restrict", path_, errno));
    // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): the interface of sockets
    if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), *size) != 0) {
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
    return GrpcListener::open(std::move(socket));
  }

 private:
  struct FileAccess {
    std::uint32_t mode = 0;
    std::uint32_t owner = 0;
  };
  /// The owner and mode that the socket's file needs, so that all who may connect can.
  [[nodiscard]] FileAccess file_access() const {
    std::vector<std::uint32_t> others = options_.users;
    std::erase_if(others, [](std::uint32_t user) { return user == 0 || user == ::geteuid(); });
    std::sort(others.begin(), others.end());
    others.erase(std::unique(others.begin(), others.end()), others.end());
    if (others.empty()) return {.mode = options_.file_mode, .owner = ::geteuid()};
    if (others.size() == 1 && ::geteuid() == 0) return {.mode = options_.file_mode, .owner = others.front()};
    return {.mode = 0666, .owner = ::geteuid()};
  }
  [[nodiscard]] Result<void> make_directory() const {
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

  const std::string path_;
  const UnixListenerOptions options_;
  FileLock lock_;
  std::uint64_t inode_ = 0;
  std::uint64_t device_ = 0;
};

}  // namespace

Result<std::unique_ptr<UnixListener>> UnixListener::listen(const std::string& path, const UnixListenerOptions& options,
                                                           const Clock& clock) {
  auto listener = std::make_unique<SocketFile>(path, options);
  TRY_VOID(listener->open(clock));
  return listener;
}

Result<std::unique_ptr<Transport>> OwnPeer::secure(std::unique_ptr<Transport> plain, const Endpoint& endpoint,
                                                   const Clock&, Deadline) const {
  const auto peer = credentials_of(plain->descriptor());
  if (peer && (peer->uid == 0 || peer->uid == ::geteuid())) return plain;
  return fail(ErrorCode::permission_denied, "{} belongs to user {}, not to root or ourselves", endpoint.text(),
              peer ? static_cast<std::int64_t>(peer->uid) : -1);
}

}  // namespace croft::os
