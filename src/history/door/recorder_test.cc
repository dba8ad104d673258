#include "history/use/recorder.h"

#include <rapidcheck.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "history/door/history_file.h"
#include "ipam/use/test_world.h"
#include "os/scratch_directory.h"

namespace croft::engine {
namespace {

using namespace std::chrono_literals;
using core::history::Answer;

/// A register, a recorder of it in a real file, and what really happened.
struct Recorded : World {
  struct Truth {
    std::string container, address;
    WallTime begin;
    std::optional<WallTime> end{};
  };
  os::ScratchDirectory scratch;
  std::unique_ptr<edge::HistoryFile> file;
  std::unique_ptr<Recorder> recorder;
  std::vector<Truth> truth;

  void start() {
    auto opened = edge::HistoryFile::open(scratch.file("history.db"), {});
    ASSERT_TRUE(opened) << opened.error().message;
    recorder.reset();
    file = *std::move(opened);
    recorder = std::make_unique<Recorder>(context, *file);
    step();
  }
  void step() {
    const auto done = recorder->step();
    EXPECT_TRUE(done || done.error().code == ErrorCode::too_old) << done.error().message;
  }
  void take(const std::string& container) {
    const WallTime now = clock.now().wall;
    truth.push_back({container, add(container), now});
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
};

TEST(Recorder, TellsWhoHeldAnAddressAndWhoHasIt) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  const WallTime before = world.clock.now().wall;
  world.clock.advance(10s);
  world.take("c1");
  const std::string address = world.truth.front().address;
  world.step();
  world.clock.advance(60s);
  world.step();
  world.let_go("c1");
  world.step();
  world.clock.advance(60s);
  world.step();

  const Answer then = world.asked(address, before + 30s);
  ASSERT_EQ(then.holdings.size(), 1U);
  EXPECT_TRUE(then.is_sure);
  EXPECT_EQ(then.known, "seen by watch");
  EXPECT_EQ(then.holdings[0].holder.container, "c1");
  EXPECT_EQ(then.holdings[0].holder.network, "net");
  EXPECT_EQ(then.holdings[0].holder.node, "node-a");
  EXPECT_EQ(then.holdings[0].pool, "pods");
  EXPECT_TRUE(then.holdings[0].begin.is_exact()) << "its writer recorded it";
  const Answer now = world.asked(address, world.clock.now().wall - 1s);
  EXPECT_TRUE(now.is_sure);
  EXPECT_TRUE(now.holdings.empty());
  EXPECT_FALSE(world.asked(address, before - 1h).is_sure) << "before the history";
}

TEST(Recorder, WhatChangedWhileItWasAwayIsKnownByTwoLooks) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  world.clock.advance(10s);
  world.take("c1");
  world.step();
  world.clock.advance(10s);
  world.step();
  const WallTime left = world.clock.now().wall;
  world.recorder.reset();
  world.clock.advance(600s);
  world.let_go("c1");
  world.clock.advance(600s);
  world.start();
  world.clock.advance(60s);
  world.step();

  const std::string& address = world.truth[0].address;
  const Answer in_gap = world.asked(address, left + 900s);
  EXPECT_FALSE(in_gap.is_sure);
  ASSERT_EQ(in_gap.holdings.size(), 1U);
  EXPECT_NE(in_gap.known.find("let go between two looks"), std::string::npos) << in_gap.known;
  EXPECT_TRUE(world.asked(address, left - 5s).is_sure);
  const Answer other = world.asked("10.1.0.200", left + 900s);
  EXPECT_FALSE(other.is_sure) << "somebody may have had it";
  EXPECT_NE(other.known.find("gap"), std::string::npos) << other.known;
}

TEST(Recorder, AReleaseThatIsRecordedByTheBlockIsExact) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 1200);
  world.start();
  world.take("c1");
  world.step();
  world.clock.advance(60s);
  world.let_go("c1");
  const WallTime gone = world.clock.now().wall;
  world.recorder.reset();
  world.clock.advance(300s);
  world.start();
  const Answer answer = world.asked(world.truth[0].address, gone - 1s);
  ASSERT_EQ(answer.holdings.size(), 1U);
  ASSERT_TRUE(answer.holdings[0].end);
  EXPECT_EQ(answer.holdings[0].end->by, gone);
  EXPECT_TRUE(answer.holdings[0].end->is_exact());
}

TEST(Recorder, ABlockThatCannotBeReadChangesNothing) {
  Recorded world;
  world.pool("pods", "10.1.0.0/24", 26, 0);
  world.start();
  world.take("c1");
  world.step();
  const auto blocks = list_block_cidrs(world.context);
  for (const auto& block : *blocks) world.store.damage(core::block_key(block));
  world.clock.advance(10s);
  world.step();
  world.start();
  EXPECT_EQ(world.recorder->open_count(), 1U);
}

void check_random_run() {
  Recorded world;
  world.pool("pods", "10.1.0.0/28", 28, *rc::gen::element(0, 7));
  world.start();
  const WallTime begin = world.clock.now().wall;
  int pods = 0;
  for (int i = 0; i < 60; ++i) {
    world.clock.advance(std::chrono::milliseconds(*rc::gen::inRange(1, 5000)));
    switch (*rc::gen::inRange(0, 12)) {
      case 0:
        world.recorder.reset();
        break;
      case 1:
        world.store.forget_history();
        break;
      case 2:
      case 3:
      case 4:
        world.let_go("c" + std::to_string(*rc::gen::inRange(0, pods + 1)));
        break;
      case 5:
      case 6:
      case 7:
        if (world.truth.size() < 12) world.take("c" + std::to_string(pods++));
        break;
      default:
        if (world.recorder == nullptr) world.start();
        world.step();
        break;
    }
  }
  if (world.recorder == nullptr) world.start();
  world.step();
  world.step();
  std::erase_if(world.truth, [](const auto& one) { return one.address.find(':') != std::string::npos; });
  const auto span = std::chrono::duration_cast<std::chrono::milliseconds>(world.clock.now().wall - begin).count();
  for (const auto& one : std::vector(world.truth)) {
    for (int i = 0; i < 10; ++i) {
      const WallTime at = begin + std::chrono::milliseconds(*rc::gen::inRange<std::int64_t>(0, span + 1));
      const Answer answer = world.asked(one.address, at);
      const auto holder = world.holder_then(one.address, at);
      if (answer.is_sure) {
        RC_ASSERT(answer.holdings.empty() == !holder.has_value());
        if (holder) RC_ASSERT(answer.holdings[0].holder.container == *holder);
      } else if (answer.known.find("gap") == std::string::npos && holder) {
        RC_ASSERT(
            std::ranges::any_of(answer.holdings, [&](const auto& held) { return held.holder.container == *holder; }));
      }
    }
  }
}

TEST(RecorderProperties, NoAnswerIsWrong) { EXPECT_TRUE(rc::check("no answer is wrong", check_random_run)); }

}  // namespace
}  // namespace croft::engine
