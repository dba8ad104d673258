#include "os/log_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "os/scratch_directory.h"

namespace croft::os {
namespace {

namespace fs = std::filesystem;

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
