#include "cni/door/call_so_far.h"

#include <chrono>

#include <gtest/gtest.h>

namespace croft::edge {
namespace {

using namespace std::chrono_literals;

TEST(CallSoFar, IsTheSameInTheOtherFile) {
  for (int flags = 0; flags < 16; ++flags) {
    CallSoFar call;
    call.began.since_boot = 123456789ns;
    call.began.wall = WallTime(1795000000123456789ns);
    call.may_have_written = (flags & 1) != 0;
    call.lifted = (flags & 2) != 0;
    call.may_hold = (flags & 4) != 0;
    call.served = (flags & 8) != 0;
    call.agent_said = flags == 0 ? "" : "no sign of life for 1 s: \"etcd\" 1 2 3";
    EXPECT_EQ(parse_call_so_far(encode_call_so_far(call)), call);
  }
}

TEST(CallSoFar, OtherTextIsNone) {
  for (const char* text : {"", " ", "1", "1 1 2", "1 1 2 3", "1 1 2 16 x", "1 1 2 -1 x", "1 a 2 3 x", "1 1 b 3 x",
                           "1 1 2 c x", "1 99999999999999999999 2 3 x", "2 1 2 3 x", "0 1 2 3 x"}) {
    EXPECT_EQ(parse_call_so_far(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace croft::edge
