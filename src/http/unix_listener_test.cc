#include "http/unix_listener.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "http/relay_fixture.h"
#include "os/scratch_directory.h"

namespace croft::os {
namespace {

class UnixListenerTest : public SocketTest {
 protected:
  [[nodiscard]] static FileDescriptor connect(const std::string& path) {
    return connected_to(Endpoint::parse("unix:" + path).value());
  }

  ScratchDirectory directory_;
  std::string path_ = directory_.path() + "/run/agent.sock";
  UnixListenerOptions options_{{::geteuid()}};
};

TEST_F(UnixListenerTest, AcceptsWhoMayConnect) {
  const auto listener = UnixListener::listen(path_, options_, clock_);
  ASSERT_TRUE(listener) << listener.error().message;
  struct stat status {};
  ASSERT_EQ(::lstat(path_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0600U);
  const FileDescriptor client = connect(path_);
  ASSERT_TRUE(client.is_open());
  EXPECT_TRUE(wait_for_descriptor((*listener)->descriptor(), true, false, clock_, in(std::chrono::seconds(5))));
  const FileDescriptor second = connect(path_);
  const auto connection = (*listener)->next();
  ASSERT_TRUE(connection);
  EXPECT_NE(::fcntl(connection->transport->descriptor(), F_GETFL) & O_NONBLOCK, 0);
  EXPECT_TRUE((*listener)->next());
  EXPECT_FALSE((*listener)->next());
  EXPECT_EQ((*listener)->counts().accepted, 2U);
  EXPECT_FALSE(wait_for_descriptor((*listener)->descriptor(), true, false, clock_, in({})));
}

TEST_F(UnixListenerTest, TheFileIsForThoseWhoMayConnect) {
  const auto access = [&](std::vector<std::uint32_t> users) {
    options_.users = std::move(users);
    const auto listener = UnixListener::listen(path_, options_, clock_);
    struct stat status {};
    EXPECT_TRUE(listener && ::lstat(path_.c_str(), &status) == 0);
    return std::pair(status.st_mode & 07777U, status.st_uid);
  };
  const uid_t own = ::geteuid();
  EXPECT_EQ(access({0, own}), std::pair(0600U, own));
  EXPECT_EQ(access({0, 4711}), own == 0 ? std::pair(0600U, uid_t{4711}) : std::pair(0666U, own));
  EXPECT_EQ(access({4711, 4712}), std::pair(0666U, own));
}

TEST_F(UnixListenerTest, TheGroupOfItsFileIsRootsAndItsDirectoryIsItsOwn) {
  options_.file_mode = 0660;
  options_.directory_mode = 0750;
  const gid_t before = ::getegid();
  // A service that was given a group.
  if (::geteuid() == 0 && ::setegid(4711) != 0) FAIL();
  const auto listener = UnixListener::listen(path_, options_, clock_);
  ASSERT_EQ(::setegid(before), 0);
  ASSERT_TRUE(listener) << listener.error().message;
  struct stat file {
  }, directory{};
  ASSERT_EQ(::lstat(path_.c_str(), &file), 0);
  ASSERT_EQ(::stat((directory_.path() + "/run").c_str(), &directory), 0);
  EXPECT_EQ(file.st_mode & 07777U, 0660U);
  EXPECT_EQ(file.st_uid, ::geteuid());
  EXPECT_TRUE(::geteuid() != 0 || file.st_gid == 0);
  EXPECT_EQ(directory.st_mode & 07777U, 0750U);
  // Rights on the file are not enough: who connects is looked at all the same.
  EXPECT_TRUE(connect(path_).is_open());
  EXPECT_TRUE((*listener)->next());
}

TEST_F(UnixListenerTest, ADirectoryThatIsThereKeepsItsMode) {
  options_.directory_mode = 0750;
  const std::string path = directory_.path() + "/agent.sock";
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0711), 0);
  ASSERT_TRUE(UnixListener::listen(path, options_, clock_));
  struct stat directory {};
  ASSERT_EQ(::stat(directory_.path().c_str(), &directory), 0);
  EXPECT_EQ(directory.st_mode & 07777U, 0711U);
}

TEST_F(UnixListenerTest, ItsFileCanBeRemovedFromOutside) {
  const auto listener = UnixListener::listen(path_, options_, clock_);
  ASSERT_TRUE(listener);
  const auto remove = (*listener)->closer();
  remove();
  EXPECT_FALSE(connect(path_).is_open());
  std::ofstream(path_) << "another";
  remove();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(UnixListenerTest, OthersAreClosedAtOnce) {
  options_.users = {::geteuid() + 1};
  const auto listener = UnixListener::listen(path_, options_, clock_);
  ASSERT_TRUE(listener) << listener.error().message;
  std::vector<FileDescriptor> clients;
  for (int i = 0; i < 3; ++i) clients.push_back(connect(path_));
  EXPECT_FALSE((*listener)->next());
  for (const FileDescriptor& client : clients) EXPECT_TRUE(is_closed(client));
  EXPECT_EQ((*listener)->counts().foreign_users, 3U);
  EXPECT_EQ((*listener)->counts().accepted, 0U);
}

TEST_F(UnixListenerTest, RunningOutOfDescriptorsRefusesAndPasses) {
  const auto listener = UnixListener::listen(path_, options_, clock_);
  ASSERT_TRUE(listener) << listener.error().message;
  const FileDescriptor waiting = connect(path_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const FileDescriptor next(::fcntl(0, F_DUPFD_CLOEXEC, 3));  // the lowest number that is free
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(next.get()) + 1;
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto refused = (*listener)->next();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(refused);
  EXPECT_GE((*listener)->counts().no_descriptors, 1U);
  EXPECT_FALSE((*listener)->is_stuck());
  EXPECT_TRUE(is_closed(waiting));
  const FileDescriptor client = connect(path_);
  EXPECT_TRUE((*listener)->next());
}

TEST_F(UnixListenerTest, WhoCanBeNeitherAcceptedNorRefusedWaits) {
  const auto listener = UnixListener::listen(path_, options_, clock_);
  ASSERT_TRUE(listener) << listener.error().message;
  const FileDescriptor waiting = connect(path_);
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = 3;  // not even the spare one comes back
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &none), 0);
  const auto first = (*listener)->next();
  const bool stuck = (*listener)->is_stuck();
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_FALSE(first);
  EXPECT_TRUE(stuck);
  EXPECT_TRUE((*listener)->next());
  EXPECT_FALSE((*listener)->is_stuck());
}

TEST_F(UnixListenerTest, ReplacesADeadOneAndRefusesALiveOne) {
  {
    const auto first = UnixListener::listen(path_, options_, clock_);
    ASSERT_TRUE(first) << first.error().message;
    const auto second = UnixListener::listen(path_, options_, clock_);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::already_exists) << second.error().message;
    EXPECT_TRUE(connect(path_).is_open());
  }
  EXPECT_NE(::access(path_.c_str(), F_OK), 0);  // gone with its owner
  // What a killed process leaves: a socket's file that nobody listens on.
  {
    const Listener dead(path_);
    const auto alive = UnixListener::listen(path_, options_, clock_);  // another program's
    ASSERT_FALSE(alive);
    EXPECT_EQ(alive.error().code, ErrorCode::already_exists);
  }
  const auto replaced = UnixListener::listen(path_, options_, clock_);
  ASSERT_TRUE(replaced) << replaced.error().message;
  EXPECT_TRUE(connect(path_).is_open());
}

TEST_F(UnixListenerTest, LeavesWhatIsNoSocketAlone) {
  ASSERT_EQ(::mkdir((directory_.path() + "/run").c_str(), 0755), 0);
  { const FileDescriptor file(::open(path_.c_str(), O_CREAT | O_WRONLY, 0644)); }
  const auto listener = UnixListener::listen(path_, options_, clock_);
  ASSERT_FALSE(listener);
  EXPECT_EQ(listener.error().code, ErrorCode::already_exists);
  EXPECT_EQ(::access(path_.c_str(), F_OK), 0);
  EXPECT_EQ(UnixListener::listen("relative", options_, clock_).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(UnixListener::listen("/" + std::string(200, 'x'), options_, clock_).error().code,
            ErrorCode::invalid_argument);
}

}  // namespace
}  // namespace croft::os
