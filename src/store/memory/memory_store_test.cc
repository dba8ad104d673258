#include "store/memory/memory_store.h"

#include <gtest/gtest.h>

#include "store/conformance/conformance.h"
#include "store/test_commits.h"

namespace croft::store {
namespace {

constexpr Deadline kNoDeadline{};
const WriteToken kToken{{1, 2, 3}};

Value mark(std::uint64_t n) { return core::HighWaterMark{core::SequenceNumber(n)}; }
const Key kMark{Kind::high_water_mark, "ipv4/10.0.0.0/26"};

TEST(FaultScript, LostReplyIsAppliedAndUnknown) {
  MemoryStore store;
  store.set_faults(FaultScript().on_commit(1, Fault::lose_reply));
  const auto committed = create_if_absent(store, kMark, mark(1), kToken, kNoDeadline);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::unknown_outcome);
  const auto read = store.get(kMark, kNoDeadline);
  ASSERT_TRUE(read && *read);
  EXPECT_EQ((*read)->token, kToken);
}

TEST(FaultScript, LostRequestIsNotAppliedAndUnknown) {
  MemoryStore store;
  store.set_faults(FaultScript().on_commit(1, Fault::lose_request));
  const auto committed = create_if_absent(store, kMark, mark(1), kToken, kNoDeadline);
  ASSERT_FALSE(committed);
  EXPECT_EQ(committed.error().code, ErrorCode::unknown_outcome);
  EXPECT_FALSE(store.get(kMark, kNoDeadline).value().has_value());
  EXPECT_TRUE(create_if_absent(store, kMark, mark(1), kToken, kNoDeadline));
}

TEST(FaultScript, FromACommitOnUntilToldOtherwise) {
  MemoryStore store;
  store.set_faults(FaultScript().from_commit(2, Fault::storage_full).on_commit(3, Fault::conflict));
  const auto code = [&](std::uint64_t n) {
    const auto committed =
        create_if_absent(store, {Kind::high_water_mark, std::to_string(n)}, mark(n), kToken, kNoDeadline);
    return committed ? std::optional<ErrorCode>() : std::optional(committed.error().code);
  };
  EXPECT_EQ(code(1), std::nullopt);
  EXPECT_EQ(code(2), ErrorCode::storage_full);
  EXPECT_EQ(code(3), ErrorCode::conflict);
  EXPECT_EQ(code(4), ErrorCode::storage_full);
}

TEST(MemoryStore, CountsCalls) {
  MemoryStore store;
  EXPECT_TRUE(store.get(kMark, kNoDeadline));
  EXPECT_TRUE(store.get_many({}, kNoDeadline));
  EXPECT_TRUE(store.list({}, kNoDeadline));
  EXPECT_TRUE(store.list({}, kNoDeadline));
  EXPECT_TRUE(store.list_keys({}, kNoDeadline));
  EXPECT_FALSE(store.commit({}, kToken, kNoDeadline));
  EXPECT_TRUE(store.take_turn(kNoDeadline));
  EXPECT_EQ(store.counts().read, 2U);
  EXPECT_EQ(store.counts().list, 2U);
  EXPECT_EQ(store.counts().list_keys, 1U);
  EXPECT_EQ(store.counts().commit, 0U) << "a refused call is no commit";
  EXPECT_EQ(store.counts().take_turn, 1U);
}

TEST(MemoryStore, ClientsOfOneStoreHaveTheirOwnFaults) {
  MemoryStore a;
  MemoryStore b(a.data());
  a.set_faults(FaultScript().from_commit(1, Fault::unavailable));
  EXPECT_FALSE(create_if_absent(a, kMark, mark(1), kToken, kNoDeadline));
  EXPECT_TRUE(create_if_absent(b, kMark, mark(1), kToken, kNoDeadline));
  EXPECT_TRUE(a.get(kMark, kNoDeadline).value().has_value());
}

class MemoryBackend final : public ConformanceBackend {
 public:
  [[nodiscard]] std::unique_ptr<Store> open() override { return std::make_unique<MemoryStore>(first_.data()); }
  void damage(const Key& key) override { first_.damage(key); }
  [[nodiscard]] bool outlives_processes() const override { return false; }

 private:
  MemoryStore first_;
};

INSTANTIATE_TEST_SUITE_P(Memory, StoreConformance,
                         testing::Values(BackendCase{"memory", [] { return std::make_unique<MemoryBackend>(); }}));

}  // namespace
}  // namespace croft::store
