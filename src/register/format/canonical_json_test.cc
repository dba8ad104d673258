#include "register/format/canonical_json.h"

#include <limits>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace croft::wire {
namespace {

std::string written(const std::string& text) { return CanonicalWriter(0).text(text).take(); }

std::string refusal(std::string_view bytes) {
  CanonicalReader in(bytes);
  static_cast<void>(in.text());
  const auto finished = in.finish();
  return finished ? "" : finished.error().message;
}

TEST(CanonicalJson, EveryByteSurvivesInAText) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string text = std::string("a") + static_cast<char>(byte) + "b";
    const std::string bytes = written(text);
    CanonicalReader reader(bytes);
    EXPECT_EQ(reader.text(), text);
    EXPECT_TRUE(reader.finish());
  }
}

TEST(CanonicalJson, AnIndependentReaderAgrees) {
  std::string text = "é\"\\/\n\t";
  for (char c = 0; c < 0x20; ++c) text += c;
  EXPECT_EQ(nlohmann::json::parse(written(text), nullptr, false), nlohmann::json(text));
}

TEST(CanonicalJson, OtherSpellingsOfATextAreRefused) {
  for (const char* bytes : {"\"a", "a\"", "\"\\n\"", "\"\\u0041\"", "\"\\u001F\"", "\"\\u00\"", "\"\\u\"", "\"\\\"",
                            "\"\n\"", "", "\"a\" ", " \"a\""}) {
    EXPECT_NE(refusal(bytes), "") << bytes;
  }
}

TEST(CanonicalJson, NumbersAreExact) {
  for (const std::uint64_t n :
       {std::uint64_t{0}, std::uint64_t{9007199254740993}, std::numeric_limits<std::uint64_t>::max()}) {
    const std::string bytes = CanonicalWriter(0).number(n).take();
    CanonicalReader in(bytes);
    EXPECT_EQ(in.unsigned_number(), n);
    EXPECT_TRUE(in.finish());
  }
  for (const std::int64_t n :
       {std::int64_t{0}, std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max()}) {
    const std::string bytes = CanonicalWriter(0).number(n).take();
    CanonicalReader in(bytes);
    EXPECT_EQ(in.signed_number(), n);
    EXPECT_TRUE(in.finish());
  }
}

TEST(CanonicalJson, OtherSpellingsOfANumberAreRefused) {
  for (const char* bytes : {"", "-", "01", "-0", "+1", " 1", "1 ", "1.0", "1e3", "18446744073709551616", "-1", "x"}) {
    CanonicalReader in(bytes);
    static_cast<void>(in.unsigned_number());
    EXPECT_FALSE(in.finish()) << bytes;
  }
  CanonicalReader in("-01");
  static_cast<void>(in.signed_number());
  EXPECT_FALSE(in.finish());
}

TEST(CanonicalJson, TimesAreExact) {
  using std::chrono::nanoseconds;
  const std::pair<std::int64_t, const char*> cases[] = {
      {0, "\"1970-01-01T00:00:00Z\""},
      {1, "\"1970-01-01T00:00:00.000000001Z\""},
      {1500000000, "\"1970-01-01T00:00:01.5Z\""},
      {-1, "\"1969-12-31T23:59:59.999999999Z\""},
      {1768471200000000007, "\"2026-01-15T10:00:00.000000007Z\""},
  };
  for (const auto& [count, text] : cases) {
    const WallTime time{nanoseconds{count}};
    EXPECT_EQ(CanonicalWriter(0).time(time).take(), text);
    CanonicalReader in(text);
    EXPECT_EQ(in.time(), time) << text;
    EXPECT_TRUE(in.finish());
  }
}

TEST(CanonicalJson, TimesHaveOneSpelling) {
  for (const char* other : {"\"2026-01-15T10:00:05.0Z\"", "\"2026-01-15T10:00:05.123456790Z\"", "\"\"", "\"Z\"",
                            "\"2026-01-15T10:00:05+00:00\"", "\"2026-01-15T10:00:05.Z\"", "\"2026-01-15T10:00:05z\"",
                            "\"2026-01-15T10:00:05.10Z\"", "\"2026-01-15T11:00:05+01:00\""}) {
    CanonicalReader in(other);
    static_cast<void>(in.time());
    EXPECT_FALSE(in.finish()) << other;
  }
}

TEST(CanonicalJson, TheFirstErrorIsKeptAndNamesItsPlace) {
  CanonicalReader in("[1,2");
  in.expect("[");
  static_cast<void>(in.boolean());
  in.expect("]");
  EXPECT_EQ(in.unsigned_number(), 0U);
  EXPECT_FALSE(in.another(']'));
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.finish().error().message, "neither true nor false found at byte 1");
  EXPECT_EQ(in.finish().error().code, ErrorCode::corrupt);
}

TEST(CanonicalJson, MembersOfATextMapAscend) {
  const std::map<std::string, std::string> members = {{"", "empty"}, {"a", ""}, {"é", "x"}};
  const std::string bytes = CanonicalWriter(0).texts(members).take();
  CanonicalReader in(bytes);
  EXPECT_EQ(in.texts(), members);
  EXPECT_TRUE(in.finish());
  for (const char* other :
       {R"({"b":"1","a":"2"})", R"({"a":"1","a":"2"})", "{", "{}}", R"({"a"})", R"({"a":1})", R"({"a":"1",})"}) {
    CanonicalReader reader(other);
    static_cast<void>(reader.texts());
    EXPECT_FALSE(reader.finish()) << other;
  }
}

}  // namespace
}  // namespace croft::wire
