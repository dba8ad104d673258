#include "store/kube/format/message_fields.h"

#include <array>
#include <random>
#include <string>

#include <gtest/gtest.h>
#include <kube/kube.pb.h>

namespace croft::wire::kube {
namespace {

namespace pb = croft::kube;

constexpr std::array kMeta = {FieldBound{11, "metadata.labels", 2}};
constexpr std::array kBounds = {FieldBound{1, "metadata", 0, kMeta}};

TEST(MessageFields, EachIsTold) {
  pb::Unknown message;
  message.mutable_type_meta()->set_kind("Pod");
  message.set_raw("abc");
  const std::string bytes = message.SerializeAsString();
  MessageFields again(bytes);
  const auto first = again.next(), second = again.next();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->number, 1U);
  EXPECT_EQ(second->bytes, "abc");
  EXPECT_FALSE(again.next());
  EXPECT_TRUE(again.is_sound());
}

TEST(MessageFields, NumbersOfAllWidthsArePassedOver) {
  // 1: varint of ten bytes; 2: 64 bits; 3: 32 bits; 4: an empty text.
  const std::string bytes(
      "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x11"
      "12345678"
      "\x1d"
      "1234"
      "\x22\x00",
      27);
  MessageFields fields(bytes);
  for (const std::uint32_t number : {1U, 2U, 3U, 4U}) {
    const auto field = fields.next();
    ASSERT_TRUE(field) << number;
    EXPECT_EQ(field->number, number);
    EXPECT_EQ(field->has_bytes, number == 4);
  }
  EXPECT_FALSE(fields.next());
  EXPECT_TRUE(fields.is_sound());
}

TEST(MessageFields, WhatIsNoProtobufEndsUnsound) {
  for (const std::string& bytes : {std::string("\x0a", 1),
                                   std::string("\x0a\x05"
                                               "abcd",
                                               6),
                                   std::string("\x00\x01", 2), std::string("\x0b\x0c", 2),
                                   std::string("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 12),
                                   std::string("\x11"
                                               "1234567",
                                               8),
                                   std::string("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11)}) {
    MessageFields fields(bytes);
    while (fields.next()) {
    }
    EXPECT_FALSE(fields.is_sound()) << testing::PrintToString(bytes);
  }
}

TEST(MessageFields, NeverReadsPastTheEnd) {
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::string bytes;
    for (std::size_t size = random() % 24; bytes.size() < size;) bytes += static_cast<char>(random() % 256);
    MessageFields fields(bytes);
    std::size_t seen = 0;
    while (const auto field = fields.next()) {
      ++seen;
      const bool is_inside = !field->has_bytes || field->bytes.empty() ||
                             (field->bytes.data() >= bytes.data() &&
                              field->bytes.data() + field->bytes.size() <= bytes.data() + bytes.size());
      ASSERT_TRUE(is_inside);
    }
    ASSERT_LE(seen, bytes.size());
    // What is sound here is a message to protobuf too.
    EXPECT_TRUE(!fields.is_sound() || pb::FieldsV1().ParseFromString(bytes));
  }
}

TEST(MessageFields, WhatIsRepeatedIsCountedWhereverItIs) {
  pb::Namespace one;
  one.mutable_metadata()->set_name("shop");
  for (int i = 0; i < 2; ++i) one.mutable_metadata()->add_labels();
  const std::string bytes = one.SerializeAsString();
  EXPECT_TRUE(check_counts("Namespace", bytes, kBounds));
  const auto twice = check_counts("Namespace", bytes + bytes, kBounds);
  ASSERT_FALSE(twice);
  EXPECT_EQ(twice.error().code, ErrorCode::corrupt);
  EXPECT_NE(twice.error().message.find("metadata.labels of Namespace \"shop\" has 4 entries, and at most 2 are read"),
            std::string::npos)
      << twice.error().message;
  EXPECT_FALSE(check_counts("Namespace", bytes.substr(0, bytes.size() - 1), kBounds));
}

}  // namespace
}  // namespace croft::wire::kube
