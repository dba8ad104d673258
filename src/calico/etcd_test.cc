#include "calico/etcd.h"

#include <rapidcheck.h>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/net/test_values.h"
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
    EXPECT_EQ(core::held_by_handle(record->block, "net.a").size(), 1U);
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
}  // namespace croft::wire::calico
