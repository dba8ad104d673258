#include "os/look_up.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "os/clock.h"

namespace croft::os {
namespace {

TEST(LookUp, TheMachinesOwnName) {
  const Deadline soon = Deadline::after(SystemClock().now(), std::chrono::seconds{10});
  const auto found = look_up_host("localhost", soon);
  ASSERT_TRUE(found) << found.error().message;
  EXPECT_THAT(*found, testing::Contains(testing::AnyOf("127.0.0.1", "::1")));
  EXPECT_EQ(look_up_host("127.0.0.1", soon).value(), std::vector<std::string>{"127.0.0.1"});
}

TEST(LookUp, WhatHasNone) {
  const auto found = look_up_host("nosuch.invalid", Deadline::after(SystemClock().now(), std::chrono::seconds{30}));
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, ErrorCode::unavailable);
  EXPECT_THAT(found.error().message, testing::HasSubstr("nosuch.invalid"));
  EXPECT_EQ(look_up_host("localhost", Deadline{std::chrono::nanoseconds{0}}).error().code,
            ErrorCode::deadline_exceeded);
}

}  // namespace
}  // namespace croft::os
