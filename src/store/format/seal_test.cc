#include "store/format/seal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::wire {
namespace {

using core::Seal;
using testing::HasSubstr;

constexpr const char* kMove = "0123456789abcdef0123456789abcdef";

TEST(SealBytes, ComeBackAsTheyWere) {
  for (const auto end : {Seal::End::source, Seal::End::target}) {
    for (const auto phase : {Seal::Phase::preparing, Seal::Phase::copying, Seal::Phase::moved, Seal::Phase::given_up}) {
      for (const bool marks : {false, true}) {
        const Seal seal{end,  phase, kMove, "etcd:https://10.0.0.1:2379", WallTime(std::chrono::seconds(1800000000)),
                        marks};
        const auto read = decode_seal(encode_seal(seal));
        ASSERT_TRUE(read) << read.error().message;
        EXPECT_EQ(*read, seal);
      }
    }
  }
}

TEST(SealBytes, AreOneObject) {
  EXPECT_EQ(encode_seal({Seal::End::source, Seal::Phase::given_up, kMove, "kube:/etc/k", WallTime{}}),
            R"({"version":1,"end":"source","phase":"given-up","move":"0123456789abcdef0123456789abcdef",)"
            R"("other":"kube:/etc/k","since":"1970-01-01T00:00:00Z"})");
}

TEST(SealBytes, AreRefusedWhereTheyAreNot) {
  const std::string good = encode_seal({Seal::End::source, Seal::Phase::moved, kMove, "kube:", WallTime{}});
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    const auto read = decode_seal(text);
    EXPECT_FALSE(read) << text;
    if (read) return std::string();
    const char* remedy = read.error().code == ErrorCode::newer_version ? "go on with the version of Croft that began"
                                                                       : "docs/runbooks/migrate.md#damaged-seal";
    EXPECT_THAT(read.error().message, HasSubstr(remedy));
    return read.error().message;
  };
  EXPECT_THAT(with("source", "sauce"), HasSubstr("end"));
  EXPECT_THAT(with("moved", "gone"), HasSubstr("phase"));
  EXPECT_THAT(with("\"version\":1,", ""), HasSubstr("missing"));
  EXPECT_THAT(with("\"version\":1", "\"version\":2"), HasSubstr("newer"));
  EXPECT_THAT(with("\"other\"", "\"otter\""), HasSubstr("other"));
  EXPECT_THAT(with("1970-", "19x0-"), HasSubstr("since"));
  for (std::size_t length = 0; length < good.size(); ++length) EXPECT_FALSE(decode_seal(good.substr(0, length)));
}

}  // namespace
}  // namespace croft::wire
