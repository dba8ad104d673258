#include <gmock/gmock.h>

#include "store/conformance/conformance.h"
#include "store/pause.h"
#include "store/write_question.h"

namespace croft::store {
namespace {

using core::Pause;
using testing::HasSubstr;

Pause pause_of(Pause::Phase phase) { return {phase, "etcd:http://10.0.0.9:2379", WallTime{}}; }

Pausable& pausable(Store& store) {
  auto* found = dynamic_cast<Pausable*>(&store);
  EXPECT_NE(found, nullptr) << "every backend can be paused";
  return *found;
}

TEST_P(StoreConformance, APauseStopsAllWriters) {
  ASSERT_TRUE(commit({put("a", 1)}));
  Pausable& mine = pausable(*store_);
  ASSERT_FALSE(mine.pause(soon()).value());
  const Pause copying = pause_of(Pause::Phase::copying);
  ASSERT_TRUE(mine.change_pause(std::nullopt, copying, soon()));
  const auto seen = mine.pause(soon());
  ASSERT_TRUE(seen) << seen.error().message;
  ASSERT_TRUE(*seen);
  EXPECT_EQ((*seen)->pause, copying);
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

  if (other->capabilities().foreign_writers) {
    const auto filler = backend_->open();
    pausable(*filler).fill();
    EXPECT_TRUE(commit_to(*filler, {put("a", 3)})) << "a copy is made under a pause";
    EXPECT_EQ(read("a"), 3U);
  }
  ASSERT_TRUE(mine.change_pause(*mine.pause(soon()), std::nullopt, soon()));
  EXPECT_FALSE(mine.pause(soon()).value());
  EXPECT_TRUE(commit_to(*other, {put("a", 6)}));
  EXPECT_EQ(read("a"), 6U);
}

/// Nothing is written, and what would keep a commit from it is told.
TEST_P(StoreConformance, TheQuestionWhetherWritesAreTakenMeetsAPause) {
  // A Kubernetes API is asked for rights besides (KubeStore.WhetherWritesAreTakenIsToldWithoutOne).
  if (store_->capabilities().atomic_commit) {
    EXPECT_EQ(commit_to(*store_, {write_question()}).error().code, ErrorCode::conflict);
  }
  ASSERT_TRUE(pausable(*store_).change_pause(std::nullopt, pause_of(Pause::Phase::filling), soon()));
  const auto other = backend_->open();
  for (Store* store : {store_.get(), other.get()}) {
    const auto closed = commit_to(*store, {write_question()});
    ASSERT_FALSE(closed);
    EXPECT_EQ(closed.error().code, ErrorCode::unavailable) << closed.error().message;
    EXPECT_THAT(closed.error().message, HasSubstr("being filled"));
  }
  // The store of another test may be this one.
  const auto there = pausable(*store_).pause(soon()).value();
  ASSERT_TRUE(there && pausable(*store_).change_pause(there, std::nullopt, soon()));
}

TEST_P(StoreConformance, APauseIsChangedUnderAConditionOnly) {
  Pausable& mine = pausable(*store_);
  const Pause first = pause_of(Pause::Phase::copying);
  ASSERT_TRUE(mine.change_pause(std::nullopt, first, soon()));
  const auto twice = mine.change_pause(std::nullopt, first, soon());
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::conflict);
  const auto there = mine.pause(soon()).value();
  ASSERT_TRUE(there);
  const Pause moved = pause_of(Pause::Phase::moved);
  ASSERT_TRUE(mine.change_pause(there, moved, soon()));
  EXPECT_FALSE(mine.change_pause(there, std::nullopt, soon())) << "it is another one now";
  EXPECT_FALSE(mine.change_pause(there, first, soon()));
  const auto reopened = backend_->open();
  const auto now = pausable(*reopened).pause(soon()).value();
  ASSERT_TRUE(now);
  EXPECT_EQ(now->pause, moved);
  ASSERT_TRUE(mine.change_pause(now, std::nullopt, soon()));
  EXPECT_TRUE(commit_to(*backend_->open(), {put("a", 1)}));
}

}  // namespace
}  // namespace croft::store
