#include "edge/cni_cache.h"

#include <filesystem>
#include <fstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CniCache, ReadsAttachmentsAndNamesWhatItCannotRead) {
  const os::ScratchDirectory scratch;
  EXPECT_EQ(read_cni_cache(scratch.path()).error().code, ErrorCode::not_found);
  const std::string results = scratch.path() + "/results";
  std::filesystem::create_directory(results);
  std::ofstream(results + "/net-c1-eth0")
      << R"({"kind":"cniCacheV1","containerId":"c1","config":"e30=","ifName":"eth0","networkName":"net","result":{}})";
  std::ofstream(results + "/net-c2-eth0") << "";
  std::ofstream(results + "/net-c3-eth0") << R"({"kind":"cniCacheV1"})";
  const auto cache = read_cni_cache(scratch.path()).value();
  EXPECT_THAT(cache.attachments, ElementsAre(core::Owner{"net", "c1", "eth0"}));
  EXPECT_THAT(cache.unreadable, ElementsAre(HasSubstr("net-c2-eth0"), HasSubstr("lacks networkName")));
}

}  // namespace
}  // namespace croft::edge
