#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "calico/json.h"
#include "calico/test_calico.h"

namespace croft::wire::calico {
namespace {

/// An empty block that is deleted, a held one of two addresses, a cooling one with everything there is.
const std::string kBlocks[] = {
    R"({"cidr":"10.0.0.0/31","affinity":null,"allocations":[null,null],"unallocated":[1,0],"attributes":null,)"
    R"("sequenceNumber":0,"sequenceNumberForAllocation":null,"deleted":true})",
    R"({"cidr":"fd00::/127","affinity":"host:a","affinity_claim_time":"2026-01-15T10:00:00Z","allocations":[1,0],)"
    R"("unallocated":[],"attributes":[{"handle_id":"h","secondary":{"a":"b \" \\","c":""}},{}],"sequenceNumber":9,)"
    R"("sequenceNumberForAllocation":{"0":1,"1":9},"deleted":false})",
    R"({"cidr":"10.0.0.0/32","affinity":"virtual:load-balancer","allocations":[0],"unallocated":null,"attributes":)"
    R"([{"secondary":{"a":"b"},"alternateOwnerAttrs":{"c":"d"},"releasedAt":"2026-01-15T11:00:00.5+01:00"}],)"
    R"("sequenceNumber":9223372036854775806,"sequenceNumberForAllocation":{},"deleted":false})",
};
const char* const kCidrs[] = {"10.0.0.0/31", "fd00::/127", "10.0.0.0/32"};

/// With white space in front only the general way reads it.
Result<BlockRecord> decoded_generally(const BlockKey& key, const std::string& bytes) {
  EXPECT_FALSE(scan_block(" " + bytes));
  return decode_block(key, " " + bytes);
}

TEST(CalicoBlockScan, TakesWhatCalicoAndCroftWrite) {
  for (const char* name : {"block_new", "block_full_ipv6", "library_block"}) {
    // The old member `hostAffinity` is left to the general way.
    EXPECT_EQ(scan_block(golden(name)).has_value(), std::string(name) != "block_full_ipv6") << name;
  }
  for (const std::string& block : kBlocks) EXPECT_TRUE(scan_block(block)) << block;
}

TEST(CalicoBlockScan, BothWaysReadTheSame) {
  for (std::size_t i = 0; i < std::size(kBlocks); ++i) {
    const BlockKey key{net::Prefix::parse(kCidrs[i]).value()};
    const auto record = decode_block(key, kBlocks[i]);
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(record, decoded_generally(key, kBlocks[i]));
  }
}

/// Whatever the scan takes, however damaged, comes out as the general way reads it, errors included.
TEST(CalicoBlockScan, BothWaysReadTheSameOfDamagedBytes) {
  std::size_t taken = 0;
  std::size_t readable = 0;
  for (std::size_t i = 0; i < std::size(kBlocks); ++i) {
    const BlockKey key{net::Prefix::parse(kCidrs[i]).value()};
    for (std::size_t at = 0; at < kBlocks[i].size(); ++at) {
      for (const char* piece : {"", "0", "-", "\"", "\\", "\\n", "\\u00", "}", "]", ",", "\x80", "null", "1e0", " "}) {
        for (const std::size_t removed : {0U, 1U}) {
          std::string bytes = kBlocks[i];
          bytes.replace(at, removed, piece);
          if (!scan_block(bytes)) continue;
          ++taken;
          const auto record = decode_block(key, bytes);
          readable += record.has_value() ? 1U : 0U;
          ASSERT_EQ(record, decoded_generally(key, bytes)) << bytes;
        }
      }
    }
  }
  EXPECT_GT(taken, 1000U);
  EXPECT_GT(readable, 300U);
}

TEST(CalicoBlockScan, LimitsAreThoseOfTheGeneralWay) {
  const auto with_text = [](std::size_t size) {
    std::string bytes = kBlocks[1];
    const auto at = bytes.find("\"b ");
    return bytes.insert(at + 1, size - 5, 'x');  // `b " \` are 5 already
  };
  const BlockKey key{net::Prefix::parse(kCidrs[1]).value()};
  EXPECT_TRUE(decode_block(key, with_text(kTextBytesMax)));
  EXPECT_FALSE(scan_block(with_text(kTextBytesMax + 1)));
  EXPECT_FALSE(decode_block(key, with_text(kTextBytesMax + 1)));
  EXPECT_FALSE(scan_block(kBlocks[0] + std::string(kRecordBytesMax, ' ')));
  EXPECT_FALSE(scan_block(""));
}

}  // namespace
}  // namespace croft::wire::calico
