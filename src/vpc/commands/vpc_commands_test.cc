// `croft vpc` with an agent that answers what a test says.

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/croft/command_line.h"
#include "http/grpc_server.h"
#include "os/clock.h"
#include "os/scratch_directory.h"
#include "vpc/format/messages.h"

namespace croft::app {
namespace {

namespace vpc = wire::vpc;

/// Has so many unused addresses, and releases them until `releases` calls have been.
class Agent final : public os::GrpcHandler {
 public:
  [[nodiscard]] bool serves(std::string_view /*method*/) override { return true; }
  void on_request(os::GrpcRequest request) override {
    const auto method = vpc::method_of(request.method);
    if (method == vpc::Method::release_ip && releases-- == 0) {
      return server->answer({{request.call, os::GrpcCode::internal, "no list: nothing was released", ""}});
    }
    vpc::NetworksAnswer unused;
    unused.networks.resize(method == vpc::Method::list_unuse ? 70 : 0);
    for (std::size_t i = 0; i < unused.networks.size(); ++i) unused.networks[i].ip = fmt::format("10.0.0.{}", i + 1);
    server->answer({{request.call, os::GrpcCode::ok, "", vpc::encode(unused)}});
  }
  os::GrpcServer* server = nullptr;
  int releases = 0;
};

TEST(VpcRelease, SaysHowFarItCameWhereALaterPartFails) {
  const os::ScratchDirectory scratch;
  const os::SystemClock clock;
  os::SystemRandom random;
  const std::string socket = scratch.file("agent.sock");
  auto server = os::GrpcServer::make(os::UnixListener::listen(socket, {{::geteuid()}}, clock).value(), {}, clock);
  ASSERT_TRUE(server) << server.error().message;
  Agent agent;
  agent.server = server->get();
  (*server)->serve(agent);
  for (const auto& [releases, said] : {std::pair(2, "; 60 of 70 were released before"), std::pair(0, "")}) {
    agent.releases = releases;
    CommandLine line{"", CommandLine::Output::table, "auto", {}, clock, random, nullptr};
    CLI::App app{"Croft", "croft"};
    add_everything(app, line);
    std::vector<std::string> words{"vpc", "release", "node-a", "--yes", "--agent", "node-a=unix:" + socket};
    std::ranges::reverse(words);
    app.parse(words);
    testing::internal::CaptureStdout();
    const auto done = line.run(line);
    EXPECT_THAT(testing::internal::GetCapturedStdout(), testing::HasSubstr("10.0.0.70"));
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, testing::EndsWith(fmt::format("no list: nothing was released{}", said)));
  }
  (*server)->stop(Deadline::after(clock.now(), std::chrono::seconds(5)));
}

}  // namespace
}  // namespace croft::app
