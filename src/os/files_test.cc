#include "os/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "os/scratch_directory.h"
#include "os/system_error.h"

namespace croft::os {
namespace {

namespace fs = std::filesystem;

TEST(Files, StatusOpensNothing) {
  const ScratchDirectory scratch;
  ASSERT_EQ(::mkfifo(scratch.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(file_status(scratch.file("fifo")).value()->type, FileStatus::Type::other);
  EXPECT_EQ(file_status(scratch.path()).value()->type, FileStatus::Type::directory);
  EXPECT_FALSE(file_status(scratch.file("none")).value().has_value());
  fs::create_symlink(scratch.file("loop"), scratch.file("loop"));
  EXPECT_EQ(file_status(scratch.file("loop")).error().code, ErrorCode::invalid_argument);
}

TEST(Files, ResolvedPathFollowsLinksAndAllowsAMissingLastPart) {
  const ScratchDirectory scratch;
  fs::create_directory(scratch.file("real"));
  fs::create_symlink(scratch.file("real"), scratch.file("link"));
  EXPECT_EQ(resolved_path(scratch.file("link/new")).value(), scratch.file("real/new"));
  std::ofstream(scratch.file("real/there")) << "x";
  fs::create_symlink(scratch.file("real/there"), scratch.file("alias"));
  EXPECT_EQ(resolved_path(scratch.file("alias")).value(), scratch.file("real/there"));
  EXPECT_EQ(resolved_path(scratch.file("none/new")).error().code, ErrorCode::not_found);
  fs::create_symlink(scratch.file("gone"), scratch.file("dangling"));
  EXPECT_EQ(resolved_path(scratch.file("dangling")).error().code, ErrorCode::not_found);
  EXPECT_EQ(resolved_path(scratch.path() + "/").error().code, ErrorCode::invalid_argument);
}

TEST(Files, DirectoryOf) {
  EXPECT_EQ(directory_of("/a/b"), "/a");
  EXPECT_EQ(directory_of("/b"), "/");
  EXPECT_EQ(directory_of("b"), ".");
}

TEST(Files, MakesDirectoriesForTheOwnerOnly) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(make_directories(scratch.file("a/b/c")));
  ASSERT_TRUE(make_directories(scratch.file("a/b/c")));
  EXPECT_EQ(fs::status(scratch.file("a/b")).permissions(), fs::perms::owner_all);
  std::ofstream(scratch.file("file")) << "x";
  EXPECT_EQ(make_directories(scratch.file("file")).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(make_directories(scratch.file("file/below")).error().code, ErrorCode::invalid_argument);
}

TEST(Files, ReplacesAndReads) {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("state");
  ASSERT_TRUE(replace_file_durably(path, "old"));
  ASSERT_TRUE(replace_file_durably(path, "new"));
  EXPECT_EQ(read_file(path, 3).value(), "new");
  EXPECT_EQ(read_file(path, 2).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(list_directory(scratch.path(), 10).value(), std::vector<std::string>{"state"}) << "no draft is left";
  ASSERT_TRUE(remove_file_durably(path));
  ASSERT_TRUE(remove_file_durably(path));
  EXPECT_EQ(read_file(path, 3).error().code, ErrorCode::not_found);
}

TEST(Files, ReadingAFifoOrDirectoryIsRefusedAtOnce) {
  const ScratchDirectory scratch;
  ASSERT_EQ(::mkfifo(scratch.file("fifo").c_str(), 0600), 0);
  EXPECT_EQ(read_file(scratch.file("fifo"), 10).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(read_file(scratch.path(), 10).error().code, ErrorCode::invalid_argument);
}

TEST(Files, ListsSortedAndBounded) {
  const ScratchDirectory scratch;
  for (const char* name : {"b", "a", "c"}) std::ofstream(scratch.file(name)) << name;
  EXPECT_EQ(list_directory(scratch.path(), 3).value(), (std::vector<std::string>{"a", "b", "c"}));
  EXPECT_EQ(list_directory(scratch.path(), 2).error().code, ErrorCode::invalid_argument);
}

TEST(SystemError, NamesPathReasonAndRemedy) {
  const Error error = system_error("open", "/x", ENOSPC);
  EXPECT_EQ(error.code, ErrorCode::storage_full);
  EXPECT_EQ(error.message, "cannot open /x: No space left on device; free space on the file system");
}

TEST(Files, AReplacedFileTouchesNothingThatALinkPointsTo) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.file("victim")) << "theirs";
  fs::create_symlink(scratch.file("victim"), scratch.file("name"));
  fs::create_symlink(scratch.file("victim"), fmt::format("{}.{}.tmp", scratch.file("name"), ::getpid()));
  ASSERT_TRUE(replace_file_durably(scratch.file("name"), "ours"));
  EXPECT_EQ(read_file(scratch.file("victim"), 100).value(), "theirs");
  EXPECT_FALSE(fs::is_symlink(scratch.file("name")));
  EXPECT_EQ(read_file(scratch.file("name"), 100).value(), "ours");
}

TEST(Files, SharedDirectoriesAreNotForAllToWrite) {
  const ScratchDirectory scratch;
  const mode_t before = ::umask(0);
  ASSERT_TRUE(make_shared_directories(scratch.file("a/b")));
  ::umask(before);
  for (const char* name : {"a", "a/b"}) {
    struct stat status {};
    ASSERT_EQ(::stat(scratch.file(name).c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 07777, 0755U) << name;
  }
}

/// Whoever could read a file, can read what takes its place, and nobody else.
TEST(Files, AFileLikeAnotherHasItsModeAndItsOwner) {
  const ScratchDirectory scratch;
  const std::string path = scratch.file("a"), other = scratch.file("b");
  const auto status = [](const std::string& of) {
    struct stat found {};
    EXPECT_EQ(::lstat(of.c_str(), &found), 0);
    return found;
  };
  for (const unsigned mode : {0644U, 0600U, 0750U, 0440U, 0777U}) {
    SCOPED_TRACE(mode);
    std::ofstream(path) << "old";
    ASSERT_EQ(::chmod(path.c_str(), mode), 0);
    const bool is_root = ::geteuid() == 0;
    const uid_t user = is_root ? 1234 : ::geteuid();
    const gid_t group = is_root ? 2345 : ::getegid();
    ASSERT_EQ(::chown(path.c_str(), user, group), 0);
    ASSERT_TRUE(replace_file_like(path, "new", path));
    ASSERT_TRUE(write_draft_like(other, "other", path));
    for (const std::string& one : {path, other}) {
      const struct stat is = status(one);
      EXPECT_EQ(is.st_mode & 07777U, mode) << one;
      EXPECT_EQ(is.st_uid, user) << one;
      EXPECT_EQ(is.st_gid, group) << one;
    }
    EXPECT_EQ(read_file(path, 10).value() + read_file(other, 10).value(), "newother");
    fs::remove(path);
  }
  EXPECT_EQ(replace_file_like(path, "", path).error().code, ErrorCode::not_found);
  EXPECT_FALSE(fs::exists(path));
}

}  // namespace
}  // namespace croft::os
