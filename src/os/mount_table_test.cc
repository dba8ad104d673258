#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/network_namespaces.h"

namespace croft::os {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<NamespaceMount> mounts(std::string_view table) {
  std::vector<NamespaceMount> found;
  for_each_namespace_mount(table, [&](const NamespaceMount& mount) { found.push_back(mount); });
  return found;
}

TEST(MountTable, NetworkNamespacesOnly) {
  EXPECT_THAT(
      mounts("22 28 0:20 / /sys rw,nosuid shared:7 - sysfs sysfs rw\n"
             "585 24 0:4 net:[4026532281] /run/netns/a rw shared:300 - nsfs nsfs rw\n"
             "586 24 0:4 mnt:[4026532282] /run/mnt/a rw - nsfs nsfs rw\n"
             "587 24 0:4 net:[4026532283] /var/run/netns/b rw - nsfs nsfs rw\n"),
      ElementsAre(NamespaceMount{"4026532281", "/run/netns/a"}, NamespaceMount{"4026532283", "/var/run/netns/b"}));
}

TEST(MountTable, TheLastLineNeedsNoEnd) {
  EXPECT_THAT(mounts("1 2 0:4 net:[5] /a"), ElementsAre(NamespaceMount{"5", "/a"}));
}

TEST(MountTable, ThreeOctalDigitsAreOneByte) {
  EXPECT_THAT(mounts("1 2 0:4 net:[5] /a\\040b\\134c\\012\\011d rw\n"),
              ElementsAre(NamespaceMount{"5", "/a b\\c\n\td"}));
  EXPECT_THAT(mounts("1 2 0:4 net:[5] /\\303\\244 rw\n"), ElementsAre(NamespaceMount{"5", "/\xc3\xa4"}));
}

TEST(MountTable, OtherBackslashesStay) {
  for (const char* path : {"/\\", "/\\04", "/\\08a", "/\\400", "/\\777", "/\\x41"}) {
    EXPECT_THAT(mounts("1 2 0:4 net:[5] " + std::string(path)), ElementsAre(NamespaceMount{"5", path}));
  }
}

TEST(MountTable, WhatIsNoMountIsPassedOver) {
  EXPECT_THAT(mounts(""), IsEmpty());
  EXPECT_THAT(mounts("\n\n \n"), IsEmpty());
  for (const char* line : {"net:[5] /a", "1 2 0:4 net:[5]", "1 2 0:4 net:[5] ", "1 2 0:4 net:[5] a", "1 2 0:4 net:[ /a",
                           "1 2 0:4 net:[] /a", "1 2 0:4 net:[x] /a", "1 2 0:4 net:[5 /a", "1 2 0:4 /net:[5] /a"}) {
    EXPECT_THAT(mounts(line), IsEmpty()) << line;
  }
}

}  // namespace
}  // namespace croft::os
