#include "agent/door/server.h"

#include <unistd.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "agent/door/client.h"
#include "agent/door/test_agent.h"
#include "http/grpc_channel.h"
#include "os/process.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

namespace agent = wire::agent;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// A whole agent over a store in memory, and plugins that ask it over its socket.
class AgentServerTest : public testing::Test, protected AgentOnMemory {
 protected:
  void SetUp() override { start(); }
  void start() {
    auto listener = os::UnixListener::listen(socket_, listener_options_, clock);
    ASSERT_TRUE(listener) << listener.error().message;
    auto server = AgentServer::start(service, *std::move(listener), clock, room_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
  }

  [[nodiscard]] std::shared_ptr<os::GrpcChannel> channel() const {
    auto made =
        os::GrpcChannel::connect(os::Endpoint::parse("unix:" + socket_).value(), nullptr, {}, clock, in(seconds(20)));
    EXPECT_TRUE(made) << made.error().message;
    return *std::move(made);
  }
  [[nodiscard]] agent::AssignCall call(const std::string& container) const {
    agent::AssignCall wanted;
    wanted.caller = {"memory:", "node-a", {}, {}};
    wanted.request = engine::World::request(container);
    return wanted;
  }
  [[nodiscard]] std::string add(const agent::AssignCall& wanted,
                                std::chrono::nanoseconds patience = seconds(20)) const {
    const auto answer = agent_at(socket_, clock, patience)->assign(wanted);
    if (!answer) return std::string(name_of(answer.error().code)) + ": " + answer.error().message;
    if (const auto* refusal = std::get_if<core::Refusal>(&*answer)) return refusal->summary;
    return std::get<core::Assigned>(*answer).addresses.front().address.to_string();
  }
  [[nodiscard]] Result<std::vector<net::Address>> del(const std::string& container) const {
    return agent_at(socket_, clock, seconds(20))
        ->release({{"memory:", "node-a", {}, {}}, core::Owner{"net", container, "eth0"}});
  }

  os::ScratchDirectory directory_;
  std::string socket_ = directory_.path() + "/agent.sock";
  os::UnixListenerOptions listener_options_{{::geteuid()}};
  std::size_t room_ = kLanesRoom;
  std::unique_ptr<AgentServer> server_;
};

TEST_F(AgentServerTest, AddAndDel) {
  const std::string address = add(call("one"));
  EXPECT_TRUE(address.starts_with("10.0.")) << address;
  EXPECT_EQ(add(call("one")), address);
  EXPECT_NE(add(call("two")), address);
  const auto released = del("one");
  ASSERT_TRUE(released) << released.error().message;
  EXPECT_EQ(released->size(), 1U);
  EXPECT_TRUE(del("one")->empty());
  const auto status = agent_status(socket_, clock, seconds(20));
  ASSERT_TRUE(status) << status.error().message;
  EXPECT_EQ(status->node, "node-a");
  EXPECT_EQ(status->store, "memory:");
  EXPECT_EQ(status->served_from_cache, 3U);  // two new addresses, one release
  EXPECT_EQ(status->served_from_store, 2U);  // asked again
}

/// By it an agent knows whether it sees who lives on the node.
TEST_F(AgentServerTest, CallersSayInWhichNetworkNamespaceTheyAre) {
  EXPECT_EQ(service.network_of_callers(), 0U);
  static_cast<void>(add(call("one")));
  EXPECT_EQ(service.network_of_callers(), os::own_network_namespace());
  EXPECT_NE(service.network_of_callers(), 0U);
}

TEST_F(AgentServerTest, MakesThePoolsThatTheConfigurationNames) {
  agent::AssignCall wanted = call("one");
  wanted.pools = {engine::World::spec("b", "10.7.0.0/24", 26)};
  wanted.request.pools.v4 = {"b"};
  EXPECT_TRUE(add(wanted).starts_with("10.7.0."));
}

TEST_F(AgentServerTest, ARefusalComesWithItsReasons) {
  agent::AssignCall wanted = call("one");
  wanted.request.pools.v4 = {"nosuch"};
  const auto answer = agent_at(socket_, clock, seconds(20))->assign(wanted);
  ASSERT_TRUE(answer) << answer.error().message;
  const auto direct = engine::assign(context, wanted.request);
  EXPECT_EQ(std::get<core::Refusal>(*answer), std::get<core::Refusal>(*direct));
}

TEST_F(AgentServerTest, AWedgedAgentIsLeftInTimeAndItsLateWorkDoesNoHarm) {
  ASSERT_TRUE(add(call("first")).starts_with("10."));
  store.held = true;
  const Instant before = clock.now();
  EXPECT_TRUE(add(call("one"), milliseconds(300)).starts_with("unavailable")) << add(call("one"), milliseconds(300));
  EXPECT_LT(clock.now().since_boot - before.since_boot, seconds(10));
  // The plugin goes its own way, while the agent's commit still hangs.
  store::MemoryStore own(store.data());
  const engine::Context alone{own, clock, random};
  const auto answer = engine::assign(alone, engine::World::request("one"));
  ASSERT_TRUE(answer);
  const net::Address address = std::get<core::Assigned>(*answer).addresses.front().address;
  ASSERT_EQ(engine::release_owner(alone, {"net", "one", "eth0"})->addresses.size(), 1U);
  ASSERT_TRUE(engine::assign(alone, engine::World::request("one")));
  store.held = false;
  server_->stop(in(seconds(20)));
  const auto held = engine::held_addresses(alone, {"net", "one", "eth0"});
  ASSERT_TRUE(held);
  ASSERT_EQ(held->size(), 1U);
  EXPECT_NE(held->front(), address);  // that one cools
  const auto report = engine::audit(alone, {});
  ASSERT_TRUE(report);
  EXPECT_TRUE(report->findings.empty());
}

TEST_F(AgentServerTest, ALivingAgentIsNotLeft) {
  ASSERT_TRUE(add(call("first")).starts_with("10."));
  store.held = true;
  std::vector<std::thread> callers;
  std::atomic<int> served{0};
  for (int i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] {
      if (add(call("c" + std::to_string(i)), milliseconds(1000)).starts_with("10.")) ++served;
    });
  }
  callers.emplace_back([&] {
    const auto released =
        agent_at(socket_, clock)->release({{"memory:", "node-a", {}, {}}, core::Owner{"net", "first", "eth0"}});
    EXPECT_TRUE(released && released->size() == 1);
  });
  std::this_thread::sleep_for(milliseconds(2500));
  EXPECT_EQ(served, 0);
  store.held = false;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(served, 8);
}

/// A plugin of before the signs reads one message.
TEST_F(AgentServerTest, WhoAsksForNoSignsGetsOneMessage) {
  ASSERT_TRUE(add(call("first")).starts_with("10."));
  agent::AssignCall old = call("one");
  old.caller.boot = clock.now().boot;
  old.caller.expires = in(seconds(20));
  const auto asking = channel();
  store.held = true;
  std::thread opener([&] {
    std::this_thread::sleep_for(milliseconds(800));
    store.held = false;
  });
  const auto reply = asking->call(agent::kAssignMethod, agent::encode(old), in(seconds(20)));
  opener.join();
  ASSERT_TRUE(reply.status.ok()) << reply.status.message;
  const auto outcome = agent::decode_assign_outcome(reply.message);
  ASSERT_TRUE(outcome) << outcome.error().message;
  EXPECT_TRUE(std::holds_alternative<core::Assigned>(*outcome));
}

TEST_F(AgentServerTest, TooManyAtOnceAreToldAtOnce) {
  server_.reset();
  room_ = 2;
  start();
  ASSERT_TRUE(add(call("first")).starts_with("10."));
  store.held = true;
  std::vector<std::thread> callers;
  std::atomic<int> refused{0};
  std::atomic<int> served{0};
  for (int i = 0; i < 12; ++i) {
    callers.emplace_back([&, i] {
      const std::string answer = add(call("c" + std::to_string(i)));
      if (answer.starts_with("10.")) ++served;
      if (answer.find("gRPC status 8") != std::string::npos) ++refused;
    });
    while (store.waiting == 0) std::this_thread::sleep_for(milliseconds(1));  // the first one is at work
  }
  const Deadline patience = in(seconds(20));
  while (refused < 9 && !patience.passed(clock.now())) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(refused, 9);  // one at work, two waiting
  store.held = false;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(served, 3);
}

TEST_F(AgentServerTest, GarbageIsAnsweredAndTheNextOneIsServed) {
  const auto asking = channel();
  EXPECT_EQ(asking->call(agent::kAssignMethod, "\xff\xff\xff", in(seconds(20))).status.code,
            os::GrpcCode::invalid_argument);
  EXPECT_EQ(asking->call("/croft.agent.v1.Agent/NoSuch", "", in(seconds(20))).status.code, os::GrpcCode::unimplemented);
  for (const std::size_t bytes : {agent::kMessageBytesMax + 1, std::size_t{100'000}}) {
    const auto reply = asking->call(agent::kAssignMethod, std::string(bytes, 'x'), in(seconds(20)));
    EXPECT_EQ(reply.status.code, os::GrpcCode::invalid_argument) << reply.status.message;
    EXPECT_NE(reply.status.message.find("no more than 65536"), std::string::npos) << reply.status.message;
  }
  // Of what would fill the memory the length alone is read.
  EXPECT_EQ(asking->call(agent::kAssignMethod, std::string(1'000'000, 'x'), in(seconds(20))).status.code,
            os::GrpcCode::resource_exhausted);
  EXPECT_TRUE(add(call("one")).starts_with("10."));
}

TEST_F(AgentServerTest, HealthOfEachServiceAndOfNone) {
  const auto asking = channel();
  const auto of = [](std::string_view name) {
    return "\x0a" + std::string(1, static_cast<char>(name.size())) + std::string(name);
  };
  const auto check = [&](const std::string& message) {
    return asking->call("/grpc.health.v1.Health/Check", message, in(seconds(20)));
  };
  for (const bool serves : {true, false, true}) {
    server_->set_serving(serves);
    for (const std::string& request : {std::string(), of(agent::kServiceName)}) {
      EXPECT_EQ(check(request).message, serves ? "\x08\x01" : "\x08\x02");
    }
  }
  EXPECT_EQ(check(of("other")).status.code, os::GrpcCode::not_found);
  EXPECT_EQ(check("\xff").status.code, os::GrpcCode::invalid_argument);
  EXPECT_EQ(asking->call("/grpc.health.v1.Health/Watch", "", in(seconds(20))).status.code, os::GrpcCode::unimplemented);
}

TEST_F(AgentServerTest, StatusAndHealthDoNotWaitForTheStore) {
  ASSERT_TRUE(add(call("first")).starts_with("10."));
  store.held = true;
  std::vector<std::thread> callers;
  for (std::size_t i = 0; i < 8; ++i) {
    callers.emplace_back([&, i] { EXPECT_TRUE(add(call("c" + std::to_string(i))).starts_with("10.")); });
  }
  while (store.waiting == 0) std::this_thread::sleep_for(milliseconds(1));
  const auto status = agent_status(socket_, clock, seconds(20));
  EXPECT_TRUE(status) << status.error().message;
  const auto asking = channel();
  EXPECT_TRUE(asking->call("/grpc.health.v1.Health/Check", "", in(seconds(20))).status.ok());
  EXPECT_GT(store.waiting, 0);
  store.held = false;
  for (std::thread& caller : callers) caller.join();
}

TEST_F(AgentServerTest, TheSocketIsGoneBeforeTheWorkIs) {
  store.held = true;
  std::thread caller([&] { static_cast<void>(add(call("one"), seconds(20))); });
  while (store.waiting == 0) std::this_thread::sleep_for(milliseconds(1));
  std::thread stopper([&] { server_->stop(in(milliseconds(10))); });
  const Deadline end = in(seconds(20));
  while (::access(socket_.c_str(), F_OK) == 0 && !end.passed(clock.now())) std::this_thread::sleep_for(milliseconds(1));
  EXPECT_NE(::access(socket_.c_str(), F_OK), 0);
  EXPECT_GT(store.waiting, 0);
  store.held = false;
  stopper.join();
  caller.join();
}

TEST_F(AgentServerTest, NobodyListens) {
  server_.reset();
  EXPECT_TRUE(add(call("one")).starts_with("unavailable: "));
  EXPECT_FALSE(agent_status(socket_, clock));
}

}  // namespace
}  // namespace croft::edge
