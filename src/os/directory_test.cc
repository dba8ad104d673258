#include "os/directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "os/scratch_directory.h"

namespace croft::os {
namespace {

namespace fs = std::filesystem;

TEST(Directory, ADraftGetsItsNameAlsoWhenAnotherCallUsesTheSameDraftName) {
  const ScratchDirectory scratch;
  const Directory directory = Directory::open(scratch.path()).value();
  const auto first = directory.create_draft(".draft", "first", 0600);
  const auto second = directory.create_draft(".draft", "second", 0600);
  ASSERT_TRUE(first && second);
  const auto named = directory.name_draft(*first, "a");
  if (named) {
    EXPECT_EQ(ScratchDirectory::content_of(scratch.file("a")), "first") << "never the other one's";
  }
  ASSERT_TRUE(directory.name_draft(*second, "b").value());
  EXPECT_EQ(ScratchDirectory::content_of(scratch.file("b")), "second");
}

TEST(Directory, ADraftTakesNoNameThatIsInUseAndLeavesNone) {
  const ScratchDirectory scratch;
  const Directory directory = Directory::open(scratch.path()).value();
  std::ofstream(scratch.file("a")) << "there";
  {
    const auto draft = directory.create_draft(".draft", "new", 0600);
    EXPECT_FALSE(directory.name_draft(*draft, "a").value());
  }
  EXPECT_EQ(ScratchDirectory::content_of(scratch.file("a")), "there");
  EXPECT_FALSE(fs::exists(scratch.file(".draft")));
}

TEST(Directory, ErrorsNameWhatIsInTheWay) {
  const ScratchDirectory scratch;
  std::ofstream(scratch.file("file")) << "x";
  EXPECT_EQ(Directory::make(scratch.file("file/d/net")).error().message,
            "mkdir " + scratch.file("file") + ": not a directory");
  fs::create_symlink("nowhere", scratch.file("link"));
  EXPECT_EQ(Directory::make(scratch.file("link")).error().message, "mkdir " + scratch.file("link") + ": file exists");
  EXPECT_EQ(Directory::open(scratch.file("none")).error().code, ErrorCode::not_found);
  EXPECT_TRUE(Directory::make(scratch.file("a/b/c")));
}

TEST(Directory, AnEntryThatComesMakesBothTimesEqualAndAMarkDoesNot) {
  const ScratchDirectory scratch;
  const Directory directory = Directory::open(scratch.path()).value();
  const auto marked = directory.set_modified(1'700'000'000'123'456'789).value();
  EXPECT_NE(marked.modified_ns, marked.changed_ns);
  std::ofstream(scratch.file("new")) << "x";
  const auto after = directory.stamp().value();
  EXPECT_EQ(after.modified_ns, after.changed_ns);
}

TEST(ReadNamedFile, ReadsADeviceAndRefusesADirectory) {
  const ScratchDirectory scratch;
  EXPECT_EQ(read_named_file("/dev/null", 100).value(), "");
  EXPECT_EQ(read_named_file(scratch.path(), 100).error().message, "read " + scratch.path() + ": is a directory");
}

TEST(Directory, OverwritesNoTargetOfALinkAndNoDevice) {
  const ScratchDirectory scratch;
  const auto directory = Directory::open(scratch.path()).value();
  std::ofstream(scratch.file("victim")) << "theirs, and longer";
  fs::create_symlink(scratch.file("victim"), scratch.file("cursor"));
  ASSERT_TRUE(directory.overwrite("cursor", "ours", 0600));
  EXPECT_EQ(directory.read("victim", 100).value()->content, "theirs, and longer");
  EXPECT_EQ(directory.read("cursor", 100).value()->content, "ours");
  EXPECT_FALSE(fs::is_symlink(scratch.file("cursor")));
  ASSERT_EQ(::mkfifo(scratch.file("fifo").c_str(), 0600), 0);
  const FileDescriptor reader(::open(scratch.file("fifo").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  EXPECT_FALSE(directory.overwrite("fifo", "ours", 0600));
}

}  // namespace
}  // namespace croft::os
