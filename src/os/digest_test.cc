#include "os/digest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/hex.h"
#include "os/clock.h"
#include "os/look_up.h"

namespace croft::os {

namespace {

// FIPS 180-4 and FIPS 202, the examples of NIST.
TEST(Digest, KnownAnswers) {
  EXPECT_EQ(hex_of(sha256("")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  EXPECT_EQ(hex_of(sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(hex_of(sha1("abc")), "a9993e364706816aba3e25717850c26c9cd0d89d");
  EXPECT_EQ(hex_of(sha3_256("")), "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
  EXPECT_EQ(hex_of(sha3_256("abc")), "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
}

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
