#include "store/kube/format/token.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "base/text/base64.h"

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

TEST(Token, IsAskedForAndRead) {
  EXPECT_EQ(encode_token_request(std::chrono::seconds(3600)),
            R"({"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}})");
  EXPECT_EQ(decode_token_request(R"({"status":{"token":"a.b.c","expirationTimestamp":"2026-01-15T10:00:00Z"}})"),
            "a.b.c");
  for (const char* text :
       {"", "{}", "[]", R"({"status":{"token":7}})", R"({"status":{"token":"a b"}})", R"({"status":7})"}) {
    const auto token = decode_token_request(text);
    ASSERT_FALSE(token) << text;
    EXPECT_NE(token.error().message.find("TokenRequest"), std::string::npos) << token.error().message;
  }
  // What a kubeconfig could not be read with is not written into one.
  for (const std::size_t bytes : {std::size_t{40'000}, std::size_t{3'000'000}}) {
    const auto token = decode_token_request(R"({"status":{"token":")" + std::string(bytes, 'a') + "\"}}");
    ASSERT_FALSE(token);
    EXPECT_EQ(token.error().code, ErrorCode::corrupt);
  }
}

}  // namespace
}  // namespace croft::wire::kube
