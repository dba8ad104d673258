#include "cni/format/containerd.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire::cni {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// As Debian 12's package has it.
TEST(Containerd, DirectoriesOfDebian) {
  EXPECT_THAT(plugin_directories_of_containerd(R"(version = 2

[plugins]
  [plugins."io.containerd.grpc.v1.cri"]
    [plugins."io.containerd.grpc.v1.cri".cni]
      bin_dir = "/usr/lib/cni"
      conf_dir = "/etc/cni/net.d"
  [plugins."io.containerd.internal.v1.opt"]
    path = "/var/lib/containerd/opt"
)"),
              ElementsAre("/usr/lib/cni"));
}

TEST(Containerd, DirectoriesOfOtherVersions) {
  EXPECT_THAT(plugin_directories_of_containerd("[plugins.cri.cni]\nbin_dir='/opt/x'\n"), ElementsAre("/opt/x"));
  EXPECT_THAT(plugin_directories_of_containerd(
                  "version = 3\r\n[plugins.'io.containerd.cri.v1.runtime'.cni]\r\n  bin_dir = ''\r\n"
                  "  bin_dirs = ['/opt/cni/bin', \"/usr/lib/cni\"] # both\r\n"),
              ElementsAre("/opt/cni/bin", "/usr/lib/cni"));
  EXPECT_THAT(plugin_directories_of_containerd(
                  "[plugins.'io.containerd.cri.v1.runtime'.cni]\nbin_dirs = [\n  '/a', # one\n  '/b',\n]\n"
                  "conf_dir = '/c'\n"),
              ElementsAre("/a", "/b"));
}

TEST(Containerd, WhatSaysNone) {
  for (const char* text :
       {"", "bin_dir = \"/x\"", "[plugins.cri.cni]\n# bin_dir = \"/x\"\nbin_dir = \"rel\"",
        "[plugins.cri.cni]\nbin_dir = \"/x", "[plugins.cri.cni.y]\nbin_dir = \"/x\"",
        "[plugins.other.cni]\nbin_dir = \"/x\"", "[plugins.cri.cni]\n[plugins.opt]\nbin_dir = \"/x\"", "[", "]", "=",
        "[plugins.cri.cni", "[plugins.cri.cni]\nbin_dirs = [", "bin_dir"}) {
    EXPECT_THAT(plugin_directories_of_containerd(text), IsEmpty()) << text;
  }
}

}  // namespace
}  // namespace croft::wire::cni
