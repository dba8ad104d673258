#include "desk/use/page_data.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ipam/use/test_world.h"
#include "services/use/test_services.h"

namespace croft::engine {
namespace {

using core::desk::Mark;
using testing::ElementsAre;
using testing::IsEmpty;

class SceneOfPools : public testing::Test, public World {
 protected:
  Mark at(const PageData& data, const std::string& address) { return data.map.mark_of(ip(address.c_str())); }
};

TEST_F(SceneOfPools, ShowsEachState) {
  pool("a", "10.1.0.0/27", 28);
  put(core::reservation_key("kept"), core::Reservation{"kept", {prefix("10.1.0.5/32"), prefix("10.1.0.20/30")}});
  const std::string held = add("c1");
  const std::string gone = add("c2");
  EXPECT_EQ(del("c2"), 1U);
  const PageData data = read_page_data(context).value();
  EXPECT_EQ(at(data, held), Mark::used);
  EXPECT_EQ(at(data, gone), Mark::cooling);
  // One of the pool's two blocks is there.
  const bool is_first = prefix("10.1.0.0/28").contains(ip(held.c_str()));
  EXPECT_EQ(at(data, "10.1.0.14"), is_first ? Mark::free : Mark::outside);
  EXPECT_EQ(at(data, "10.1.0.30"), is_first ? Mark::outside : Mark::free);
  EXPECT_EQ(at(data, "10.1.0.5"), Mark::reserved) << "with a block or without";
  EXPECT_EQ(at(data, "10.1.0.21"), Mark::reserved);
  EXPECT_EQ(data.pools.front().held, 1U);
  EXPECT_EQ(data.nodes.front().held, 1U);
  EXPECT_EQ(data.map.block_of(ip(held.c_str()))->owner, "host:node-a");
  EXPECT_THAT(data.notes, IsEmpty());
}

TEST_F(SceneOfPools, CountsBlocksThatCannotBeRead) {
  pool("a", "10.1.0.0/28", 28);
  const std::string held = add("c1");
  store.damage(core::block_key(prefix("10.1.0.0/28")));
  const PageData data = read_page_data(context).value();
  EXPECT_EQ(at(data, held), Mark::outside);
  EXPECT_THAT(data.notes, ElementsAre("1 block cannot be read and is not shown; croft check names them"));
  EXPECT_TRUE(data.are_service_ranges_known);
}

TEST_F(SceneOfPools, TellsWhatIsBorrowed) {
  pool("a", "10.1.0.0/28", 28);
  const std::string own = add("c1", "node-a");
  const std::string lent = add("c2", "node-b");
  const PageData data = read_page_data(context).value();
  EXPECT_EQ(at(data, own), Mark::used);
  EXPECT_EQ(at(data, lent), Mark::borrowed);
}

TEST(SceneOfServices, ShowsRangesAndWhatTheyHold) {
  Services services;
  ASSERT_EQ(services.create(Services::with_ip(Services::service("web"), "10.0.0.9")), "ok");
  const PageData data = read_page_data(services.context).value();
  EXPECT_THAT(data.service_ranges, ElementsAre(net::Prefix::parse("10.0.0.0/24").value()));
  EXPECT_EQ(data.map.mark_of(net::Address::parse("10.0.0.9").value()), Mark::service);
  EXPECT_EQ(data.map.mark_of(net::Address::parse("10.0.0.10").value()), Mark::outside);
}

}  // namespace
}  // namespace croft::engine
