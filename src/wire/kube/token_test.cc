#include "wire/kube/token.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "wire/text/base64.h"

namespace croft::wire::kube {
namespace {

std::string token_of(const std::string& claims) {
  std::string text = encode_base64(claims);
  std::ranges::replace(text, '+', '-');
  std::ranges::replace(text, '/', '_');
  while (text.ends_with('=')) text.pop_back();
  return "eyJhbGciOiJSUzI1NiJ9." + text + ".c2lnbmF0dXJl";
}
WallTime at(std::int64_t seconds) { return WallTime(std::chrono::seconds(seconds)); }

TEST(Token, SaysHowLongItLives) {
  EXPECT_EQ(life_of_token(token_of(R"({"iat":1700000000,"exp":1700003600,"aud":["x"]})")),
            (TokenLife{at(1'700'000'000), at(1'700'003'600)}));
  EXPECT_EQ(life_of_token(token_of(R"({"exp":7,"sub":"\u00ff?>~"})")), (TokenLife{at(0), at(7)}));
  EXPECT_EQ(life_of_token(token_of(R"({"exp":9223372036854775807})"))->end, at(9'223'372'036));
}

TEST(Token, WhatSaysNoEndHasNone) {
  for (const char* claims : {R"({"iat":1})", R"({"exp":-1})", R"({"exp":"soon"})", R"({"exp":1.5})", "[1]", "{", ""}) {
    EXPECT_EQ(life_of_token(token_of(claims)), std::nullopt) << claims;
  }
  for (const char* text : {"", ".", "..", "abc", "a.b", "a.!!!.c", "a.e30.c"}) {
    EXPECT_EQ(life_of_token(text), std::nullopt) << text;
  }
  EXPECT_EQ(life_of_token("a." + std::string(100'000, 'A') + ".c"), std::nullopt);
}

}  // namespace
}  // namespace croft::wire::kube
