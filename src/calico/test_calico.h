#pragma once

#include <fstream>
#include <initializer_list>
#include <iterator>
#include <span>
#include <string>

#include <gtest/gtest.h>

#include "calico/etcd_records.h"

namespace croft::wire::calico {

// For tests.

/// What Go's encoding/json made of the same value (docs/formats/calico.md). These files never change.
[[nodiscard]] inline std::string golden(const std::string& name) {
  std::ifstream file(std::string(CROFT_TESTDATA) + "/calico/" + name + ".json");
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  EXPECT_TRUE(bytes.ends_with('\n')) << name;
  if (!bytes.empty()) bytes.pop_back();
  return bytes;
}

/// `bytes` with the only occurrence of `from` replaced.
[[nodiscard]] inline std::string with(std::string bytes, const std::string& from, const std::string& to) {
  const auto at = bytes.find(from);
  EXPECT_NE(at, bytes.npos) << from;
  EXPECT_EQ(bytes.find(from, at + 1), bytes.npos) << from;
  return at == bytes.npos ? bytes : bytes.replace(at, from.size(), to);
}

inline core::Key key_of_block(const char* cidr) { return core::block_key(net::Prefix::parse(cidr).value()); }

/// A record as it is read, and as it is written.
template <class T>
T read_as(const core::Key& key, const std::string& bytes) {
  const auto value = decode_value(key, bytes);
  EXPECT_TRUE(value) << value.error().message;
  return value ? std::get<T>(*value) : T();
}
inline std::string written(const core::Value& value, const Birth& birth = {}) { return encode_value(value, birth); }
/// Two readings of the same bytes share no rest; what is in it shows when they are written.
template <class T>
T bare(T record) {
  record.rest = nullptr;
  return record;
}

/// A record that is wrong where `from` was, and what is said of it.
struct Damage {
  const char* from;
  const char* to;
  const char* message;
};
/// Each names the record by the end of its key too.
inline void expect_named(const core::Key& key, const std::string& good, std::span<const Damage> table,
                         const std::string& place) {
  for (const Damage& damage : table) {
    const auto record = decode_value(key, with(good, damage.from, damage.to));
    ASSERT_FALSE(record) << damage.to;
    EXPECT_EQ(record.error().code, ErrorCode::corrupt);
    EXPECT_NE(record.error().message.find(damage.message), std::string::npos) << record.error().message;
    EXPECT_NE(record.error().message.find(place), std::string::npos) << record.error().message;
  }
}
inline void expect_corrupt(const core::Key& key, std::initializer_list<std::string> records,
                           const std::string& named = "") {
  for (const std::string& bytes : records) {
    const auto record = decode_value(key, bytes);
    ASSERT_FALSE(record) << bytes;
    EXPECT_EQ(record.error().code, ErrorCode::corrupt) << bytes;
    EXPECT_NE(record.error().message.find(named), std::string::npos) << record.error().message;
  }
}
/// Each byte exchanged for some others: no crash, no other error than corrupt, and what is read is written so that it
/// reads the same.
inline void expect_read_alike_when_damaged(const core::Key& key, const std::string& bytes) {
  std::size_t read = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const char c : {'"', '0', '}', 'x', '\0'}) {
      std::string changed = bytes;
      changed[i] = c;
      const auto value = decode_value(key, changed);
      if (!value) {
        ASSERT_EQ(value.error().code, ErrorCode::corrupt);
        continue;
      }
      ++read;
      const auto again = decode_value(key, written(*value));
      ASSERT_TRUE(again) << changed;
      ASSERT_EQ(core::without_rest(*again), core::without_rest(*value)) << changed;
      ASSERT_EQ(written(*again), written(*value)) << changed;
    }
  }
  EXPECT_GT(read, 0U);
}

}  // namespace croft::wire::calico
