#include "os/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include "os/file_descriptor.h"
#include "os/process.h"

namespace croft::os {
namespace {

/// A socket as systemd's; `name` as NOTIFY_SOCKET has it.
class Manager {
 public:
  explicit Manager(const std::string& name) {
    sockaddr_un at{};
    at.sun_family = AF_UNIX;
    std::memcpy(at.sun_path, name.data(), name.size());
    if (name.front() == '@') at.sun_path[0] = '\0';
    EXPECT_EQ(::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&at),
                     static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())),
              0);
    ::setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  ~Manager() { ::unsetenv("NOTIFY_SOCKET"); }
  Manager(const Manager&) = delete;
  Manager& operator=(const Manager&) = delete;

  /// The next datagram; empty when there is none.
  [[nodiscard]] std::string heard() const {
    std::array<char, 64> text{};
    const auto size = ::recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT);
    return size < 0 ? std::string() : std::string(text.data(), static_cast<std::size_t>(size));
  }

 private:
  const FileDescriptor socket_{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)};
};

TEST(ServiceManager, HearsByFileAndByAbstractName) {
  const std::string path = testing::TempDir() + "croft-notify-" + std::to_string(own_process().id);
  for (const std::string& name : {path, "@croft-notify-" + std::to_string(own_process().id)}) {
    const Manager manager(name);
    tell_service_manager("READY=1");
    tell_service_manager("WATCHDOG=1");
    EXPECT_EQ(manager.heard(), "READY=1") << name;
    EXPECT_EQ(manager.heard(), "WATCHDOG=1") << name;
    EXPECT_EQ(manager.heard(), "");
  }
  ::unlink(path.c_str());
}

}  // namespace
}  // namespace croft::os
