#include "register/pool.h"
#include "store/conformance/conformance.h"

namespace croft::store {
namespace {

const core::Listing kMarks{Kind::high_water_mark, "w/"};

/// Calls next() until `count` changes came or ten seconds have passed.
std::vector<Change> take(Watch& watch, std::size_t count, const Clock& clock) {
  std::vector<Change> all;
  const Deadline deadline = Deadline::after(clock.now(), std::chrono::seconds{10});
  while (all.size() < count && !deadline.passed(clock.now())) {
    auto some = watch.next(deadline);
    if (!some) {
      ADD_FAILURE() << some.error().message;
      break;
    }
    std::move(some->begin(), some->end(), std::back_inserter(all));
  }
  return all;
}

std::uint64_t number_in(const Change& change) {
  return std::get<core::HighWaterMark>(*change.record->value).sequence_number.value;
}

TEST_P(StoreConformance, ReadIsWhatGetAndListSay) {
  ASSERT_TRUE(write_all({put("r/a", 1), put("r/b", 2), put("s/c", 3)}));
  core::Missing wanted;
  wanted.records = {mark_key("r/a"), mark_key("none")};
  wanted.lists = {{Kind::high_water_mark, "r/"}, {Kind::high_water_mark, "t/"}};
  wanted.keys = {{Kind::high_water_mark, "s/"}};
  const auto answer = store_->read(wanted, soon());
  ASSERT_TRUE(answer) << answer.error().message;
  ASSERT_EQ(answer->records.size(), 2U);
  EXPECT_FALSE(answer->records[0]);  // "none" is the first in order
  ASSERT_TRUE(answer->records[1]);
  EXPECT_EQ(answer->records[1]->revision, (*store_->get(mark_key("r/a"), soon()))->revision);
  ASSERT_EQ(answer->lists.size(), 2U);
  ASSERT_EQ(answer->lists[0].size(), 2U);
  EXPECT_EQ(answer->lists[0][1].key, mark_key("r/b"));
  EXPECT_TRUE(answer->lists[1].empty());
  ASSERT_EQ(answer->keys.size(), 1U);
  EXPECT_EQ(*answer->keys[0], std::vector{mark_key("s/c")});
}

TEST_P(StoreConformance, ReadGivesWholeListsHoweverLong) {
  constexpr std::uint64_t kRecords = 2300;
  std::vector<Write> writes;
  for (std::uint64_t n = 0; n < kRecords; ++n) {
    writes.push_back(put(fmt::format("long/{:05}", n), n));
    if (writes.size() == 100) {
      ASSERT_TRUE(write_all(std::exchange(writes, {})));
    }
  }
  core::Missing wanted;
  wanted.lists = {{Kind::high_water_mark, "long/"}};
  wanted.keys = {{Kind::high_water_mark, "long/"}};
  const auto answer = store_->read(wanted, soon());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->lists[0].size(), kRecords);
  EXPECT_EQ(answer->keys[0]->size(), kRecords);
}

TEST_P(StoreConformance, WatchSeesWhatOthersDoAfterItsPosition) {
  const auto other = backend_->open();
  ASSERT_TRUE(commit_to(*other, {put("w/a", 1)}));
  const auto watch = watch_of({{}, {kMarks}});

  ASSERT_TRUE(write_all(*other, {put("w/b", 2), put("elsewhere", 9)}));
  ASSERT_TRUE(commit_to(*other, {remove("w/a")}));
  const auto changes = take(*watch, 2, clock_);
  ASSERT_EQ(changes.size(), 2U);
  EXPECT_EQ(changes[0].key, mark_key("w/b"));
  ASSERT_TRUE(changes[0].record);
  EXPECT_EQ(number_in(changes[0]), 2U);
  EXPECT_EQ(changes[0].record->revision, (*other->get(mark_key("w/b"), soon()))->revision);
  EXPECT_EQ(changes[0].what, Change::What::put);
  EXPECT_EQ(changes[0].revision, changes[0].record->revision);
  EXPECT_EQ(changes[1].key, mark_key("w/a"));
  EXPECT_EQ(changes[1].what, Change::What::deleted);
  EXPECT_FALSE(changes[1].record);
  EXPECT_GT(changes[1].revision, changes[0].revision);
}

TEST_P(StoreConformance, AFollowedRecordTellsThatItChangedAndWhenItIsGone) {
  const auto watch = watch_of({{}, {kMarks}});
  ASSERT_TRUE(commit({put("f/x", 1)}));
  ASSERT_TRUE(commit({put("w/last", 1)}));
  const auto before = take(*watch, 1, clock_);
  ASSERT_EQ(before.size(), 1U);
  EXPECT_EQ(before[0].key, mark_key("w/last")) << "nobody follows the other yet";

  // From before the first change of it, though the watch has passed that.
  const Revision made = (*store_->get(mark_key("f/x"), soon()))->revision;
  watch->follow(mark_key("f/x"), Revision(made.value - 1));
  const auto next_of_it = [&]() -> std::optional<Change> {
    const Deadline deadline = in(std::chrono::seconds{10});
    while (!deadline.passed(clock_.now())) {
      for (const Change& change : take(*watch, 1, clock_)) {
        if (change.key == mark_key("f/x")) return change;
      }
    }
    return {};
  };
  auto change = next_of_it();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->what, Change::What::touched);
  EXPECT_EQ(change->revision, made);
  EXPECT_FALSE(change->record);

  ASSERT_TRUE(commit({put("f/x", 2)}));
  change = next_of_it();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->what, Change::What::touched);
  EXPECT_EQ(change->revision, (*store_->get(mark_key("f/x"), soon()))->revision);
  ASSERT_TRUE(commit({remove("f/x")}));
  change = next_of_it();
  ASSERT_TRUE(change);
  EXPECT_EQ(change->what, Change::What::deleted);
  EXPECT_GT(change->revision, made);

  watch->unfollow(mark_key("f/x"));
  ASSERT_TRUE(commit({put("f/x", 3)}));
  ASSERT_TRUE(commit({put("w/end", 1)}));
  const auto after = take(*watch, 1, clock_);
  ASSERT_EQ(after.size(), 1U);
  EXPECT_EQ(after[0].key, mark_key("w/end"));
}

TEST_P(StoreConformance, AWatchHasPassedAPositionOnceAllBeforeItWasGivenOut) {
  const auto watch = watch_of({{}, {kMarks}});
  const auto other = backend_->open();
  std::uint64_t given = 0;
  for (std::uint64_t n = 1; n <= backend_->waits_for_completeness(); ++n) {
    ASSERT_TRUE(commit_to(*other, {put("w/a", n)}));
    ASSERT_TRUE(commit_to(*other, {put("elsewhere", n)}));
    const auto position = store_->position(soon());
    ASSERT_TRUE(position) << position.error().message;
    EXPECT_FALSE(watch->is_complete_up_to(*position)) << "it was not asked since";
    const Deadline deadline = in(std::chrono::seconds{100});
    while (!watch->is_complete_up_to(*position)) {
      ASSERT_FALSE(deadline.passed(clock_.now())) << "nobody says that it is complete";
      const auto some = watch->next(in(std::chrono::milliseconds{100}));
      ASSERT_TRUE(some) << some.error().message;
      for (const Change& change : *some) given = number_in(change);
    }
    EXPECT_EQ(given, n);
  }
}

TEST_P(StoreConformance, WatchOfSingleRecordsSeesNoOthers) {
  const auto watch = watch_of({{mark_key("w/one")}, {}});
  ASSERT_TRUE(commit({put("w/one-more", 1)}));
  ASSERT_TRUE(commit({put("w/one", 2)}));
  const auto changes = take(*watch, 1, clock_);
  ASSERT_EQ(changes.size(), 1U);
  EXPECT_EQ(changes[0].key, mark_key("w/one"));
}

/// A store may keep a record in several places, and hear of each by itself (etcd: what Calico has no place for).
TEST_P(StoreConformance, AWatchedRecordComesWhole) {
  const auto watch = watch_of({{}, {{Kind::pool, ""}}});
  for (const int seconds : {90, 30, 0, 60}) {
    core::PoolSpec spec;
    spec.name = "a";
    spec.cidr = net::Prefix::parse("10.0.0.0/16").value();
    spec.cooldown = std::chrono::seconds(seconds);
    auto pool = core::make_pool(spec);
    ASSERT_TRUE(pool) << pool.error().message;
    ASSERT_TRUE(commit({{core::pool_key("a"), *std::move(pool), Condition::always()}}));
    const auto changes = take(*watch, 1, clock_);
    ASSERT_FALSE(changes.empty());
    ASSERT_TRUE(changes.back().record);
    EXPECT_EQ(std::get<core::Pool>(*changes.back().record->value).cooldown, std::chrono::seconds(seconds));
  }
}

TEST_P(StoreConformance, WatchFromAPastPositionCatchesUp) {
  const auto position = store_->position(soon());
  ASSERT_TRUE(position);
  for (std::uint64_t n = 1; n <= 20; ++n) ASSERT_TRUE(commit({put("w/x", n)}));
  ASSERT_TRUE(commit({put("w/y", 1)}));
  ASSERT_TRUE(commit({remove("w/y")}));
  auto watch = store_->watch({{}, {kMarks}}, *position, soon());
  ASSERT_TRUE(watch) << watch.error().message;
  // Earlier states of a record may be left out; the last of each must come, in order.
  std::map<std::string, std::optional<std::uint64_t>> last;
  const Deadline deadline = in(std::chrono::seconds{10});
  const auto is_last = [&] { return last["w/x"] == 20U && last.contains("w/y") && !last["w/y"]; };
  while (!is_last() && !deadline.passed(clock_.now())) {
    const auto some = (*watch)->next(deadline);
    ASSERT_TRUE(some) << some.error().message;
    for (const Change& change : *some) {
      last[change.key.name] = change.record ? std::optional(number_in(change)) : std::nullopt;
    }
  }
  EXPECT_EQ(last["w/x"], 20U);
  EXPECT_EQ(last["w/y"], std::nullopt);
}

}  // namespace
}  // namespace croft::store
