#include "os/files.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "os/log_file.h"
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

constexpr const char* kLine = "2026-01-15 10:00:01.5 +0000 UTC ADD network=net ok us=5 address=10.0.0.1";

void write(const std::string& path, const std::string& text, mode_t mode = 0640) {
  std::ofstream(path) << text;
  ASSERT_EQ(::chmod(path.c_str(), mode), 0);
}

class LogFile : public ::testing::Test {
 protected:
  [[nodiscard]] std::string directory() const { return scratch_.file("log"); }
  [[nodiscard]] std::string in_log(const std::string& name) const { return directory() + "/" + name; }
  [[nodiscard]] LogPlace place(const std::string& file = "") const { return {directory(), "ipam.log", file}; }
  ScratchDirectory scratch_;
};

TEST_F(LogFile, MakesItsDirectoryAndFile) {
  append_log_line(place(), kLine);
  EXPECT_EQ(ScratchDirectory::content_of(in_log("ipam.log")), std::string(kLine) + "\n");
  struct stat status {};
  ASSERT_EQ(::stat(in_log("ipam.log").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0640U);
  append_log_line(place(in_log("other.log")), std::string(kLine) + "\x1b[2J\n");
  EXPECT_EQ(ScratchDirectory::content_of(in_log("other.log")), std::string(kLine) + "\\x1b[2J\\x0a\n");
}

TEST_F(LogFile, APathOutsideGoesToTheDefaultFileAndIsNamedThere) {
  fs::create_directory(scratch_.file("log2"));
  for (const std::string& path :
       {scratch_.file("elsewhere"), in_log("../elsewhere"), in_log("./a.log"), in_log(""), in_log("no/such.log"),
        scratch_.file("log2/a.log"), std::string("relative"), directory()}) {
    append_log_line(place(path), kLine);
    const std::string text = ScratchDirectory::content_of(in_log("ipam.log"));
    EXPECT_NE(text.find("log_file_path=\"" + path + "\" is no log of ours below"), std::string::npos) << path << text;
    fs::remove(in_log("ipam.log"));
  }
  EXPECT_FALSE(fs::exists(scratch_.file("elsewhere")));
  EXPECT_FALSE(fs::exists(scratch_.file("log2/a.log")));
  EXPECT_FALSE(fs::exists("relative"));
}

TEST_F(LogFile, FollowsNoLink) {
  fs::create_directories(in_log("sub"));
  fs::create_directory(scratch_.file("target"));
  fs::create_directory_symlink(scratch_.file("target"), in_log("link"));
  write(scratch_.file("victim"), "");
  fs::create_symlink(scratch_.file("victim"), in_log("link.log"));
  fs::create_hard_link(scratch_.file("victim"), in_log("hard.log"));
  for (const char* name : {"link/a.log", "link.log", "hard.log"}) append_log_line(place(in_log(name)), kLine);
  EXPECT_EQ(ScratchDirectory::content_of(scratch_.file("victim")), "");
  EXPECT_TRUE(fs::is_empty(scratch_.file("target")));
  append_log_line(place(in_log("sub/a.log")), kLine);
  EXPECT_EQ(ScratchDirectory::content_of(in_log("sub/a.log")), std::string(kLine) + "\n");
}

TEST_F(LogFile, WritesAndRotatesOwnFilesOnly) {
  fs::create_directory(directory());
  write(in_log("messages"), "Jan 15 10:00:01 host kernel: hello\n");
  write(in_log("dpkg.log"), "2026-01-15 10:00:01 startup packages configure\n");
  write(in_log("open.log"), std::string(kLine) + "\n", 0666);
  ASSERT_EQ(::mkfifo(in_log("fifo").c_str(), 0600), 0);
  for (const char* name : {"messages", "dpkg.log", "open.log", "fifo"}) {
    const auto before = fs::is_fifo(in_log(name)) ? std::string() : ScratchDirectory::content_of(in_log(name));
    append_log_line(place(in_log(name)), kLine, 1);
    if (!fs::is_fifo(in_log(name))) {
      EXPECT_EQ(ScratchDirectory::content_of(in_log(name)), before) << name;
    }
    EXPECT_FALSE(fs::exists(in_log(name) + ".1")) << name;
  }
  append_log_line(place(in_log("own.log")), kLine);
  append_log_line(place(in_log("own.log")), kLine, 1);
  EXPECT_EQ(ScratchDirectory::content_of(in_log("own.log")), std::string(kLine) + "\n");
  EXPECT_EQ(ScratchDirectory::content_of(in_log("own.log.1")), std::string(kLine) + "\n");
  append_log_line(place(in_log("own.log")), kLine, 1);
  EXPECT_EQ(ScratchDirectory::content_of(in_log("own.log.1")), std::string(kLine) + "\n");
}

TEST_F(LogFile, RotatesOverNothingOfOthers) {
  fs::create_directory(directory());
  write(in_log("own.log"), std::string(kLine) + "\n");
  write(in_log("own.log.1"), "somebody's\n");
  append_log_line(place(in_log("own.log")), kLine, 1);
  EXPECT_EQ(ScratchDirectory::content_of(in_log("own.log")), std::string(kLine) + "\n");
  EXPECT_EQ(ScratchDirectory::content_of(in_log("own.log.1")), "somebody's\n");
}

TEST_F(LogFile, ADirectoryThatIsNoPathTurnsItOff) {
  append_log_line({"none", "ipam.log", ""}, kLine);
  append_log_line({"", "ipam.log", scratch_.file("a.log")}, kLine);
  EXPECT_FALSE(fs::exists("none"));
  EXPECT_FALSE(fs::exists(scratch_.file("a.log")));
}

}  // namespace

}  // namespace croft::os
