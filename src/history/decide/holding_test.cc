#include "history/decide/holding.h"

#include <gtest/gtest.h>

namespace croft::core::history {
namespace {

using namespace std::chrono_literals;

const WallTime kStart{std::chrono::seconds(1768471200)};

Holding holding(Moment begin, std::optional<Moment> end) {
  Holding one;
  one.address = net::Address::parse("10.1.0.7").value();
  one.holder.pod = "web";
  one.begin = begin;
  one.end = end;
  return one;
}

TEST(Holding, HeldAtKnowsWhatItDoesNotKnow) {
  const Holding one = holding({kStart, kStart + 10s}, Moment{kStart + 60s, kStart + 70s});
  EXPECT_EQ(held_at(one, kStart - 1s), Held::no);
  EXPECT_EQ(held_at(one, kStart), Held::no);
  EXPECT_EQ(held_at(one, kStart + 5s), Held::maybe);
  EXPECT_EQ(held_at(one, kStart + 10s), Held::yes);
  EXPECT_EQ(held_at(one, kStart + 60s), Held::maybe);
  EXPECT_EQ(held_at(one, kStart + 70s), Held::no);
  const Holding open = holding(Moment::at(kStart), std::nullopt);
  EXPECT_EQ(held_at(open, kStart), Held::yes);
  EXPECT_EQ(held_at(open, kStart + 24h), Held::yes);
}

TEST(Holding, AnAnswerSaysHowItIsKnown) {
  const Reach reach{kStart, kStart + 1h};
  const std::vector<Holding> one{holding({kStart + 60s, kStart + 120s}, Moment::at(kStart + 600s))};
  struct Case {
    std::chrono::seconds at;
    bool is_sure;
    std::size_t holdings;
    const char* known;
  };
  const Case cases[] = {
      {300s, true, 1, "seen by watch"},
      {100s, false, 1, "taken between two looks, 2026-01-15T10:01:00Z and 2026-01-15T10:02:00Z"},
      {700s, true, 0, "seen by watch"},
      {-5s, false, 0, "not recorded: the history begins at 2026-01-15T10:00:00Z"},
      {2h, false, 0, "as of 2026-01-15T11:00:00Z, when the history was written last"},
  };
  for (const Case& c : cases) {
    const Answer answer = answer_at(one, std::nullopt, reach, kStart + c.at);
    EXPECT_EQ(answer.is_sure, c.is_sure) << c.at.count();
    EXPECT_EQ(answer.holdings.size(), c.holdings) << c.at.count();
    EXPECT_EQ(answer.known, c.known) << c.at.count();
  }
  const Answer in_gap = answer_at({}, Gap{kStart, kStart + 30s}, reach, kStart + 10s);
  EXPECT_FALSE(in_gap.is_sure);
  EXPECT_EQ(in_gap.known, "gap: nobody looked between 2026-01-15T10:00:00Z and 2026-01-15T10:00:30Z");
}

}  // namespace
}  // namespace croft::core::history
