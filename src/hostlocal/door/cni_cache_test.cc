#include <filesystem>
#include <fstream>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hostlocal/door/host_local_facts.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

using testing::HasSubstr;
using testing::SizeIs;
using Netns = core::RuntimeAttachment::Netns;

class CniCacheTest : public testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directory(results()); }
  [[nodiscard]] std::string results() const { return scratch_.path() + "/results"; }
  void write(const std::string& container, const std::string& netns) const {
    std::ofstream(results() + "/net-" + container + "-eth0")
        << R"({"kind":"cniCacheV1","containerId":")" << container << R"(","config":"e30=","ifName":"eth0",)"
        << R"("networkName":"net","netns":")" << netns << R"(","result":{}})";
  }
  [[nodiscard]] std::map<std::string, Netns> looked_at(bool is_the_machine) const {
    std::map<std::string, Netns> found;
    const auto cache = read_cni_caches({scratch_.path()}, is_the_machine);
    for (const auto& entry : cache->attachments.entries) {
      found[entry.owner.container_id] = entry.netns;
    }
    return found;
  }
  os::ScratchDirectory scratch_;
};

TEST_F(CniCacheTest, ReadsAttachmentsAndNamesWhatItCannotRead) {
  EXPECT_EQ(read_cni_caches({scratch_.path() + "/none"}, true).error().code, ErrorCode::not_found);
  write("c1", "");
  std::ofstream(results() + "/net-c2-eth0") << "";
  std::ofstream(results() + "/net-c3-eth0") << R"({"kind":"cniCacheV1"})";
  const auto cache = read_cni_caches({scratch_.path()}, true).value().attachments;
  ASSERT_THAT(cache.entries, SizeIs(1));
  EXPECT_EQ(cache.entries[0].owner, (core::Owner{"net", "c1", "eth0"}));
  ASSERT_THAT(cache.unreadable, SizeIs(2));
  EXPECT_EQ(cache.unreadable[0].name, "net-c2-eth0");
  EXPECT_THAT(cache.unreadable[1].what, HasSubstr("lacks networkName"));
}

TEST_F(CniCacheTest, ReadsSeveralAndWhatMultusKeepsBelowEachOnce) {
  const std::string below = scratch_.path() + "/multus", other = scratch_.path() + "/other";
  for (const std::string& directory : {below, other}) std::filesystem::create_directories(directory + "/results");
  write("c1", "");
  std::filesystem::copy(results() + "/net-c1-eth0", below + "/results/second-c1-eth0");
  std::filesystem::copy(results() + "/net-c1-eth0", other + "/results/third-c1-eth0");
  EXPECT_THAT(read_cni_caches({scratch_.path()}, true).value().attachments.entries, SizeIs(2));
  EXPECT_THAT(read_cni_caches({scratch_.path(), below, other, other}, true).value().attachments.entries, SizeIs(3));
  EXPECT_EQ(read_cni_caches({scratch_.path(), scratch_.path() + "/none"}, true).error().code, ErrorCode::not_found);
}

TEST_F(CniCacheTest, LooksWhetherTheNamespacesAreThere) {
  const std::string left = scratch_.path() + "/left";
  std::ofstream(left) << "";
  write("here", "/proc/self/ns/net");
  write("gone", scratch_.path() + "/gone");
  write("unmounted", left);
  write("other", scratch_.path());
  write("unsaid", "");
  const auto found = looked_at(true);
  EXPECT_EQ(found.at("here"), Netns::present);
  EXPECT_EQ(found.at("gone"), Netns::gone);
  EXPECT_EQ(found.at("unmounted"), Netns::gone);
  EXPECT_EQ(found.at("other"), Netns::unclear);
  EXPECT_EQ(found.at("unsaid"), Netns::unclear);
  // Where this process sees less than the machine has, absence says nothing.
  const auto cache = read_cni_caches({scratch_.path()}, false).value();
  if (!cache.blind_because.empty()) {
    for (const auto& [container, netns] : looked_at(false)) EXPECT_NE(netns, Netns::gone) << container;
  }
}

}  // namespace
}  // namespace croft::edge
