#include "desk/decide/relief.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace croft::core::desk {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using namespace net::literals;

PoolFill fill(const char* name, net::Prefix cidr, std::uint64_t held) {
  PoolFill fill;
  fill.pool.name = name;
  fill.pool.cidr = cidr;
  fill.pool.block_length = 26;
  fill.capacity = net::Count::of(cidr);
  fill.held = held;
  return fill;
}

std::vector<std::string> titles(const std::vector<Relief>& reliefs) {
  std::vector<std::string> texts;
  for (const Relief& one : reliefs) texts.push_back(one.pool + ": " + one.title);
  return texts;
}

TEST(Relief, IsForPoolsThatNeedIt) {
  EXPECT_THAT(reliefs_of({{fill("web", "10.0.0.0/24"_prefix, 10)}}), IsEmpty());
  EXPECT_THAT(titles(reliefs_of({{fill("web", "10.0.0.0/24"_prefix, 256)}})), ElementsAre("web: Add a pool beside it"));
  EXPECT_THAT(titles(reliefs_of({{fill("web", "10.0.0.0/24"_prefix, 10)}, {}, {"web"}})),
              ElementsAre("web: Add a pool beside it"))
      << "a forecast warns of it";
  EXPECT_THAT(reliefs_of({{fill("web", "10.0.0.0/24"_prefix, 256)}, {}, {}, {}, false}), IsEmpty())
      << "a range that nobody knows may be in the way";
  PoolFill off = fill("off", "10.0.0.0/24"_prefix, 256);
  off.pool.disabled = true;
  EXPECT_THAT(reliefs_of({{off}}), IsEmpty()) << "it is to give nothing";
}

TEST(Relief, TheFullestPoolComesFirstAndTheSafestWay) {
  PoolFill web = fill("web", "10.0.0.0/24"_prefix, 240);
  PoolFill db = fill("db", "10.0.1.0/24"_prefix, 200);
  db.cooling = 56;
  web.pool.node_selector = "a == 'b'";
  web.stranded = 16;
  PoolFill off = fill("off", "10.0.9.0/24"_prefix, 0);
  off.pool.disabled = true;
  const auto all = reliefs_of({{web, db, off}, {"10.0.1.7"_ip, "10.0.9.7"_ip}, {}, {"10.0.2.0/24"_prefix}});
  EXPECT_THAT(titles(all), ElementsAre("web: Add a pool beside it", "web: Use pool off again", "web: Let nodes borrow",
                                       "db: Wait for what cools", "db: Release what nobody uses",
                                       "db: Add a pool beside it", "db: Use pool off again"));
  EXPECT_EQ(
      all[0].command,
      "croft pool create web-more --cidr 10.0.3.0/24 --block-size 26 --gateway none --node-selector $'a == \\'b\\''");
  EXPECT_EQ(all[2].effect, "16 addresses that are free for one node become free for all");
  EXPECT_EQ(all[3].effect, "56 addresses come back within 30 s each");
  EXPECT_EQ(all[4].effect, "1 address come back; their pods or nodes are gone");
  EXPECT_THAT(all[4].command, HasSubstr("croft ip release --from-report"));
}

TEST(Relief, ANewPoolHasTheSettingsOfTheFullOneAndANameOfItsOwn) {
  PoolFill web = fill("web", "10.0.0.0/24"_prefix, 256);
  web.pool.cooldown = std::chrono::seconds(0);
  web.pool.priority = 7;
  const PoolFill more = fill("web-more", "10.0.1.0/24"_prefix, 256),
                 other = fill("web-more-2", "10.0.2.0/24"_prefix, 0);
  const auto all = reliefs_of({{web, more, other}});
  EXPECT_THAT(titles(all),
              ElementsAre("web: Do nothing for networks that name no pools", "web: Add a pool beside it",
                          "web-more: Do nothing for networks that name no pools", "web-more: Add a pool beside it"));
  EXPECT_EQ(all[0].effect, "Once it is full their pods get the 256 addresses of pool web-more-2");
  EXPECT_EQ(all[1].command,
            "croft pool create web-more-3 --cidr 10.0.3.0/24 --block-size 26 --gateway none --cooldown-seconds 0 "
            "--priority 7");
  EXPECT_THAT(all[1].caution, HasSubstr("names its pools"));
}

TEST(Relief, AnotherPoolIsNextWhereItServesTheSame) {
  const PoolFill web = fill("web", "10.0.0.0/24"_prefix, 256);
  const auto titles_beside = [&](const auto& change) {
    PoolFill other = fill("other", "10.0.9.0/24"_prefix, 0);
    change(other.pool);
    return titles(reliefs_of({{web, other}}));
  };
  EXPECT_EQ(titles_beside([](Pool&) {}).size(), 2U);
  EXPECT_EQ(titles_beside([](Pool& pool) { pool.node_selector = "a == 'b'"; }).size(), 1U);
  EXPECT_EQ(titles_beside([](Pool& pool) { pool.namespace_selector = "a == 'b'"; }).size(), 1U);
  EXPECT_EQ(titles_beside([](Pool& pool) { pool.assignment_mode = AssignmentMode::manual; }).size(), 1U);
  EXPECT_EQ(titles_beside([](Pool& pool) { pool.cidr = "fd00::/120"_prefix; }).size(), 1U);
}

TEST(Relief, NamesOfOthersAreQuoted) {
  PoolFill off = fill("$(reboot)", "10.0.9.0/24"_prefix, 0);
  off.pool.disabled = true;
  const auto all = reliefs_of({{fill("web", "10.0.0.0/24"_prefix, 256), off}});
  ASSERT_EQ(all.size(), 2U);
  EXPECT_EQ(all[1].command, "croft pool enable $'$(reboot)'");
}

TEST(Relief, TheNextPrefixIsFreeAndPrivate) {
  EXPECT_THAT(next_private_prefix("10.0.0.0/16"_prefix, {"10.0.0.0/16"_prefix}), Optional("10.1.0.0/16"_prefix));
  EXPECT_THAT(next_private_prefix("10.0.0.0/16"_prefix, {"10.1.4.0/24"_prefix, "10.2.0.0/15"_prefix}),
              Optional("10.4.0.0/16"_prefix));
  EXPECT_THAT(next_private_prefix("fd00:0:0:1::/64"_prefix, {"fd00:0:0:2::/64"_prefix}),
              Optional("fd00:0:0:3::/64"_prefix));
  EXPECT_EQ(next_private_prefix("192.168.0.0/16"_prefix, {}), std::nullopt) << "the space ends";
  EXPECT_EQ(next_private_prefix("8.8.8.0/24"_prefix, {}), std::nullopt) << "it is somebody's";
}

}  // namespace
}  // namespace croft::core::desk
