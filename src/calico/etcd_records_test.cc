#include "calico/etcd_records.h"

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

const AffinityOwner kNode{AffinityOwner::Type::host, "node-a"};
const core::Key kBlockKey = core::block_key(prefix("10.0.0.64/30"));
const core::Key kAffinityKey = core::affinity_key(kNode, prefix("10.0.0.64/30"));
const core::Key kHandleKey = core::handle_key("k8s-pod-network.7f3c0e");
const core::Key kConfigKey = core::ipam_config_key();
const Instant kNow{WallTime(1768471200900ms), 5s, {}};

core::Block block_in(const core::Key& key, const std::string& bytes) { return read_as<core::Block>(key, bytes); }

// ---------------------------------------------------------------- golden files

TEST(CalicoBlock, ANewBlockIsWrittenAsCalicoDoes) {
  core::Block block = core::new_block(prefix("10.0.0.64/30"), kNode, kNow, {});
  block.sequence_number = core::SequenceNumber(1768471200000000000);
  block.affinity_claim_time = kNow.wall;
  EXPECT_EQ(written(block), golden("block_new"));
  block.affinity_claim_time = WallTime(1768471200s);  // the fraction is cut, not rounded up
  EXPECT_EQ(block_in(kBlockKey, golden("block_new")), block);
}

/// 0 free, 1 and 2 held, 3 cooling.
core::Block used_block() {
  core::Block block;
  block.cidr = prefix("10.0.0.64/30");
  block.affinity = kNode;
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
  cooling.cooling->in_calicos_way = true;
  block.attributes = {pod, tunnel, cooling};
  block.sequence_number = core::SequenceNumber(1768471200000000007);
  block.sequence_number_for_allocation = {{1, core::SequenceNumber(1768471200000000003)},
                                          {2, core::SequenceNumber(1768471200000000000)},
                                          {3, core::SequenceNumber(1768471200000000006)}};
  return block;
}

TEST(CalicoBlock, EveryFieldBothWays) {
  EXPECT_EQ(written(used_block()), golden("block_used"));
  const core::Block read = block_in(kBlockKey, golden("block_used"));
  EXPECT_EQ(bare(read), used_block());
  EXPECT_EQ(written(read), golden("block_used"));
}

TEST(CalicoBlock, WhatCroftAloneKnowsOfACoolingAddressHasNoPlace) {
  core::Block block = used_block();
  core::Cooling& cooling = *block.attributes[2].cooling;
  cooling.released_at.wall += 999ms;
  cooling.released_at.since_boot = 7s;
  cooling.released_at.boot.bytes[0] = 1;
  cooling.previous_handle = "h";
  cooling.previous_secondary = {{"node", "node-a"}};
  EXPECT_EQ(written(block), golden("block_used"));
}

TEST(CalicoBlock, OrdinalsAreOrderedAsTextAndNumbersHave64Bits) {
  const core::Key key = key_of_block("fd00:10:244::1:40/124");
  // With every member that there is; Calico deletes no block that has holders.
  EXPECT_THAT(decode_value(key, golden("block_full_ipv6")).error().message,
              testing::HasSubstr("it is deleted, and 16 of its"));
  const std::string bytes = with(golden("block_full_ipv6"), "\"deleted\":true", "\"deleted\":false");
  const core::Block block = block_in(key, bytes);
  EXPECT_EQ(block.sequence_number.value, 9223372036854775806U);
  EXPECT_EQ(core::sequence_of(block, net::Ordinal(15)).value, 9223372036854775015U);
  EXPECT_EQ(block.affinity->type, AffinityOwner::Type::virtual_owner);
  EXPECT_EQ(block.attributes.at(0).handle_id, "");
  EXPECT_EQ(written(block), bytes);
}

TEST(CalicoBlock, AbsentListsStayAbsentUntilTheyAreUsed) {
  core::Block block = block_in(key_of_block("10.0.0.64/31"), golden("block_orphan_nulls"));
  EXPECT_EQ(written(block), golden("block_orphan_nulls"));
  core::Attribute attribute;
  attribute.handle_id = "h";
  auto taken = core::take_next(block, attribute, [](const net::Address&) { return false; });
  ASSERT_TRUE(taken);
  EXPECT_EQ(written(taken->block),
            R"({"cidr":"10.0.0.64/31","affinity":null,"allocations":[null,0],"unallocated":[0],)"
            R"("attributes":[{"handle_id":"h"}],"sequenceNumber":0,"sequenceNumberForAllocation":{"1":0},)"
            R"("deleted":false})");
}

/// Written into etcd by Calico's own library, v3.28.
TEST(CalicoBlock, WhatTheLibraryWroteIsReadAndWrittenTheSame) {
  const core::Block block = block_in(key_of_block("10.0.218.64/26"), golden("library_block"));
  EXPECT_EQ(block.unallocated.order().size(), 58U);
  EXPECT_EQ(written(block), golden("library_block"));
}

TEST(CalicoAffinity, GoldenFiles) {
  struct Row {
    const char* name;
    AffinityState state;
    bool deleted;
  };
  for (const Row& row : {Row{"affinity_confirmed", AffinityState::confirmed, false},
                         Row{"affinity_pending_deletion", AffinityState::pending_deletion, true},
                         Row{"affinity_old", AffinityState::confirmed, false}}) {
    const core::Affinity affinity{kNode, prefix("10.0.0.64/30"), row.state, row.deleted, {}};
    const auto read = read_as<core::Affinity>(kAffinityKey, golden(row.name));
    EXPECT_EQ(bare(read), affinity);
    EXPECT_EQ(written(read), golden(row.name));
    EXPECT_EQ(written(affinity), golden(std::string(row.name) == "affinity_old" ? "affinity_confirmed" : row.name));
  }
  for (const char* old : {"", "{}"}) {
    auto affinity = read_as<core::Affinity>(kAffinityKey, old);
    EXPECT_EQ(written(affinity), golden("affinity_old"));
    affinity.state = AffinityState::pending;
    EXPECT_EQ(written(affinity), R"({"state":"pending","deleted":false})");
  }
}

TEST(CalicoHandle, GoldenFiles) {
  core::Handle handle;
  handle.id = "k8s-pod-network.7f3c0e";
  const auto empty = read_as<core::Handle>(kHandleKey, golden("handle_null"));
  EXPECT_EQ(bare(empty), handle);
  EXPECT_EQ(written(empty), golden("handle_null"));
  handle.blocks = {{"10.0.0.128/26", 1}, {"10.0.0.64/26", 2}, {"fd00:10:244::1:40/122", 1}};
  EXPECT_EQ(written(handle), golden("handle"));
  EXPECT_EQ(read_as<core::Handle>(kHandleKey, golden("handle")), handle);
}

TEST(CalicoIpamConfig, GoldenFiles) {
  const core::IpamConfig usual{false, true, 0, "", 0}, full{true, true, 20, "Enabled", 1200},
      empty{false, false, 0, "", 0};
  for (const auto& [name, config] :
       {std::pair{"config_default", usual}, {"config_full", full}, {"config_empty", empty}}) {
    EXPECT_EQ(written(config), golden(name));
    EXPECT_EQ(read_as<core::IpamConfig>(kConfigKey, golden(name)), config);
  }
  const std::string odd = R"({"kubeVirtVMAddressPersistence":""})";
  EXPECT_EQ(written(decode_value(kConfigKey, odd).value()), odd);
}

// ---------------------------------------------------------------- unknown members

constexpr const char* kUnknown =
    R"("new":{"a":[1,-2.50e+3,18446744073709551616,null,true,"\u003cü\u2028"],"b":{}},"n":0.10)";

TEST(Calico, UnknownMembersSurvive) {
  const std::string members = std::string(",") + kUnknown + "}";
  for (const auto& [key, bytes] :
       {std::pair(kAffinityKey, with(golden("affinity_confirmed"), "}", members)),
        std::pair(kHandleKey, with(golden("handle_null"), "}", members)),
        std::pair(kConfigKey, with(golden("config_default"), "}", members)),
        std::pair(kBlockKey, with(golden("block_new"), "\"deleted\":false}", "\"deleted\":false" + members))}) {
    EXPECT_EQ(written(decode_value(key, bytes).value()), bytes);
  }
}

std::string block_with_unknown_in_attributes() {
  std::string bytes = golden("block_used");
  bytes = with(bytes, R"({"node":"node-b"}})", R"({"node":"node-b"},"first":[1]})");
  bytes = with(bytes, R"("vxlanTunnelAddress"}})", R"("vxlanTunnelAddress"},"second":2})");
  return with(bytes, R"("releasedAt":"2026-01-15T10:00:05Z"})", R"("releasedAt":"2026-01-15T10:00:05Z","third":"x"})");
}

TEST(CalicoBlock, UnknownMembersOfAttributesStayWithTheirAllocation) {
  const std::string bytes = block_with_unknown_in_attributes();
  const core::Block block = block_in(kBlockKey, bytes);
  EXPECT_EQ(written(block), bytes);
  // Releasing the first holder renumbers the others.
  const net::Ordinal released[] = {net::Ordinal(1)};
  const std::string after = written(core::release(block, released, 0s, kNow));
  EXPECT_EQ(after.find("first"), after.npos) << after;
  EXPECT_NE(after.find(R"("type":"vxlanTunnelAddress"},"second":2})"), after.npos) << after;
  EXPECT_NE(after.find(R"(05Z","third":"x"})"), after.npos) << after;
}

TEST(CalicoBlock, UnknownMembersDoNotGoToTheNextHolder) {
  core::Block block = block_in(kBlockKey, block_with_unknown_in_attributes());
  const net::Ordinal released[] = {net::Ordinal(1)};
  const core::Attribute same = block.attributes[0];
  block = core::with_next_sequence_number(core::release(block, released, 0s, kNow));
  block = core::take_address(block, net::Address::parse("10.0.0.65").value(), same).value().block;
  EXPECT_EQ(written(block).find("first"), std::string::npos);
}

TEST(CalicoBlock, ABlockEmptiedHasAnEmptyListAsCalicoLeavesIt) {
  core::Block block = block_in(kBlockKey, golden("block_used"));
  const net::Ordinal released[] = {net::Ordinal(1), net::Ordinal(2)};
  block = core::release(block, released, 0s, kNow);
  block = core::with_cooled_freed(block, 1s, {WallTime(1868471205s), 3600s, {}});
  EXPECT_NE(written(block).find(R"("attributes":[],)"), std::string::npos) << written(block);
}

// ---------------------------------------------------------------- what older versions wrote

TEST(CalicoBlock, OlderAndOtherSpellingsAreReadAndWrittenAnew) {
  // White space, another order, members of older versions that are null, a time with an offset, nothing of sequences.
  const std::string bytes =
      R"( {"attributes" : [{"secondary":null,"handle_id":null}, {"handle_id":"h","secondary":{"a":null}}],
    "unallocated":[], "allocations":[1,0], "affinity":"host:a", "cidr":"FD00:0::/127", "deleted":null,
    "affinity_claim_time":"2026-01-15T11:00:00.7+01:00", "hostAffinity":null} )";
  EXPECT_EQ(written(block_in(key_of_block("fd00::/127"), bytes)),
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
  expect_named(kBlockKey, golden("block_used"), table, "/ipv4/block/10.0.0.64-30");
  const std::string deep =
      with(golden("block_new"), "false}", "false,\"x\":" + std::string(70, '[') + std::string(70, ']') + "}");
  expect_corrupt(kBlockKey, {"", "null", "[]", "7", deep});
  // Larger than any block may be.
  expect_corrupt(key_of_block("::/0"), {R"({"cidr":"::/0","allocations":[]})"});
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
    const std::string bytes = bytes_of(cidr.to_string(), std::uint32_t{1} << (32 - length));
    const core::Block block = block_in(core::block_key(cidr), bytes);
    EXPECT_EQ(core::state_of(block, net::Ordinal(0)), core::AddressState::held);
    EXPECT_EQ(written(block), bytes);
  }
  EXPECT_EQ(decode_value(key_of_block("10.232.0.0/15"), bytes_of("10.232.0.0/15", 1U << 17)).error().code,
            ErrorCode::corrupt);
  EXPECT_TRUE(decode_value(key_of_block("10.0.0.64/30"), bytes_of("10.0.0.65/30", 4)));
  EXPECT_TRUE(decode_value(key_of_block("c001:c0af::/126"), bytes_of("C001:C0AF::2/126", 4)));
  EXPECT_FALSE(decode_value(key_of_block("10.0.0.64/30"), bytes_of("10.0.0.60/30", 4)));
}

TEST(Calico, DamageOfTheOthersIsNamed) {
  expect_corrupt(kAffinityKey, {"x", "[]", R"({"state":"done"})", R"({"state":1})", R"({"deleted":"true"})",
                                R"({"State":"confirmed"})", R"({"state":"pending","state":"confirmed"})"});
  expect_corrupt(kHandleKey,
                 {"", R"({"block":[]})", R"({"block":{"10.0.0.64/26":-1}})", R"({"block":{"10.0.0.64/26":1.0}})",
                  R"({"block":{"10.0.0.65/26":1}})", R"({"block":{"x":1}})", R"({"block":{"10.0.0.64/26":4294967296}})",
                  R"({"block":{"10.0.0.64/26":1,"10.0.0.64/26":2}})"});
  expect_corrupt(kConfigKey,
                 {"", R"({"strict_affinity":1})", R"({"maxBlocksPerHost":-1})", R"({"ipCooldownSeconds":"5"})",
                  R"({"kubeVirtVMAddressPersistence":true})", R"({"MaxBlocksPerHost":1})"},
                 "/calico/ipam/v2/config");
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
  core::Block block = core::new_block(cidr, kNode, kNow, {});
  block.affinity_claim_time = WallTime(1768471200s);
  const std::uint32_t size = core::block_size(cidr);
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
    core::Attribute attribute;
    if (*rc::gen::arbitrary<bool>()) attribute.handle_id = *texts();
    attribute.secondary = *rc::gen::container<std::map<std::string, std::string>>(texts(), texts());
    if (auto taken = core::take_next(block, attribute, [](const net::Address&) { return false; })) {
      block = core::with_next_sequence_number(std::move(taken->block));
    }
    const net::Ordinal ordinal(*rc::gen::inRange<std::uint32_t>(0, size));
    if (core::state_of(block, ordinal) == core::AddressState::held && *rc::gen::arbitrary<bool>()) {
      const net::Ordinal ordinals[] = {ordinal};
      const Instant now{WallTime(1768471300s), {}, {}};
      block = core::with_next_sequence_number(
          core::release(block, ordinals, std::chrono::seconds(*rc::gen::inRange(0, 2)), now));
    }
  }
  return block;
}

TEST(CalicoBlock, RandomBlocksBothWays) {
  EXPECT_TRUE(rc::check("a block of core, written and read, is the same", [] {
    core::Block block = random_block();
    for (core::Attribute& attribute : block.attributes) {
      if (!attribute.cooling) continue;  // only the wall clock has a place
      attribute.cooling = core::Cooling{{attribute.cooling->released_at.wall, {}, {}}, {}, {}};
      attribute.cooling->in_calicos_way = true;
    }
    std::string bytes = written(block);
    bytes.insert(bytes.size() - 1, R"(,"new":[1])");
    const auto read = decode_value(core::block_key(block.cidr), bytes);
    RC_ASSERT(read.has_value());
    RC_ASSERT(bare(std::get<core::Block>(*read)) == block);
    RC_ASSERT(written(*read) == bytes);
    RC_ASSERT(!nlohmann::json::parse(bytes, nullptr, false).is_discarded());
  }));
}

TEST(CalicoBlock, DamageOfOneByteIsReadOrNamed) {
  expect_read_alike_when_damaged(kBlockKey, block_with_unknown_in_attributes());
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
void expect_the_same_read_generally(const core::Key& key, const std::string& bytes) {
  EXPECT_FALSE(scan_block(" " + bytes));
  const auto read = decode_value(key, bytes), generally = decode_value(key, " " + bytes);
  ASSERT_EQ(read.has_value(), generally.has_value()) << bytes;
  if (!read) {
    EXPECT_EQ(read.error(), generally.error()) << bytes;
    return;
  }
  EXPECT_EQ(core::without_rest(*read), core::without_rest(*generally)) << bytes;
  EXPECT_EQ(written(*read), written(*generally)) << bytes;
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
    EXPECT_TRUE(decode_value(key_of_block(kCidrs[i]), kBlocks[i]));
    expect_the_same_read_generally(key_of_block(kCidrs[i]), kBlocks[i]);
  }
}

/// Whatever the scan takes, however damaged, comes out as the general way reads it, errors included.
TEST(CalicoBlockScan, BothWaysReadTheSameOfDamagedBytes) {
  std::size_t taken = 0;
  std::size_t readable = 0;
  for (std::size_t i = 0; i < std::size(kBlocks); ++i) {
    const core::Key key = key_of_block(kCidrs[i]);
    for (std::size_t at = 0; at < kBlocks[i].size(); ++at) {
      for (const char* piece : {"", "0", "-", "\"", "\\", "\\n", "\\u00", "}", "]", ",", "\x80", "null", "1e0", " "}) {
        for (const std::size_t removed : {0U, 1U}) {
          std::string bytes = kBlocks[i];
          bytes.replace(at, removed, piece);
          if (!scan_block(bytes)) continue;
          ++taken;
          readable += decode_value(key, bytes) ? 1U : 0U;
          ASSERT_NO_FATAL_FAILURE(expect_the_same_read_generally(key, bytes));
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
  const core::Key key = key_of_block(kCidrs[1]);
  EXPECT_TRUE(decode_value(key, with_text(kTextBytesMax)));
  EXPECT_FALSE(scan_block(with_text(kTextBytesMax + 1)));
  EXPECT_FALSE(decode_value(key, with_text(kTextBytesMax + 1)));
  EXPECT_FALSE(scan_block(kBlocks[0] + std::string(kRecordBytesMax, ' ')));
  EXPECT_FALSE(scan_block(""));
}

}  // namespace

namespace {

const AffinityOwner kBalancer{AffinityOwner::Type::virtual_owner, "load-balancer"};

TEST(CalicoKeys, BothWays) {
  const std::pair<core::Key, std::string> rows[] = {
      {key_of_block("10.0.0.64/26"), "/calico/ipam/v2/assignment/ipv4/block/10.0.0.64-26"},
      {key_of_block("fd00:10:244::1:40/122"), "/calico/ipam/v2/assignment/ipv6/block/fd00:10:244::1:40-122"},
      {key_of_block("::/0"), "/calico/ipam/v2/assignment/ipv6/block/::-0"},
      {{core::Kind::block, "ipv4/10.0.0.65/26"}, "/calico/ipam/v2/assignment/ipv4/block/10.0.0.65-26"},
      {core::affinity_key(kNode, prefix("10.0.0.64/26")), "/calico/ipam/v2/host/node-a/ipv4/block/10.0.0.64-26"},
      {core::affinity_key(kNode, prefix("fd00::40/122")), "/calico/ipam/v2/host/node-a/ipv6/block/fd00::40-122"},
      {core::affinity_key({AffinityOwner::Type::host, "Ip-10.eu_1"}, prefix("10.0.0.0/32")),
       "/calico/ipam/v2/host/Ip-10.eu_1/ipv4/block/10.0.0.0-32"},
      {core::affinity_key(kBalancer, prefix("10.0.0.64/26")),
       "/calico/ipam/v2/virtual/load-balancer/ipv4/block/10.0.0.64-26"},
      {core::affinity_key(kBalancer, prefix("fd00::40/122")),
       "/calico/ipam/v2/virtual/load-balancer/ipv6/block/fd00::40-122"},
      {core::handle_key("k8s-pod-network.7F3c0E"), "/calico/ipam/v2/handle/k8s-pod-network.7F3c0E"},
      {core::handle_key("7f3c0e\r\neth0"), "/calico/ipam/v2/handle/7f3c0e\r\neth0"},
      {core::handle_key("ä %2F .. \"x\""), "/calico/ipam/v2/handle/ä %2F .. \"x\""},
      {core::ipam_config_key(), "/calico/ipam/v2/config"},
      {core::pool_key("default-ipv4-ippool"), "/calico/resources/v3/projectcalico.org/ippools/default-ipv4-ippool"},
      {core::reservation_key("gateways"), "/calico/resources/v3/projectcalico.org/ipreservations/gateways"},
      {core::node_key("node-a"), "/calico/resources/v3/projectcalico.org/nodes/node-a"},
  };
  for (const auto& [key, place] : rows) {
    EXPECT_EQ(place_of(key), place);
    EXPECT_EQ(record_at(place), key) << place;
  }
}

TEST(CalicoKeys, PlacesOfLists) {
  const std::string ipam = "/calico/ipam/v2/";
  const std::tuple<core::Kind, std::string, std::vector<std::string>> rows[] = {
      {core::Kind::block, "", {ipam + "assignment/"}},
      {core::Kind::block, "ipv6/", {ipam + "assignment/ipv6/"}},
      {core::Kind::block, "ipv4/10.0.0.0/2", {ipam + "assignment/ipv4/"}},
      {core::Kind::affinity, "", {ipam + "host/", ipam + "virtual/"}},
      {core::Kind::affinity, "ho", {ipam + "host/"}},
      {core::Kind::affinity, "host/node-a", {ipam + "host/"}},
      {core::Kind::affinity, "host/node-a/", {ipam + "host/node-a/"}},
      {core::Kind::affinity, "host/myipv4/ipv4/10.", {ipam + "host/myipv4/ipv4/"}},
      {core::Kind::affinity, "virtual/load-balancer/ipv4/", {ipam + "virtual/load-balancer/ipv4/"}},
      {core::Kind::handle, "net.", {ipam + "handle/net."}},
      {core::Kind::ipam_config, "", {ipam + "config"}},
      {core::Kind::pool, "a", {"/calico/resources/v3/projectcalico.org/ippools/a"}},
  };
  for (const auto& [kind, prefix, places] : rows) EXPECT_EQ(places_of({kind, prefix}), places) << prefix;
}

TEST(CalicoKeys, NamesThatWouldMakeAnotherKeyAreRefused) {
  const net::Prefix cidr = prefix("10.0.0.64/26");
  const auto of_host = [&](const char* name) { return core::affinity_key({AffinityOwner::Type::host, name}, cidr); };
  const core::Key refused[] = {
      key_of_block("::ffff:10.0.0.0/120"),
      of_host(""),
      of_host("a/ipv4/block/10.0.0.0-26"),
      of_host("a/b"),
      of_host("a\nb"),
      of_host(".."),
      core::affinity_key({AffinityOwner::Type::virtual_owner, "load/balancer"}, cidr),
      core::handle_key(""),
      core::handle_key("a/b"),
      core::handle_key(std::string("a\0b", 3)),
      core::handle_key("a\x1b[2Jb"),
      core::handle_key("a\xff"),
      core::handle_key(std::string(1025, 'a')),
      core::pool_key(""),
      core::pool_key("../nodes/a"),
      core::pool_key("Upper"),
      core::reservation_key("a/b"),
      core::node_key("a/b"),
      {core::Kind::ipam_config, "other"},
      {core::Kind::vacancy, "default"},
      {core::Kind::high_water_mark, "default"},
      {core::Kind::pool_set, "default"},
  };
  for (const core::Key& key : refused) {
    const auto place = place_of(key);
    ASSERT_FALSE(place) << *place;
    EXPECT_EQ(place.error().code, ErrorCode::invalid_argument) << place.error().message;
  }
  for (const core::Key& key : {core::Key{core::Kind::block, "ipv4/10.0.0/24"},
                               {core::Kind::block, "10.0.0.0/24"},
                               {core::Kind::affinity, "ghost/node-a/ipv4/10.0.0.0/24"},
                               {core::Kind::affinity, "host/node-a/ipv4/"}}) {
    EXPECT_EQ(place_of(key).error().code, ErrorCode::corrupt) << key.name;
  }
}

/// Keys that no record has: their form is none, or the record that it tells of has another key.
TEST(CalicoKeys, OfNoRecord) {
  const std::string ipam = "/calico/ipam/v2/";
  for (const std::string& place : {
           std::string(),
           std::string("/"),
           ipam,
           ipam + "config/",
           ipam + "configuration",
           std::string("calico/ipam/v2/config"),
           std::string("/calico/resources/v3/projectcalico.org/ipamconfigurations/default"),
           std::string("/calico/v1/ipam/v4/pool/192.168.0.0-16"),
           std::string("/croft/v1/vacancy/a"),
           ipam + "assignment/",
           ipam + "assignment/ipv4/block/",
           ipam + "assignment/ipv4/block/10.0.0.64",
           ipam + "assignment/ipv4/block/10.0.0.64-33",
           ipam + "assignment/ipv4/block/10.0.0.64-26/",
           ipam + "assignment/ipv4/block/10.0.0.64/26",
           ipam + "assignment/ipv4/block/x/10.0.0.64-26",
           ipam + "assignment/ipv6/block/fd00--40-122",
           ipam + "assignment/ipv6/block/::ffff:10.0.0.0-120",
           ipam + "host/",
           ipam + "host/node-a",  // a marker that Calico once made for a node
           ipam + "host/a b",
           ipam + "host//ipv4/block/10.0.0.64-26",
           ipam + "host/a/b/ipv4/block/10.0.0.64-26",
           ipam + "host/a/ipv4/10.0.0.64-26",
           ipam + "host/a/ipv4/block/10.0.0.65-26",
           ipam + "virtual/load-balancer",
           ipam + "virtual//ipv4/block/10.0.0.64-26",
           ipam + "handle/",
           ipam + "handle/a/b",
           ipam + "handle/a\xff",
           std::string("/calico/resources/v3/projectcalico.org/ippools/"),
           std::string("/calico/resources/v3/projectcalico.org/ippools/a/b"),
       }) {
    const auto key = record_at(place);
    EXPECT_FALSE(key && place_of(*key) == place) << place;
  }
}

}  // namespace
}  // namespace croft::wire::calico
