#include "cni/format/cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::wire::cni {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(CniCacheEntry, EverythingThatLibcniWrites) {
  const auto entry = read_whole_cache_entry(
      R"({"kind":"cniCacheV1","containerId":"c1","config":"eyJhIjoiPz4ifQ==","ifName":"eth0","networkName":"net",)"
      R"("netns":"/run/netns/x","cniArgs":[["IgnoreUnknown","1"],["K8S_POD_NAMESPACE","default"],)"
      R"(["K8S_POD_NAME","web"],["K8S_POD_UID","u-1"]],"capabilityArgs":{"ipRanges":[[{"subnet":"10.1.0.0/24"}]]},)"
      R"("result":{"ips":[{"address":"10.1.0.2/24"},{"address":"fd00::2/64"}]}})");
  ASSERT_TRUE(entry) << entry.error().message;
  EXPECT_EQ(entry->owner, (core::Owner{"net", "c1", "eth0"}));
  EXPECT_EQ(entry->netns, "/run/netns/x");
  EXPECT_EQ(entry->pod, (core::PodIdentity{"web", "default", "u-1"}));
  EXPECT_THAT(entry->addresses, ElementsAre(address("10.1.0.2"), address("fd00::2")));
  EXPECT_EQ(entry->config, R"({"a":"?>"})");
  EXPECT_EQ(entry->capability_args, R"({"ipRanges":[[{"subnet":"10.1.0.0/24"}]]})");
}

TEST(CniCacheEntry, ResultsBeforeVersion03) {
  const auto entry = read_whole_cache_entry(R"({"containerId":"c1","ifName":"eth0","networkName":"net",)"
                                            R"("result":{"ip4":{"ip":"10.1.0.2/24"},"ip6":{"ip":"fd00::2/64"}}})");
  EXPECT_THAT(entry->addresses, ElementsAre(address("10.1.0.2"), address("fd00::2")));
}

TEST(CniCacheEntry, WithoutNetnsTheSandboxOfTheResultCounts) {
  const auto netns = [](const std::string& members) {
    return read_whole_cache_entry(R"({"containerId":"c1","ifName":"eth0","networkName":"net",)" + members + "}")->netns;
  };
  const std::string result =
      R"("result":{"interfaces":[{"name":"br0"},7,{"name":"eth0","sandbox":"/a"},{"name":"eth1","sandbox":"/b"}]})";
  EXPECT_EQ(netns(result), "/a");
  EXPECT_EQ(netns(result + R"(,"netns":"/c")"), "/c");
  EXPECT_EQ(netns(R"("result":{"interfaces":null})"), "");
}

TEST(CniCacheEntry, WhatHasAnotherShapeStaysEmpty) {
  const auto entry = read_whole_cache_entry(
      R"({"containerId":"c1","ifName":"eth0","networkName":"net","netns":7,"cniArgs":[7,[],["K8S_POD_NAME"],)"
      R"(["K8S_POD_NAME",1]],"config":"*","capabilityArgs":[],"result":{"ips":[7,{"address":"x"}],"ip4":null}})");
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->netns, "");
  EXPECT_EQ(entry->pod, core::PodIdentity());
  EXPECT_EQ(entry->config, "");
  EXPECT_EQ(entry->capability_args, "");
  EXPECT_THAT(entry->addresses, IsEmpty());
}

TEST(CniCacheEntry, ALaterMemberReplacesTheOneBeforeIt) {
  const auto read = [](const std::string& members) {
    const auto entry =
        read_whole_cache_entry(R"({"containerId":"c1","ifName":"eth0","networkName":"net",)" + members + "}");
    EXPECT_TRUE(entry) << members;
    return entry.value_or(CacheEntry{});
  };
  // A gone namespace before the one that lives: who believes the first calls a live pod gone.
  EXPECT_EQ(read(R"("result":{"interfaces":[{"sandbox":"/gone"}],"interfaces":[{"sandbox":"/lives"}]})").netns,
            "/lives");
  EXPECT_EQ(read(R"("result":{"interfaces":[{"sandbox":"/gone"}]},"result":{"ips":[]})").netns, "");
  EXPECT_EQ(read(R"("cniArgs":[["K8S_POD_NAME","a"],["K8S_POD_UID","u"]],"cniArgs":[["K8S_POD_NAME","b"]])").pod,
            (core::PodIdentity{"b", "", ""}));
  EXPECT_THAT(read(R"("result":{"ips":[{"address":"10.1.0.2/24","address":"10.1.0.3/24"}]})").addresses,
              ElementsAre(address("10.1.0.3")));
  EXPECT_THAT(read(R"("result":{"ip4":{"ip":"10.1.0.2/24"},"ip4":{"ip":"10.1.0.3/24"}})").addresses,
              ElementsAre(address("10.1.0.3")));
  EXPECT_EQ(read(R"("cniArgs":[["K8S_POD_NAME","a",7]])").pod.name, "a");
}

TEST(CniCacheEntry, ElementsWithoutAnAddressTakeNoRoom) {
  std::string ips;
  for (std::size_t i = 0; i < kCachedAddressesMax; ++i) ips += "{},";
  const auto entry =
      read_whole_cache_entry(R"({"containerId":"c1","ifName":"eth0","networkName":"net","result":{"ips":[)" + ips +
                             R"({"address":"10.1.0.2/24"}]}})");
  ASSERT_TRUE(entry);
  EXPECT_THAT(entry->addresses, ElementsAre(address("10.1.0.2")));
}

TEST(CniCacheEntry, EmptyCutOrOfAnotherKind) {
  for (const char* bytes :
       {"", "{\"containerId\":\"c1\",\"ifNa", "[]", "{}", "null", R"({"containerId":"c1","ifName":"eth0"})"}) {
    EXPECT_FALSE(read_whole_cache_entry(bytes)) << bytes;
  }
  EXPECT_FALSE(read_whole_cache_entry(std::string(100'000, '[')));
  EXPECT_THAT(read_whole_cache_entry("{}").error().message, HasSubstr("lacks networkName"));
}

}  // namespace
}  // namespace croft::wire::cni
