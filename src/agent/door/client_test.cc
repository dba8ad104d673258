// What the plugin makes of an agent's answers that cannot be ones to its request.

#include "agent/door/client.h"

#include <unistd.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "http/grpc_server.h"
#include "http/unix_listener.h"
#include "ipam/use/test_world.h"
#include "os/clock.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

namespace agent = wire::agent;
using std::chrono::seconds;
using testing::HasSubstr;

/// Says one thing to everybody.
class Parrot final : public os::GrpcHandler {
 public:
  [[nodiscard]] bool serves(std::string_view) override { return true; }
  void on_request(os::GrpcRequest request) override {
    std::vector<os::GrpcAnswer> answers;
    answers.push_back({request.call, os::GrpcCode::ok, {}, words});
    server->answer(std::move(answers));
  }

  std::string words;
  os::GrpcServer* server = nullptr;
};

class AgentClientTest : public testing::Test {
 protected:
  void SetUp() override {
    auto listener = os::UnixListener::listen(socket_, {{::geteuid()}}, clock_);
    ASSERT_TRUE(listener) << listener.error().message;
    auto server = os::GrpcServer::make(*std::move(listener), {}, clock_);
    ASSERT_TRUE(server) << server.error().message;
    server_ = *std::move(server);
    parrot_.server = server_.get();
    server_->serve(parrot_);
  }
  void TearDown() override { server_->stop(Deadline{}); }

  static core::AssignedAddress one(const char* address, const char* pool = "10.0.0.0/16") {
    core::AssignedAddress assigned;
    assigned.address = engine::World::ip(address);
    assigned.pool = "a";
    assigned.pool_cidr = engine::World::prefix(pool);
    assigned.block = net::Prefix::containing(assigned.address, assigned.address.family() == net::Family::v4 ? 26 : 122);
    return assigned;
  }
  /// What comes of an answer with these addresses; "" when it is taken.
  std::string taken(std::vector<core::AssignedAddress> addresses, const core::AssignRequest& request) {
    parrot_.words = agent::encode(agent::AssignOutcome(core::Assigned{std::move(addresses), false}));
    agent::AssignCall call{{"memory:", "node-a", {}, {}}, {}, request};
    const auto answer = agent_at(socket_, clock_, seconds(20))->assign(call);
    return answer ? "" : answer.error().message;
  }
  std::string taken(std::vector<core::AssignedAddress> addresses) {
    return taken(std::move(addresses), engine::World::request("c"));
  }

  os::SystemClock clock_;
  os::ScratchDirectory directory_;
  std::string socket_ = directory_.path() + "/agent.sock";
  Parrot parrot_;
  std::unique_ptr<os::GrpcServer> server_;
};

TEST_F(AgentClientTest, AnAnswerIsComparedWithTheRequest) {
  EXPECT_EQ(taken({one("10.0.0.5")}), "");
  EXPECT_THAT(taken({}), HasSubstr("too few"));
  EXPECT_THAT(taken({one("10.0.0.5"), one("10.0.0.6")}), HasSubstr("more than was asked for"));
  EXPECT_THAT(taken({one("10.0.0.5"), one("10.0.0.5")}), HasSubstr("twice"));
  EXPECT_THAT(taken({one("10.0.0.5", "10.9.0.0/16")}), HasSubstr("outside its pool"));
  EXPECT_THAT(taken({one("fd00::5", "fd00::/64")}), HasSubstr("too few"));
  core::AssignedAddress with_gateway = one("10.0.0.5");
  with_gateway.gateway = engine::World::ip("fd00::1");
  EXPECT_THAT(taken({with_gateway}), HasSubstr("another family"));
}

TEST_F(AgentClientTest, WhoHeldMoreBeforeGetsThat) {
  core::AssignedAddress before = one("10.0.0.5"), other = one("10.0.0.6");
  before.held_before = other.held_before = true;
  EXPECT_EQ(taken({before, other}), "");
}

}  // namespace
}  // namespace croft::edge
