#include "ipam/use/quarantine.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ipam/use/test_world.h"
#include "register/quarantine.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::IsEmpty;

/// The agent's looks at a node's quarantine, and a kernel that leads to some addresses.
class QuarantineTest : public testing::Test, public World {
 protected:
  void SetUp() override {
    pool("four", "10.1.0.0/28", 29, 0);
    pool("six", "fd00::/124", 125, 0);
  }
  /// As an ADD on the node does it that finds somebody alive.
  net::Address found_alive(const std::string& container, const std::string& node = "node-a",
                           net::Family family = net::Family::v4) {
    core::AssignRequest wanted = request(container, node);
    wanted.count = {};
    wanted.count[family] = 1;
    const auto answer = assign(context, wanted);
    EXPECT_TRUE(answer);
    const auto& one = std::get<core::Assigned>(*answer).addresses.front();
    EXPECT_TRUE(quarantine(context, wanted.owner, node, {{one, "veth1"}}));
    routes[one.address.to_string()] = "veth1";
    return one.address;
  }
  std::vector<std::string> look() {
    const auto looked =
        keeper.look(context, store, [&](const net::Address& address) -> Result<std::optional<std::string>> {
          if (deaf) return fail(*deaf);
          const auto there = routes.find(address.to_string());
          return there == routes.end() ? std::optional<std::string>() : std::optional(there->second);
        });
    if (!looked) return {looked.error().message};
    std::vector<std::string> texts;
    for (const net::Address& address : *looked) texts.push_back(address.to_string());
    return texts;
  }
  bool is_quarantined(const net::Address& address) {
    const auto all = list_addresses(context).value();
    return std::ranges::any_of(
        all, [&](const auto& one) { return one.address == address && one.state == core::AddressState::quarantined; });
  }

  std::map<std::string, std::string> routes;
  std::optional<Error> deaf;
  QuarantineKeeper keeper{{core::AffinityOwner::Type::host, "node-a"}, 15min};
};

TEST_F(QuarantineTest, WhoLivesStaysAndWhoIsGoneGoesAfterTheTime) {
  for (const net::Family family : net::kFamilies) {
    const net::Address address = found_alive(family == net::Family::v4 ? "c4" : "c6", "node-a", family);
    for (int i = 0; i < 3; ++i) {
      EXPECT_THAT(look(), IsEmpty());
      clock.advance(1h);
    }
    EXPECT_TRUE(is_quarantined(address));
    routes.clear();
    EXPECT_THAT(look(), IsEmpty());
    clock.advance(15min - 1s);
    EXPECT_THAT(look(), IsEmpty());
    clock.advance(1s);
    EXPECT_THAT(look(), ElementsAre(address.to_string()));
    EXPECT_FALSE(is_quarantined(address));
    EXPECT_THAT(look(), IsEmpty());
  }
}

TEST_F(QuarantineTest, WhoIsSeenOnceInBetweenLives) {
  const net::Address address = found_alive("c1");
  routes.clear();
  EXPECT_THAT(look(), IsEmpty());
  clock.advance(10min);
  routes[address.to_string()] = "veth2";
  EXPECT_THAT(look(), IsEmpty());
  routes.clear();
  clock.advance(10min);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_TRUE(is_quarantined(address));
  clock.advance(15min);
  EXPECT_THAT(look(), ElementsAre(address.to_string()));
}

TEST_F(QuarantineTest, WhatAnotherNodeFoundIsItsOwn) {
  static_cast<void>(found_alive("c1", "node-b"));
  routes.clear();
  EXPECT_THAT(look(), IsEmpty());
  clock.advance(1h);
  EXPECT_THAT(look(), IsEmpty());
}

/// Found by node-b in a block that became node-a's: whose node it is the attribute says, not the block.
TEST_F(QuarantineTest, NorIsWhatAnotherNodeFoundInABlockOfThisOne) {
  const net::Address address = found_alive("c1");
  const net::Prefix cidr = list_block_cidrs(context).value().front();
  core::Block block = std::get<core::Block>(store.get(core::block_key(cidr), Deadline{}).value()->value);
  for (core::Attribute& attribute : block.attributes) attribute.secondary[core::kNodeKey] = "node-b";
  put(core::block_key(cidr), block);
  routes.clear();
  EXPECT_THAT(look(), IsEmpty());
  clock.advance(1h);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_TRUE(is_quarantined(address));
}

TEST_F(QuarantineTest, WhatPodsHoldIsNoneOfIt) {
  const std::string held = add("c1");
  EXPECT_THAT(look(), IsEmpty());
  clock.advance(1h);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_EQ(add("c1"), held);
}

TEST_F(QuarantineTest, WhatCameAnewUnderTheAddressWaitsAnew) {
  const net::Address address = found_alive("c1");
  routes.clear();
  EXPECT_THAT(look(), IsEmpty());
  clock.advance(14min);
  // An operator gives it back, an ADD finds somebody alive with it.
  ASSERT_TRUE(release_addresses(context, {{address, {}, {}}}));
  core::AssignRequest again = request("c2");
  again.count = {};
  again.addresses = {address};
  const auto answer = assign(context, again);
  ASSERT_TRUE(answer);
  ASSERT_TRUE(
      quarantine(context, again.owner, "node-a", {{std::get<core::Assigned>(*answer).addresses.front(), "veth3"}}));
  clock.advance(1min);
  EXPECT_THAT(look(), IsEmpty());
  clock.advance(14min);
  EXPECT_THAT(look(), IsEmpty());
  EXPECT_TRUE(is_quarantined(address));
  clock.advance(1min);
  EXPECT_THAT(look(), ElementsAre(address.to_string()));
}

TEST_F(QuarantineTest, AKernelThatCannotBeAskedProvesNothing) {
  const net::Address address = found_alive("c1");
  routes.clear();
  EXPECT_THAT(look(), IsEmpty());
  clock.advance(1h);
  deaf = Error{ErrorCode::unavailable, "no netlink", {}};
  EXPECT_THAT(look(), ElementsAre("no netlink"));
  EXPECT_TRUE(is_quarantined(address));
  deaf.reset();
  EXPECT_THAT(look(), ElementsAre(address.to_string()));
}

}  // namespace
}  // namespace croft::engine
