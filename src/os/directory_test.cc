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

TEST(Directory, AFileIsReadWhole) {
  const ScratchDirectory scratch;
  const Directory directory = Directory::open(scratch.path()).value();
  const std::string long_text(5000, 'x');
  for (const std::string& text : {std::string(), std::string("short"), std::string(1024, 'y'), long_text}) {
    std::ofstream(scratch.file("a")) << text;
    WallTime modified;
    EXPECT_EQ(directory.read_own("a", 1 << 20, &modified).value(), (SmallFile{true, false, text}));
    EXPECT_EQ(modified, directory.modified("a").value());
  }
  EXPECT_EQ(directory.read("a", 100).value(), (SmallFile{true, true, long_text.substr(0, 100)}));
  EXPECT_FALSE(directory.read("none", 100).value());
  fs::create_directory(scratch.file("d"));
  fs::create_symlink("loop", scratch.file("loop"));
  for (const char* const name : {"d", "loop"}) EXPECT_FALSE(directory.read(name, 100).value()->regular) << name;
}

/// Whatever has the name of a small file: no content that is none, and no wait.
TEST(Directory, WhatIsNoRegularFileHasNoContentAlsoWhenSomethingCanBeRead) {
  const ScratchDirectory scratch;
  const Directory directory = Directory::open(scratch.path()).value();
  ASSERT_EQ(::mkfifo(scratch.file("fifo").c_str(), 0600), 0);
  const FileDescriptor writer(::open(scratch.file("fifo").c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
  fs::create_symlink("/dev/zero", scratch.file("zero"));
  fs::create_symlink("fifo", scratch.file("link"));
  for (const char* const name : {"fifo", "zero", "link"}) {
    ASSERT_EQ(::write(writer.get(), "dummy", 5), 5);
    EXPECT_EQ(directory.read(name, 100).value(), (SmallFile{false, false, {}})) << name;
    EXPECT_EQ(directory.read_own(name, 100).value(), (SmallFile{false, false, {}})) << name;
  }
}

TEST(Directory, ReadsNothingThroughALinkWhereTheFileItselfIsWanted) {
  const ScratchDirectory scratch;
  const Directory directory = Directory::open(scratch.path()).value();
  std::ofstream(scratch.file("a")) << "text";
  fs::create_symlink("a", scratch.file("link"));
  fs::create_directory(scratch.file("d"));
  EXPECT_EQ(directory.read("link", 100).value(), (SmallFile{true, false, "text"}));
  EXPECT_EQ(directory.read_own("link", 100).value(), (SmallFile{false, false, {}}));
  EXPECT_EQ(directory.read_own("d", 100).value(), (SmallFile{false, false, {}}));
  EXPECT_EQ(directory.read_own("a", 100).value(), (SmallFile{true, false, "text"}));
  EXPECT_EQ(directory.read_own("a", 3).value(), (SmallFile{true, true, "tex"}));
  EXPECT_FALSE(directory.read_own("none", 100).value());
}

// What /proc says of its files' sizes is 0.
TEST(Directory, AFileWithoutASizeIsReadToItsEnd) {
  const Directory directory = Directory::open("/proc/self").value();
  const auto file = directory.read("status", 1 << 20).value();
  EXPECT_EQ(file->content.substr(0, 5), "Name:");
  EXPECT_EQ(file->content.back(), '\n');
}

}  // namespace
}  // namespace croft::os
