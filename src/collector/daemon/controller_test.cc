// Flags of `croftd controller`.

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "agent/daemon/daemon.h"
#include "noderanges/use/node_range.h"
#include "os/clock.h"
#include "os/scratch_directory.h"

namespace croft::app {
namespace {

TEST(ControllerFlags, AreAllJudgedBeforeOneIsWritten) {
  const os::ScratchDirectory scratch;
  const os::SystemClock clock;
  os::SystemRandom random;
  os::StopSignal stop;
  const std::string url = "sqlite:" + scratch.file("croft.db");
  const auto store = open_store(url, store::OpenMode::create, clock, kDaemonParts).value();
  const std::vector<std::pair<std::vector<std::string>, std::string>> wrong{
      {{"--once", "--repair-service-ranges", "--service-cluster-ip-range", "10.96.0.0/12,bogus"}, "is not an ip net"},
      {{"--repair-service-ranges", "--service-node-port-range", "x"}, "unable to parse port range"},
      {{"--desk", ":9680"}, "name a token with --desk-token-file"},
      {{"--desk", ":9680", "--desk-token-file", scratch.file("none")}, "--desk-token-file: cannot open"}};
  for (const auto& [flags, why] : wrong) {
    Daemon daemon{clock, random, stop, {}};
    CLI::App app{"Croft's daemon", "croftd"};
    add_controller_command(app, daemon);
    std::vector<std::string> words{"controller",     "--store",      url, "--allocate-node-cidrs", "--grace", "0s",
                                   "--cluster-cidr", "10.244.0.0/16"};
    words.insert(words.end(), flags.begin(), flags.end());
    std::ranges::reverse(words);
    app.parse(words);
    const auto done = daemon.run();
    ASSERT_FALSE(done);
    EXPECT_THAT(done.error().message, testing::HasSubstr(why));
    EXPECT_FALSE(engine::read_node_range_overview({*store, clock, random})->set) << why;
  }
}

}  // namespace
}  // namespace croft::app
