#pragma once

#include <fstream>
#include <iterator>
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

}  // namespace croft::wire::calico
