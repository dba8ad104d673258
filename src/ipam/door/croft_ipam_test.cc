#include "ipam/door/croft_ipam.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/net/test_values.h"
#include "cni/door/skeleton.h"
#include "os/file_lock.h"
#include "os/scratch_directory.h"
#include "store/forwarding_store.h"
#include "store/memory/memory_store.h"

namespace croft::edge {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

/// A store behind a server that answers so many calls and then none: each lasts until its deadline.
struct Silence {
  bool is_one_by_one = false;
  int answers = 0;
};
class Mute final : public store::ForwardingStore {
 public:
  Mute(std::unique_ptr<store::Store> beneath, ManualClock& clock, Silence& silence)
      : ForwardingStore(*beneath), owned_(std::move(beneath)), clock_(clock), silence_(silence) {}
  [[nodiscard]] Result<store::ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    if (is_silent(deadline)) return fail(silent());
    return ForwardingStore::read(wanted, deadline);
  }
  [[nodiscard]] Result<void> for_each(const store::ListRequest& request, const Until& until,
                                      const Take& take) override {
    if (is_silent(until())) return fail(silent());
    return ForwardingStore::for_each(request, until, take);
  }
  [[nodiscard]] Result<store::Revision> commit(std::span<const store::Write> writes, const store::WriteToken& token,
                                               Deadline deadline) override {
    if (is_silent(deadline)) return fail(silent());
    return ForwardingStore::commit(writes, token, deadline);
  }
  [[nodiscard]] Result<store::Fate> fate_of(std::span<const store::Write> writes, const store::WriteToken& token,
                                            Deadline deadline) override {
    if (is_silent(deadline)) return fail(silent());
    return ForwardingStore::fate_of(writes, token, deadline);
  }

 private:
  [[nodiscard]] bool is_silent(Deadline deadline) {
    if (silence_.answers-- > 0) return false;
    const auto now = clock_.now().since_boot;
    if (deadline.at_since_boot > now)
      clock_.advance(std::min<std::chrono::nanoseconds>(deadline.at_since_boot - now, 1h));
    return true;
  }
  [[nodiscard]] static Error silent() { return {ErrorCode::deadline_exceeded, "the server does not answer", ""}; }

  std::unique_ptr<store::Store> owned_;
  ManualClock& clock_;
  Silence& silence_;
};

/// The plugin whole, from environment and standard input to the printed answer, on a store in memory.
class CroftIpamTest : public testing::Test {
 protected:
  CniAnswer run(const std::string& command, const std::string& ipam, const std::string& container = "c1",
                const std::string& more = "", const std::string& version = "1.1.0", const std::string& args = "") {
    CniHost host;
    host.environment = {command, container, "/run/netns/x", "eth0", args, "/opt/cni/bin", ""};
    const std::string config = R"({"cniVersion":")" + version +
                               R"(","name":"net","nodename":"node-a","ipam":{"type":"croft-ipam")" + ipam + "}" + more +
                               "}";
    host.read_stdin = [config] { return Result<std::string>(config); };
    host.compare_netns = [](const std::string&) { return os::SameNamespace::no; };
    return run_cni(croft_ipam_plugin(world_), host);
  }

  static constexpr const char* kPools =
      R"(,"pools":[{"name":"a","cidr":"10.1.0.0/28","blockSize":29,"cooldownSeconds":5}])";

  store::MemoryStore data_;
  ManualClock clock_;
  SeededRandom random_{7};
  bool exists_ = false;
  std::optional<Error> broken_;
  std::optional<Silence> silence_;
  std::function<void()> before_open_;  ///< what happens once, right before a store is opened
  std::vector<std::string> log_;
  CroftIpamWorld world_{{clock_, random_, "host"},
                        [this](const std::string&, store::OpenMode mode) -> Result<std::unique_ptr<store::Store>> {
                          if (const auto meanwhile = std::exchange(before_open_, {})) meanwhile();
                          if (broken_) return fail(*broken_);
                          if (!exists_ && mode == store::OpenMode::existing)
                            return fail(ErrorCode::not_found, "no store");
                          exists_ = true;
                          auto store = std::make_unique<store::MemoryStore>(data_.data());
                          if (!silence_) return store;
                          if (silence_->is_one_by_one) {
                            store->set_capabilities({.atomic_commit = false, .foreign_writers = true});
                          }
                          return std::make_unique<Mute>(std::move(store), clock_, *silence_);
                        },
                        [this](const std::string&, const std::string& line) { log_.push_back(line); }};
};

/// ipam/use/assign_test.cc has the rest.
TEST_F(CroftIpamTest, AnAddressThatSomebodyOnThisNodeLivesWithIsNotGiven) {
  world_.device_of = [](const net::Address& address) {
    return address.to_string() == "10.1.0.8" ? std::optional<std::string>("veth7") : std::nullopt;
  };
  auto answer = run("ADD", kPools, "c1", "", "1.1.0", "IgnoreUnknown=1;IP=10.1.0.8");
  EXPECT_NE(answer.exit_code, 0);
  EXPECT_THAT(answer.out, AllOf(HasSubstr("\"code\": 11"), HasSubstr("10.1.0.8"), HasSubstr("veth7"),
                                HasSubstr("restore-kubernetes-api.md")));
  answer = run("ADD", kPools, "c2");
  EXPECT_EQ(answer.exit_code, 0) << answer.out;
  EXPECT_THAT(answer.out, HasSubstr("10.1.0.9"));
  EXPECT_THAT(log_, Contains(AllOf(HasSubstr("passed over 10.1.0.8"), HasSubstr("veth7"))));
}

TEST_F(CroftIpamTest, AddCarriesThePoolsPrefixAndGateway) {
  const auto answer = run("ADD", kPools);
  EXPECT_EQ(answer.exit_code, 0) << answer.out;
  EXPECT_EQ(
      answer.out,
      "{\n    \"cniVersion\": \"1.1.0\",\n    \"ips\": [\n        {\n            \"address\": \"10.1.0.8/28\",\n     "
      "       \"gateway\": \"10.1.0.1\"\n        }\n    ]\n}")
      << answer.out;
  EXPECT_EQ(run("ADD", kPools).out, answer.out) << "asked again";
  EXPECT_THAT(log_.back(), HasSubstr("ADD network=net container=c1 ifname=eth0 node=node-a ok"));
}

/// `ptp` makes no default route unless the result has one, and fails on one of a family that the pod has no address of.
TEST_F(CroftIpamTest, RoutesOfThePodsFamiliesAreInTheResult) {
  const std::string config = std::string(kPools) + R"(,"routes":[{"dst":"0.0.0.0/0"},{"dst":"::/0"}])";
  const auto answer = run("ADD", config);
  EXPECT_EQ(answer.exit_code, 0) << answer.out;
  EXPECT_THAT(answer.out, HasSubstr("\"routes\": [\n        {\n            \"dst\": \"0.0.0.0/0\"\n        }\n    ]"));
  EXPECT_EQ(run("DEL", config).exit_code, 0);
}

/// Lone calls on a store of another machine go one after the other; nothing rests on it.
class CroftIpamTurnTest : public CroftIpamTest {
 protected:
  void SetUp() override { world_.turns = scratch_.path() + "/run"; }
  [[nodiscard]] std::vector<std::string> locks() const {
    std::vector<std::string> found;
    if (!std::filesystem::exists(world_.turns)) return found;
    for (const auto& entry : std::filesystem::directory_iterator(world_.turns)) found.push_back(entry.path());
    return found;
  }
  static std::string on(const std::string& store) { return R"(,"store":")" + store + '"' + kPools; }

  os::ScratchDirectory scratch_;
};

TEST_F(CroftIpamTurnTest, ANodeAndAStoreHaveAFile) {
  EXPECT_EQ(run("ADD", on("sqlite:/x.db")).exit_code, 0);
  EXPECT_TRUE(locks().empty()) << "SQLite has a queue of its own";
  EXPECT_EQ(run("ADD", on("etcd:http://127.0.0.1:2379")).exit_code, 0);
  EXPECT_EQ(run("DEL", on("etcd:http://127.0.0.1:2379")).exit_code, 0);
  EXPECT_EQ(locks().size(), 1U);
  EXPECT_EQ(run("ADD", on("kube:/x"), "c2").exit_code, 0);
  EXPECT_EQ(locks().size(), 2U);
}

/// What it does before it waits is of its time too.
TEST_F(CroftIpamTurnTest, ADelIsOverInItsTimeWhereAnotherHasTheTurn) {
  const std::string ipam = on("etcd:http://127.0.0.1:2379");
  ASSERT_EQ(run("ADD", ipam).exit_code, 0);
  os::FileLock other(locks().at(0));
  ASSERT_TRUE(other.lock(clock_, Deadline::after(clock_.now(), 1s)));
  world_.tombstones = scratch_.path() + "/tombstones";
  world_.find_agent = [&](const std::string&) {
    clock_.advance(13s);
    return nullptr;
  };
  silence_.emplace();
  const Instant began = clock_.now();
  EXPECT_EQ(run("DEL", ipam).exit_code, 0);
  EXPECT_THAT(log_.back(), HasSubstr("deferred="));
  EXPECT_LE(clock_.now().since_boot - began.since_boot, 14s);
}

TEST_F(CroftIpamTurnTest, WhoCannotHaveItGoesOnWithout) {
  std::ofstream(world_.turns) << "no directory";
  EXPECT_EQ(run("ADD", on("etcd:http://127.0.0.1:2379")).exit_code, 0);
  EXPECT_THAT(log_.front(), HasSubstr("going on without the host-wide lock: "));
  EXPECT_EQ(run("DEL", on("etcd:http://127.0.0.1:2379")).exit_code, 0);
}

/// An agent that answers as it is told, and remembers what it was asked.
class ToldAgent final : public Agent {
 public:
  struct Script {
    Result<core::AssignAnswer> assign = fail(ErrorCode::unavailable, "no answer in time");
    Result<std::vector<net::Address>> release = fail(ErrorCode::unavailable, "no answer in time");
    std::vector<wire::agent::AssignCall> assigns;
    std::vector<wire::agent::ReleaseCall> releases;
    std::vector<std::string> sockets;
  };
  explicit ToldAgent(Script& script) : script_(script) {}
  [[nodiscard]] Result<core::AssignAnswer> assign(const wire::agent::AssignCall& call) override {
    script_.assigns.push_back(call);
    return script_.assign;
  }
  [[nodiscard]] Result<std::vector<net::Address>> release(const wire::agent::ReleaseCall& call) override {
    script_.releases.push_back(call);
    return script_.release;
  }

 private:
  Script& script_;
};

/// An agent that does not answer, for so long.
class MuteAgent final : public Agent {
 public:
  explicit MuteAgent(ManualClock& clock, std::chrono::nanoseconds lasts = kAgentPatience)
      : clock_(clock), lasts_(lasts) {}
  [[nodiscard]] Result<core::AssignAnswer> assign(const wire::agent::AssignCall&) override { return fail(silent()); }
  [[nodiscard]] Result<std::vector<net::Address>> release(const wire::agent::ReleaseCall&) override {
    return fail(silent());
  }

 private:
  [[nodiscard]] Error silent() const {
    clock_.advance(lasts_);
    return {ErrorCode::unavailable, "no answer in time", ""};
  }
  ManualClock& clock_;
  const std::chrono::nanoseconds lasts_;
};

/// With a wait of its own for the turn this DEL would never end, as nobody moves the clock on.
TEST_F(CroftIpamTurnTest, ADelWhoseTimeTheAgentUsedUpWaitsForNoTurn) {
  world_.find_agent = [this](const std::string&) { return std::make_unique<MuteAgent>(clock_, 14s); };
  world_.tombstones = scratch_.path() + "/tombstones";
  EXPECT_EQ(run("ADD", on("etcd:http://127.0.0.1:2379")).exit_code, 0);
  os::FileLock turn(locks().at(0));
  ASSERT_TRUE(turn.lock(clock_, Deadline::after(clock_.now(), 1s)));
  const auto answer = run("DEL", on("etcd:http://127.0.0.1:2379"));
  EXPECT_EQ(answer.exit_code, 0) << answer.out;
  EXPECT_THAT(log_, Contains(HasSubstr("going on without the host-wide lock: ")));
  EXPECT_THAT(log_.back(), HasSubstr("DEL network=net container=c1 ifname=eth0 node=node-a ok"));
}

class CroftIpamAgentTest : public CroftIpamTest {
 protected:
  void SetUp() override {
    world_.find_agent = [this](const std::string& socket) {
      script_.sockets.push_back(socket);
      return std::make_unique<ToldAgent>(script_);
    };
  }
  ToldAgent::Script script_;
};

TEST_F(CroftIpamAgentTest, WhatTheAgentAnswersIsTheAnswer) {
  core::Assigned assigned;
  assigned.addresses.push_back({address("10.1.0.9"), "a", prefix("10.1.0.0/24"), {}, prefix("10.1.0.0/28"), {}});
  script_.assign = core::AssignAnswer(assigned);
  script_.release = std::vector<net::Address>{assigned.addresses.front().address};
  EXPECT_THAT(run("ADD", std::string(R"(,"store":"memory:x")") + kPools).out, HasSubstr("\"10.1.0.9/32\""));
  EXPECT_THAT(log_.back(), HasSubstr("via=agent"));
  EXPECT_EQ(run("DEL", "").exit_code, 0);
  EXPECT_THAT(log_.back(), HasSubstr("released=10.1.0.9 via=agent"));
  EXPECT_FALSE(exists_) << "the store was opened";
  ASSERT_EQ(script_.assigns.size(), 1U);
  EXPECT_EQ(script_.assigns[0].caller.store, "memory:x");
  EXPECT_EQ(script_.assigns[0].caller.node, "node-a");
  EXPECT_EQ(script_.assigns[0].pools.size(), 1U);
  EXPECT_EQ(script_.assigns[0].request.owner, (core::Owner{"net", "c1", "eth0"}));
  ASSERT_EQ(script_.releases.size(), 1U);
  EXPECT_EQ(script_.releases[0].caller.store, kDefaultStoreUrl);
  EXPECT_EQ(script_.sockets, std::vector<std::string>(2, kDefaultAgentSocket));
}

TEST_F(CroftIpamAgentTest, ARefusalOfTheAgentIsFinal) {
  script_.assign = core::AssignAnswer(core::Refusal{ErrorCode::exhausted, "nothing is free", {}});
  const auto answer = run("ADD", kPools);
  EXPECT_THAT(answer.out, HasSubstr("\"code\": 100"));
  EXPECT_THAT(answer.out, HasSubstr("nothing is free"));
}

TEST_F(CroftIpamAgentTest, EveryErrorOfTheAgentMeansGoingAlone) {
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    script_.assign = fail(static_cast<ErrorCode>(code), "it could not");
    script_.release = fail(static_cast<ErrorCode>(code), "it could not");
    EXPECT_EQ(run("ADD", kPools).exit_code, 0) << code;
    EXPECT_THAT(log_.back(), HasSubstr("via=store agent=\"it could not\""));
    EXPECT_EQ(run("DEL", "").exit_code, 0) << code;
    EXPECT_THAT(log_.back(), HasSubstr("via=store"));
    clock_.advance(6s);  // longer than an address of the pool cools
  }
}

TEST_F(CroftIpamAgentTest, TheConfigurationSaysWhere) {
  run("ADD", std::string(R"(,"agent":"/x/y.sock")") + kPools);
  EXPECT_EQ(script_.sockets, std::vector<std::string>{"/x/y.sock"});
  run("ADD", std::string(R"(,"agent":"none")") + kPools);
  EXPECT_EQ(script_.sockets.size(), 1U);
  EXPECT_THAT(run("ADD", std::string(R"(,"agent":"x")") + kPools).out, HasSubstr("ipam.agent"));
  EXPECT_EQ(run("DEL", R"(,"agent":"x")").exit_code, 0);  // a release needs none of it
}

TEST_F(CroftIpamTest, WithoutGatewayItIsASingleAddress) {
  const auto answer = run("ADD", R"(,"pools":[{"name":"a","cidr":"10.1.0.0/28","gateway":"none"}])");
  EXPECT_THAT(answer.out, HasSubstr("/32\""));
  EXPECT_THAT(answer.out, Not(HasSubstr("gateway")));
}

TEST_F(CroftIpamTest, NoPoolIsTryAgainLaterAndFullIsOneHundred) {
  EXPECT_THAT(run("ADD", "").out, HasSubstr("\"code\": 11"));
  for (int i = 0; i < 13; ++i) EXPECT_EQ(run("ADD", kPools, "x" + std::to_string(i)).exit_code, 0);
  const auto full = run("ADD", kPools, "late");
  EXPECT_EQ(full.exit_code, 1);
  EXPECT_THAT(full.out, HasSubstr("\"code\": 100"));
  EXPECT_THAT(full.out, HasSubstr("pool a (10.1.0.0/28): 2 blocks are claimed"));
  EXPECT_THAT(log_.back(), HasSubstr(" error us=0 cni=100 code=exhausted error=\""));
  EXPECT_THAT(log_.back(), HasSubstr("pool a (10.1.0.0/28)"));
}

TEST_F(CroftIpamTest, PoolsThatDisagreeAreRefusedByAddAndIgnoredByDel) {
  run("ADD", kPools);
  const std::string other = R"(,"pools":[{"name":"a","cidr":"10.1.0.0/28","blockSize":30}])";
  EXPECT_THAT(run("ADD", other).out, HasSubstr("\"code\": 102"));
  EXPECT_EQ(run("DEL", other).exit_code, 0);
  EXPECT_EQ(run("DEL", R"(,"pools":"nonsense")").exit_code, 0);
}

TEST_F(CroftIpamTest, DelOfNothingMakesNothing) {
  EXPECT_EQ(run("DEL", "").exit_code, 0);
  EXPECT_EQ(run("GC", "", "", R"(,"cni.dev/valid-attachments":[])").exit_code, 0);
  EXPECT_FALSE(exists_);
}

TEST_F(CroftIpamTest, CheckFollowsThePreviousResult) {
  run("ADD", kPools);
  EXPECT_EQ(run("CHECK", "", "c1", R"(,"prevResult":{"ips":[{"address":"10.1.0.8/28"}]})").exit_code, 0);
  EXPECT_THAT(run("CHECK", "", "c1", R"(,"prevResult":{"ips":[{"address":"10.1.0.9/28"}]})").out,
              HasSubstr("10.1.0.9"));
  EXPECT_EQ(run("CHECK", "", "c2").exit_code, 1);
}

TEST_F(CroftIpamTest, GcNeedsAListAndKeepsTheYoung) {
  run("ADD", kPools);
  clock_.advance(61s);
  EXPECT_EQ(run("GC", "").exit_code, 0);
  EXPECT_EQ(run("CHECK", "").exit_code, 0) << "no list frees nothing";
  run("GC", "", "", R"(,"cni.dev/valid-attachments":[{"containerID":"c1","ifname":"eth0"}])");
  EXPECT_EQ(run("CHECK", "").exit_code, 0);
  run("GC", "", "", R"(,"cni.dev/valid-attachments":[])");
  EXPECT_EQ(run("CHECK", "").exit_code, 1);
}

TEST_F(CroftIpamTest, StatusSaysFiftyForWhatCannotServe) {
  EXPECT_THAT(run("STATUS", "").out, HasSubstr("\"code\": 50"));
  EXPECT_EQ(run("STATUS", kPools).exit_code, 0);
  for (int i = 0; i < 13; ++i) run("ADD", kPools, "x" + std::to_string(i));
  EXPECT_EQ(run("STATUS", kPools).exit_code, 0) << "a full pool is not the node's fault";
  EXPECT_THAT(run("STATUS", std::string(kPools) + R"(,"statusWhenFull":true)").out, HasSubstr("\"code\": 50"));
  EXPECT_THAT(run("STATUS", std::string(kPools) + R"(,"annotations":"api")").out,
              AllOf(HasSubstr("\"code\": 50"), HasSubstr("needs a kube: store")));
  broken_ = Error{ErrorCode::corrupt, "the store is damaged", ""};
  EXPECT_THAT(run("STATUS", kPools).out, HasSubstr("\"code\": 50"));
  EXPECT_THAT(run("ADD", kPools).out, HasSubstr("\"code\": 101"));
}

TEST_F(CroftIpamTest, ExplicitAddressFromEveryChannel) {
  EXPECT_THAT(run("ADD", kPools, "a", "", "1.0.0", "IP=10.1.0.3").out, HasSubstr("10.1.0.3/28"));
  EXPECT_THAT(run("ADD", kPools, "b", R"(,"args":{"cni":{"ips":["10.1.0.4"]}})").out, HasSubstr("10.1.0.4/28"));
  EXPECT_THAT(run("ADD", kPools, "c", R"(,"runtimeConfig":{"ips":["10.1.0.5/24"]})").out, HasSubstr("10.1.0.5/28"));
  EXPECT_THAT(run("ADD", std::string(kPools) + R"(,"ips":["10.1.0.6"])", "d").out, HasSubstr("10.1.0.6/28"));
  EXPECT_THAT(run("ADD", kPools, "e", "", "1.0.0", "IP=10.1.0.3").out, HasSubstr("held by net.a"));
}

TEST_F(CroftIpamTest, NeitherFamilyIsAnError) {
  EXPECT_THAT(run("ADD", std::string(kPools) + R"(,"assign_ipv4":"false")").out, HasSubstr("assign_ipv6"));
}

/// As by a relative path in the environment: no call may go on without the place that was meant.
TEST_F(CroftIpamTest, AMisplacedPlaceIsRefusedByEveryCommand) {
  world_.misplaced = Error{ErrorCode::refused_by_configuration, "CROFT_TOMBSTONES: \"var\" is no absolute path", ""};
  for (const char* command : {"ADD", "DEL", "CHECK", "GC"}) {
    const auto answer = run(command, kPools);
    EXPECT_EQ(answer.exit_code, 1) << command;
    EXPECT_THAT(answer.out, AllOf(HasSubstr("\"code\": 102"), HasSubstr("CROFT_TOMBSTONES"))) << command;
  }
  EXPECT_THAT(run("STATUS", kPools).out, AllOf(HasSubstr("\"code\": 50"), HasSubstr("CROFT_TOMBSTONES")));
}

/// A store that goes away and comes back, and what DELs leave meanwhile.
class CroftIpamTombstoneTest : public CroftIpamTest {
 protected:
  void SetUp() override { world_.tombstones = directory_.file("tombstones"); }
  void break_store(ErrorCode code = ErrorCode::unavailable) { broken_ = Error{code, "nobody answers", ""}; }
  [[nodiscard]] std::size_t left() const {
    std::size_t count = 0;
    if (!std::filesystem::exists(world_.tombstones)) return 0;
    for (const auto& entry : std::filesystem::directory_iterator(world_.tombstones)) {
      if (entry.path().extension() == ".json") ++count;
    }
    return count;
  }
  [[nodiscard]] bool holds(const std::string& container) { return run("CHECK", "", container).exit_code == 0; }

  os::ScratchDirectory directory_;
};

TEST_F(CroftIpamTombstoneTest, DelSucceedsWithoutAStoreAndIsMadeUpForByTheNextCall) {
  for (const char* command : {"ADD", "DEL", "STATUS"}) {
    run("ADD", kPools);
    break_store();
    const auto answer = run("DEL", "");
    EXPECT_EQ(answer.exit_code, 0) << answer.out;
    EXPECT_THAT(log_.back(), HasSubstr("released=none deferred=\"nobody answers\""));
    EXPECT_EQ(left(), 1U);
    EXPECT_EQ(run("DEL", "").exit_code, 0) << "again";
    broken_.reset();
    EXPECT_TRUE(holds("c1"));
    EXPECT_EQ(run(command, kPools, "c2").exit_code, 0);
    EXPECT_FALSE(holds("c1")) << command;
    EXPECT_EQ(left(), 0U);
    EXPECT_THAT(log_, Contains(HasSubstr("TOMBSTONE network=net container=c1 ifname=eth0 ok"))) << command;
    log_.clear();
    run("DEL", "", "c2");
    clock_.advance(6s);
  }
}

TEST_F(CroftIpamTombstoneTest, AnAddOfTheSameOwnerIsNotTakenBack) {
  run("ADD", kPools);
  break_store();
  EXPECT_EQ(run("DEL", "").exit_code, 0);
  EXPECT_EQ(run("ADD", kPools).exit_code, 1) << "the store is away: this ADD fails and makes the DEL void all the same";
  EXPECT_EQ(left(), 0U);
  EXPECT_EQ(run("DEL", "").exit_code, 0);
  broken_.reset();
  EXPECT_EQ(run("ADD", kPools).exit_code, 0);
  EXPECT_THAT(log_.back(), HasSubstr("tombstone=lifted"));
  run("STATUS", kPools);
  run("ADD", kPools, "c2");
  EXPECT_TRUE(holds("c1"));
}

/// What can be no directory hinders no ADD, and the log says what to do about it.
TEST_F(CroftIpamTombstoneTest, WhoHoldsAnAddressIsReleasedHoweverManyWait) {
  run("ADD", kPools);
  run("ADD", kPools, "c2");
  break_store();
  EXPECT_EQ(run("DEL", "", "c2", R"(,"prevResult":{"ips":[]})").exit_code, 0);
  for (int i = 0; i < 1'000; ++i) std::ofstream(world_.tombstones + "/" + std::to_string(i) + ".unsure.json") << "{";
  EXPECT_EQ(run("DEL", "", "unknown").exit_code, 0);
  EXPECT_THAT(log_.back(), HasSubstr(" dropped=1"));
  EXPECT_EQ(run("DEL", "", "c1", R"(,"prevResult":{"ips":[]})").exit_code, 0);
  EXPECT_THAT(log_.back(), Not(HasSubstr(" dropped=")));
  EXPECT_EQ(left(), 1'002U);
  for (int i = 0; i < 10'000; ++i) std::ofstream(world_.tombstones + "/" + std::to_string(i) + ".json") << "{";
  EXPECT_EQ(run("DEL", "", "c2").exit_code, 0) << "again";
  EXPECT_THAT(run("DEL", "", "other", R"(,"prevResult":{"ips":[]})").out, HasSubstr("files already"));
}

TEST_F(CroftIpamTombstoneTest, ADelIsOverInTimeWhereverTheServerFallsSilent) {
  const std::string both =
      R"(,"assign_ipv6":"true","pools":[{"name":"a","cidr":"10.1.0.0/26","blockSize":29,"cooldownSeconds":0},)"
      R"({"name":"b","cidr":"fd00::/120","blockSize":124,"cooldownSeconds":0}])";
  world_.find_agent = [this](const std::string&) { return std::make_unique<MuteAgent>(clock_); };
  for (const bool is_one_by_one : {true, false}) {
    std::size_t left_for_later = 0;
    for (int answers = 0; answers < 16; ++answers) {
      SCOPED_TRACE(testing::Message() << "one by one " << is_one_by_one << " answers " << answers);
      ASSERT_EQ(run("ADD", both, "c1", "", "1.1.0").exit_code, 0);
      clock_.advance(1s);
      silence_ = Silence{is_one_by_one, answers};
      const Instant began = clock_.now();
      const auto answer = run("DEL", "");
      EXPECT_EQ(answer.exit_code, 0) << answer.out;
      EXPECT_LE(clock_.now().since_boot - began.since_boot, 15s);
      silence_.reset();
      left_for_later += left();
      EXPECT_EQ(run("STATUS", both).exit_code, 0);
      EXPECT_EQ(left(), 0U);
      EXPECT_FALSE(holds("c1"));
    }
    EXPECT_GT(left_for_later, 0U);
  }
}

TEST_F(CroftIpamTombstoneTest, OnlyWhatMayPassIsLeftForLater) {
  for (const ErrorCode code : {ErrorCode::corrupt, ErrorCode::newer_version, ErrorCode::refused_by_configuration}) {
    break_store(code);
    EXPECT_EQ(run("DEL", "").exit_code, 1) << name_of(code);
    EXPECT_EQ(left(), 0U);
  }
  world_.tombstones = "none";
  break_store();
  EXPECT_THAT(run("DEL", "").out, AllOf(HasSubstr("\"code\": 11"), Not(HasSubstr("left for later"))));
  world_.tombstones = "/proc/nowhere/tombstones";
  EXPECT_THAT(run("DEL", "").out, AllOf(HasSubstr("\"code\": 11"), HasSubstr("nobody answers"),
                                        HasSubstr("left for later"), HasSubstr("/proc/nowhere")));
}

TEST_F(CroftIpamTombstoneTest, AnotherStoresAreLeftToOthers) {
  run("ADD", kPools);
  break_store();
  run("DEL", R"(,"store":"memory:other")");
  broken_.reset();
  EXPECT_EQ(run("ADD", kPools, "c2").exit_code, 0);
  EXPECT_EQ(left(), 1U);
  EXPECT_TRUE(holds("c1"));
}

TEST_F(CroftIpamTest, EveryVersionAnswersInItsForm) {
  for (const char* version : {"0.1.0", "0.2.0"}) {
    EXPECT_THAT(run("ADD", kPools, "c1", "", version).out, HasSubstr("\"ip4\"")) << version;
  }
  for (const char* version : {"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"}) {
    EXPECT_THAT(run("ADD", kPools, "c1", "", version).out, HasSubstr("\"ips\"")) << version;
  }
}

/// A call that begins in croft-ipam and goes on in its sibling: two runs on the same world.
class CroftIpamSiblingTest : public CroftIpamTombstoneTest {
 protected:
  static std::string on_etcd(const std::string& more = kPools) {
    return R"(,"store":"etcd:http://127.0.0.1:2379")" + more;
  }
  /// In the small file; nothing when it did the call itself.
  std::optional<CallSoFar> begin(const std::string& command, const std::string& ipam) {
    std::optional<CallSoFar> handed;
    world_.hand_over = [&](const CallSoFar& call) {
      handed = call;
      return Error{ErrorCode::unavailable, "croft-ipam-cluster is not there", {}};
    };
    begun_ = run(command, ipam);
    world_.hand_over = {};
    return handed;
  }
  CniAnswer go_on(const std::string& command, const std::string& ipam, const CallSoFar& call) {
    world_.so_far = call;
    auto answer = run(command, ipam);
    world_.so_far.reset();
    return answer;
  }

  CniAnswer begun_;
};

TEST_F(CroftIpamSiblingTest, AStoreOfOtherMachinesIsTheSiblingsAndNoOther) {
  for (const char* store : {"etcd:http://127.0.0.1:2379", "kube:/x"}) {
    EXPECT_TRUE(begin("ADD", std::string(R"(,"store":")") + store + '"' + kPools)) << store;
    EXPECT_THAT(begun_.out, AllOf(HasSubstr("\"code\": 11"), HasSubstr("croft-ipam-cluster is not there")));
    EXPECT_TRUE(begin("STATUS", std::string(R"(,"store":")") + store + '"' + kPools)) << store;
    EXPECT_THAT(begun_.out, HasSubstr("\"code\": 50"));
  }
  EXPECT_FALSE(exists_) << "no store was opened";
  for (const char* store : {"sqlite:/x.db", "memory:x", "nosuch:x"}) {
    EXPECT_FALSE(begin("ADD", std::string(R"(,"store":")") + store + '"' + kPools)) << store;
  }
}

TEST_F(CroftIpamSiblingTest, ADelWithoutTheSiblingIsATombstone) {
  EXPECT_TRUE(begin("DEL", on_etcd("")));
  EXPECT_EQ(begun_.exit_code, 0) << begun_.out;
  EXPECT_EQ(left(), 1U);
}

TEST_F(CroftIpamSiblingTest, NoAgentIsAskedAgainAndWhyItDidNotServeIsInTheLine) {
  int asked = 0;
  world_.find_agent = [&](const std::string&) {
    ++asked;
    return std::make_unique<MuteAgent>(clock_);
  };
  const Instant began = clock_.now();
  const auto call = begin("ADD", on_etcd());
  ASSERT_TRUE(call);
  EXPECT_EQ(call->began, began);
  EXPECT_EQ(call->agent_said, "no answer in time");
  EXPECT_EQ(go_on("ADD", on_etcd(), *call).exit_code, 0);
  EXPECT_EQ(asked, 1);
  const auto waited = std::chrono::microseconds(kAgentPatience).count();
  EXPECT_THAT(log_.back(), AllOf(HasSubstr("via=store agent=\"no answer in time\""),
                                 HasSubstr(" us=" + std::to_string(waited) + " ")));
}

/// A runtime that starts anew leaves a DEL while the ADD goes on: it is of what this ADD gives.
TEST_F(CroftIpamSiblingTest, ATombstoneThatCameMeanwhileIsNotLifted) {
  ASSERT_TRUE(begin("DEL", on_etcd("")));
  const auto call = begin("ADD", on_etcd());
  ASSERT_TRUE(call);
  EXPECT_EQ(left(), 0U);
  clock_.advance(1s);
  ASSERT_TRUE(begin("DEL", on_etcd("")));
  ASSERT_EQ(left(), 1U);
  EXPECT_EQ(go_on("ADD", on_etcd(), *call).exit_code, 0);
  run("STATUS", on_etcd());
  EXPECT_EQ(left(), 0U);
  EXPECT_EQ(run("CHECK", on_etcd("")).exit_code, 1) << "nobody holds what nobody will give back";
}

}  // namespace
}  // namespace croft::edge
