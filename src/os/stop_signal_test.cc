#include "os/stop_signal.h"

#include <csignal>

#include <gtest/gtest.h>

namespace croft::os {
namespace {

using namespace std::chrono_literals;

TEST(StopSignalTest, IsFalseWithoutASignalAndTrueForEverAfterOne) {
  StopSignal stop;
  EXPECT_FALSE(stop.wait_for(0ns));
  EXPECT_FALSE(stop.wait_for(1ms));
  ::raise(SIGTERM);
  EXPECT_TRUE(stop.wait_for(24h));
  EXPECT_TRUE(stop.wait_for(0ns));
}

}  // namespace
}  // namespace croft::os
