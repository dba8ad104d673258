#include "agent/daemon/predecessors.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::app {
namespace {

using core::Pause;
using testing::ElementsAre;

TEST(PredecessorsTest, AreFoundByTheirPauses) {
  std::map<std::string, std::optional<Pause>> stores = {{"a", Pause{Pause::Phase::moved, "b", {}}},
                                                        {"b", Pause{Pause::Phase::moved, "own", {}}},
                                                        {"copying", Pause{Pause::Phase::copying, "own", {}}},
                                                        {"elsewhere", Pause{Pause::Phase::moved, "else", {}}},
                                                        {"open", std::nullopt}};
  std::vector<std::string> asked;
  Predecessors predecessors(
      [&](const std::string& url) -> Result<std::optional<Pause>> {
        asked.push_back(url);
        const auto found = stores.find(url);
        if (found == stores.end()) return fail(ErrorCode::unavailable, "away");
        return found->second;
      },
      [](std::string_view url) { return url == "own"; });
  for (const auto& [url, pause] : stores) EXPECT_FALSE(predecessors.has(url)) << "not asked yet";
  EXPECT_FALSE(predecessors.has("away"));
  predecessors.look(std::chrono::seconds(1));
  for (const char* url : {"a", "b"}) EXPECT_TRUE(predecessors.has(url)) << url;
  for (const char* url : {"copying", "elsewhere", "open", "away"}) EXPECT_FALSE(predecessors.has(url)) << url;
  asked.clear();
  stores["copying"]->phase = Pause::Phase::moved;
  predecessors.look(std::chrono::seconds(30));
  EXPECT_THAT(asked, ElementsAre()) << "once a minute";
  predecessors.look(std::chrono::seconds(62));
  EXPECT_TRUE(predecessors.has("copying"));
}

}  // namespace
}  // namespace croft::app
