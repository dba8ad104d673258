#include <rapidcheck.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/text/base64.h"
#include "base/text/proto.h"

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

namespace croft::proto {
namespace {

struct Case {
  std::string_view hex;
  std::string read;  ///< empty: refused
};

std::string bytes_of(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

TEST(Proto, TakesAFieldOfEachTypeAndNothingElse) {
  const std::string tenth = "08ffffffffffffffffff01";  // 2^64 - 1
  const Case cases[] = {
      {"089601", "1=150"},
      {tenth, "1=18446744073709551615"},
      {"f8ffffff0f07", "536870911=7"},
      {"12036162630101", "2='abc'"},
      {"1200", "2=''"},
      {"1101020304050607"
       "08",
       "0"},  // eight and four bytes are passed over
      {"1501020304", "0"},
      {"", ""},
      {"08", ""},                            // no value
      {"0880", ""},                          // it does not end
      {"08ffffffffffffffffffff01", ""},      // eleven bytes
      {"0001", ""},                          // field 0
      {"f8ffffffff0107", ""},                // a number of more than 29 bits
      {"1204616263", ""},                    // longer than what is there
      {"12ffffffffffffffffff01616263", ""},  // 2^64 - 1 of them
      {"11010203", ""},
      {"150102", ""},
      {"0b0000000000", ""},  // groups, and types that are none
      {"0c0000000000", ""},
      {"0e0000000000", ""},
      {"0f0000000000", ""},
  };
  for (const Case& one : cases) {
    const std::string bytes = bytes_of(one.hex);
    std::string_view unread = bytes;
    Field field;
    std::string read;
    if (take_field(unread, field)) {
      read = std::to_string(field.number);
      if (field.is_varint) read += "=" + std::to_string(field.value);
      if (!field.is_varint && field.number != 0) read += "='" + std::string(field.bytes) + "'";
      EXPECT_LT(unread.size(), bytes.size()) << one.hex;
    }
    EXPECT_EQ(read, one.read) << one.hex;
  }
}

struct Rules {
  static constexpr std::size_t kTextBytesMax = 8;
  static Error wrong(std::string_view member, std::string_view why) {
    return {ErrorCode::invalid_argument, std::string(member) + " " + std::string(why), {}};
  }
  static std::string fault_of(std::string_view text, std::size_t most) {
    return text.size() > most ? "is too long" : "";
  }
};

struct Pair {
  std::string text;
  std::uint32_t number = 0;
};
void members(auto& io, Message<Pair> auto& v) {
  io.field(1, "text", v.text);
  io.number(2, v.number);
}

TEST(Proto, TheLastOneCountsAndOtherTypesArePassedOver) {
  const auto read =
      Io<Rules, true>::read<Pair>(bytes_of("0a0161"
                                           "0a0162"
                                           "0807"
                                           "1005"
                                           "12020a00"
                                           "1006"
                                           "1a00"));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->text, "b");
  EXPECT_EQ(read->number, 6U);
  const std::string written = Io<Rules, false>::written(*read);
  EXPECT_EQ(written, bytes_of("0a01621006"));
  const auto refused = Io<Rules, true>::read<Pair>(bytes_of("0a09616161616161616161"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "text is too long");
}

TEST(Proto, FieldsOfAMessageAreBounded) {
  std::string bytes;
  for (std::size_t i = 0; i < kFieldsMax; ++i) bytes += bytes_of("1005");
  EXPECT_TRUE((Io<Rules, true>::read<Pair>(bytes)));
  const auto refused = Io<Rules, true>::read<Pair>(bytes + bytes_of("1005"));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message, "the whole has too many fields");
}

}  // namespace
}  // namespace croft::proto
