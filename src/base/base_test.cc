#include <set>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/counted.h"
#include "base/result.h"
#include "base/strong.h"
#include "base/time_text.h"
#include "base/without_user_info.h"

namespace croft {
namespace {

using namespace std::chrono_literals;

Result<int> half(int n) {
  if (n % 2 != 0) return fail(ErrorCode::invalid_argument, "odd");
  return n / 2;
}

Result<int> quarter(int n) {
  TRY(const int once, half(n));
  TRY(const int twice, half(once));
  return twice;
}

Result<void> only_even(int n) {
  TRY_VOID(half(n));
  return {};
}

TEST(Result, TryReturnsTheErrorOfTheFirstFailure) {
  EXPECT_EQ(quarter(8).value(), 2);
  EXPECT_EQ(quarter(6).error().message, "odd");
  EXPECT_TRUE(only_even(2));
  EXPECT_EQ(only_even(3).error().code, ErrorCode::invalid_argument);
}

TEST(Counted, OneAndMany) {
  EXPECT_EQ(counted(0, "pool") + ", " + counted(1, "pool") + ", " + counted(2, "address", "es"),
            "0 pools, 1 pool, 2 addresses");
  EXPECT_EQ(counted_as(1, "DEL waits", "DELs wait") + ", " + counted_as(2, "DEL waits", "DELs wait"),
            "1 DEL waits, 2 DELs wait");
}

TEST(WithoutUserInfo, OfEveryUrlInAText) {
  EXPECT_EQ(without_user_info("http://10.0.0.1:2379"), "http://10.0.0.1:2379");
  EXPECT_EQ(without_user_info("a@b, kube:/etc/x@y"), "a@b, kube:/etc/x@y");
  EXPECT_EQ(without_user_info("etcd:http://u:p@10.0.0.1:1,https://v:a/b@c,d@10.0.0.2:1?ca=/x"),
            "etcd:http://(hidden)@10.0.0.1:1,https://(hidden)@10.0.0.2:1?ca=/x");
  EXPECT_EQ(without_user_info("ftp://u:p@x"), "ftp://(hidden)@x");
  // As somebody writes an `@` who knows that a URL may not have it; here it stands for the one that ends the password.
  EXPECT_EQ(without_user_info("http://u:p%4010.0.0.1:1,https://v:q%40r@10.0.0.2"),
            "http://(hidden)%4010.0.0.1:1,https://(hidden)@10.0.0.2");
  EXPECT_EQ(without_user_info("http://u:p@x%40y"), "http://(hidden)%40y");
  EXPECT_EQ(without_user_info("kube:/etc/x%40y"), "kube:/etc/x%40y");
}

TEST(Error, ContextGoesInFrontAndDetailsStay) {
  const Error inner{ErrorCode::corrupt, "bad page", "line"};
  EXPECT_EQ(inner.in("croft.db"), (Error{ErrorCode::corrupt, "croft.db: bad page", "line"}));
}

TEST(Error, EveryCodeHasItsOwnName) {
  std::set<std::string_view> names;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    names.insert(name_of(static_cast<ErrorCode>(code)));
  }
  EXPECT_EQ(names.size(), static_cast<std::size_t>(ErrorCode::internal) + 1);
}

TEST(TimeText, Rfc3339RoundsUpToTheNextSecond) {
  const WallTime base = WallTime(1768471201s);
  EXPECT_EQ(rfc3339_rounded_up(base), "2026-01-15T10:00:01Z");
  EXPECT_EQ(rfc3339_rounded_up(base + 1ns), "2026-01-15T10:00:02Z");
}

TEST(TimeText, Rfc3339ReadsFractionsAndOffsets) {
  const WallTime base = WallTime(1768471201s);
  EXPECT_EQ(parse_rfc3339("2026-01-15T10:00:01Z").value(), base);
  EXPECT_EQ(parse_rfc3339("2026-01-15T12:00:01.25+02:00").value(), base + 250ms);
  for (const char* bad :
       {"", "2026-01-15", "2026-13-15T10:00:01Z", "2026-02-30T10:00:01Z", "2026-01-15T10:00:01",
        "2026-01-15T10:00:01Zx", "2026-01-15T24:00:00Z", "2026-01-15T10:00:01.Z", "9999-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_rfc3339(bad)) << bad;
  }
}

TEST(TimeText, GoUtcTextIsWhatGoPrints) {
  const WallTime base = WallTime(1768471201s);
  EXPECT_EQ(go_utc_text(base + 500ms), "2026-01-15 10:00:01.5 +0000 UTC");
  EXPECT_EQ(go_utc_text(base), "2026-01-15 10:00:01 +0000 UTC");
  EXPECT_EQ(parse_go_utc_text(go_utc_text(base + 123456789ns)).value(), base + 123456789ns);
  EXPECT_FALSE(parse_go_utc_text("yesterday"));
}

TEST(TimeText, TheEndsOfTimeHaveSecondsToo) {
  EXPECT_EQ(go_utc_text(WallTime::min()), "1677-09-21 00:12:43.145224192 +0000 UTC");
  EXPECT_EQ(go_utc_text(WallTime::max()), "2262-04-11 23:47:16.854775807 +0000 UTC");
  EXPECT_EQ(rounded_up_to_seconds(WallTime(1500ms)), WallTime(2s));
  EXPECT_EQ(rounded_up_to_seconds(WallTime(2s)), WallTime(2s));
  EXPECT_EQ(rounded_up_to_seconds(WallTime(-1500ms)), WallTime(-1s));
  EXPECT_EQ(rounded_up_to_seconds(WallTime::max()), WallTime(9223372036s));
  EXPECT_EQ(rounded_up_to_seconds(WallTime::min()), WallTime(-9223372036s));
}

}  // namespace
}  // namespace croft
