#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/json/reader.h"
#include "base/text/go_text.h"

namespace croft::wire {
namespace {

std::string refusal(std::string_view text) {
  const auto document = parse_json(text);
  return document ? "accepted" : document.error().message;
}

std::string nested(std::size_t depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(Json, KeepsValuesKeysAndOrder) {
  const auto document = parse_json(R"( {"a":1,"b":[true,null,"x\u00e4\n"],"a":{"c":-2.5e3}} )").value();
  const JsonRef root = document.root();
  ASSERT_EQ(root.kind(), JsonKind::object);
  const auto a = root.first_child();
  EXPECT_EQ(a->key(), "a");
  EXPECT_EQ(a->integer(), 1);
  const auto b = a->next_sibling();
  EXPECT_EQ(b->key(), "b");
  const auto yes = b->first_child();
  EXPECT_TRUE(yes->boolean());
  const auto null = yes->next_sibling();
  EXPECT_TRUE(null->is_null());
  const auto text = null->next_sibling();
  EXPECT_EQ(text->text(), "x\xC3\xA4\n");
  EXPECT_FALSE(text->next_sibling());
  const auto again = b->next_sibling();
  EXPECT_EQ(again->key(), "a");
  EXPECT_EQ(again->first_child()->kind(), JsonKind::number);
  EXPECT_EQ(again->first_child()->text(), "-2.5e3");
  EXPECT_FALSE(again->next_sibling());
  EXPECT_FALSE(again->first_child()->next_sibling());
}

TEST(Json, AnEmptyDocumentIsNull) {
  EXPECT_TRUE(JsonDocument().root().is_null());
  EXPECT_FALSE(JsonDocument().root().first_child());
}

TEST(Json, IntegersAreExact) {
  const auto integer = [](std::string_view text) { return parse_json(text).value().root().integer(); };
  EXPECT_EQ(integer("9007199254740993"), 9007199254740993);  // 2^53 + 1
  EXPECT_EQ(integer("9223372036854775807"), INT64_MAX);
  EXPECT_EQ(integer("-9223372036854775808"), INT64_MIN);
  EXPECT_EQ(integer("-0"), 0);
  for (const char* other :
       {"1.0", "1e2", "18446744073709551616", "9223372036854775808", "-9223372036854775809", "\"1\""}) {
    EXPECT_EQ(integer(other), std::nullopt) << other;
  }
  EXPECT_EQ(parse_json("18446744073709551616").value().root().kind(), JsonKind::integer);
  EXPECT_EQ(parse_json("18446744073709551616").value().root().text(), "18446744073709551616");
}

TEST(Json, DepthIsBoundedAndCostsNoStack) {
  EXPECT_TRUE(parse_json(nested(9'999)));
  EXPECT_TRUE(parse_json(nested(10'000)));
  EXPECT_EQ(refusal(nested(10'001)), "invalid JSON: more than 10000 arrays and objects inside each other");
  EXPECT_EQ(refusal(nested(200'000)), "invalid JSON: more than 10000 arrays and objects inside each other");
  EXPECT_NE(refusal(std::string(200'000, '[')), "accepted");
  std::string objects;
  for (int i = 0; i < 9'999; ++i) objects += "{\"a\":";
  EXPECT_TRUE(parse_json(objects + "1" + std::string(9'999, '}')));
  // Without the cap the reader itself must not recurse either, nor the walk, nor the end of the document.
  const auto deep = parse_json(nested(200'000), {kStdinBytesMax, 1'000'000}).value();
  std::size_t depth = 0;
  for (auto at = std::optional(deep.root()); at; at = at->first_child()) ++depth;
  EXPECT_EQ(depth, 200'000);
}

TEST(Json, SizeIsBounded) {
  const std::string most = "\"" + std::string(kStdinBytesMax - 2, 'x') + "\"";
  EXPECT_TRUE(parse_json(most));
  EXPECT_EQ(refusal(most + " "), "invalid JSON: larger than 2097152 bytes");
}

TEST(Json, RefusesWhatGoRefuses) {
  for (const char* text : {"",
                           " \n",
                           "{",
                           "[",
                           "[1,]",
                           "{\"a\":1,}",
                           "{\"a\"}",
                           "{a:1}",
                           "'a'",
                           "tru",
                           "nul",
                           "01",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "-",
                           "0x10",
                           "NaN",
                           "Infinity",
                           "\"\t\"",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"",
                           "{}x",
                           "{} {}",
                           "[]]",
                           "// c\n{}",
                           "/* c */{}",
                           "{\"a\":1 /* c */}",
                           "\xEF\xBB\xBF{}",
                           "\xFE\xFF",
                           "{\"a\" 1}",
                           "{1:2}",
                           "{null:2}",
                           "\"a\nb\""}) {
    EXPECT_EQ(refusal(text).rfind("invalid JSON: ", 0), 0) << text;
  }
  using namespace std::string_view_literals;
  EXPECT_EQ(refusal("{}\0"sv), "invalid JSON: NUL at byte 3");
  EXPECT_EQ(refusal("{}\0garbage"sv), "invalid JSON: NUL at byte 3");
  EXPECT_EQ(refusal("\"a\0b\""sv), "invalid JSON: NUL at byte 3");
  EXPECT_EQ(refusal("\xEF\xBB\xBF{}"), "invalid JSON: begins with a byte order mark");
}

TEST(Json, IsStricterThanGoInTwoPoints) {
  for (const char* text :
       {"\"\xFF\"", "\"\xC0\x80\"", "\"\\ud800\"", "\"\\udc00x\"", "\"\xED\xA0\x80\"", "1e400", "-1e400"}) {
    EXPECT_NE(refusal(text), "accepted") << text;
  }
}

TEST(Json, MessagesSayWhatAndWhereInPrintableAscii) {
  EXPECT_EQ(
      refusal("{\"a\":}"),
      "invalid JSON: syntax error while parsing value - unexpected '}'; expected '[', '{', or a literal, at byte 6 "
      "behind \"{\\\"a\\\":}\"");
  EXPECT_EQ(refusal("1e400"), "invalid JSON: number overflow parsing '1e400', at byte 5 behind \"1e400\"");
  for (const std::string& text :
       {"{\"a\":\"" + std::string(1000, '\x01'), std::string("{\"\xC3\xA4\" \xC3"), "[" + std::string(500'000, 'y')}) {
    const std::string message = refusal(text);
    EXPECT_LT(message.size(), 300) << message;
    for (const char c : message) EXPECT_TRUE(c >= ' ' && c <= '~') << message;
  }
}

TEST(Json, TruncatedAtEveryByteIsRefused) {
  const std::string text = R"({"name":"a","ipam":{"x":[1,2.5,true,null,"\u00e4"]}})";
  ASSERT_TRUE(parse_json(text));
  for (std::size_t size = 0; size < text.size(); ++size) EXPECT_NE(refusal(text.substr(0, size)), "accepted") << size;
}

/// One that took its time for each would run into the time limit of the whole program.
TEST(Json, AMillionElementsAreRead) {
  std::string text = "[1";
  while (text.size() + 3 < kStdinBytesMax) text += ",1";
  text += "]";
  EXPECT_TRUE(parse_json(text));
}

// ---- Go's rules of text

TEST(GoText, MemberNamesFoldAsInGo) {
  EXPECT_TRUE(same_member_name("cniVersion", "cniVersion"));
  EXPECT_TRUE(same_member_name("CNIVERSION", "cniVersion"));
  EXPECT_TRUE(same_member_name("CNI.DEV/Valid-Attachments", "cni.dev/valid-attachments"));
  EXPECT_TRUE(same_member_name("ip\xC5\xBF", "ips"));                  // U+017F
  EXPECT_TRUE(same_member_name("bloc\xE2\x84\xAASize", "blockSize"));  // U+212A
  for (const char* other : {"ip", "ipss", "", "\xD1\x96ps", "ip\xC5", "ip_", "ips "}) {
    EXPECT_FALSE(same_member_name(other, "ips")) << other;
  }
}

TEST(GoText, SpaceIsUnicodeSpace) {
  for (const char32_t space : {U'\t', U'\n', U'\v', U'\f', U'\r', U' ', U'\u0085', U'\u00a0', U'\u1680', U'\u2000',
                               U'\u200a', U'\u2028', U'\u2029', U'\u202f', U'\u205f', U'\u3000'}) {
    EXPECT_TRUE(is_space(space)) << static_cast<unsigned>(space);
  }
  for (const char32_t other : {U'a', U'\u200b', U'\ufeff', U'\u0008', U'\u00ad', U'\u180e'}) {
    EXPECT_FALSE(is_space(other)) << static_cast<unsigned>(other);
  }
}

TEST(GoText, QuoteIsStrconvQuote) {
  EXPECT_EQ(go_quote("a\"\\\n\t\x01\x7f"), R"("a\"\\\n\t\x01\x7f")");
  EXPECT_EQ(go_quote("\xC3\xA4\xC2\xA0\xE2\x80\xA8\xFF"), "\"\xC3\xA4\\u00a0\\u2028\\xff\"");
  EXPECT_EQ(go_quote("\xF4\x8F\xBF\xBD\xF0\x9F\x98\x80"), "\"\\U0010fffd\xF0\x9F\x98\x80\"");
}

TEST(GoText, PlainTextIsUtf8WithoutControls) {
  EXPECT_TRUE(is_plain_text(""));
  EXPECT_TRUE(is_plain_text("eth0 \xC3\xA4"));
  for (const char* text : {"a\n", "\x7f", "\xC2\x85", "\xC3", "\x80", "\xF8\x88\x80\x80\x80", "\xE2\x82", "\xC1\xBF"}) {
    EXPECT_FALSE(is_plain_text(text)) << text;
  }
}

// ---- decoding into structs

struct Inner {
  std::int64_t count = 7;
  bool on = true;
};
struct Outer {
  std::string name = "default";
  Inner inner;
  std::vector<std::string> list = {"default"};
};

constexpr std::array<JsonMember<Inner>, 2> kInner = {
    {{"count", [](const JsonAt& at, Inner& out) { return read_integer(at, 0, 10, out.count); }},
     {"on", [](const JsonAt& at, Inner& out) { return read_boolean(at, out.on); }}}};
constexpr std::array<JsonMember<Outer>, 3> kOuter = {
    {{"name", [](const JsonAt& at, Outer& out) { return read_text(at, 20, out.name); }},
     {"inner", [](const JsonAt& at, Outer& out) { return read_object<Inner>(at, kInner, out.inner); }},
     {"list", [](const JsonAt& at, Outer& out) {
        return read_list<std::string>(
            at, 3, [](const JsonAt& element, std::string& text) { return read_text(element, 5, text); }, out.list);
      }}}};

std::string decode(std::string_view text, Outer& out, OnFault on_fault = OnFault::stop) {
  const auto document = parse_json(text).value();
  const auto fault = read_object<Outer>(JsonAt{document.root(), nullptr, {}, {}}, kOuter, out, {.on_fault = on_fault});
  return fault ? fault->to_string() : "";
}

TEST(JsonDecode, LaterOccurrencesWinAndObjectsMerge) {
  Outer out;
  EXPECT_EQ(decode(R"({"name":"a","inner":{"count":1},"NAME":"b","Inner":{"ON":false},"x":{"name":5}})", out), "");
  EXPECT_EQ(out.name, "b");
  EXPECT_EQ(out.inner.count, 1);
  EXPECT_FALSE(out.inner.on);
}

TEST(JsonDecode, NullLeavesTheDefaultButEmptiesAList) {
  Outer out;
  EXPECT_EQ(decode(R"({"name":null,"inner":null,"list":null})", out), "");
  EXPECT_EQ(out.name, "default");
  EXPECT_EQ(out.inner.count, 7);
  EXPECT_TRUE(out.list.empty());
  EXPECT_EQ(decode(R"({"list":["a","b"],"list":["c"]})", out), "");
  EXPECT_EQ(out.list, std::vector<std::string>{"c"});
  EXPECT_EQ(decode("null", out), "");
}

TEST(JsonDecode, FaultsNameTheWayAndTheValue) {
  Outer out;
  EXPECT_EQ(decode(R"({"Name":5})", out), "name: an integer (5) where a string is wanted");
  EXPECT_EQ(decode(R"({"inner":{"count":"x\n"}})", out),
            "inner.count: a string (\"x\\x0a\") where an integer is wanted");
  EXPECT_EQ(decode(R"({"inner":{"count":11}})", out), "inner.count: 11 is out of range: 0 to 10");
  EXPECT_EQ(decode(R"({"inner":{"count":1.0}})", out), "inner.count: a number (1.0) where an integer is wanted");
  EXPECT_EQ(decode(R"({"inner":{"count":99999999999999999999}})", out),
            "inner.count: 99999999999999999999 is out of range: 0 to 10");
  EXPECT_EQ(decode(R"({"list":["a",[]]})", out), "list[1]: an array where a string is wanted");
  EXPECT_EQ(decode(R"({"list":["a","abcdef"]})", out), "list[1]: \"abcdef\" has 6 bytes, at most 5 are allowed");
  EXPECT_EQ(decode(R"({"list":["a","b","c","d"]})", out), "list: more than 3 elements");
  EXPECT_EQ(decode("[]", out), "an array where an object is wanted");
}

TEST(JsonDecode, LenientDecodingSkipsOnlyWhatIsBroken) {
  Outer out;
  EXPECT_EQ(decode(R"({"name":5,"inner":{"count":2},"list":"x"})", out, OnFault::skip), "");
  EXPECT_EQ(out.name, "default");
  EXPECT_EQ(out.inner.count, 2);
  EXPECT_EQ(decode("[]", out, OnFault::skip), "");
}

TEST(JsonDocument, ValuesAreBounded) {
  const JsonLimits four{.values_max = 4};
  EXPECT_TRUE(parse_json("[1,2,3]", four));
  for (const char* text :
       {"[1,2,3,4]", "[[],[],[],[]]", R"({"a":1,"b":true,"c":null,"d":"x"})", "[true,true,true,true]"}) {
    const auto parsed = parse_json(text, four);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::storage_full);
  }
}

}  // namespace
}  // namespace croft::wire
