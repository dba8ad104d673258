#include "cni/door/tombstones.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cni/door/cni_call.h"
#include "cni/format/tombstone.h"
#include "ipam/use/test_world.h"
#include "os/clock.h"
#include "os/file_lock.h"
#include "os/scratch_directory.h"

namespace croft::edge {

namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using namespace std::chrono_literals;

constexpr const char* kStore = "memory:";

class TombstonesTest : public testing::Test {
 protected:
  TombstonesTest() { world_.pool("a", "10.0.0.0/24", 26); }

  [[nodiscard]] std::size_t held(const std::string& container) {
    return engine::held_addresses(world_.context, owner(container))->size();
  }
  static core::Owner owner(const std::string& container) { return {"net", container, "eth0"}; }
  void add(const std::string& container) {
    ASSERT_TRUE(engine::assign(world_.context, engine::World::request(container)));
  }
  void leave(const std::string& container, const std::string& store = kStore) {
    const auto left = tombstones_.leave({store, owner(container), {}});
    ASSERT_TRUE(left) << left.error().message;
  }
  Tombstones::Replayed replay(std::size_t count_max = 100) {
    Tombstones::Replay what;
    what.is_ours = [](std::string_view url) { return url == kStore; };
    what.log = [&](const std::string& line) { log_.push_back(line); };
    what.count_max = count_max;
    what.deadline = Deadline::after(world_.clock.now(), 5s);
    return tombstones_.replay(world_.context, what);
  }
  [[nodiscard]] std::vector<std::string> files(const std::string& ending = ".json") const {
    std::vector<std::string> names;
    if (!std::filesystem::exists(place_)) return names;
    for (const auto& entry : std::filesystem::directory_iterator(place_)) {
      if (entry.path().extension() == ending) names.push_back(entry.path().filename());
    }
    return names;
  }

  os::ScratchDirectory directory_;
  engine::World world_;
  std::string place_ = directory_.file("var/tombstones");
  Tombstones tombstones_{place_, world_.clock};
  std::vector<std::string> log_;
};

TEST_F(TombstonesTest, WhatWaitsIsShownAndLeftAsItIs) {
  EXPECT_THAT(*tombstones_.waiting(), IsEmpty()) << "a directory that is not there";
  leave("c1");
  leave("c2", "kube:");
  std::ofstream(place_ + "/abc.json.damaged") << "{}";
  std::ofstream(place_ + "/zzz.json") << "{";
  const auto waiting = tombstones_.waiting();
  ASSERT_TRUE(waiting);
  std::set<std::string> containers, wrong;
  for (const auto& [path, content] : *waiting) {
    if (content) {
      containers.insert(content->owner.container_id + " " + content->store);
    } else {
      EXPECT_EQ(content.error().code, ErrorCode::corrupt);
      wrong.insert(std::filesystem::path(path).filename());
    }
  }
  EXPECT_THAT(containers, ElementsAre("c1 memory:", "c2 kube:"));
  EXPECT_THAT(wrong, ElementsAre("abc.json.damaged", "zzz.json"));
  EXPECT_EQ(files().size(), 3U);
}

TEST_F(TombstonesTest, WhatWasLeftIsReleasedOnce) {
  add("c1");
  add("c2");
  leave("c1");
  leave("c1");
  EXPECT_EQ(files().size(), 1U);
  EXPECT_EQ(replay().done, 1U);
  EXPECT_EQ(held("c1"), 0U);
  EXPECT_EQ(held("c2"), 1U);
  EXPECT_THAT(files(), IsEmpty());
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_THAT(log_[0], HasSubstr("TOMBSTONE network=net container=c1 ifname=eth0 ok"));
  EXPECT_THAT(log_[0], HasSubstr("released=10.0.0."));
  EXPECT_EQ(replay().done, 0U);
}

TEST_F(TombstonesTest, AnAddOfTheOwnerMakesItVoid) {
  add("c1");
  leave("c1");
  leave("c2");
  const auto lifted = tombstones_.lift(owner("c1"), Deadline::after(world_.clock.now(), 1s));
  ASSERT_TRUE(lifted) << lifted.error().message;
  EXPECT_TRUE(*lifted);
  add("c1");
  EXPECT_EQ(replay().done, 1U) << "of c2";
  EXPECT_EQ(held("c1"), 1U);
  EXPECT_FALSE(tombstones_.lift(owner("c1"), Deadline::after(world_.clock.now(), 1s)).value());
}

TEST_F(TombstonesTest, ItIsVoidWhateverNameTheAddHasForTheStore) {
  add("c1");
  leave("c1", "kube:/another/name/of/it");
  EXPECT_TRUE(tombstones_.lift(owner("c1"), Deadline::after(world_.clock.now(), 1s)).value());
  EXPECT_THAT(files(), IsEmpty());
}

/// One container: its DEL is deferred, it is set up again, and the DEL is made up for meanwhile, and later.
TEST_F(TombstonesTest, WhatAnAddGotAfterADeferredDelStays) {
  add("c1");
  for (const Tombstones::Sign sign : {Tombstones::Sign::none, Tombstones::Sign::result}) {
    ASSERT_TRUE(tombstones_.leave({kStore, owner("c1"), {}}, sign));
    // A replay that found the store away has looked at it already.
    const auto next = world_.store.counts().commit + 1;
    world_.store.set_faults(store::FaultScript().on_commit(next, store::Fault::unavailable));
    EXPECT_TRUE(replay().is_store_away);
    EXPECT_TRUE(tombstones_.lift(owner("c1"), Deadline::after(world_.clock.now(), 1s)).value());
    add("c1");
    EXPECT_EQ(replay().done, 0U);
    EXPECT_EQ(held("c1"), 1U);
  }
}

TEST_F(TombstonesTest, OtherOwnersAreOthers) {
  const std::vector<core::Owner> owners{{"net", "c1", "eth0"}, {"net", "c1", "eth1"}, {"net", "c", "1eth0"},
                                        {"netc", "1", "eth0"}, {"net", "c1eth0", ""}, {"net", "c1", ""}};
  for (const core::Owner& one : owners) ASSERT_TRUE(tombstones_.leave({kStore, one, {}}));
  EXPECT_EQ(files().size(), owners.size());
}

TEST_F(TombstonesTest, AnAddWaitsForTheReplay) {
  leave("c1");
  os::SystemClock clock;
  const Tombstones tombstones(place_, clock);
  os::FileLock replaying(place_ + "/lock");
  ASSERT_TRUE(replaying.lock(clock, Deadline::after(clock.now(), 1s)));
  const auto refused = tombstones.lift(owner("c1"), Deadline::after(clock.now(), 50ms));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::deadline_exceeded);
  EXPECT_FALSE(tombstones.lift(owner("c2"), Deadline::after(clock.now(), 50ms)).value()) << "of no concern to others";
  std::thread later([&] {
    std::this_thread::sleep_for(50ms);
    replaying.unlock();
  });
  EXPECT_TRUE(tombstones.lift(owner("c1"), Deadline::after(clock.now(), 20s)).value());
  later.join();
}

TEST_F(TombstonesTest, AStoreThatIsAwayKeepsThem) {
  add("c1");
  add("c2");
  leave("c1");
  leave("c2");
  world_.store.set_faults(
      store::FaultScript().from_commit(world_.store.counts().commit + 1, store::Fault::unavailable));
  const auto replayed = replay();
  EXPECT_TRUE(replayed.is_store_away);
  EXPECT_EQ(replayed.done, 0U);
  EXPECT_EQ(files().size(), 2U);
  EXPECT_EQ(held("c1") + held("c2"), 2U);
  world_.store.set_faults({});
  EXPECT_EQ(replay().done, 2U);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(TombstonesTest, AReplyThatWasLostIsMadeUpForToo) {
  add("c1");
  leave("c1");
  world_.store.set_faults(store::FaultScript().on_commit(world_.store.counts().commit + 1, store::Fault::lose_reply));
  replay();
  replay();
  EXPECT_EQ(held("c1"), 0U);
  EXPECT_THAT(files(), IsEmpty());
}

TEST_F(TombstonesTest, ThoseOfOtherStoresAreLeftAndKeepNobodyFromTheirTurn) {
  for (int i = 0; i < 20; ++i) leave("other" + std::to_string(i), "kube:");
  leave("c1");
  leave("c2");
  EXPECT_EQ(replay(1).done, 1U);
  EXPECT_EQ(replay(1).done, 1U);
  EXPECT_EQ(files().size(), 20U);
}

TEST_F(TombstonesTest, AClockThatIsSetBackKeepsNobodyWaiting) {
  add("c1");
  add("c2");
  leave("c1");
  leave("c2");
  world_.clock.jump_wall(-std::chrono::hours(24));
  EXPECT_EQ(replay(1).done, 1U);
  EXPECT_EQ(replay(1).done, 1U);
  EXPECT_EQ(held("c1") + held("c2"), 0U);
}

TEST_F(TombstonesTest, WhatCantBeReadIsSetAsideAndNamedOnce) {
  leave("c1");
  leave("c2");
  const auto names = files();
  ASSERT_EQ(names.size(), 2U);
  std::ofstream(place_ + "/" + names[0]) << "{\"version\":1,\"sto";
  std::filesystem::copy_file(place_ + "/" + names[1], place_ + "/not-the-name-of-its-owner.json");
  std::ofstream(place_ + "/newer.json") << "{\"version\":2}";
  std::filesystem::create_directory(place_ + "/directory.json");
  EXPECT_EQ(replay().done, 1U);
  EXPECT_THAT(files(), ElementsAre("newer.json")) << "of a newer version: left to it";
  EXPECT_EQ(files(".damaged").size(), 3U);
  EXPECT_EQ(log_.size(), 4U);
  log_.clear();
  replay();
  EXPECT_THAT(log_, IsEmpty());
}

TEST_F(TombstonesTest, WhatCannotBeReadForNowIsLeft) {
  leave("c1");
  const auto before = files();
  ASSERT_EQ(before.size(), 1U);
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit few{128, limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  // From none left to enough: at each number it is done, or left as it is.
  for (std::size_t free = 0; free < 8 && files() == before; ++free) {
    std::vector<int> taken;
    for (int file = 0; file >= 0;) {
      file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (file >= 0) taken.push_back(file);
    }
    for (std::size_t i = 0; i < free; ++i) ::close(taken[i]);
    replay();
    for (std::size_t i = free; i < taken.size(); ++i) ::close(taken[i]);
    EXPECT_THAT(files(".damaged"), IsEmpty()) << free << " descriptors";
  }
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  replay();
  EXPECT_THAT(files(), IsEmpty());
  EXPECT_THAT(files(".damaged"), IsEmpty());
}

TEST_F(TombstonesTest, ItLooksIntoAsManyFilesAsItIsTold) {
  for (int i = 0; i < 300; ++i) leave("c" + std::to_string(i));
  EXPECT_EQ(replay(1000).done, 256U) << "an agent has other work";
  leave("last");
  Tombstones::Replay what;
  what.is_ours = [](std::string_view) { return true; };
  what.log = [](const std::string&) {};
  what.count_max = what.looks_max = 1000;
  what.deadline = Deadline::after(world_.clock.now(), 5s);
  EXPECT_EQ(tombstones_.replay(world_.context, what).done, 45U);
}

TEST_F(TombstonesTest, WithoutADirectoryNoneAreKept) {
  for (const char* none : {"", "none"}) {
    const Tombstones off(none, world_.clock);
    const auto left = off.leave({kStore, owner("c1"), {}});
    ASSERT_FALSE(left);
    EXPECT_EQ(left.error().code, ErrorCode::refused_by_configuration);
    EXPECT_FALSE(off.lift(owner("c1"), Deadline::after(world_.clock.now(), 1s)).value());
  }
  EXPECT_FALSE(tombstones_.lift(owner("c1"), Deadline::after(world_.clock.now(), 1s)).value()) << "not there yet";
  EXPECT_EQ(replay().done, 0U);
  EXPECT_FALSE(std::filesystem::exists(place_));
}

TEST_F(TombstonesTest, OfThoseWithoutAResultTheOldestGoesForWantOfRoom) {
  ASSERT_TRUE(tombstones_.leave({kStore, owner("sure"), {}}, Tombstones::Sign::result));
  const std::string ending = ".unsure.json";
  for (std::size_t i = 0; i < kUnsureMax; ++i) {
    const std::string path = place_ + "/" + std::to_string(i) + ending;
    std::ofstream(path) << "{";
    std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now() - 1h + 1s * i);
  }
  EXPECT_EQ(tombstones_.leave({kStore, owner("unsure"), {}}).value(), 1U);
  EXPECT_FALSE(std::filesystem::exists(place_ + "/0" + ending)) << "the oldest";
  EXPECT_TRUE(std::filesystem::exists(place_ + "/" + std::to_string(kUnsureMax - 1) + ending));
  EXPECT_EQ(tombstones_.leave({kStore, owner("unsure"), {}}).value(), 0U) << "in its own place";
  EXPECT_EQ(files().size(), kUnsureMax + 1) << "the one with a result too";
  EXPECT_EQ(tombstones_.leave({kStore, owner("unsure"), {}}, Tombstones::Sign::result).value(), 0U);
  EXPECT_EQ(files().size(), kUnsureMax + 1) << "one of an owner";
  EXPECT_EQ(tombstones_.leave({kStore, owner("sure"), {}}).value(), 0U) << "its result is known";
  EXPECT_EQ(files().size(), kUnsureMax + 1);
}

TEST(TombstonesOf, WhatTheRuntimeIsToldToTryAgain) {
  std::set<ErrorCode> can;
  for (int i = 0; i <= static_cast<int>(ErrorCode::internal); ++i) {
    if (can_be_replayed_later(static_cast<ErrorCode>(i))) can.insert(static_cast<ErrorCode>(i));
  }
  EXPECT_EQ(can, (std::set<ErrorCode>{ErrorCode::conflict, ErrorCode::unknown_outcome, ErrorCode::unavailable,
                                      ErrorCode::too_old, ErrorCode::deadline_exceeded, ErrorCode::storage_full,
                                      ErrorCode::read_only, ErrorCode::permission_denied}));
}

}  // namespace

namespace {

using namespace std::chrono_literals;

TEST(CallSoFar, IsTheSameInTheOtherFile) {
  for (const char* said : {"", "no sign of life for 1 s: \"etcd\" 1 2 3"}) {
    CallSoFar call;
    call.began.since_boot = 123456789ns;
    call.began.wall = WallTime(1795000000123456789ns);
    call.agent_said = said;
    EXPECT_EQ(parse_call_so_far(encode_call_so_far(call)), call);
  }
}

TEST(CallSoFar, OtherTextIsNone) {
  for (const char* text : {"", " ", "2", "2 1", "2 1 2", "2 a 2 x", "2 1 b x", "2 99999999999999999999 2 x", "1 1 2 x",
                           "3 1 2 x", "0 1 2 x"}) {
    EXPECT_EQ(parse_call_so_far(text), std::nullopt) << text;
  }
}

}  // namespace

}  // namespace croft::edge

namespace croft::wire {
namespace {

using testing::HasSubstr;

Tombstone sample() {
  return {"kube:/etc/cni/net.d/croft.kubeconfig",
          {"k8s-pod-network", "5f1", "eth0"},
          WallTime(std::chrono::seconds(1'790'000'000))};
}

TEST(Tombstone, IsAnObjectOnOneLine) {
  EXPECT_EQ(encode(sample()),
            R"({"version":1,"store":"kube:/etc/cni/net.d/croft.kubeconfig","network":"k8s-pod-network",)"
            R"("containerID":"5f1","ifName":"eth0","leftAt":"2026-09-21T14:13:20Z"})"
            "\n");
}

TEST(Tombstone, ComesBackAsItWas) {
  Tombstone strange = sample();
  strange.owner = {"net.with.dots", "c\"\\\n\x01", ""};
  for (const Tombstone& one : {sample(), strange}) {
    const auto back = decode_tombstone(encode(one));
    ASSERT_TRUE(back) << back.error().message;
    EXPECT_EQ(*back, one);
  }
}

TEST(Tombstone, WhatIsNoneIsNamed) {
  const std::string whole = encode(sample());
  const auto without = [&](const std::string& text, const std::string& instead) {
    std::string changed = whole;
    const auto at = changed.find(text);
    EXPECT_NE(at, std::string::npos) << text;
    return changed.replace(at, text.size(), instead);
  };
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "JSON"},
      {whole.substr(0, whole.size() / 2), "JSON"},
      {"[]", "object"},
      {"{}", "version: is missing"},
      {without(R"("version":1,)", ""), "version: is missing"},
      {without(R"("version":1)", R"("version":0)"), "version"},
      {without(R"("store":"kube:/etc/cni/net.d/croft.kubeconfig",)", ""), "store: is missing"},
      {without(R"("network":"k8s-pod-network")", R"("network":"")"), "network: it is empty"},
      {without(R"("containerID":"5f1",)", ""), "containerID: is missing"},
      {without(R"("5f1")", "7"), "containerID"},
      {without(R"("5f1")", R"("5f1","containerID":"5f2")"), "containerID"},
      {without("2026-09-21T14:13:20Z", "yesterday"), "leftAt"},
      {without("5f1", std::string(1025, 'x')), "containerID"},
  };
  for (const auto& [bytes, word] : cases) {
    const auto read = decode_tombstone(bytes);
    ASSERT_FALSE(read) << bytes;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt) << bytes;
    EXPECT_THAT(read.error().message, HasSubstr(word)) << bytes;
  }
}

TEST(Tombstone, WhatItDoesNotKnowIsPassedOver) {
  std::string bytes = encode(sample());
  bytes.replace(bytes.rfind('}'), 1, R"(,"beganAt":"2026-09-21T14:13:19.5Z"})");
  const auto read = decode_tombstone(bytes);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(*read, sample());
}

TEST(Tombstone, ANewerOneIsLeftToNewerPrograms) {
  const auto read = decode_tombstone(R"({"version":2,"store":7})");
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::newer_version);
}

}  // namespace

}  // namespace croft::wire
