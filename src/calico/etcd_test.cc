#include "calico/etcd.h"

#include <rapidcheck.h>

#include <iterator>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/net/test_values.h"
#include "calico/json.h"
#include "calico/test_calico.h"

namespace croft::wire::calico {
namespace {

using namespace std::chrono_literals;
using core::AffinityOwner;
using core::AffinityState;

const BlockKey kBlockKey{prefix("10.0.0.64/30")};
const AffinityKey kAffinityKey{{AffinityOwner::Type::host, "node-a"}, prefix("10.0.0.64/30")};
const HandleKey kHandleKey{"k8s-pod-network.7f3c0e"};
const Instant kNow{WallTime(1768471200900ms), 5s, {}};

BlockRecord decoded(const BlockKey& key, const std::string& bytes) {
  auto record = decode_block(key, bytes);
  EXPECT_TRUE(record) << record.error().message;
  return record ? *std::move(record) : BlockRecord();
}

// ---------------------------------------------------------------- golden files

TEST(CalicoBlock, ANewBlockIsWrittenAsCalicoDoes) {
  BlockRecord record;
  record.block = core::new_block(kBlockKey.cidr, AffinityOwner{AffinityOwner::Type::host, "node-a"}, kNow, {});
  record.block.sequence_number = core::SequenceNumber(1768471200000000000);
  record.block.affinity_claim_time = kNow.wall;
  EXPECT_EQ(encode(record), golden("block_new"));
  record.block.affinity_claim_time = WallTime(1768471200s);  // the fraction is cut, not rounded up
  EXPECT_EQ(decoded(kBlockKey, golden("block_new")), record);
}

/// 0 free, 1 and 2 held, 3 cooling.
BlockRecord used_block() {
  BlockRecord record;
  core::Block& block = record.block;
  block.cidr = kBlockKey.cidr;
  block.affinity = AffinityOwner{AffinityOwner::Type::host, "node-a"};
  block.affinity_claim_time = WallTime(1768471200s);
  block.allocations = {std::nullopt, 0, 1, 2};
  block.unallocated = core::space::OrderedFreeList::from_order(4, {0}).value();
  core::Attribute pod;
  pod.handle_id = "k8s-pod-network.7f3c0e";
  pod.secondary = {{"namespace", "shop"},
                   {"node", "node-a"},
                   {"note", std::string("quote \" backslash \\ tab \t newline \n nul ") + '\0' +
                                " bell \a bs \b ff \f cr \r esc \x1b del \x7f html <a href=\"x\">&</a> line \u2028 par "
                                "\u2029 umlaut ü 日本 😀 / end"}};
  pod.alternate_owner = {{"node", "node-b"}};
  core::Attribute tunnel;
  tunnel.handle_id = "vxlan-tunnel-addr-node-a";
  tunnel.secondary = {{"node", "node-a"}, {"type", "vxlanTunnelAddress"}};
  core::Attribute cooling;
  cooling.cooling.emplace().released_at.wall = WallTime(1768471205s);
  block.attributes = {pod, tunnel, cooling};
  block.sequence_number = core::SequenceNumber(1768471200000000007);
  block.sequence_number_for_allocation = {{1, core::SequenceNumber(1768471200000000003)},
                                          {2, core::SequenceNumber(1768471200000000000)},
                                          {3, core::SequenceNumber(1768471200000000006)}};
  record.rest.attributes_null = false;
  return record;
}

TEST(CalicoBlock, EveryFieldBothWays) {
  EXPECT_EQ(encode(used_block()), golden("block_used"));
  EXPECT_EQ(decoded(kBlockKey, golden("block_used")), used_block());
}

TEST(CalicoBlock, WhatCroftAloneKnowsOfACoolingAddressHasNoPlace) {
  BlockRecord record = used_block();
  core::Cooling& cooling = *record.block.attributes[2].cooling;
  cooling.released_at.wall += 999ms;
  cooling.released_at.since_boot = 7s;
  cooling.released_at.boot.bytes[0] = 1;
  cooling.previous_handle = "h";
  cooling.previous_secondary = {{"node", "node-a"}};
  EXPECT_EQ(encode(record), golden("block_used"));
}

TEST(CalicoBlock, OrdinalsAreOrderedAsTextAndNumbersHave64Bits) {
  const BlockKey key{prefix("fd00:10:244::1:40/124")};
  // With every member that there is; Calico deletes no block that has holders.
  EXPECT_THAT(decode_block(key, golden("block_full_ipv6")).error().message,
              testing::HasSubstr("it is deleted, and 16 of its"));
  const std::string bytes = with(golden("block_full_ipv6"), "\"deleted\":true", "\"deleted\":false");
  const BlockRecord record = decoded(key, bytes);
  EXPECT_EQ(record.block.sequence_number.value, 9223372036854775806U);
  EXPECT_EQ(core::sequence_of(record.block, net::Ordinal(15)).value, 9223372036854775015U);
  EXPECT_EQ(record.block.affinity->type, AffinityOwner::Type::virtual_owner);
  EXPECT_EQ(record.block.attributes.at(0).handle_id, "");
  EXPECT_EQ(record.rest.host_affinity, "node-old");
  EXPECT_EQ(encode(record), bytes);
}

TEST(CalicoBlock, AbsentListsStayAbsentUntilTheyAreUsed) {
  const BlockKey key{prefix("10.0.0.64/31")};
  BlockRecord record = decoded(key, golden("block_orphan_nulls"));
  EXPECT_EQ(encode(record), golden("block_orphan_nulls"));
  core::Attribute attribute;
  attribute.handle_id = "h";
  auto taken = core::take_next(record.block, attribute, [](const net::Address&) { return false; });
  ASSERT_TRUE(taken);
  record.block = std::move(taken->block);
  EXPECT_EQ(encode(record),
            R"({"cidr":"10.0.0.64/31","affinity":null,"allocations":[null,0],"unallocated":[0],)"
            R"("attributes":[{"handle_id":"h"}],"sequenceNumber":0,"sequenceNumberForAllocation":{"1":0},)"
            R"("deleted":false})");
}

/// Written into etcd by Calico's own library, v3.28.
TEST(CalicoBlock, WhatTheLibraryWroteIsReadAndWrittenTheSame) {
  const BlockRecord record = decoded(BlockKey{prefix("10.0.218.64/26")}, golden("library_block"));
  EXPECT_EQ(record.block.unallocated.order().size(), 58U);
  EXPECT_EQ(encode(record), golden("library_block"));
}

TEST(CalicoAffinity, GoldenFiles) {
  struct Row {
    const char* name;
    AffinityState state;
    bool state_empty, deleted;
  };
  for (const Row& row : {Row{"affinity_confirmed", AffinityState::confirmed, false, false},
                         Row{"affinity_pending_deletion", AffinityState::pending_deletion, false, true},
                         Row{"affinity_old", AffinityState::confirmed, true, false}}) {
    const AffinityRecord record{{kAffinityKey.owner, kAffinityKey.cidr, row.state, row.deleted}, row.state_empty, {}};
    EXPECT_EQ(encode(record), golden(row.name));
    EXPECT_EQ(decode_affinity(kAffinityKey, golden(row.name)), record);
  }
  const auto old = decode_affinity(kAffinityKey, "");
  EXPECT_EQ(old, decode_affinity(kAffinityKey, "{}"));
  EXPECT_EQ(encode(old.value()), golden("affinity_old"));
  AffinityRecord changed = *old;
  changed.affinity.state = AffinityState::pending;
  EXPECT_EQ(encode(changed), R"({"state":"pending","deleted":false})");
}

TEST(CalicoHandle, GoldenFiles) {
  const HandleRecord record{
      {kHandleKey.id, {{"10.0.0.128/26", 1}, {"10.0.0.64/26", 2}, {"fd00:10:244::1:40/122", 1}}, false}, false, {}};
  EXPECT_EQ(encode(record), golden("handle"));
  EXPECT_EQ(decode_handle(kHandleKey, golden("handle")), record);
  const HandleRecord empty{{kHandleKey.id, {}, false}, true, {}};
  EXPECT_EQ(encode(empty), golden("handle_null"));
  EXPECT_EQ(decode_handle(kHandleKey, golden("handle_null")), empty);
}

TEST(CalicoIpamConfig, GoldenFiles) {
  const IpamConfigRecord usual{{false, true, 0, "", 0}, false, {}};
  const IpamConfigRecord full{{true, true, 20, "Enabled", 1200}, false, {}};
  const IpamConfigRecord empty{{false, false, 0, "", 0}, false, {}};
  for (const auto& [name, record] :
       {std::pair{"config_default", usual}, {"config_full", full}, {"config_empty", empty}}) {
    EXPECT_EQ(encode(record), golden(name));
    EXPECT_EQ(decode_ipam_config(golden(name)), record);
  }
  const std::string odd = R"({"kubeVirtVMAddressPersistence":""})";
  EXPECT_EQ(encode(decode_ipam_config(odd).value()), odd);
}

// ---------------------------------------------------------------- unknown members

constexpr const char* kUnknown =
    R"("new":{"a":[1,-2.50e+3,18446744073709551616,null,true,"\u003cü\u2028"],"b":{}},"n":0.10)";

TEST(Calico, UnknownMembersSurvive) {
  const std::string members = std::string(",") + kUnknown + "}";
  const std::string affinity = with(golden("affinity_confirmed"), "}", members);
  EXPECT_EQ(encode(decode_affinity(kAffinityKey, affinity).value()), affinity);
  const std::string handle = with(golden("handle_null"), "}", members);
  EXPECT_EQ(encode(decode_handle(kHandleKey, handle).value()), handle);
  const std::string config = with(golden("config_default"), "}", members);
  EXPECT_EQ(encode(decode_ipam_config(config).value()), config);
  const std::string block = with(golden("block_new"), "\"deleted\":false}", "\"deleted\":false" + members);
  EXPECT_EQ(encode(decoded(kBlockKey, block)), block);
}

std::string block_with_unknown_in_attributes() {
  std::string bytes = golden("block_used");
  bytes = with(bytes, R"({"node":"node-b"}})", R"({"node":"node-b"},"first":[1]})");
  bytes = with(bytes, R"("vxlanTunnelAddress"}})", R"("vxlanTunnelAddress"},"second":2})");
  return with(bytes, R"("releasedAt":"2026-01-15T10:00:05Z"})", R"("releasedAt":"2026-01-15T10:00:05Z","third":"x"})");
}

TEST(CalicoBlock, UnknownMembersOfAttributesStayWithTheirAllocation) {
  const std::string bytes = block_with_unknown_in_attributes();
  BlockRecord record = decoded(kBlockKey, bytes);
  EXPECT_EQ(encode(record), bytes);
  // Releasing the first holder renumbers the others.
  const net::Ordinal released[] = {net::Ordinal(1)};
  record.block = core::release(record.block, released, 0s, kNow);
  const std::string after = encode(record);
  EXPECT_EQ(after.find("first"), after.npos) << after;
  EXPECT_NE(after.find(R"("type":"vxlanTunnelAddress"},"second":2})"), after.npos) << after;
  EXPECT_NE(after.find(R"(05Z","third":"x"})"), after.npos) << after;
}

TEST(CalicoBlock, UnknownMembersDoNotGoToTheNextHolder) {
  BlockRecord record = decoded(kBlockKey, block_with_unknown_in_attributes());
  const net::Ordinal released[] = {net::Ordinal(1)};
  const core::Attribute same = record.block.attributes[0];
  record.block = core::stamped(core::release(record.block, released, 0s, kNow));
  record.block = core::take_address(record.block, net::Address::parse("10.0.0.65").value(), same).value().block;
  EXPECT_EQ(encode(record).find("first"), std::string::npos);
}

TEST(CalicoBlock, ABlockEmptiedHasAnEmptyListAsCalicoLeavesIt) {
  BlockRecord record = used_block();
  const net::Ordinal released[] = {net::Ordinal(1), net::Ordinal(2)};
  record.block = core::release(record.block, released, 0s, kNow);
  record.block = core::with_cooled_freed(record.block, 1s, {WallTime(1868471205s), 3600s, {}});
  EXPECT_NE(encode(record).find(R"("attributes":[],)"), std::string::npos) << encode(record);
}

// ---------------------------------------------------------------- what older versions wrote

TEST(CalicoBlock, OlderAndOtherSpellingsAreReadAndWrittenAnew) {
  // White space, another order, members of older versions that are null, a time with an offset, nothing of sequences.
  const std::string bytes =
      R"( {"attributes" : [{"secondary":null,"handle_id":null}, {"handle_id":"h","secondary":{"a":null}}],
    "unallocated":[], "allocations":[1,0], "affinity":"host:a", "cidr":"FD00:0::/127", "deleted":null,
    "affinity_claim_time":"2026-01-15T11:00:00.7+01:00", "hostAffinity":null} )";
  EXPECT_EQ(encode(decoded(BlockKey{prefix("fd00::/127")}, bytes)),
            R"({"cidr":"fd00::/127","affinity":"host:a","affinity_claim_time":"2026-01-15T10:00:00Z",)"
            R"("allocations":[1,0],"unallocated":[],"attributes":[{},{"handle_id":"h","secondary":{"a":""}}],)"
            R"("sequenceNumber":0,"sequenceNumberForAllocation":null,"deleted":false})");
}

// ---------------------------------------------------------------- errors

TEST(CalicoBlock, DamageIsNamed) {
  const Damage table[] = {
      {R"("cidr":"10.0.0.64/30",)", "", "its cidr is"},
      {R"(10.0.0.64/30)", "10.0.0.68/30", "its cidr is 10.0.0.68/30"},
      {R"(10.0.0.64/30)", "10.0.0.61/30", "its cidr is 10.0.0.60/30"},
      {R"("10.0.0.64/30")", "7", "cidr: an integer (7) where a string is wanted"},
      {R"("host:node-a")", "\"node-a\"", "affinity: "},
      {R"("host:node-a")", "\"host:\"", "affinity: "},
      {R"("2026-01-15T10:00:00Z")", "\"yesterday\"", "affinity_claim_time: "},
      {R"("2026-01-15T10:00:00Z")", "0", "affinity_claim_time: "},
      {"[null,0,1,2]", "[null,0,1]", "3 allocations for 4 addresses"},
      {"[null,0,1,2]", "[null,0,1,2,2]", "5 allocations for 4 addresses"},
      {"[null,0,1,2]", "null", "0 allocations for 4 addresses"},
      {"[null,0,1,2]", "[null,0,1,3]", "ordinal 3 points at attribute 3 of 3"},
      {"[null,0,1,2]", "[null,0,1,1]", "attribute 2 belongs to no ordinal"},
      {"[null,0,1,2]", "[null,0,1,null]", "ordinal 3 is neither allocated nor unallocated"},
      {"[null,0,1,2]", "[0,0,1,2]", "ordinal 0 is both allocated and unallocated"},
      {"[null,0,1,2]", "[null,0,1,-2]", "allocations[3]: "},
      {"[null,0,1,2]", "[null,0,1,2.0]", "allocations[3]: "},
      {"[null,0,1,2]", "[null,0,1,\"2\"]", "allocations[3]: "},
      {"[0]", "[0,0]", "unallocated: "},
      {"[0]", "[4]", "unallocated: "},
      {"[0]", "[-1]", "unallocated[0]: "},
      {"[0]", "[1]", "ordinal 0 is neither"},
      {"[0]", "{}", "unallocated: an object where an array is wanted"},
      {R"("vxlan-tunnel-addr-node-a")", "1", "attributes[1].handle_id: "},
      {R"({"node":"node-b"})", R"({"node":1})", "attributes[0].alternateOwnerAttrs.node: "},
      {R"({"node":"node-b"})", R"({"node":"a","node":"b"})", "it is there twice"},
      {R"({"releasedAt")", R"({"handle_id":"h","releasedAt")", "attribute 2 is both held and cooling"},
      {R"("sequenceNumber":1768471200000000007)", R"("sequenceNumber":-1)", "sequenceNumber: "},
      {R"("sequenceNumber":1768471200000000007)", R"("sequenceNumber":1.5)", "sequenceNumber: "},
      {R"("sequenceNumber":1768471200000000007)", R"("sequenceNumber":18446744073709551616)", "sequenceNumber: "},
      {R"("sequenceNumber":1768471200000000007)", R"("sequenceNumber":9223372036854775807)", "out of range"},
      {R"("1":1768471200000000003)", R"("1":1768471200000000008)", "ordinal 1 is newer than its block"},
      {R"("1":1768471200000000003)", R"("01":1768471200000000003)", "sequenceNumberForAllocation.01: "},
      {R"("1":1768471200000000003)", R"("x":1768471200000000003)", "sequenceNumberForAllocation.x: "},
      {R"("1":1768471200000000003)", R"("4":1768471200000000003)", "sequence number for ordinal 4 of 4"},
      {R"("1":1768471200000000003)", R"("2":1768471200000000003)", "it is there twice"},
      {R"("deleted":false)", R"("deleted":"false")", "deleted: "},
      {R"("deleted":false)", R"("deleted":false,"deleted":true)", "deleted: it is there twice"},
      {R"("deleted":false)", R"("Deleted":false)", "deleted: it is spelled"},
      {R"("deleted":false})", R"("deleted":false)", "invalid JSON"},
      {R"("deleted":false})", R"("deleted":false}})", "invalid JSON"},
      {"umlaut", "\xff", "invalid JSON"},
  };
  for (const Damage& damage : table) {
    const std::string bytes = with(golden("block_used"), damage.from, damage.to);
    const auto record = decode_block(kBlockKey, bytes);
    ASSERT_FALSE(record) << damage.to;
    EXPECT_EQ(record.error().code, ErrorCode::corrupt);
    EXPECT_NE(record.error().message.find(damage.message), std::string::npos) << record.error().message;
    EXPECT_NE(record.error().message.find("/ipv4/block/10.0.0.64-30"), std::string::npos) << record.error().message;
  }
  const std::string deep =
      with(golden("block_new"), "false}", "false,\"x\":" + std::string(70, '[') + std::string(70, ']') + "}");
  for (const std::string& bytes : {std::string(), std::string("null"), std::string("[]"), std::string("7"), deep}) {
    EXPECT_EQ(decode_block(kBlockKey, bytes).error().code, ErrorCode::corrupt) << bytes;
  }
  // Larger than any block may be.
  EXPECT_EQ(decode_block(BlockKey{prefix("::/0")}, R"({"cidr":"::/0","allocations":[]})").error().code,
            ErrorCode::corrupt);
}

/// A block larger than Croft makes any, and one whose CIDR is spelled its own way.
TEST(Calico, ALargeBlockIsRead) {
  const auto bytes_of = [](const std::string& cidr, std::uint32_t size) {
    std::string allocations = "0", unallocated;
    for (std::uint32_t i = 1; i < size; ++i) {
      allocations += ",null";
      unallocated += (i > 1 ? "," : "") + std::to_string(i);
    }
    return R"({"cidr":")" + cidr + R"(","affinity":"host:w5","allocations":[)" + allocations + R"(],"unallocated":[)" +
           unallocated + R"(],"attributes":[{"handle_id":"net.a","secondary":{"node":"w5"}}],"sequenceNumber":5,)" +
           R"("sequenceNumberForAllocation":{},"deleted":false})";
  };
  for (const int length : {19, 17, 16}) {
    const net::Prefix cidr = net::Prefix::containing(address("10.233.96.0"), length);
    const auto record = decode_block({cidr}, bytes_of(cidr.to_string(), std::uint32_t{1} << (32 - length)));
    ASSERT_TRUE(record) << record.error().message;
    EXPECT_EQ(core::state_of(record->block, net::Ordinal(0)), core::AddressState::held);
    EXPECT_EQ(encode(*record), bytes_of(cidr.to_string(), std::uint32_t{1} << (32 - length)));
  }
  const net::Prefix huge = prefix("10.232.0.0/15");
  EXPECT_EQ(decode_block({huge}, bytes_of("10.232.0.0/15", 1U << 17)).error().code, ErrorCode::corrupt);
  EXPECT_TRUE(decode_block({prefix("10.0.0.64/30")}, bytes_of("10.0.0.65/30", 4)));
  EXPECT_TRUE(decode_block({prefix("c001:c0af::/126")}, bytes_of("C001:C0AF::2/126", 4)));
  EXPECT_FALSE(decode_block({prefix("10.0.0.64/30")}, bytes_of("10.0.0.60/30", 4)));
}

TEST(Calico, DamageOfTheOthersIsNamed) {
  for (const char* bytes : {"x", "[]", R"({"state":"done"})", R"({"state":1})", R"({"deleted":"true"})",
                            R"({"State":"confirmed"})", R"({"state":"pending","state":"confirmed"})"}) {
    const auto record = decode_affinity(kAffinityKey, bytes);
    ASSERT_FALSE(record) << bytes;
    EXPECT_EQ(record.error().code, ErrorCode::corrupt) << bytes;
  }
  for (const char* bytes :
       {"", R"({"block":[]})", R"({"block":{"10.0.0.64/26":-1}})", R"({"block":{"10.0.0.64/26":1.0}})",
        R"({"block":{"10.0.0.65/26":1}})", R"({"block":{"x":1}})", R"({"block":{"10.0.0.64/26":4294967296}})",
        R"({"block":{"10.0.0.64/26":1,"10.0.0.64/26":2}})"}) {
    const auto record = decode_handle(kHandleKey, bytes);
    ASSERT_FALSE(record) << bytes;
    EXPECT_EQ(record.error().code, ErrorCode::corrupt) << bytes;
  }
  for (const char* bytes :
       {"", R"({"strict_affinity":1})", R"({"maxBlocksPerHost":-1})", R"({"ipCooldownSeconds":"5"})",
        R"({"kubeVirtVMAddressPersistence":true})", R"({"MaxBlocksPerHost":1})"}) {
    const auto record = decode_ipam_config(bytes);
    ASSERT_FALSE(record) << bytes;
    EXPECT_EQ(record.error().code, ErrorCode::corrupt) << bytes;
    EXPECT_NE(record.error().message.find("/calico/ipam/v2/config"), std::string::npos);
  }
}

// ---------------------------------------------------------------- at random

rc::Gen<std::string> texts() {
  return rc::gen::oneOf(rc::gen::container<std::string>(rc::gen::inRange<char>(0, 127)),
                        rc::gen::element<std::string>("ü<&>", "\u2028", "node-a", ""));
}

/// A block that core made: some addresses taken, some released.
core::Block random_block() {
  const bool is_v6 = *rc::gen::arbitrary<bool>();
  const int host_bits = *rc::gen::inRange(0, 6);
  const net::Prefix cidr = net::Prefix::containing(net::Address::parse(is_v6 ? "fd00::4:0" : "10.1.0.0").value(),
                                                   (is_v6 ? 128 : 32) - host_bits);
  core::Block block = core::new_block(cidr, AffinityOwner{AffinityOwner::Type::host, "node-a"}, kNow, {});
  block.affinity_claim_time = WallTime(1768471200s);
  const std::uint32_t size = core::block_size(cidr);
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
    core::Attribute attribute;
    if (*rc::gen::arbitrary<bool>()) attribute.handle_id = *texts();
    attribute.secondary = *rc::gen::container<std::map<std::string, std::string>>(texts(), texts());
    if (auto taken = core::take_next(block, attribute, [](const net::Address&) { return false; })) {
      block = core::stamped(std::move(taken->block));
    }
    const net::Ordinal ordinal(*rc::gen::inRange<std::uint32_t>(0, size));
    if (core::state_of(block, ordinal) == core::AddressState::held && *rc::gen::arbitrary<bool>()) {
      const net::Ordinal ordinals[] = {ordinal};
      const Instant now{WallTime(1768471300s), {}, {}};
      block = core::stamped(core::release(block, ordinals, std::chrono::seconds(*rc::gen::inRange(0, 2)), now));
    }
  }
  return block;
}

TEST(CalicoBlock, RandomBlocksBothWays) {
  EXPECT_TRUE(rc::check("a block of core, written and read, is the same", [] {
    BlockRecord record;
    record.block = random_block();
    record.rest.members = {{"new", "[1]"}};
    record.rest.attributes_null = record.block.attributes.empty();
    for (core::Attribute& attribute : record.block.attributes) {
      if (!attribute.cooling) continue;  // only the wall clock has a place
      attribute.cooling = core::Cooling{{attribute.cooling->released_at.wall, {}, {}}, {}, {}};
    }
    const std::string bytes = encode(record);
    const auto read = decode_block(BlockKey{record.block.cidr}, bytes);
    RC_ASSERT(read.has_value());
    RC_ASSERT(*read == record);
    RC_ASSERT(encode(*read) == bytes);
    RC_ASSERT(!nlohmann::json::parse(bytes, nullptr, false).is_discarded());
  }));
}

TEST(CalicoBlock, DamageOfOneByteIsReadOrNamed) {
  const std::string bytes = block_with_unknown_in_attributes();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    for (const char c : {'"', '0', '}', 'x', '\0'}) {
      std::string changed = bytes;
      changed[i] = c;
      const auto record = decode_block(kBlockKey, changed);
      if (!record) {
        ASSERT_EQ(record.error().code, ErrorCode::corrupt);
        continue;
      }
      ASSERT_EQ(decode_block(kBlockKey, encode(*record)), record) << changed;
    }
  }
}

}  // namespace

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

namespace {

using core::AffinityOwner;

const AffinityOwner kNode{AffinityOwner::Type::host, "node-a"};
const AffinityOwner kBalancer{AffinityOwner::Type::virtual_owner, "load-balancer"};

struct Row {
  Key key;
  std::string text;
};

std::vector<Row> rows() {
  return {
      {BlockKey{prefix("10.0.0.64/26")}, "/calico/ipam/v2/assignment/ipv4/block/10.0.0.64-26"},
      {BlockKey{prefix("fd00:10:244::1:40/122")}, "/calico/ipam/v2/assignment/ipv6/block/fd00:10:244::1:40-122"},
      {BlockKey{prefix("::/0")}, "/calico/ipam/v2/assignment/ipv6/block/::-0"},
      {AffinityKey{kNode, prefix("10.0.0.64/26")}, "/calico/ipam/v2/host/node-a/ipv4/block/10.0.0.64-26"},
      {AffinityKey{kNode, prefix("fd00::40/122")}, "/calico/ipam/v2/host/node-a/ipv6/block/fd00::40-122"},
      {AffinityKey{{AffinityOwner::Type::host, "Ip-10.eu_1"}, prefix("10.0.0.0/32")},
       "/calico/ipam/v2/host/Ip-10.eu_1/ipv4/block/10.0.0.0-32"},
      {AffinityKey{kBalancer, prefix("10.0.0.64/26")}, "/calico/ipam/v2/virtual/load-balancer/ipv4/block/10.0.0.64-26"},
      {AffinityKey{kBalancer, prefix("fd00::40/122")}, "/calico/ipam/v2/virtual/load-balancer/ipv6/block/fd00::40-122"},
      {HostMarkerKey{"node-a"}, "/calico/ipam/v2/host/node-a"},
      {HandleKey{"k8s-pod-network.7F3c0E"}, "/calico/ipam/v2/handle/k8s-pod-network.7F3c0E"},
      {HandleKey{"7f3c0e\r\neth0"}, "/calico/ipam/v2/handle/7f3c0e\r\neth0"},
      {HandleKey{"ä %2F .. \"x\""}, "/calico/ipam/v2/handle/ä %2F .. \"x\""},
      {IpamConfigKey{}, "/calico/ipam/v2/config"},
      {ResourceKey{ResourceKey::Kind::pool, "default-ipv4-ippool"},
       "/calico/resources/v3/projectcalico.org/ippools/default-ipv4-ippool"},
      {ResourceKey{ResourceKey::Kind::reservation, "gateways"},
       "/calico/resources/v3/projectcalico.org/ipreservations/gateways"},
      {ResourceKey{ResourceKey::Kind::node, "node-a"}, "/calico/resources/v3/projectcalico.org/nodes/node-a"},
  };
}

TEST(CalicoKeys, BothWays) {
  for (const Row& row : rows()) {
    EXPECT_EQ(print_key(row.key), row.text);
    const auto parsed = parse_key(row.text);
    ASSERT_TRUE(parsed) << parsed.error().message;
    EXPECT_EQ(*parsed, row.key) << row.text;
  }
}

TEST(CalicoKeys, RecordsOfTheStoreBothWays) {
  for (const Row& row : rows()) {
    const auto record = record_of(row.key);
    if (!record) continue;  // host markers are no records
    const auto key = key_of(*record);
    ASSERT_TRUE(key) << key.error().message;
    EXPECT_EQ(*key, row.key) << row.text;
  }
  EXPECT_FALSE(record_of(HostMarkerKey{"node-a"}));
  for (const auto kind : {core::Kind::vacancy, core::Kind::high_water_mark, core::Kind::pool_set}) {
    EXPECT_EQ(key_of({kind, "default"}).error().code, ErrorCode::invalid_argument);
  }
  EXPECT_EQ(key_of({core::Kind::block, "ipv4/10.0.0.1/24"}).value(), Key(BlockKey{prefix("10.0.0.0/24")}));
  EXPECT_EQ(key_of({core::Kind::block, "ipv4/10.0.0/24"}).error().code, ErrorCode::corrupt);
  EXPECT_EQ(key_of({core::Kind::affinity, "ghost/node-a/ipv4/10.0.0.0/24"}).error().code, ErrorCode::corrupt);
}

TEST(CalicoKeys, Prefixes) {
  EXPECT_EQ(blocks_prefix(), "/calico/ipam/v2/assignment/");
  EXPECT_EQ(blocks_prefix(net::Family::v6), "/calico/ipam/v2/assignment/ipv6/");
  EXPECT_EQ(affinities_prefix(AffinityOwner::Type::host), "/calico/ipam/v2/host/");
  EXPECT_EQ(affinities_prefix(AffinityOwner::Type::virtual_owner), "/calico/ipam/v2/virtual/");
  EXPECT_EQ(affinities_prefix(kNode), "/calico/ipam/v2/host/node-a/");
  EXPECT_EQ(affinities_prefix(kBalancer, net::Family::v4), "/calico/ipam/v2/virtual/load-balancer/ipv4/block/");
  EXPECT_EQ(affinities_prefix({AffinityOwner::Type::host, "a/b"}).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(handles_prefix(), "/calico/ipam/v2/handle/");
  EXPECT_EQ(resources_prefix(ResourceKey::Kind::pool), "/calico/resources/v3/projectcalico.org/ippools/");
}

TEST(CalicoKeys, NamesThatWouldMakeAnotherKeyAreRefused) {
  using Kind = ResourceKey::Kind;
  const net::Prefix cidr = prefix("10.0.0.64/26");
  const std::vector<Key> refused = {
      BlockKey{},
      BlockKey{prefix("::ffff:10.0.0.0/120")},
      AffinityKey{kNode, {}},
      AffinityKey{{AffinityOwner::Type::host, ""}, cidr},
      AffinityKey{{AffinityOwner::Type::host, "a/ipv4/block/10.0.0.0-26"}, cidr},
      AffinityKey{{AffinityOwner::Type::host, "a\nb"}, cidr},
      AffinityKey{{AffinityOwner::Type::host, ".."}, cidr},
      AffinityKey{{AffinityOwner::Type::virtual_owner, "load/balancer"}, cidr},
      HostMarkerKey{"node a"},
      HandleKey{""},
      HandleKey{"a/b"},
      HandleKey{std::string("a\0b", 3)},
      HandleKey{"a\x1b[2Jb"},
      HandleKey{"a\xff"},
      HandleKey{std::string(1025, 'a')},
      ResourceKey{Kind::pool, ""},
      ResourceKey{Kind::pool, "../nodes/a"},
      ResourceKey{Kind::pool, "Upper"},
      ResourceKey{Kind::reservation, "a/b"},
      ResourceKey{Kind::node, "a/b"},
  };
  for (const Key& key : refused) {
    const auto printed = print_key(key);
    ASSERT_FALSE(printed) << *printed;
    EXPECT_EQ(printed.error().code, ErrorCode::invalid_argument) << printed.error().message;
  }
}

TEST(CalicoKeys, DamagedKeysAreNamed) {
  const std::string ipam = "/calico/ipam/v2/";
  const std::vector<std::string> damaged = {
      ipam + "assignment/",
      ipam + "assignment/ipv4/block/",
      ipam + "assignment/ipv4/block/10.0.0.64",
      ipam + "assignment/ipv4/block/10.0.0.65-26",
      ipam + "assignment/ipv4/block/10.0.0.64-33",
      ipam + "assignment/ipv4/block/10.0.0.64-26/",
      ipam + "assignment/ipv4/block/10.0.0.64/26",
      ipam + "assignment/ipv4/block/x/10.0.0.64-26",
      ipam + "assignment/ipv6/block/10.0.0.64-26",
      ipam + "assignment/ipv4/block/fd00::40-122",
      ipam + "assignment/ipv6/block/fd00:0::40-122",
      ipam + "assignment/ipv6/block/FD00::40-122",
      ipam + "assignment/ipv6/block/fd00--40-122",
      ipam + "assignment/ipv6/block/::ffff:10.0.0.0-120",
      ipam + "host/",
      ipam + "host/a b",
      ipam + "host//ipv4/block/10.0.0.64-26",
      ipam + "host/a/b/ipv4/block/10.0.0.64-26",
      ipam + "host/a/ipv4/10.0.0.64-26",
      ipam + "virtual/load-balancer",
      ipam + "virtual//ipv4/block/10.0.0.64-26",
      ipam + "handle/",
      ipam + "handle/a/b",
      ipam + "handle/a\xff",
      "/calico/resources/v3/projectcalico.org/ippools/",
      "/calico/resources/v3/projectcalico.org/ippools/a/b",
  };
  for (const std::string& text : damaged) {
    const auto parsed = parse_key(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, ErrorCode::corrupt) << text;
    EXPECT_NE(parsed.error().message.find("/calico/"), std::string::npos);
  }
}

TEST(CalicoKeys, OtherKeysAreNotFound) {
  for (const char* text : {"", "/", "/calico/ipam/v2/", "/calico/ipam/v2/config/", "/calico/ipam/v2/configuration",
                           "calico/ipam/v2/config", "/calico/resources/v3/projectcalico.org/ipamconfigurations/default",
                           "/calico/v1/ipam/v4/pool/192.168.0.0-16", "/croft/v1/vacancy/a"}) {
    EXPECT_EQ(parse_key(text).error().code, ErrorCode::not_found) << text;
  }
}

}  // namespace
}  // namespace croft::wire::calico
