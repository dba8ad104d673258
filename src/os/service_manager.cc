#include "os/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "os/file_descriptor.h"

namespace croft::os {

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

}  // namespace croft::os
