#include "desk/door/doorkeeper.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

using Kind = Verdict::Kind;
using testing::ElementsAre;
using testing::IsEmpty;
using namespace std::chrono_literals;

struct Door {
  ManualClock clock;
  std::vector<std::string> asked;
  Kind answer = Kind::welcome;
  Doorkeeper keeper{[this](const std::string& token) -> Verdict {
                      asked.push_back(token);
                      return {token == "good" ? answer : Kind::unknown, "why"};
                    },
                    clock};
  Kind admit(std::string_view authorization) { return keeper.admit(authorization).kind; }
};

TEST(Doorkeeper, AsksForWhatIsAToken) {
  Door door;
  const std::string long_one = "Bearer " + std::string(Doorkeeper::kTokenBytesMax + 1, 'x');
  for (const std::string& none : std::vector<std::string>{"", "Bearer", "Bearer ", "Basic Z29vZA==", "good",
                                                          "Bearer go od", "Bearer go\x01od", long_one}) {
    EXPECT_EQ(door.admit(none), Kind::unknown) << none;
  }
  EXPECT_THAT(door.asked, IsEmpty());
  EXPECT_EQ(door.admit("bearer  good "), Kind::welcome);
  EXPECT_EQ(door.admit("Bearer bad"), Kind::unknown);
  EXPECT_THAT(door.asked, ElementsAre("good", "bad"));
}

TEST(Doorkeeper, KeepsAVerdictForAMinute) {
  Door door;
  EXPECT_EQ(door.admit("Bearer good"), Kind::welcome);
  door.answer = Kind::forbidden;
  door.clock.advance(59s);
  EXPECT_EQ(door.admit("Bearer good"), Kind::welcome);
  EXPECT_EQ(door.asked.size(), 1U);
  door.clock.advance(1s);
  EXPECT_EQ(door.admit("Bearer good"), Kind::forbidden) << "the right was taken away";
  door.answer = Kind::unsure;
  door.clock.advance(60s);
  EXPECT_EQ(door.admit("Bearer good"), Kind::unsure);
  door.answer = Kind::welcome;
  EXPECT_EQ(door.admit("Bearer good"), Kind::welcome) << "that nobody could be asked is not kept";
}

TEST(Doorkeeper, ManyTokensDoNotKeepTheJudgeBusyNorMemory) {
  Door door;
  int unsure = 0;
  for (int i = 0; i < 100; ++i) unsure += door.admit("Bearer " + std::to_string(i)) == Kind::unsure ? 1 : 0;
  EXPECT_EQ(door.asked.size(), 20U);
  EXPECT_EQ(unsure, 80);
  EXPECT_EQ(door.admit("Bearer 3"), Kind::unknown) << "what was judged is known meanwhile";
  door.clock.advance(1s);
  EXPECT_EQ(door.admit("Bearer good"), Kind::welcome);
}

TEST(Doorkeeper, TheTokenOfAFile) {
  const os::ScratchDirectory folder;
  const std::string path = folder.path() + "/token";
  const auto judge = judge_by_file(path);
  EXPECT_EQ(judge("secret").kind, Kind::unsure) << "there is no file";
  ASSERT_TRUE(os::replace_file_durably(path, "secret\n"));
  EXPECT_EQ(judge("secret").kind, Kind::welcome);
  for (const char* other : {"secre", "secrets", "Secret", "tecres", ""}) EXPECT_EQ(judge(other).kind, Kind::unknown);
  ASSERT_TRUE(os::replace_file_durably(path, "another"));
  EXPECT_EQ(judge("secret").kind, Kind::unknown) << "it is read anew";
  ASSERT_TRUE(os::replace_file_durably(path, " \n"));
  EXPECT_EQ(judge("").kind, Kind::unsure) << "an empty file admits nobody";
  ASSERT_TRUE(os::replace_file_durably(path, "secret", os::FileMode::readable_by_all));
  EXPECT_EQ(judge("secret").kind, Kind::unsure) << "others can read it";
}

TEST(LoopbackHost, IsThisMachineByItsOwnNames) {
  for (const char* own :
       {"127.0.0.1", "127.0.0.1:9680", "127.9.9.9:1", "localhost", "localhost:9680", "[::1]", "[::1]:9680"}) {
    EXPECT_TRUE(is_loopback_host(own)) << own;
  }
  for (const char* other : {"", "evil.example", "evil.example:9680", "localhost.evil.example", "127.0.0.1.evil.example",
                            "10.0.0.1:9680", "[fd00::1]:9680", "::1", "[::1", "[::1]evil", "128.0.0.1", "0.0.0.0"}) {
    EXPECT_FALSE(is_loopback_host(other)) << other;
  }
}

}  // namespace
}  // namespace croft::edge
