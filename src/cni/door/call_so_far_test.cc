#include "cni/door/call_so_far.h"

#include <chrono>

#include <gtest/gtest.h>

namespace croft::edge {
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
