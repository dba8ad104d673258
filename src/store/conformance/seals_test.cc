#include <gmock/gmock.h>

#include "store/conformance/conformance.h"
#include "store/seal.h"
#include "store/write_question.h"

namespace croft::store {
namespace {

using core::Seal;
using testing::HasSubstr;

constexpr const char* kMove = "0123456789abcdef0123456789abcdef";

Seal seal_of(Seal::End end, Seal::Phase phase) { return {end, phase, kMove, "etcd:http://10.0.0.9:2379", WallTime{}}; }

Sealable& sealable(Store& store) {
  auto* found = dynamic_cast<Sealable*>(&store);
  EXPECT_NE(found, nullptr) << "every backend can be closed";
  return *found;
}

TEST_P(StoreConformance, ASealClosesAStoreToAllButItsMove) {
  ASSERT_TRUE(commit({put("a", 1)}));
  Sealable& mine = sealable(*store_);
  ASSERT_FALSE(mine.seal(soon()).value());
  const Seal copying = seal_of(Seal::End::target, Seal::Phase::copying);
  ASSERT_TRUE(mine.put_seal(std::nullopt, copying, soon()));
  const auto seen = mine.seal(soon());
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_TRUE(*seen);
  EXPECT_EQ((*seen)->seal, copying);
  EXPECT_NE((*seen)->revision, 0U);

  const auto other = backend_->open();
  for (const bool several : {false, true}) {
    std::vector<Write> writes = {put("a", 2)};
    if (several && !other->capabilities().atomic_commit) continue;
    if (several) writes.push_back(put("b", 2, Condition::if_absent()));
    const auto refused = commit_to(*other, writes);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::unavailable);
    EXPECT_THAT(refused.error().message, HasSubstr("10.0.0.9:2379"));
  }
  EXPECT_EQ(read_from(*other, "a"), 1U) << "it can be read";
  const std::vector<Write> each = {put("a", 2), put("c", 2)};
  for (const auto& outcome : other->commit_each(each, sample_token(2), soon())) EXPECT_FALSE(outcome);

  // The move's own writes, and those of a move that is not this one.
  sealable(*other).work_under(kMove);
  EXPECT_TRUE(commit_to(*other, {put("a", 3)}));
  EXPECT_EQ(read("a"), 3U);
  sealable(*other).work_under("fedcba9876543210fedcba9876543210");
  const auto wrong = commit_to(*other, {put("a", 4)});
  ASSERT_FALSE(wrong);
  EXPECT_EQ(wrong.error().code, ErrorCode::conflict);
  sealable(*other).work_under(kMove);

  ASSERT_TRUE(mine.remove_seal(**mine.seal(soon()), soon()));
  EXPECT_FALSE(mine.seal(soon()).value());
  EXPECT_FALSE(commit_to(*other, {put("a", 5)})) << "the move is over";
  sealable(*other).work_under("");
  EXPECT_TRUE(commit_to(*other, {put("a", 6)}));
  EXPECT_EQ(read("a"), 6U);
}

/// Nothing is written, and what would keep a commit from it is told.
TEST_P(StoreConformance, TheQuestionWhetherWritesAreTakenMeetsASeal) {
  // A Kubernetes API is asked for rights besides (KubeStore.WhetherWritesAreTakenIsToldWithoutOne).
  if (store_->capabilities().atomic_commit) {
    EXPECT_EQ(commit_to(*store_, {write_question()}).error().code, ErrorCode::conflict);
  }
  ASSERT_TRUE(sealable(*store_).put_seal(std::nullopt, seal_of(Seal::End::target, Seal::Phase::copying), soon()));
  const auto other = backend_->open();
  for (Store* store : {store_.get(), other.get()}) {
    const auto closed = commit_to(*store, {write_question()});
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code, ErrorCode::unavailable) << closed.error().message;
    EXPECT_THAT(closed.error().message, HasSubstr("being filled"));
  }
  // The store of another test may be this one.
  const auto there = sealable(*store_).seal(soon()).value();
  ASSERT_TRUE(there && sealable(*store_).remove_seal(*there, soon()));
}

TEST_P(StoreConformance, ASealIsChangedUnderAConditionOnly) {
  Sealable& mine = sealable(*store_);
  const Seal first = seal_of(Seal::End::source, Seal::Phase::copying);
  ASSERT_TRUE(mine.put_seal(std::nullopt, first, soon()));
  const auto twice = mine.put_seal(std::nullopt, first, soon());
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::conflict);
  const auto there = mine.seal(soon()).value();
  ASSERT_TRUE(there);
  Seal moved = first;
  moved.phase = Seal::Phase::moved;
  ASSERT_TRUE(mine.put_seal(there, moved, soon()));
  EXPECT_FALSE(mine.remove_seal(*there, soon())) << "it is another one now";
  EXPECT_FALSE(mine.put_seal(there, first, soon()));
  const auto reopened = backend_->open();
  const auto now = sealable(*reopened).seal(soon()).value();
  ASSERT_TRUE(now);
  EXPECT_EQ(now->seal, moved);
  ASSERT_TRUE(mine.remove_seal(*now, soon()));
  EXPECT_TRUE(commit_to(*backend_->open(), {put("a", 1)}));
}

}  // namespace
}  // namespace croft::store
