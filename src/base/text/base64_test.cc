#include "base/text/base64.h"

#include <rapidcheck.h>

#include <gtest/gtest.h>

namespace croft::wire {
namespace {

TEST(Base64, KnownTexts) {
  const std::pair<std::string, std::string> known[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foob", "Zm9vYg=="},
      {"\xff\xfe", "//4="},
      {"\x08\x02\x01", "CAIB"},
  };
  for (const auto& [bytes, text] : known) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes);
  }
}

TEST(Base64, OtherSpellingsAreRefused) {
  for (const char* text : {"Zg", "Zg=", "Zh==", "Zm9=", "Z===", "====", "=", "Zg==Zg==", "Zm9v\n", "Zm 9", "Zm9-",
                           "Zm9_", "Zm9v====", "Zm\x80v"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
}

TEST(Base64, EveryByteStringSurvives) {
  EXPECT_TRUE(rc::check("decode(encode(bytes)) == bytes",
                        [](const std::string& bytes) { RC_ASSERT(decode_base64(encode_base64(bytes)) == bytes); }));
}

}  // namespace
}  // namespace croft::wire
