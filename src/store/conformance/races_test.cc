#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "store/conformance/conformance.h"
#include "store/test_commits.h"

namespace croft::store {

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
  const std::vector<Key> keys = {mark_key("a"), mark_key("b")};
  while (!done) {
    const auto records = store_->get_many(keys, soon());
    ASSERT_TRUE(records) << records.error().message;
    EXPECT_EQ((*records)[0]->value, (*records)[1]->value);
    EXPECT_EQ((*records)[0]->revision, (*records)[1]->revision);
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
    ListRequest request{Kind::high_water_mark, "keep", "", 7};
    int kept = 0;
    for (bool more = true; more;) {
      const auto page = store_->list_keys(request, soon()).value();
      for (const Key& key : page.keys) kept += key.name.ends_with('+') ? 0 : 1;
      more = page.more;
      if (more) request.after = page.keys.back().name;
    }
    EXPECT_EQ(kept, 40);
  }
  writer.join();
}

/// Applies a commit and loses its reply, or loses the request: what a caller can't tell apart.
class LossyClient {
 public:
  LossyClient(Store& store, bool applies) : store_(store), applies_(applies) {}
  Result<Revision> commit(std::span<const Write> writes, const WriteToken& token, Deadline deadline) {
    if (applies_) static_cast<void>(store_.commit(writes, token, deadline));
    return fail(ErrorCode::unknown_outcome, "the reply was lost");
  }

 private:
  Store& store_;
  bool applies_;
};

// docs/notes/reliability.md#unknown-outcomes: read back; token there: done; revision unchanged: the same compare
// and token again.
TEST_P(StoreConformance, ALostReplyIsResolvedByTheToken) {
  for (const bool applied : {true, false}) {
    ASSERT_TRUE(commit({put("a", 1)}));
    const auto before = store_->get(mark_key("a"), soon()).value();
    const std::vector<Write> writes = {put("a", 2, Condition::if_revision(before->revision))};
    const WriteToken token = sample_token(applied ? 100 : 200);
    EXPECT_EQ(code_of(LossyClient(*store_, applied).commit(writes, token, soon())), ErrorCode::unknown_outcome);
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
