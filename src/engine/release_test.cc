#include "engine/release.h"

#include <cstddef>

#include "engine/test_world.h"
#include "store/forwarding_store.h"

namespace croft::engine {
namespace {

using testing::SizeIs;

const core::Owner kOwnerOfMany{"net", "c1", "eth0"};

/// Counts the records that are read and written.
class Counting final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    records += wanted.records.size();
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<store::Revision> commit_as_of(std::optional<store::Revision> as_of,
                                                     std::span<const store::Write> writes,
                                                     const store::WriteToken& token, Deadline deadline) override {
    records += writes.size();
    return ForwardingStore::commit_as_of(as_of, writes, token, deadline);
  }
  std::size_t records = 0;
};

std::size_t records_of_a_release(std::uint32_t blocks) {
  World world;
  core::PoolSpec spec = World::spec("a", "10.0.0.0/22", 32, 0);
  spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::none, {}};
  EXPECT_TRUE(create_pool(world.context, spec));
  auto wanted = World::request("c1");
  wanted.count.v4 = blocks;
  EXPECT_THAT(world.add(wanted), SizeIs(blocks));
  Counting counting(world.store);
  EXPECT_THAT(release_owner({counting, world.clock, world.random}, kOwnerOfMany)->addresses, SizeIs(blocks));
  return counting.records;
}

TEST(Release, CostsInProportionToTheBlocksOfTheHandle) {
  const std::size_t few = records_of_a_release(64), many = records_of_a_release(512);
  EXPECT_LE(many, 9 * few) << few << " records for 64 blocks";
}

}  // namespace
}  // namespace croft::engine
