#include "history/use/recorder.h"

#include <rapidcheck.h>

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "history/door/history_file.h"
#include "ipam/use/test_world.h"
#include "os/scratch_directory.h"
#include "store/forwarding_store.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::history::Answer;

/// Calls take time, in which pods come and go. Watches may be silent, slow, or leave out all but the last change.
class RoughStore final : public store::ForwardingStore {
 public:
  using ForwardingStore::ForwardingStore;

  [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until,
                                      const Take& take) override {
    const auto each_page = [&] {
      meanwhile();
      return until();
    };
    auto done = ForwardingStore::for_each(request, each_page, take);
    meanwhile();
    return done;
  }
  [[nodiscard]] Result<store::Revision> position(Deadline deadline) override {
    if (is_away) return fail(ErrorCode::unavailable, "nobody answers");
    auto position = ForwardingStore::position(deadline);
    meanwhile();
    return position;
  }
  [[nodiscard]] Result<std::unique_ptr<store::Watch>> watch(const store::WatchScope& scope, store::Revision after,
                                                            Deadline deadline) override {
    TRY(auto watch, ForwardingStore::watch(scope, after, deadline));
    return std::make_unique<RoughWatch>(*this, std::move(watch));
  }

  std::function<void()> meanwhile = [] {};
  bool is_away = false, is_silent = false, leaves_out = false;
  std::size_t changes_max = 1000;  ///< of one look

 private:
  class RoughWatch final : public store::Watch {
   public:
    RoughWatch(RoughStore& store, std::unique_ptr<store::Watch> beneath)
        : store_(store), beneath_(std::move(beneath)) {}
    [[nodiscard]] Result<std::vector<store::Change>> next(Deadline deadline) override {
      if (store_.is_silent) return std::vector<store::Change>();
      TRY(auto some, beneath_->next(deadline));
      for (store::Change& change : some) {
        if (store_.leaves_out) std::erase_if(queue_, [&](const auto& one) { return one.key == change.key; });
        queue_.push_back(std::move(change));
      }
      const auto end = queue_.begin() + static_cast<std::ptrdiff_t>(std::min(store_.changes_max, queue_.size()));
      std::vector<store::Change> given(queue_.begin(), end);
      queue_.erase(queue_.begin(), end);
      return given;
    }
    [[nodiscard]] bool is_complete_up_to(store::Revision position) override {
      return !store_.is_silent && queue_.empty() && beneath_->is_complete_up_to(position);
    }
    void follow(const store::Key&, store::Revision) override {}
    void unfollow(const store::Key&) override {}

   private:
    RoughStore& store_;
    const std::unique_ptr<store::Watch> beneath_;
    std::vector<store::Change> queue_;
  };
};

/// The clock of a node.
class SkewedClock final : public Clock {
 public:
  explicit SkewedClock(const Clock& clock) : clock_(clock) {}
  [[nodiscard]] Instant now() const override {
    Instant now = clock_.now();
    now.wall += skew;
    return now;
  }
  std::chrono::nanoseconds skew{0};

 private:
  const Clock& clock_;
};

/// A register, a recorder of it in a real file, and what really happened.
struct Recorded : World {
  struct Truth {
    std::string container, address;
    WallTime begin;
    std::optional<WallTime> end{};
  };
  RoughStore rough{store};
  SkewedClock node_clock{clock};
  os::ScratchDirectory scratch;
  std::unique_ptr<edge::HistoryFile> file;
  std::unique_ptr<Recorder> recorder;
  std::vector<Truth> truth;

  void start(const Instant& last = {}) {
    recorder.reset();
    file.reset();
    auto opened = edge::HistoryFile::open(scratch.file("history.db"), {});
    ASSERT_TRUE(opened) << opened.error().message;
    file = *std::move(opened);
    recorder = std::make_unique<Recorder>(Context{rough, clock, random}, *file, nullptr, last);
    step();
  }
  Result<void> step() { return recorder->step(); }
  /// Steps for a while, one in two seconds.
  void steps(std::chrono::seconds span) {
    const WallTime end = clock.now().wall + span;
    while (clock.now().wall < end) {
      clock.advance(2s);
      static_cast<void>(step());
    }
  }
  std::string take(const std::string& container) {
    const Context of_node{store, node_clock, random};
    const auto answer = assign(of_node, request(container));
    const auto* const assigned = answer ? std::get_if<core::Assigned>(&*answer) : nullptr;
    if (assigned == nullptr) return "";  // all are taken, or rest
    truth.push_back({container, assigned->addresses.front().address.to_string(), clock.now().wall});
    return truth.back().address;
  }
  void let_go(const std::string& container) {
    if (del(container) == 0) return;
    for (Truth& one : truth) {
      if (one.container == container && !one.end) one.end = clock.now().wall;
    }
  }
  Answer asked(const std::string& address, WallTime at) {
    const auto answer = file->holder_at(ip(address.substr(0, address.find('/')).c_str()), at);
    EXPECT_TRUE(answer) << answer.error().message;
    return answer ? *answer : Answer{};
  }
  std::optional<std::string> holder_then(const std::string& address, WallTime at) const {
    for (const Truth& one : truth) {
      if (one.address == address && one.begin <= at && (!one.end || at < *one.end)) return one.container;
    }
    return std::nullopt;
  }
  /// Closer than the file keeps times, to when somebody came or went.
  bool is_at_a_change(const std::string& address, WallTime at) const {
    const auto is_close = [&](WallTime time) { return at - time < 2ms && time - at < 2ms; };
    return std::ranges::any_of(truth, [&](const Truth& one) {
      return one.address == address && (is_close(one.begin) || (one.end && is_close(*one.end)));
    });
  }
  /// An answer that is sure, and not right; empty: it is not.
  std::string wrong(const std::string& address, WallTime at) {
    if (is_at_a_change(address, at)) return "";
    const Answer answer = asked(address, at);
    const auto holder = holder_then(address, at);
    const auto names_it = [&](const auto& held) { return held.holder.container == holder.value_or(""); };
    const bool is_named = std::ranges::any_of(answer.holdings, names_it);
    if (!answer.is_sure || (holder ? is_named : answer.holdings.empty())) return "";
    return address + " was " + holder.value_or("nobody") + "'s, it says " +
           (answer.holdings.empty() ? "nobody" : answer.holdings[0].holder.container) + ", " + answer.known;
  }
};

TEST(Recorder, TellsWhoHeldAnAddressAndWhoHasIt) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  const WallTime before = world.clock.now().wall;
  world.steps(10s);
  const std::string address = world.take("c1");
  world.steps(60s);
  world.let_go("c1");
  world.steps(60s);

  const Answer then = world.asked(address, before + 30s);
  ASSERT_EQ(then.holdings.size(), 1U);
  EXPECT_TRUE(then.is_sure);
  EXPECT_EQ(then.known, "seen by watch");
  EXPECT_EQ(then.holdings[0].holder.container, "c1");
  EXPECT_EQ(then.holdings[0].holder.network, "net");
  EXPECT_EQ(then.holdings[0].holder.node, "node-a");
  EXPECT_EQ(then.holdings[0].pool, "pods");
  EXPECT_LE(then.holdings[0].begin.by - then.holdings[0].begin.after, 5s);
  const Answer now = world.asked(address, world.clock.now().wall - 20s);
  EXPECT_TRUE(now.is_sure);
  EXPECT_TRUE(now.holdings.empty());
  EXPECT_FALSE(world.asked(address, before - 1h).is_sure) << "before the history";
  EXPECT_FALSE(world.asked(address, world.clock.now().wall).is_sure) << "not yet";
}

TEST(Recorder, WhatChangedWhileItWasAwayIsKnownByTwoLooks) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  const std::string address = world.take("c1");
  world.steps(30s);
  const WallTime left = world.clock.now().wall;
  world.recorder.reset();
  world.clock.advance(600s);
  world.let_go("c1");
  world.node_clock.skew = -20s;
  const std::string other = world.take("c2");
  world.clock.advance(600s);
  world.start();
  world.steps(60s);

  const Answer in_gap = world.asked(address, left + 300s);
  EXPECT_FALSE(in_gap.is_sure);
  ASSERT_EQ(in_gap.holdings.size(), 1U);
  EXPECT_NE(in_gap.known.find("let go between two looks"), std::string::npos) << in_gap.known;
  EXPECT_TRUE(world.asked(address, left - 15s).is_sure);
  const Answer nobody = world.asked("10.2.0.200", left + 900s);
  EXPECT_FALSE(nobody.is_sure) << "somebody may have had it";
  EXPECT_NE(nobody.known.find("gap: nobody looked"), std::string::npos) << nobody.known;
  // Its block records when it came, by a clock that goes wrong.
  EXPECT_TRUE(world.asked(other, left + 700s).is_sure);
  EXPECT_FALSE(world.asked(other, left + 590s).is_sure);
  EXPECT_EQ(world.wrong(other, left + 590s), "");
}

TEST(Recorder, ASilentWatchProvesNothing) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  world.take("c0");
  world.steps(60s);
  const WallTime cut = world.clock.now().wall;
  world.rough.is_silent = true;
  world.steps(20s);
  const std::string address = world.take("c1");
  world.steps(20s);
  world.let_go("c1");
  world.steps(20s);
  EXPECT_LE(world.file->reach()->until, cut);
  EXPECT_FALSE(world.asked(address, cut + 30s).is_sure);
  // It comes to all that it missed.
  world.rough.is_silent = false;
  world.steps(60s);
  EXPECT_FALSE(world.asked(address, cut + 30s).is_sure);
  EXPECT_EQ(world.asked(address, cut + 30s).holdings.size(), 1U);
  EXPECT_TRUE(world.asked("10.2.0.200", cut + 30s).is_sure) << "of another block";

  // It never does, and is given up.
  const WallTime lost = world.clock.now().wall;
  world.rough.is_silent = true;
  const std::string second = world.take("c2");
  world.steps(60s);
  world.let_go("c2");
  world.steps(400s);
  world.rough.is_silent = false;
  world.steps(300s);
  const Answer answer = world.asked(second, lost + 30s);
  EXPECT_FALSE(answer.is_sure);
  EXPECT_NE(answer.known.find("gap"), std::string::npos) << answer.known;
  EXPECT_TRUE(world.asked(second, world.clock.now().wall - 20s).is_sure);
}

TEST(Recorder, AStoreThatIsAwayIsAnOutageOfTheStoreAndNotOfTheHistory) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  const std::string address = world.take("c1");
  world.steps(20s);
  const WallTime cut = world.clock.now().wall;
  world.rough.is_away = world.rough.is_silent = true;
  world.steps(60s);
  EXPECT_LE(world.file->reach()->until, cut);
  world.rough.is_away = world.rough.is_silent = false;
  world.steps(20s);
  EXPECT_TRUE(world.asked(address, cut + 30s).is_sure);
  EXPECT_TRUE(world.asked("10.2.0.200", cut + 30s).is_sure);
}

TEST(Recorder, TimesThatComeTwiceAreSureOfNobody) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  world.steps(600s);
  const std::string address = world.take("c1");
  world.steps(60s);
  world.let_go("c1");
  world.steps(60s);
  const WallTime set = world.clock.now().wall;
  world.clock.jump_wall(-300s);
  EXPECT_FALSE(world.step()) << "it notices";
  world.clock.advance(1s);
  world.steps(600s);
  EXPECT_FALSE(world.asked(address, set - 90s).is_sure) << "it was c1's first, and nobody's then";
  EXPECT_FALSE(world.asked(address, set - 200s).is_sure);
  EXPECT_TRUE(world.asked(address, set - 400s).is_sure);
  EXPECT_TRUE(world.asked(address, set + 100s).is_sure);
  // The same while it was away.
  const WallTime later = world.clock.now().wall;
  world.recorder.reset();
  world.clock.jump_wall(-300s);
  world.start();
  world.start();
  EXPECT_LE(world.file->reach()->until, world.clock.now().wall) << "it does not live in the future";
  world.steps(600s);
  EXPECT_FALSE(world.asked(address, later - 100s).is_sure);
}

TEST(Recorder, AClockThatIsSetBackByLessThanTheLagComesTwiceToo) {
  for (const bool is_restart : {false, true}) {
    Recorded world;
    world.pool("pods", "10.1.0.0/24", 26, 0);
    world.start();
    world.steps(60s);
    // The watch gives changes, and nobody says how far it is.
    const WallTime cut = world.clock.now().wall;
    world.rough.is_away = true;
    world.steps(10s);
    const std::string address = world.take("c1");
    world.steps(20s);
    world.let_go("c1");
    world.steps(4s);
    world.clock.jump_wall(-18s);
    if (is_restart) world.recorder.reset();
    world.rough.is_away = false;
    if (is_restart) {
      world.start();
    } else {
      EXPECT_FALSE(world.step()) << "it notices";
    }
    world.steps(60s);
    ASSERT_FALSE(address.empty());
    EXPECT_FALSE(world.asked(address, cut + 26s).is_sure) << "it was c1's first, and nobody's then";
    EXPECT_TRUE(world.asked(address, cut + 50s).is_sure);
  }
}

TEST(Recorder, TheNextRecorderKnowsThatTheClockWasSetBackWhileNobodyRecorded) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  const std::string address = world.take("c1");
  world.steps(400s);
  world.let_go("c1");
  world.steps(100s);
  const WallTime set = world.clock.now().wall;
  world.clock.jump_wall(-300s);
  EXPECT_FALSE(world.step()) << "it notices";
  world.clock.advance(2s);
  const Instant last = world.recorder->last_step();
  world.start(last);
  world.steps(600s);
  EXPECT_FALSE(world.asked(address, set - 299s).is_sure) << "c1's first, and nobody's then";
  EXPECT_FALSE(world.asked(address, set - 50s).is_sure);
  EXPECT_TRUE(world.asked(address, set - 310s).is_sure);
  EXPECT_TRUE(world.asked(address, set + 10s).is_sure);
}

TEST(Recorder, StatesThatAStoreLeftOutAreAGapOfTheirBlock) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  const std::string stays = world.take("stays");
  world.steps(60s);
  world.rough.leaves_out = true;
  world.clock.advance(100ms);
  const WallTime then = world.clock.now().wall;
  const std::string address = world.take("short");
  world.clock.advance(100ms);
  world.let_go("short");
  world.clock.advance(100ms);
  world.steps(60s);
  const Answer answer = world.asked(address, then + 50ms);
  EXPECT_FALSE(answer.is_sure);
  EXPECT_NE(answer.known.find("not every change of its block was seen"), std::string::npos) << answer.known;
  EXPECT_TRUE(world.asked(stays, then + 50ms).is_sure);
  EXPECT_TRUE(world.asked("10.2.0.200", then + 50ms).is_sure) << "of another block";
}

TEST(Recorder, ABlockThatCannotBeReadChangesNothingAndProvesNothing) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  const std::string address = world.take("c1");
  world.steps(60s);
  const core::Key key = core::block_key(list_block_cidrs(world.context)->front());
  const core::Value readable = *world.store.get(key, Deadline{}).value()->value;
  const auto& readable_block = std::get<core::Block>(readable);
  const WallTime damaged = world.clock.now().wall;
  world.store.damage(key);
  world.steps(60s);
  EXPECT_FALSE(world.asked(address, damaged + 30s).is_sure) << "it may hold another one";
  world.start();
  EXPECT_EQ(world.recorder->open_count(), 1U);
  world.steps(60s);
  EXPECT_FALSE(world.asked(address, damaged + 90s).is_sure);
  world.put(key, readable);
  world.steps(60s);
  EXPECT_TRUE(world.asked(address, damaged + 90s).is_sure) << "it is the same allocation as before";
  EXPECT_TRUE(world.asked(address, damaged + 150s).is_sure);

  world.store.damage(key);
  world.steps(60s);
  core::Value next = readable;
  ++std::get<core::Block>(next).sequence_number.value;
  world.put(key, next);
  world.steps(60s);
  const std::string nobody = readable_block.cidr.last().to_string();
  EXPECT_FALSE(world.asked(nobody, damaged + 210s).is_sure);
  EXPECT_TRUE(world.asked(nobody, damaged + 270s).is_sure) << "it is over, also where its number is the next one";
}

TEST(Recorder, EndsInTheMiddleOfTheFirstList) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.take("c1");
  world.start();
  Recorder ending(Context{world.rough, world.clock, world.random}, *world.file, [] { return true; });
  EXPECT_FALSE(ending.step());
}

/// A log that takes nothing.
class FullLog final : public HistoryLog {
 public:
  [[nodiscard]] Result<State> state() override { return State{}; }
  [[nodiscard]] Result<void> write(const HistoryEntry& entry) override {
    if (is_full) return fail(ErrorCode::storage_full, "full");
    std::size_t begun = 0;
    for (const auto& changes : entry.changes) begun += changes.begun.size();
    largest = std::max(largest, begun);
    return {};
  }
  bool is_full = true;
  std::size_t largest = 0;  ///< of the entries, in holders
};

TEST(Recorder, AFullLogCostsTheStoreNoList) {
  Recorded world;
  FullLog log;
  Recorder recorder(world.context, log);
  const auto before = world.store.counts();
  EXPECT_FALSE(recorder.step());
  EXPECT_EQ(world.store.counts().list, before.list);
  EXPECT_EQ(world.store.counts().read, before.read);
}

TEST(Recorder, AWriteHasABoundOfHolders) {
  Recorded world;
  world.pool("pods", "10.1.0.0/20", 22, 0);
  for (const char* const cidr : {"10.1.0.0/22", "10.1.4.0/22", "10.1.8.0/22"}) {
    core::Block block = core::new_block(World::prefix(cidr), std::nullopt, world.clock.now(), std::nullopt);
    core::Attribute attribute;
    attribute.handle_id = "net.c1";
    block.attributes = {attribute};
    block.allocations.assign(1024, 0);
    block.unallocated = {};
    world.put(core::block_key(block.cidr), block);
  }
  FullLog log;
  log.is_full = false;
  Recorder recorder(world.context, log);
  ASSERT_TRUE(recorder.step());
  EXPECT_EQ(recorder.open_count(), 3072U);
  EXPECT_LT(log.largest, 3072U);
}

void check_random_run() {
  Recorded world;
  world.pool("pods", "10.1.0.0/28", 28, *rc::gen::element(0, 7));
  int pods = 0;
  const auto take = [&] {
    world.node_clock.skew = std::chrono::seconds(*rc::gen::inRange(-50, 50));
    if (world.truth.size() < 14) world.take("c" + std::to_string(pods++));
  };
  const auto let_go = [&] { world.let_go("c" + std::to_string(*rc::gen::inRange(0, pods + 1))); };
  world.rough.meanwhile = [&] {
    world.clock.advance(std::chrono::milliseconds(*rc::gen::inRange(0, 400)));
    const int dice = *rc::gen::inRange(0, 8);
    if (dice == 0) take();
    if (dice == 1) let_go();
    world.clock.advance(std::chrono::milliseconds(*rc::gen::inRange(0, 400)));
  };
  world.start();
  const WallTime begin = world.clock.now().wall;
  for (int i = 0; i < 60; ++i) {
    world.clock.advance(std::chrono::milliseconds(*rc::gen::inRange(1, 5000)));
    switch (*rc::gen::inRange(0, 16)) {
      case 0:
        world.recorder.reset();
        break;
      case 1:
        world.store.forget_history();
        break;
      case 2:
      case 3:
        let_go();
        break;
      case 4:
      case 5:
        take();
        break;
      case 6:
        world.rough.is_silent = *rc::gen::element(false, true);
        world.rough.is_away = world.rough.is_silent && *rc::gen::element(false, true);
        if (world.rough.is_silent) world.clock.advance(std::chrono::seconds(*rc::gen::element(1, 100, 400)));
        break;
      case 7:
        world.rough.leaves_out = *rc::gen::element(false, true);
        world.rough.changes_max = *rc::gen::element<std::size_t>(1, 1000);
        break;
      default:
        if (world.recorder == nullptr) {
          world.start();
        } else {
          static_cast<void>(world.step());
        }
        break;
    }
  }
  world.rough.is_silent = world.rough.is_away = false;
  world.rough.changes_max = 1000;
  if (world.recorder == nullptr) world.start();
  world.steps(20s);
  const auto span = std::chrono::duration_cast<std::chrono::milliseconds>(world.clock.now().wall - begin).count();
  for (const auto& one : std::vector(world.truth)) {
    for (int i = 0; i < 20; ++i) {
      const WallTime at = begin + std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, span + 1));
      RC_ASSERT(world.wrong(one.address, at) == "");
    }
    // Close to where somebody came or went.
    for (const WallTime edge : {one.begin, one.end.value_or(one.begin)}) {
      const WallTime at = edge + std::chrono::milliseconds(*rc::gen::inRange(-3000, 3000));
      RC_ASSERT(world.wrong(one.address, at) == "");
    }
  }
}

TEST(RecorderProperties, NoAnswerIsWrong) { EXPECT_TRUE(rc::check("no answer is wrong", check_random_run)); }

}  // namespace
}  // namespace croft::engine
