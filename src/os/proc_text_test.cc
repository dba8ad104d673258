#include "os/proc_text.h"

#include <string>
#include <string_view>

#include <gtest/gtest.h>

namespace croft::os {
namespace {

TEST(BootIdText, ReadsAUuid) {
  const BootId id = parse_boot_id("01234567-89ab-cdef-0011-2233445566ff");
  EXPECT_EQ(id,
            (BootId{{{0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef, 0, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0xff}}}));
}

TEST(BootIdText, AnythingElseIsUnknown) {
  for (const char* text : {"", "-", "0123456789abcdef00112233445566f", "0123456789abcdef00112233445566ff0",
                           "0123456789ABCDEF00112233445566FF", "01234567-89ab-cdef-0011-2233445566f ", "unknown"}) {
    EXPECT_EQ(parse_boot_id(text), BootId{}) << text;
  }
}

constexpr std::string_view kLocks =
    "1: POSIX  ADVISORY  WRITE 41 00:19:700 0 EOF\n"
    "2: FLOCK  ADVISORY  READ  42 00:19:700 0 EOF\n"
    "3: FLOCK  ADVISORY  WRITE 43 00:19:1700 0 EOF\n"
    "4: FLOCK  ADVISORY  WRITE 4030 00:19:700 0 EOF\n"
    "4: -> FLOCK  ADVISORY  WRITE 44 00:19:9 0 EOF\n";

TEST(FlockHolder, IsWhoHasTheLockForWriting) {
  EXPECT_EQ(flock_holder(kLocks, 700), "4030");
  EXPECT_EQ(flock_holder(kLocks, 1700), "43");
}

TEST(FlockHolder, NobodyWhenTheKernelDoesNotSay) {
  for (const unsigned inode : {0U, 9U, 41U, 70U}) EXPECT_EQ(flock_holder(kLocks, inode), "") << inode;
  EXPECT_EQ(flock_holder("", 700), "");
  for (const char* line : {"1: FLOCK  ADVISORY  WRITE 00:19:700 0 EOF", "1: FLOCK  ADVISORY  WRITE 0 00:19:700 0 EOF",
                           "1: FLOCK  ADVISORY  WRITE -1 00:19:700 0 EOF", "1: FLOCK  ADVISORY  WRITE", "\n\n"}) {
    EXPECT_EQ(flock_holder(line, 700), "") << line;
  }
}

}  // namespace
}  // namespace croft::os
