#include "os/stop_signal.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include <gtest/gtest.h>

#include "os/scratch_directory.h"

namespace croft::os {
namespace {

using namespace std::chrono_literals;

TEST(StopSignalTest, IsFalseWithoutASignalAndTrueForEverAfterOne) {
  StopSignal stop(24h);
  EXPECT_FALSE(stop.wait_for(0ns));
  EXPECT_FALSE(stop.wait_for(1ms));
  ::kill(::getpid(), SIGHUP);
  EXPECT_FALSE(stop.wait_for(1ms));
  ::kill(::getpid(), SIGTERM);
  EXPECT_TRUE(stop.wait_for(24h));
  EXPECT_TRUE(stop.wait_for(0ns));
}

/// Whatever the work is, be it a loop without an end, the process ends.
TEST(StopSignalDeathTest, EndsAProcessThatDoesNotEndByItself) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const ScratchDirectory scratch;
  // The child has a scratch directory of its own, which nobody removes: it is ended.
  EXPECT_EXIT(
      {
        const std::string& left = scratch.path();
        StopSignal stop(50ms);
        stop.before_forced_end([&] { std::filesystem::remove_all(left); });
        ::kill(::getpid(), SIGTERM);
        for (volatile bool for_ever = true; for_ever;) {
        }
      },
      ::testing::ExitedWithCode(1), "cut off");
}

TEST(StopSignalDeathTest, WhatOnlyReadsMayBeCutOff) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(
      {
        StopSignal stop(50ms);
        stop.before_forced_end({}, StopSignal::CutsOff::reading);
        ask_to_end();
        for (volatile bool for_ever = true; for_ever;) {
        }
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace croft::os
