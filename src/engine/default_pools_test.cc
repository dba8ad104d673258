#include "engine/default_pools.h"

#include <thread>

#include "engine/test_meddler.h"
#include "engine/test_world.h"

namespace croft::engine {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DefaultPools : public testing::Test, public World {
 protected:
  /// What came of these CIDRs, or why nothing did.
  std::vector<std::string> ensured(const std::vector<const char*>& cidrs, bool only_look = false) {
    std::vector<core::PoolSpec> specs;
    for (const char* cidr : cidrs) {
      core::PoolSpec one;
      one.cidr = prefix(cidr);
      one.name = one.cidr.family() == net::Family::v4 ? kDefaultPoolV4 : kDefaultPoolV6;
      specs.push_back(std::move(one));
    }
    DefaultPoolsOptions options;
    options.only_look = only_look;
    options.taken = [this]() -> Result<std::vector<TakenSpace>> {
      ++asked;
      return taken;
    };
    const auto done = ensure_default_pools(context, specs, options);
    if (!done) return {std::string(name_of(done.error().code)) + ": " + done.error().message};
    std::vector<std::string> texts;
    for (const DefaultPool& one : *done) {
      constexpr const char* kWords[] = {"made", "there", "to be made"};
      texts.push_back(std::string(kWords[static_cast<int>(one.outcome)]) + " " + one.pool.name + " " +
                      one.pool.cidr.to_string());
    }
    return texts;
  }
  std::vector<TakenSpace> taken;
  int asked = 0;
};

TEST_F(DefaultPools, AreMadeOnceForEachFamily) {
  EXPECT_THAT(ensured({"10.1.0.0/16", "fd00::/48"}, true),
              ElementsAre("to be made default-ipv4-ippool 10.1.0.0/16", "to be made default-ipv6-ippool fd00::/48"));
  EXPECT_TRUE(list_pools(context)->empty());
  EXPECT_THAT(ensured({"10.1.0.0/16", "fd00::/48"}),
              ElementsAre("made default-ipv4-ippool 10.1.0.0/16", "made default-ipv6-ippool fd00::/48"));
  asked = 0;
  EXPECT_THAT(ensured({"10.9.0.0/16"}), ElementsAre("there default-ipv4-ippool 10.1.0.0/16"));
  EXPECT_EQ(asked, 0) << "nobody's addresses are read for what is there";
}

TEST_F(DefaultPools, AnyPoolOfTheFamilyIsEnough) {
  pool("mine", "10.7.0.0/24", 26);
  ASSERT_TRUE(set_pool_disabled(context, "mine", true));
  EXPECT_THAT(ensured({"10.1.0.0/16", "fd00::/48"}),
              ElementsAre("there mine 10.7.0.0/24", "made default-ipv6-ippool fd00::/48"));
}

// On a store that writes one record at a time a pool is made disabled and enabled last.
TEST_F(DefaultPools, OneThatCouldNotBeEnabledIsNoSuccess) {
  bool has_left_one_disabled = false;
  for (std::uint64_t commit = 1; commit < 6; ++commit) {
    store::MemoryStore one_by_one;
    store::Capabilities can = one_by_one.capabilities();
    can.atomic_commit = false;
    one_by_one.set_capabilities(can);
    one_by_one.set_faults(store::FaultScript().from_commit(commit, store::Fault::storage_full));
    const Context there{one_by_one, clock, random};
    const auto done = ensure_default_pools(there, {{kDefaultPoolV4, prefix("10.1.0.0/16"), {}, {}, {}, {}}}, {});
    const auto pools = list_pools(there);
    ASSERT_TRUE(pools);
    const bool is_disabled = !pools->empty() && pools->front().disabled;
    has_left_one_disabled |= is_disabled;
    EXPECT_EQ(done.has_value(), !pools->empty() && !is_disabled) << "no commits from number " << commit;
  }
  EXPECT_TRUE(has_left_one_disabled);
}

TEST_F(DefaultPools, WhatIsTakenIsRefusedWithBothNames) {
  taken = {{"address 10.1.2.3 of node oak", prefix("10.1.2.3/32")}};
  EXPECT_THAT(ensured({"10.1.0.0/16"}),
              ElementsAre(HasSubstr("refused_by_configuration: cidr 10.1.0.0/16 of pool default-ipv4-ippool overlaps "
                                    "address 10.1.2.3 of node oak")));
  EXPECT_THAT(ensured({"10.2.0.0/16"}), ElementsAre("made default-ipv4-ippool 10.2.0.0/16"));
}

TEST_F(DefaultPools, OfManyAtOnceOneMakesThem) {
  std::vector<std::thread> threads;
  std::vector<std::vector<std::string>> said(8);
  for (std::size_t i = 0; i < said.size(); ++i) {
    threads.emplace_back([&, i] {
      SeededRandom own(i + 1);
      const Context mine{store, clock, own};
      core::PoolSpec spec{
          kDefaultPoolV4, net::Prefix::parse("10." + std::to_string(i) + ".0.0/16").value(), {}, {}, {}, {}};
      const auto done = ensure_default_pools(mine, {spec}, {});
      said[i] = {done ? (done->front().outcome == DefaultPool::Outcome::made ? "made" : "there")
                      : done.error().message};
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::size_t made = 0;
  for (const auto& one : said) {
    if (one.front() == "made")
      ++made;
    else
      EXPECT_EQ(one.front(), "there");
  }
  EXPECT_EQ(made, 1U);
  EXPECT_EQ(list_pools(context)->size(), 1U);
}

}  // namespace
}  // namespace croft::engine
