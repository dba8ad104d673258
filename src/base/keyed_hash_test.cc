#include "base/keyed_hash.h"

#include <string>

#include <gtest/gtest.h>

namespace croft {
namespace {

/// The first vectors of the reference implementation (vectors_sip64), and that of the paper's appendix A: the key and
/// the bytes count up from 0.
TEST(KeyedHash, IsSipHash24) {
  constexpr std::uint64_t k0 = 0x0706050403020100, k1 = 0x0f0e0d0c0b0a0908;
  std::string bytes;
  EXPECT_EQ(keyed_hash(k0, k1, bytes), 0x726fdb47dd0e0e31U);
  while (bytes.size() < 15) bytes += static_cast<char>(bytes.size());
  EXPECT_EQ(keyed_hash(k0, k1, bytes), 0xa129ca6149be45e5U);
}

}  // namespace
}  // namespace croft
