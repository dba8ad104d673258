#include "store/format/pause.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire {
namespace {

using core::Pause;
using testing::HasSubstr;

TEST(PauseBytes, ComeBackAsTheyWere) {
  for (const auto phase : {Pause::Phase::copying, Pause::Phase::moved, Pause::Phase::filling}) {
    const Pause pause{phase, "etcd:https://10.0.0.1:2379", WallTime(std::chrono::seconds(1800000000))};
    const auto read = decode_pause(encode_pause(pause));
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, pause);
  }
}

TEST(PauseBytes, AreOneObject) {
  EXPECT_EQ(encode_pause({Pause::Phase::filling, "kube:/etc/k", WallTime{}}),
            R"({"version":1,"phase":"filling","other":"kube:/etc/k","since":"1970-01-01T00:00:00Z"})");
}

TEST(PauseBytes, AreRefusedWhereTheyAreNot) {
  const std::string good = encode_pause({Pause::Phase::moved, "kube:", WallTime{}});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto read = decode_pause(text);
    EXPECT_FALSE(read) << text;
    if (read) return std::string();
    const char* remedy = read.error().code == ErrorCode::newer_version ? "go on with the version of Croft that put it"
                                                                       : "docs/runbooks/migrate.md#damaged-pause";
    EXPECT_THAT(read.error().message, HasSubstr(remedy));
    return read.error().message;
  };
  EXPECT_THAT(with("moved", "gone"), HasSubstr("phase"));
  EXPECT_THAT(with("\"version\":1,", ""), HasSubstr("missing"));
  EXPECT_THAT(with("\"version\":1", "\"version\":2"), HasSubstr("newer"));
  EXPECT_THAT(with("\"other\"", "\"otter\""), HasSubstr("other"));
  EXPECT_THAT(with("1970-", "19x0-"), HasSubstr("since"));
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(decode_pause(good.substr(0, length)));
}

}  // namespace
}  // namespace croft::wire
