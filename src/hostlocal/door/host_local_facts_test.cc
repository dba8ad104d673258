#include "hostlocal/door/host_local_facts.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <thread>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/network_namespaces.h"
#include "os/scratch_directory.h"

namespace croft::edge {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Netns = core::RuntimeAttachment::Netns;

class HostLocalFacts : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& content) const {
    const std::filesystem::path path = scratch_.path() + "/" + name;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << content;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return scratch_.path() + "/" + name; }

  os::ScratchDirectory scratch_;
};

std::string cached(const std::string& container, const std::string& netns, const std::string& config_base64 = "") {
  return R"({"kind":"cniCacheV1","networkName":"net","ifName":"eth0","containerId":")" + container + R"(","netns":")" +
         netns + R"(","config":")" + config_base64 + R"("})";
}

TEST_F(HostLocalFacts, TheCacheAndTheNamespacesOfItsEntries) {
  core::host_local::SignsOfLife life;
  EXPECT_EQ(read_cached_attachments(path("cache"), life).error().code, ErrorCode::not_found);
  write("cache/results/net-a-eth0", cached("a", "/proc/self/ns/net"));
  write("cache/results/net-b-eth0", cached("b", path("gone")));
  write("cache/results/net-c-eth0", cached("c", path("cache")));
  write("cache/results/net-d-eth0", cached("d", ""));
  write("cache/results/net-e-eth0", cached("e", "/proc/self/ns/mnt"));
  write("cache/results/net-f-eth0", "");
  ASSERT_TRUE(read_cached_attachments(path("cache"), life));
  std::vector<Netns> netns;
  for (const auto& attachment : life.attachments) netns.push_back(attachment.netns);
  EXPECT_THAT(netns, ElementsAre(Netns::present, Netns::gone, Netns::unclear, Netns::unclear, Netns::unclear));
  ASSERT_EQ(life.unreadable.size(), 1U);
  EXPECT_EQ(life.unreadable[0].name, "net-f-eth0");
  EXPECT_THAT(life.unreadable[0].what, HasSubstr("/cache/results/net-f-eth0: "));
  EXPECT_THAT(life.unseen, IsEmpty());
}

TEST_F(HostLocalFacts, OwnNamespaceIsLookedAtFromAThreadOfItsOwn) {
  const auto before = std::filesystem::read_symlink("/proc/thread-self/ns/net");
  core::host_local::SignsOfLife life;
  add_namespace_addresses(true, life);
  EXPECT_EQ(std::filesystem::read_symlink("/proc/thread-self/ns/net"), before);
  // Without root even the own namespace can't be entered; then that is said.
  if (life.namespaces == 0) {
    EXPECT_THAT(life.unseen, Not(IsEmpty()));
  }
}

TEST_F(HostLocalFacts, SetsComeFromTheFirstSourceThatHasThem) {
  // {"name":"net","ipam":{"type":"host-local","subnet":"10.3.0.0/24"}}
  constexpr const char* kConfig =
      "eyJuYW1lIjoibmV0IiwiaXBhbSI6eyJ0eXBlIjoiaG9zdC1sb2NhbCIsInN1Ym5ldCI6IjEwLjMuMC4wLzI0In19";
  const auto plugin = [](const std::string& name, const std::string& subnet) {
    return R"({"name":")" + name + R"(","type":"bridge","ipam":{"type":"host-local","subnet":")" + subnet + R"("}})";
  };
  SetSources sources{"", "net", {path("cache"), path("none")}, path("net.d")};
  const auto found = [&] { return find_range_sets(sources).value(); };
  EXPECT_THAT(found().sets, IsEmpty());

  write("net.d/05-other.conf", plugin("other", "10.5.0.0/24"));
  write("net.d/06-bad.conf", plugin("net", "10.5.0.0/99"));
  write("net.d/10-net.conflist", plugin("net", "10.1.0.0/24"));
  write("net.d/20-net.conf", plugin("net", "10.9.0.0/24"));
  EXPECT_EQ(found().sets[0].to_string(), "10.1.0.1-10.1.0.254");
  EXPECT_EQ(found().source, path("net.d/10-net.conflist"));
  EXPECT_THAT(found().unusable, ElementsAre(HasSubstr("06-bad.conf: invalid CIDR")));

  write("cache/flannel/c1", plugin("net", "10.2.0.0/24"));
  EXPECT_EQ(found().sets[0].to_string(), "10.2.0.1-10.2.0.254");

  write("cache/results/net-old-eth0", "");
  write("cache/results/net-c1-eth0", cached("c1", "", kConfig));
  EXPECT_EQ(found().sets[0].to_string(), "10.3.0.1-10.3.0.254");

  sources.config_file = path("net.d/05-other.conf");
  EXPECT_EQ(found().sets[0].to_string(), "10.5.0.1-10.5.0.254");
  sources.config_file = path("cache/results/net-old-eth0");
  EXPECT_FALSE(find_range_sets(sources));
}

class CniCacheTest : public HostLocalFacts {
 protected:
  void write_entry(const std::string& container, const std::string& netns) const {
    write("results/net-" + container + "-eth0", cached(container, netns, "e30="));
  }
  [[nodiscard]] std::map<std::string, Netns> looked_at(bool is_the_machine) const {
    std::map<std::string, Netns> found;
    const auto cache = read_cni_caches({scratch_.path()}, is_the_machine);
    for (const auto& entry : cache->attachments.entries) {
      found[entry.owner.container_id] = entry.netns;
    }
    return found;
  }
};

TEST_F(CniCacheTest, ReadsAttachmentsAndNamesWhatItCannotRead) {
  EXPECT_EQ(read_cni_caches({path("none")}, true).error().code, ErrorCode::not_found);
  write_entry("c1", "");
  write("results/net-c2-eth0", "");
  write("results/net-c3-eth0", R"({"kind":"cniCacheV1"})");
  const auto cache = read_cni_caches({scratch_.path()}, true).value().attachments;
  ASSERT_THAT(cache.entries, SizeIs(1));
  EXPECT_EQ(cache.entries[0].owner, (core::Owner{"net", "c1", "eth0"}));
  ASSERT_THAT(cache.unreadable, SizeIs(2));
  EXPECT_EQ(cache.unreadable[0].name, "net-c2-eth0");
  EXPECT_THAT(cache.unreadable[1].what, HasSubstr("lacks networkName"));
}

TEST_F(CniCacheTest, ReadsSeveralAndWhatMultusKeepsBelowEachOnce) {
  const std::string below = path("multus"), other = path("other");
  for (const std::string& directory : {below, other}) std::filesystem::create_directories(directory + "/results");
  write_entry("c1", "");
  std::filesystem::copy(path("results/net-c1-eth0"), below + "/results/second-c1-eth0");
  std::filesystem::copy(path("results/net-c1-eth0"), other + "/results/third-c1-eth0");
  EXPECT_THAT(read_cni_caches({scratch_.path()}, true).value().attachments.entries, SizeIs(2));
  EXPECT_THAT(read_cni_caches({scratch_.path(), below, other, other}, true).value().attachments.entries, SizeIs(3));
  EXPECT_EQ(read_cni_caches({scratch_.path(), path("none")}, true).error().code, ErrorCode::not_found);
}

TEST_F(CniCacheTest, LooksWhetherTheNamespacesAreThere) {
  write("left", "");
  write_entry("here", "/proc/self/ns/net");
  write_entry("gone", path("gone"));
  write_entry("unmounted", path("left"));
  write_entry("other", scratch_.path());
  write_entry("unsaid", "");
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
