#pragma once

#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

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

/// A record that is wrong where `from` was, and what is said of it.
struct Damage {
  const char* from;
  const char* to;
  const char* message;
};

}  // namespace croft::wire::calico
