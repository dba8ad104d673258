#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/did_you_mean.h"
#include "base/net/prefix.h"
#include "base/pacing.h"
#include "base/printable.h"
#include "base/result.h"
#include "base/shared_map.h"
#include "base/sightings.h"
#include "base/strong.h"
#include "base/texts.h"
#include "base/time_text.h"

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

TEST(Result, AMessageIsPutTogetherOfValues) {
  const Result<int> failed =
      fail(ErrorCode::not_found, "no {} in {}", "pool", net::Prefix::parse("10.0.0.0/8").value());
  EXPECT_EQ(failed.error(), (Error{ErrorCode::not_found, "no pool in 10.0.0.0/8", {}}));
  EXPECT_EQ(make_error(ErrorCode::corrupt, "{}", 7).message, "7");
}

TEST(Texts, AreSplitAndJoined) {
  EXPECT_THAT(split("a,,b", ','), testing::ElementsAre("a", "", "b"));
  EXPECT_THAT(split("", ','), testing::ElementsAre(""));
  EXPECT_EQ(joined({"a", "b"}) + joined({"c", "d"}, "|") + joined({}), "a, bc|d");
}

TEST(Span, IsReadAndWritten) {
  EXPECT_EQ(span_text(0s) + " " + span_text(45min) + " " + span_text(7h) + " " + span_text(72h), "now 45m 7h 3d");
  EXPECT_EQ(parse_span("3m20s"), 200s);
  EXPECT_EQ(parse_span("2d"), 48h);
  for (const char* const text : {"", "5", "m", "-5m", "5m3", "5w", "5 m"}) EXPECT_EQ(parse_span(text), std::nullopt);
  EXPECT_GT(parse_span("99999999999999999d"), 0s) << "as far as a clock goes";
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
  EXPECT_EQ(name_of(ErrorCode::unavailable), "unavailable");
  EXPECT_EQ(name_of(ErrorCode::internal), "internal");
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
  EXPECT_EQ(next_whole_second(WallTime(1500ms)), WallTime(2s));
  EXPECT_EQ(next_whole_second(WallTime(2s)), WallTime(2s));
  EXPECT_EQ(next_whole_second(WallTime(-1500ms)), WallTime(-1s));
  EXPECT_EQ(next_whole_second(WallTime::max()), WallTime(9223372036s));
  EXPECT_EQ(next_whole_second(WallTime::min()), WallTime(-9223372036s));
}

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Nearest, CountsTypingErrors) {
  EXPECT_EQ(typing_errors_between("pool", "pool"), 0U);
  EXPECT_EQ(typing_errors_between("pol", "pool"), 1U);
  EXPECT_EQ(typing_errors_between("cdir", "cidr"), 1U);  // one swap
  EXPECT_EQ(typing_errors_between("", "abc"), 3U);
  EXPECT_EQ(typing_errors_between("abc", ""), 3U);
  EXPECT_EQ(typing_errors_between("node", "pool"), 3U);
}

TEST(Nearest, NamesWhatIsMeantTheNearestFirst) {
  EXPECT_THAT(nearest_words("pooll", {"node", "pools", "pool"}), ElementsAre("pool", "pools"));
  EXPECT_THAT(nearest_words("ipv4_pool", {"ipv4_pools", "ipv6_pools"}), ElementsAre("ipv4_pools", "ipv6_pools"));
  EXPECT_THAT(nearest_words("host", {"host-local", "node"}), ElementsAre("host-local"));
}

TEST(Nearest, IsSilentWhenNothingIsNear) {
  EXPECT_THAT(nearest_words("frobnicate", {"node", "pool"}), IsEmpty());
  EXPECT_THAT(nearest_words("x", {"y"}), IsEmpty());
  EXPECT_THAT(nearest_words("", {"y"}), IsEmpty());
  EXPECT_THAT(nearest_words(std::string(1 << 20, 'x'), {std::string(1 << 20, 'x')}), IsEmpty());
  EXPECT_EQ(did_you_mean("frobnicate", {"pool"}), "");
}

TEST(Nearest, SaysItAsAQuestion) {
  EXPECT_EQ(did_you_mean("pol", {"pool"}), "; did you mean \"pool\"?");
  EXPECT_EQ(did_you_mean("pooll", {"pool", "pools"}), "; did you mean \"pool\" or \"pools\"?");
}

TEST(Backoff, GrowWithinBoundsAndBeginAnewAfterProgress) {
  Backoff pauses(50ms, 2s, 7);
  for (int round = 0; round < 3; ++round) {
    for (const std::chrono::nanoseconds most : {50ms, 100ms, 200ms, 400ms, 800ms, 1600ms, 2000ms, 2000ms, 2000ms}) {
      const auto pause = pauses.next();
      EXPECT_GE(pause, most / 2);
      EXPECT_LE(pause, most);
    }
    pauses.reset();
  }
}

TEST(Backoff, ThoseOfManyDriftApart) {
  std::set<std::chrono::nanoseconds> first;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) first.insert(Backoff(1s, 2s, seed).next());
  EXPECT_GT(first.size(), 500U);
  EXPECT_LT(*first.begin(), 510ms);
  EXPECT_GT(*first.rbegin(), 990ms);
}

TEST(Printable, WhatActsOnATerminalIsEscaped) {
  EXPECT_EQ(printable("a\x1b[2J\x07\x7f", Printed::text), "a\\x1b[2J\\x07\\x7f");
  EXPECT_EQ(printable("\r\b\v\f", Printed::text), "\\x0d\\x08\\x0b\\x0c");
  EXPECT_EQ(printable(std::string_view("a\0b", 3), Printed::text), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"
                      "31m",
                      Printed::text),
            "\\x9b31m")
      << "C1 as UTF-8";
  EXPECT_EQ(printable("\x9b"
                      "31m",
                      Printed::text),
            "\\x9b31m")
      << "C1 as a byte";
  EXPECT_EQ(printable("abc\u202ecba\u2066\u200f\u061c", Printed::text), "abc\\u202ecba\\u2066\\u200f\\u061c");
  EXPECT_EQ(printable("\xc0\xaf\xed\xa0\x80\xf8", Printed::text), "\\xc0\\xaf\\xed\\xa0\\x80\\xf8");
  EXPECT_EQ(printable("\xe2\x82", Printed::text), "\\xe2\\x82") << "cut off";
}

TEST(Printable, WhatIsTextStays) {
  const std::string text = "Grüße, 世界 \U0001F331 ▀█·…\n\tcolumn";
  EXPECT_EQ(printable(text, Printed::text), text);
  EXPECT_EQ(printable("a\nb\tc", Printed::line), "a\\x0ab\\x09c");
}

TEST(Printable, JsonStaysExact) {
  EXPECT_EQ(printable("{\n \"a\": \"\u0085\u202e\x7f\"}", Printed::json), "{\n \"a\": \"\\u0085\\u202e\\u007f\"}");
}

TEST(Printable, OnlyOwnColoursPass) {
  const std::string own = "\x1b[38;5;34m█\x1b[0m \x1b[38;5;34;48;5;214m▀\x1b[0m";
  EXPECT_EQ(printable(own, Printed::coloured), own);
  EXPECT_EQ(printable("\x1b[8mhidden\x1b[38;5;1Hx\x1b[38;5;m", Printed::coloured),
            "\\x1b[8mhidden\\x1b[38;5;1Hx\\x1b[38;5;m");
  EXPECT_EQ(printable("\x1b[0m", Printed::text), "\\x1b[0m");
}

TEST(ShellQuotes, WhatIsPrintedCanBeTyped) {
  EXPECT_EQ(in_shell_quotes_if_needed("host/node-a/ipv4/10.0.0.0/26"), "host/node-a/ipv4/10.0.0.0/26");
  EXPECT_EQ(in_shell_quotes_if_needed("a\x9b"
                                      "31m\xff"),
            R"($'a\x9b31m\xff')");
  EXPECT_EQ(in_shell_quotes_if_needed("it's `x` $(y) \\ \"z\"\n"), R"($'it\'s `x` $(y) \\ "z"\x0a')");
  EXPECT_EQ(in_shell_quotes_if_needed(""), "$''");
}

using Texts = SharedMap<std::string, int>;

TEST(SharedMap, ACopySharesUntilOneIsChanged) {
  Texts a{{"x", 1}, {"y", 2}};
  Texts b = a;
  EXPECT_EQ(&a.get(), &b.get());
  b["x"] = 3;
  EXPECT_NE(&a.get(), &b.get());
  EXPECT_EQ(a.at("x"), 1);
  EXPECT_EQ(b.at("x"), 3);
  EXPECT_NE(a, b);
  EXPECT_EQ(b.erase("x"), 1U);
  EXPECT_EQ(a.size(), 2U);
  b.clear();
  EXPECT_TRUE(b.empty());
  EXPECT_TRUE(a.contains("y"));
}

TEST(SharedMap, WhoIsAloneChangesInPlace) {
  Texts a{{"x", 1}};
  const auto* before = &a.get();
  a["y"] = 2;
  EXPECT_EQ(&a.get(), before);
  EXPECT_EQ(a.erase("z"), 0U);
  EXPECT_EQ(a.find("z"), a.end());
}

TEST(SharedMap, EqualByContentAndEmptyByDefault) {
  EXPECT_EQ(Texts(), Texts(std::map<std::string, int>{}));
  Texts a;
  a["x"] = 1;
  EXPECT_EQ(a, (Texts{{"x", 1}}));
  a.erase("x");
  EXPECT_EQ(a, Texts());
}

// ---------------------------------------------------------------- two looks

TEST(Sightings, GoOnWhereNothingChangedAndBeginAnewElse) {
  ManualClock clock;
  using Seen = Sightings<std::string, int>;
  const auto now = [&] { return Sighting::at(clock.now()); };
  Seen first;
  const Sighting begun = first.see({}, "a", now(), 1);
  EXPECT_EQ(begun, now());
  clock.advance(60s);
  Seen second;
  EXPECT_EQ(second.see(first, "a", now(), 1), begun);
  EXPECT_EQ(second.see(first, "b", now(), 1), now());
  EXPECT_EQ(second.find("a", 2), nullptr);
  Seen third;
  EXPECT_EQ(third.see(second, "a", now(), 2), now()) << "it is another one by now";
  EXPECT_EQ(third.size(), 1U) << "what it did not see is forgotten";
  EXPECT_EQ(Seen().see(third, "b", now(), 1), now());
}

TEST(Sighting, NeverCountsInItsFirstLook) {
  ManualClock clock;
  const Sighting first = Sighting::at(clock.now());
  EXPECT_FALSE(first.has_stood(60s, first.since_boot + 59s));
  EXPECT_TRUE(first.has_stood(60s, first.since_boot + 60s));
  EXPECT_FALSE(first.has_stood(1ns, first.since_boot));
  EXPECT_FALSE(first.has_stood(0ns, first.since_boot + 1h)) << "0: never";
}

TEST(Share, AListOfLessThanHalfProvesNothing) {
  EXPECT_FALSE(is_shrunken(10, 5));
  EXPECT_TRUE(is_shrunken(10, 4));
  EXPECT_FALSE(is_shrunken(0, 0));
}

// ---------------------------------------------------------------- a bucket of tokens

TEST(TokenBucket, LetsItsSizeThroughAtOnceAndOneAfterEachSpan) {
  TokenBucket bucket(3, 100ms);
  const std::chrono::nanoseconds begun = 1h;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.take(begun), 0ns);
  EXPECT_FALSE(bucket.take(begun));
  EXPECT_FALSE(bucket.take(begun + 99ms));
  EXPECT_EQ(bucket.take(begun + 99ms, 1h), 1ms);
  EXPECT_EQ(bucket.take(begun + 99ms, 1h), 101ms) << "each waits for its own";
  bucket.give_back(1);
  EXPECT_FALSE(bucket.take(begun + 100ms));
  bucket.give_back(1);
  EXPECT_EQ(bucket.take(begun + 100ms), 0ns);
  bucket.give_back(1000);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(bucket.take(begun + 10s), 0ns);
  EXPECT_FALSE(bucket.take(begun + 10s)) << "never more than its size";
}

TEST(Echo, QuotesEscapesAndCuts) {
  EXPECT_EQ(echo(""), R"("")");
  EXPECT_EQ(echo(R"(a"b\c)"), R"("a\"b\\c")");
  EXPECT_EQ(echo("\t\x7f\x80"), R"("\x09\x7f\x80")");
  const std::string fits(kEchoBytesMax, 'a');
  EXPECT_EQ(echo(fits), '"' + fits + '"');
  EXPECT_EQ(echo(fits + 'a'), '"' + fits + "\"...");
  EXPECT_EQ(echo(std::string(kEchoBytesMax - 1, 'a') + '\n'), '"' + std::string(kEchoBytesMax - 1, 'a') + "\"...");
}

}  // namespace

}  // namespace croft
