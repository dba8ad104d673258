#include "http/grpc_listener.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "os/system_error.h"

namespace croft::os {
namespace {

/// A peer that is refused again and again must not keep the loop from its other work.
constexpr int kRefusedAtOnce = 64;

bool is_out_of_descriptors(int error_number) {
  return error_number == EMFILE || error_number == ENFILE || error_number == ENOBUFS || error_number == ENOMEM;
}

FileDescriptor open_spare() { return FileDescriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

}  // namespace

Result<void> AcceptGate::open(FileDescriptor socket) {
  spare_ = open_spare();
  if (!spare_.is_open()) return fail(system_error("open", "/dev/null", errno));
  socket_ = std::move(socket);
  return {};
}

/// Somebody waits whom we can't serve: with the spare descriptor he is told so at once, and looks for himself.
void AcceptGate::refuse_without_descriptor() {
  ++counts_.no_descriptors;
  spare_ = FileDescriptor();
  { const FileDescriptor refused(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  spare_ = open_spare();
  stuck_ = !spare_.is_open();  // somebody else took it
}

std::optional<FileDescriptor> AcceptGate::accept(const std::function<bool(int)>& may_connect) {
  stuck_ = false;
  if (!spare_.is_open()) spare_ = open_spare();
  for (int refused = 0; refused < kRefusedAtOnce && !stuck_; ++refused) {
    FileDescriptor connection(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (connection.is_open()) {
      if (may_connect(connection.get())) {
        ++counts_.accepted;
        return connection;
      }
      ++counts_.foreign_users;
    } else if (is_out_of_descriptors(errno)) {
      refuse_without_descriptor();
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      return {};
    } else if (errno != EINTR && errno != ECONNABORTED) {
      stuck_ = true;
    }
  }
  return {};
}

}  // namespace croft::os
