#include <chrono>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/prefix.h"
#include "desk/decide/address_map.h"
#include "desk/decide/relief.h"

namespace croft::core::desk {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Optional;
using namespace net::literals;

/// The same space, an address at a time.
class Model {
 public:
  explicit Model(const net::Prefix& space)
      : space_(space), marks_(std::size_t{1} << space.subprefix_count_log2(net::bit_length(space.family()))) {}

  Mark& at(const net::Address& address) { return marks_[net::ordinal_of(space_, address)->value]; }
  void set(const net::Prefix& part, const std::vector<Mark>& marks) {
    std::copy(marks.begin(), marks.end(), marks_.begin() + net::ordinal_of(space_, part.first())->value);
  }
  [[nodiscard]] std::vector<Tally> cells_of(const net::Prefix& part, int cell_length) const {
    std::vector<Tally> cells(std::size_t{1} << part.subprefix_count_log2(cell_length));
    const std::size_t first = net::ordinal_of(space_, part.first())->value;
    const std::size_t size = std::size_t{1} << part.subprefix_count_log2(net::bit_length(part.family()));
    for (std::size_t i = 0; i < size; ++i) {
      cells[i * cells.size() / size][static_cast<std::size_t>(marks_[first + i])] += 1;
    }
    return cells;
  }

 private:
  net::Prefix space_;
  std::vector<Mark> marks_;
};

/// Blocks of several sizes, reservations and Services at random places, in both.
class Twins {
 public:
  Twins(const net::Prefix& space, unsigned seed) : space_(space), random_(seed), model(space) {
    const int bits = net::bit_length(space.family());
    std::vector<net::Prefix> reserved;
    for (int i = 0; i < 40; ++i) reserved.push_back(any_part(bits - 8, bits));
    const auto set = std::make_shared<net::Intervals>(reserved);
    for (const net::Prefix& part : reserved) model.set(part, marks(part, Mark::reserved, Mark::reserved));
    // In each part of 4096 addresses one size, or nothing.
    for (U128Index i = 0; i < 256; ++i) {
      const net::Prefix row = space.subprefix(i, bits - 12);
      const int length = static_cast<int>(bits - 4 - random_() % 8);
      for (U128Index j = 0; j < (1U << (length - row.length())); ++j) {
        if (random_() % 3 != 0) add_block(row.subprefix(j, length), *set);
      }
    }
    for (int i = 0; i < 200; ++i) {
      const net::Address address = any_part(bits, bits).first();
      map.add(address, Mark::service);
      model.at(address) = Mark::service;
    }
    map.set_reserved(set);
    map.freeze();
  }

  net::Prefix any_part(int min, int max) {
    const int length = min + static_cast<int>(random_() % static_cast<unsigned>(max - min + 1));
    return space_.subprefix(random_() & ((std::uint64_t{1} << (length - space_.length())) - 1), length);
  }

 private:
  using U128Index = std::uint64_t;
  std::vector<Mark> marks(const net::Prefix& part, Mark first, Mark last) {
    const auto span = static_cast<unsigned>(last) - static_cast<unsigned>(first) + 1;
    std::vector<Mark> result(std::size_t{1} << part.subprefix_count_log2(net::bit_length(part.family())));
    for (Mark& mark : result) mark = static_cast<Mark>(static_cast<unsigned>(first) + random_() % span);
    return result;
  }
  void add_block(const net::Prefix& cidr, const net::Intervals& reserved) {
    AddressMap::Block block{cidr, "host:oak", marks(cidr, Mark::cooling, Mark::borrowed)};
    for (std::uint32_t i = 0; i < block.marks.size(); ++i) {
      const bool is_taken = random_() % 2 == 0;
      const bool is_reserved = reserved.contains(net::address_at(cidr, net::Ordinal(i)));
      if (!is_taken) block.marks[i] = is_reserved ? Mark::reserved : Mark::free;
    }
    model.set(cidr, block.marks);
    map.add_block(std::move(block));
  }

  net::Prefix space_;
  std::mt19937 random_;

 public:
  AddressMap map;
  Model model;
};

class AMillionAddresses : public testing::TestWithParam<const char*> {};

TEST_P(AMillionAddresses, AreAsTheDumbModelCountsThem) {
  const net::Prefix space = net::Prefix::parse(GetParam()).value();
  const int bits = net::bit_length(space.family());
  ASSERT_EQ(space.subprefix_count_log2(bits), 20);
  for (unsigned seed = 1; seed <= 3; ++seed) {
    Twins twins(space, seed);
    for (int i = 0; i < 60; ++i) {
      const net::Prefix part = i == 0 ? space : twins.any_part(space.length(), bits);
      for (const int log2 : {0, 5, kTileCellsLog2}) {
        const Tile tile = twins.map.tile(part, log2);
        EXPECT_EQ(tile.cell_length, std::min(part.length() + log2, bits));
        ASSERT_EQ(tile.cells, twins.model.cells_of(part, tile.cell_length)) << part.to_string() << " in 2^" << log2;
      }
      const net::Address one = twins.any_part(bits, bits).first();
      ASSERT_EQ(twins.map.mark_of(one), twins.model.at(one)) << one.to_string();
      const AddressMap::Block* block = twins.map.block_of(one);
      ASSERT_TRUE(block == nullptr || block->cidr.contains(one));
    }
  }
}

TEST_P(AMillionAddresses, TakeAFewMillisecondsATile) {
  Twins twins(net::Prefix::parse(GetParam()).value(), 7);
  const auto begin = std::chrono::steady_clock::now();
  for (int i = 0; i < 10; ++i) {
    ASSERT_EQ(twins.map.tile(net::Prefix::parse(GetParam()).value(), kTileCellsLog2).cells.size(), 4096U);
  }
  // Two hundred milliseconds are an interaction; sanitizers take ten times as long.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

INSTANTIATE_TEST_SUITE_P(Families, AMillionAddresses, testing::Values("10.16.0.0/12", "fd00:1::/108"),
                         [](const auto& of) { return of.index == 0 ? "IPv4" : "IPv6"; });

TEST(AddressMap, ASpaceOfIPv6IsCountedExactly) {
  AddressMap map;
  map.add_block({"fd00::40/122"_prefix, "host:oak", std::vector<Mark>(64, Mark::used)});
  map.freeze();
  const Tile tile = map.tile("fd00::/48"_prefix, 1);
  ASSERT_EQ(tile.cells.size(), 2U);
  EXPECT_EQ(tile.cells[0][static_cast<std::size_t>(Mark::used)], net::Count(64));
  EXPECT_EQ(tile.cells[0][static_cast<std::size_t>(Mark::outside)], net::Count::power_of_two(79) - net::Count(64));
  EXPECT_EQ(tile.cells[1][static_cast<std::size_t>(Mark::outside)], net::Count::power_of_two(79));
  EXPECT_EQ(map.tile("::/0"_prefix, 0).cells[0][static_cast<std::size_t>(Mark::used)], net::Count(64));
}

TEST(AddressMap, TellsWhereBlocksAre) {
  AddressMap map;
  const std::vector<Mark> marks(4, Mark::free);
  EXPECT_EQ(map.occupied("10.0.0.0/8"_prefix), std::nullopt);
  map.add_block({"10.1.2.4/30"_prefix, "", marks});
  map.add_block({"10.1.7.0/30"_prefix, "", marks});
  map.add_block({"fd00::/126"_prefix, "", marks});
  map.freeze();
  EXPECT_THAT(map.occupied("10.0.0.0/8"_prefix), Eq("10.1.0.0/21"_prefix));
  EXPECT_THAT(map.occupied("10.1.2.0/24"_prefix), Eq("10.1.2.4/30"_prefix));
  EXPECT_THAT(map.occupied("10.1.2.4/31"_prefix), Eq("10.1.2.4/31"_prefix)) << "no more than was asked for";
  EXPECT_THAT(map.occupied("fd00::/64"_prefix), Eq("fd00::/126"_prefix));
  EXPECT_EQ(map.block_of("10.1.2.8"_ip), nullptr);
}

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
