#include "base/printable.h"

#include <gtest/gtest.h>

#include "base/quoted.h"

namespace croft {
namespace {

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

}  // namespace
}  // namespace croft
