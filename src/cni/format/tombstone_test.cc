#include "cni/format/tombstone.h"

#include <chrono>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire {
namespace {

using testing::HasSubstr;

Tombstone sample() {
  return {"kube:/etc/cni/net.d/croft.kubeconfig",
          {"k8s-pod-network", "5f1", "eth0"},
          WallTime(std::chrono::seconds(1'790'000'000))};
}

TEST(Tombstone, IsAnObjectOnOneLine) {
  EXPECT_EQ(encode(sample()),
            R"({"version":1,"store":"kube:/etc/cni/net.d/croft.kubeconfig","network":"k8s-pod-network",)"
            R"("containerID":"5f1","ifName":"eth0","leftAt":"2026-09-21T14:13:20Z"})"
            "\n");
}

TEST(Tombstone, ComesBackAsItWas) {
  Tombstone strange = sample();
  strange.owner = {"net.with.dots", "c\"\\\n\x01", ""};
  for (const Tombstone& one : {sample(), strange}) {
    const auto back = decode_tombstone(encode(one));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, one);
  }
}

TEST(Tombstone, WhatIsNoneIsNamed) {
  const std::string whole = encode(sample());
  const auto without = [&](const std::string& text, const std::string& instead) {
    std::string changed = whole;
    const auto at = changed.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    return changed.replace(at, text.size(), instead);
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "JSON"},
      {whole.substr(0, whole.size() / 2), "JSON"},
      {"[]", "object"},
      {"{}", "version: is missing"},
      {without(R"("version":1,)", ""), "version: is missing"},
      {without(R"("version":1)", R"("version":0)"), "version"},
      {without(R"("store":"kube:/etc/cni/net.d/croft.kubeconfig",)", ""), "store: is missing"},
      {without(R"("network":"k8s-pod-network")", R"("network":"")"), "network: it is empty"},
      {without(R"("containerID":"5f1",)", ""), "containerID: is missing"},
      {without(R"("5f1")", "7"), "containerID"},
      {without(R"("5f1")", R"("5f1","containerID":"5f2")"), "containerID"},
      {without("2026-09-21T14:13:20Z", "yesterday"), "leftAt"},
      {without("5f1", std::string(1025, 'x')), "containerID"},
  };
  for (const auto& [bytes, word] : cases) {
    const auto read = decode_tombstone(bytes);
    ASSERT_FALSE(read) << bytes;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt) << bytes;
    EXPECT_THAT(read.error().message, HasSubstr(word)) << bytes;
  }
}

TEST(Tombstone, WhatItDoesNotKnowIsPassedOver) {
  std::string bytes = encode(sample());
  bytes.replace(bytes.rfind('}'), 1, R"(,"beganAt":"2026-09-21T14:13:19.5Z"})");
  const auto read = decode_tombstone(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, sample());
}

TEST(Tombstone, ANewerOneIsLeftToNewerPrograms) {
  const auto read = decode_tombstone(R"({"version":2,"store":7})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::newer_version);
}

}  // namespace
}  // namespace croft::wire
