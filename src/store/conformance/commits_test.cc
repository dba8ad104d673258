#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include <gmock/gmock.h>

#include "store/conformance/conformance.h"
#include "store/pause.h"
#include "store/store.h"
#include "store/test_records.h"

namespace croft::store {
namespace {

TEST_P(StoreConformance, CreateReadUpdateDelete) {
  const Key key = mark_key("a");
  const auto created = create_if_absent(*store_, key, mark(1), sample_token(1), soon());
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_GT(created->value, 0U);
  const auto updated = update_if_revision(*store_, key, mark(2), *created, sample_token(2), soon());
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_GT(*updated, *created);
  const auto record = store_->get(key, soon()).value();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->key, key);
  EXPECT_EQ(record->value, mark(2));
  EXPECT_EQ(record->revision, *updated);
  EXPECT_EQ(record->token, sample_token(2));
  ASSERT_TRUE(delete_if_revision(*store_, key, *updated, sample_token(3), soon()));
  EXPECT_FALSE(store_->get(key, soon()).value().has_value());
}

TEST_P(StoreConformance, AConditionThatFailsIsAConflictThatNamesTheKey) {
  const auto first = commit({put("a", 1)}).value();
  const auto second = commit({put("a", 2)}).value();
  for (const Write& write :
       {put("a", 9, Condition::if_absent()), put("a", 9, Condition::if_revision(first)),
        remove("a", Condition::if_revision(first)), remove("a", Condition::if_absent()),
        put("missing", 9, Condition::if_revision(second)), put("missing", 9, Condition::if_revision({}))}) {
    const auto result = commit({write});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::conflict);
    EXPECT_NE(result.error().message.find(write.key.name), std::string::npos) << result.error().message;
  }
  EXPECT_EQ(read("a"), 2U);
  EXPECT_EQ(read("missing"), std::nullopt);
}

TEST_P(StoreConformance, AlwaysPutsAndDeletesWhateverIsThere) {
  EXPECT_TRUE(commit({remove("a")}));
  EXPECT_TRUE(commit({put("a", 1)}));
  EXPECT_TRUE(commit({put("a", 2)}));
  EXPECT_EQ(read("a"), 2U);
  EXPECT_TRUE(commit({remove("a")}));
  EXPECT_EQ(read("a"), std::nullopt);
}

TEST_P(StoreConformance, ADeletedRecordMadeAgainHasALaterRevision) {
  const auto old = commit({put("a", 1)}).value();
  ASSERT_TRUE(commit({remove("a")}));
  const auto renewed = commit({put("a", 1, Condition::if_absent())}).value();
  EXPECT_GT(renewed, old);
  EXPECT_EQ(code_of(commit({put("a", 2, Condition::if_revision(old))})), ErrorCode::conflict);
}

TEST_P(StoreConformance, ACommitOfSeveralIsAllOrNothing) {
  if (!store_->capabilities().atomic_commit) GTEST_SKIP() << "the backend writes one record at a time";
  ASSERT_TRUE(commit({put("a", 1), put("b", 1)}));
  const auto revision_of_b = store_->get(mark_key("b"), soon()).value()->revision;
  ASSERT_TRUE(commit({put("b", 2)}));
  const auto failed =
      commit({put("a", 9), put("new", 9, Condition::if_absent()), remove("b", Condition::if_revision(revision_of_b))});
  EXPECT_EQ(code_of(failed), ErrorCode::conflict);
  EXPECT_EQ(read("a"), 1U);
  EXPECT_EQ(read("b"), 2U);
  EXPECT_EQ(read("new"), std::nullopt);
}

TEST_P(StoreConformance, ACommitGivesOneRevisionAndItsTokenToAll) {
  if (!store_->capabilities().atomic_commit) GTEST_SKIP() << "the backend writes one record at a time";
  const WriteToken token = next_token();
  const auto revision = store_->commit(std::vector{put("a", 1), put("b", 2)}, token, soon()).value();
  for (const char* name : {"a", "b"}) {
    const auto record = store_->get(mark_key(name), soon()).value();
    EXPECT_EQ(record->revision, revision);
    EXPECT_EQ(record->token, token);
  }
}

TEST_P(StoreConformance, AnOnlyCheckHoldsTheCommitToItsConditionAndChangesNothing) {
  if (!store_->capabilities().atomic_commit) GTEST_SKIP() << "the backend writes one record at a time";
  const WriteToken token = next_token();
  const auto revision = store_->commit(std::vector{put("guard", 1)}, token, soon()).value();
  Write check = remove("guard", Condition::if_revision(revision));
  check.only_check = true;
  ASSERT_TRUE(store_->commit(std::vector{check, put("a", 1)}, sample_token(2), soon()));
  const auto guard = store_->get(mark_key("guard"), soon()).value();
  ASSERT_TRUE(guard.has_value());
  EXPECT_EQ(guard->revision, revision);
  EXPECT_EQ(guard->token, token);
  ASSERT_TRUE(commit({put("guard", 2)}));
  EXPECT_EQ(code_of(commit({check, put("a", 2)})), ErrorCode::conflict);
  EXPECT_EQ(read("a"), 1U);
  check.condition = Condition::if_absent();
  EXPECT_EQ(code_of(commit({check, put("a", 3)})), ErrorCode::conflict);
  check.key = mark_key("nowhere");
  EXPECT_TRUE(commit({check, put("a", 4)}));
  EXPECT_EQ(read("nowhere"), std::nullopt);
  check.value = mark(1);
  EXPECT_EQ(code_of(commit({check})), ErrorCode::invalid_argument);
}

TEST_P(StoreConformance, LimitsOfACommit) {
  std::vector<Write> writes;
  for (std::size_t i = 0; i <= kCommitWritesMax; ++i) writes.push_back(put(fmt::format("{:04}", i), i));
  EXPECT_EQ(code_of(commit(writes)), ErrorCode::invalid_argument);
  writes.pop_back();
  EXPECT_EQ(commit(writes).has_value(), store_->capabilities().atomic_commit);
  EXPECT_EQ(code_of(commit({})), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(commit({put("a", 1), remove("a")})), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(commit({{core::pool_set_key(), mark(1), Condition::always()}})), ErrorCode::invalid_argument);
}

TEST_P(StoreConformance, LimitsOfAName) {
  const std::string longest(core::kKeyNameBytesMax, 'x');
  EXPECT_TRUE(commit({put(longest, 7)}));
  EXPECT_EQ(read(longest), 7U);
  for (const std::string& name :
       {longest + "x", std::string(), std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f")}) {
    EXPECT_EQ(code_of(commit({put(name, 1)})), ErrorCode::invalid_argument) << name.size();
  }
}

TEST_P(StoreConformance, ValuesOfEveryKindComeBackAsTheyWere) {
  const core::Block block = sample_block(3, 64);
  const core::Handle handle = sample_handle(77, 3);
  core::Pool pool;
  pool.name = "a";
  pool.cidr = net::Prefix::parse("10.0.0.0/8").value();
  pool.block_length = 26;
  pool.gateway = net::Address::parse("10.0.0.1").value();
  core::StockAddress warm;
  warm.address = net::Address::parse("10.9.0.7").value();
  warm.prefix_length = 24;
  warm.state = core::StockAddressState::free;
  core::StockIntent intent;
  intent.id = "0123456789abcdef0123456789abcdef";
  std::vector<std::pair<Key, Value>> records = {
      {core::pool_key("a"), pool},
      {core::reservation_key("r"), core::Reservation{"r", {block.cidr}}},
      {{Kind::ipam_config, "default"}, core::IpamConfig{true, false, 5, "Enabled", 60}},
      {core::block_key(block.cidr), block},
      {core::affinity_key(kSampleNode, block.cidr),
       core::Affinity{kSampleNode, block.cidr, core::AffinityState::pending, false}},
      {core::handle_key(handle.id), handle},
      {core::vacancy_key(kSampleNode, block.cidr),
       core::Vacancy{WallTime(std::chrono::nanoseconds{1768471205123456789})}},
      {core::high_water_mark_key(block.cidr), mark(core::kHighWaterMarkMax)},
      {core::pool_set_key(), core::PoolSet{3}},
      {core::node_key("node-a"), core::Node{"node-a", {{"zone", "a"}}, {{"k8s", "a"}}, {}}},
      {core::range_allocation_key(core::kServiceIps), core::RangeAllocation{"10.0.0.0/24", "\x08\x02\x01"}},
      {core::service_key({"default", "web"}), sample_service()},
      {core::service_cidr_key("kubernetes"), sample_service_cidr()},
      {core::node_range_key(block.cidr), core::NodeRange{"node-a", block.cidr}},
      {core::node_range_set_key(), core::NodeRangeSet{7, {{pool.cidr, 24}}, {block.cidr}, {3}}},
      {core::removed_node_key("node-a"),
       core::RemovedNode{"node-a", {{block.cidr.to_string(), core::SequenceNumber(7)}}}},
      {core::foreign_service_key({"default", "web"}), core::ForeignService{sample_service()}},
      {core::namespace_key("shop"), core::Namespace{"shop", {{"team", "x"}}}},
      {core::warm_address_key(warm.address), warm},
      {core::warm_intent_key("0123456789abcdef0123456789abcdef"), intent},
      {core::warm_node_key(), core::StockNode{"node-a", {}, "uvnet-1", "subnet-1", "", "", "", "", 3, 50, 30}},
  };
  ASSERT_EQ(records.size(), core::kKindCount);
  std::erase_if(records, [&](const auto& record) { return !backend_->writes(record.first.kind); });
  for (const auto& [key, value] : records) ASSERT_TRUE(create_if_absent(*store_, key, value, sample_token(1), soon()));
  store_ = backend_->open();
  for (const auto& [key, value] : records) {
    const auto record = store_->get(key, soon());
    ASSERT_TRUE(record && *record) << core::name_of(key.kind);
    ASSERT_TRUE((*record)->value) << (*record)->value.error().message;
    EXPECT_EQ(without_rest(*(*record)->value), value) << core::name_of(key.kind);
  }
}

TEST_P(StoreConformance, ADeadlineInThePastEndsTheCallAndChangesNothingOnFailure) {
  const auto result = store_->commit(std::vector{put("a", 1)}, sample_token(1), Deadline{std::chrono::nanoseconds{0}});
  EXPECT_EQ(read("a").has_value(), result.has_value());
}

}  // namespace

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

void StoreConformance::increment(Store& store, const std::string& name) const {
  for (;;) {
    const auto record = store.get(mark_key(name), soon());
    ASSERT_TRUE(record) << record.error().message;
    const std::uint64_t n = *record ? std::get<core::HighWaterMark>(*(*record)->value).sequence_number.value : 0;
    const Condition condition = *record ? Condition::if_revision((*record)->revision) : Condition::if_absent();
    const auto committed = store.commit(std::vector{put(name, n + 1, condition)}, next_token(), soon());
    if (committed) return;
    ASSERT_EQ(committed.error().code, ErrorCode::conflict) << committed.error().message;
  }
}

Result<void> StoreConformance::write_all(Store& store, std::vector<Write> writes) const {
  if (store.capabilities().atomic_commit) {
    TRY_VOID(commit_to(store, std::move(writes)));
    return {};
  }
  for (Write& write : writes) TRY_VOID(commit_to(store, {std::move(write)}));
  return {};
}

namespace {

constexpr int kThreads = 4;
constexpr int kRounds = 25;

TEST_P(StoreConformance, ThreadsOfOneClientLoseNoUpdate) {
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) increment(*store_, "counter");
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(read("counter"), kThreads * kRounds);
}

TEST_P(StoreConformance, TwoClientsLoseNoUpdate) {
  const auto other = backend_->open();
  std::vector<std::thread> threads;
  for (Store* store : {store_.get(), other.get()}) {
    threads.emplace_back([this, store] {
      for (int i = 0; i < kRounds; ++i) increment(*store, "counter");
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(read("counter"), 2 * kRounds);
  EXPECT_EQ(read_from(*other, "counter"), 2 * kRounds);
}

TEST_P(StoreConformance, OnlyOneOfManyCreatesARecord) {
  std::atomic<int> winners{0};
  std::vector<std::thread> threads;
  const auto other = backend_->open();
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      Store& store = t % 2 == 0 ? *store_ : *other;
      for (int i = 0; i < kRounds; ++i) {
        if (create_if_absent(store, mark_key(std::to_string(i)), mark(1), next_token(), soon())) ++winners;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(winners, kRounds);
}

TEST_P(StoreConformance, SeveralProcessesLoseNoUpdate) {
  if (!backend_->outlives_processes()) GTEST_SKIP() << GetParam().name << " is simulated in this process";
  constexpr int kProcesses = 4;
  store_.reset();  // a child must not use a store of its parent
  std::vector<pid_t> children;
  for (int p = 0; p < kProcesses; ++p) {
    const pid_t pid = ::fork();
    if (pid == 0) {
      const auto store = backend_->open();
      for (int i = 0; i < kRounds; ++i) increment(*store, "counter");
      ::_exit(HasFailure() ? 1 : 0);
    }
    children.push_back(pid);
  }
  for (const pid_t child : children) {
    int status = 1;
    ::waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  store_ = backend_->open();
  EXPECT_EQ(read("counter"), kProcesses * kRounds);
  std::printf("  %d processes at once on %s\n", kProcesses, GetParam().name.c_str());
}

TEST_P(StoreConformance, GetManySeesNoHalfOfACommit) {
  if (!store_->capabilities().atomic_commit) GTEST_SKIP() << "the backend writes one record at a time";
  ASSERT_TRUE(commit({put("a", 0), put("b", 0)}));
  std::atomic<bool> done{false};
  const auto other = backend_->open();
  std::thread writer([&] {
    for (std::uint64_t i = 1; i <= 200; ++i) EXPECT_TRUE(commit_to(*other, {put("a", i), put("b", i)}));
    done = true;
  });
  core::Missing wanted;
  wanted.records = {mark_key("a"), mark_key("b")};
  while (!done) {
    const auto answer = store_->read(wanted, soon());
    ASSERT_TRUE(answer) << answer.error().message;
    const auto& records = answer->records;
    EXPECT_EQ(records[0]->value, records[1]->value);
    EXPECT_EQ(records[0]->revision, records[1]->revision);
  }
  writer.join();
}

TEST_P(StoreConformance, AConcurrentListSeesWhatIsThereAllTheTimeExactlyOnce) {
  for (int i = 0; i < 40; ++i) ASSERT_TRUE(commit({put(fmt::format("keep{:02}", i), 1)}));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (int i = 0; i < 60; ++i) {
      EXPECT_TRUE(commit({put(fmt::format("keep{:02}+", i % 40), 1)}));
      EXPECT_TRUE(commit({remove(fmt::format("keep{:02}+", i % 40))}));
    }
    done = true;
  });
  while (!done) {
    const auto names = names_of({Kind::high_water_mark, "keep", 7, true});
    EXPECT_EQ(std::ranges::count_if(names, [](const std::string& name) { return !name.ends_with('+'); }), 40);
  }
  writer.join();
}

// docs/notes/reliability.md#unknown-outcomes: read back; token there: done; revision unchanged: the same compare
// and token again.
TEST_P(StoreConformance, ALostReplyIsResolvedByTheToken) {
  for (const bool applied : {true, false}) {
    ASSERT_TRUE(commit({put("a", 1)}));
    const auto before = store_->get(mark_key("a"), soon()).value();
    const std::vector<Write> writes = {put("a", 2, Condition::if_revision(before->revision))};
    const WriteToken token = sample_token(applied ? 100 : 200);
    if (applied) static_cast<void>(store_->commit(writes, token, soon()));  // the caller can't tell
    const auto after = store_->get(mark_key("a"), soon()).value();
    EXPECT_EQ(after->token == token, applied);
    EXPECT_EQ(store_->fate_of(writes, token, soon()).value(), applied ? Fate::applied : Fate::may_still_come);
    const auto again = store_->commit(writes, token, soon());
    if (applied && again) {
      EXPECT_EQ(*again, after->revision) << "known by its token";
    } else {
      EXPECT_EQ(again.has_value(), !applied) << "at most one of the two attempts can win";
    }
    const auto kept = store_->get(mark_key("a"), soon()).value();
    EXPECT_TRUE(!applied || kept->revision == after->revision) << "written a second time";
    EXPECT_EQ(read("a"), 2U);
  }
}

// The same where a foreign format has no place for the token.
TEST_P(StoreConformance, ALostReplyIsResolvedForEveryKind) {
  core::Block block = sample_block(1, 3);
  const Key key = core::block_key(block.cidr);
  const std::vector<Write> creation = {{key, block, Condition::if_absent()}};
  EXPECT_EQ(store_->fate_of(creation, sample_token(1), soon()).value(), Fate::may_still_come);
  ASSERT_TRUE(store_->commit(creation, sample_token(1), soon()));
  EXPECT_EQ(store_->fate_of(creation, sample_token(1), soon()).value(), Fate::applied);

  const Revision revision = store_->get(key, soon()).value()->revision;
  const std::vector<Write> ours = {{key, sample_block(1, 4), Condition::if_revision(revision)}};
  EXPECT_EQ(store_->fate_of(ours, sample_token(2), soon()).value(), Fate::may_still_come);
  ASSERT_TRUE(store_->commit(std::vector<Write>{{key, sample_block(1, 5), Condition::if_revision(revision)}},
                             sample_token(3), soon()));
  EXPECT_EQ(store_->fate_of(ours, sample_token(2), soon()).value(), Fate::lost);

  const std::vector<Write> removal = {{key, std::nullopt, Condition::if_revision(revision)}};
  EXPECT_EQ(store_->fate_of(removal, sample_token(4), soon()).value(), Fate::lost);
}

TEST_P(StoreConformance, ATurnLetsItsHolderGoFirst) {
  auto turn = store_->take_turn(soon());
  ASSERT_TRUE(turn) << turn.error().message;
  EXPECT_TRUE(commit({put("a", 1)})) << "commits of the holder's thread go ahead";
  EXPECT_TRUE(commit({put("a", 2)}));
  EXPECT_EQ(read("a"), 2U);
  const auto other = backend_->open();
  if (*turn == nullptr) {
    EXPECT_TRUE(commit_to(*other, {put("a", 3)})) << "a store without a queue of writers";
    return;
  }
  std::thread([&] {
    const auto theirs = other->take_turn(in(std::chrono::milliseconds{50}));
    ASSERT_FALSE(theirs);
    EXPECT_EQ(theirs.error().code, ErrorCode::deadline_exceeded);
    EXPECT_EQ(read_from(*other, "a"), 2U) << "reading needs no turn";
  }).join();
  std::thread waiter([&] { EXPECT_TRUE(other->take_turn(soon())); });
  std::this_thread::sleep_for(std::chrono::milliseconds{20});
  turn->reset();
  waiter.join();
  EXPECT_TRUE(commit_to(*other, {put("a", 3)}));
}

}  // namespace
}  // namespace croft::store
