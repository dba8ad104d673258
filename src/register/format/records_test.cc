#include "register/format/records.h"

#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/net/test_values.h"

namespace croft::wire {
namespace {

using namespace std::chrono_literals;
using core::Key;
using core::Kind;
using core::Value;

constexpr std::uint64_t kAboveDouble = 1768471200000000007;  // needs more than the 53 bits of a double

core::Pool golden_pool() {
  core::Pool pool;
  pool.name = "default-ipv6";
  pool.cidr = prefix("fd00:10:244::/48");
  pool.block_length = 122;
  pool.disabled = true;
  pool.node_selector = "zone == \"a\"";
  pool.namespace_selector = "has(team)";
  pool.allowed_uses = {core::PoolUse::load_balancer, core::PoolUse::workload, core::PoolUse::tunnel};
  pool.assignment_mode = core::AssignmentMode::manual;
  pool.ipip_mode = core::Encapsulation::always;
  pool.vxlan_mode = core::Encapsulation::cross_subnet;
  pool.nat_outgoing = true;
  pool.disable_bgp_export = true;
  pool.gateway = address("fd00:10:244::1");
  pool.cooldown = 1200s;
  return pool;
}

core::Cooling golden_cooling() {
  core::Cooling cooling;
  cooling.released_at = {WallTime(1768471205123456789ns), 123456789ns, {}};
  for (std::uint8_t i = 0; i < 16; ++i) cooling.released_at.boot.bytes[i] = static_cast<std::uint8_t>(i * 17);
  cooling.previous_handle = "k8s-pod-network.7f3c0e";
  cooling.previous_secondary = {{"node", "node-a"}, {"pod", "cart-0"}};
  return cooling;
}

/// 10.0.0.64/30: 0 free, 1 and 2 held, 3 cooling.
core::Block golden_block() {
  core::Block block;
  block.cidr = prefix("10.0.0.64/30");
  block.affinity = core::AffinityOwner{core::AffinityOwner::Type::host, "node-a"};
  block.affinity_claim_time = WallTime(1768471200s);
  block.allocations = {std::nullopt, 0, 1, 2};
  block.unallocated = core::space::OrderedFreeList::from_order(4, {0}).value();
  core::Attribute pod;
  pod.handle_id = "k8s-pod-network.7f3c0e";
  pod.secondary = {{"namespace", "shop"}, {"node", "node-a"}, {"note", "quote \" backslash \\ newline \n"}};
  pod.alternate_owner = {{"node", "node-b"}};
  core::Attribute tunnel;
  tunnel.handle_id = "vxlan-tunnel-addr-node-a";
  core::Attribute cooling;
  cooling.cooling = golden_cooling();
  block.attributes = {pod, tunnel, cooling};
  block.sequence_number = core::SequenceNumber(kAboveDouble);
  block.sequence_number_for_allocation = {{1, core::SequenceNumber(kAboveDouble - 4)},
                                          {2, core::SequenceNumber(kAboveDouble - 7)},
                                          {3, core::SequenceNumber(kAboveDouble - 1)}};
  return block;
}

core::Service golden_service() {
  core::Service service;
  service.name = {"shop", "cart"};
  service.uid = "0c2a8b54-6d70-4a53-9d1c-5f3f7a2f9e10";
  service.created = WallTime(1768471205s);
  service.labels = {{"team", "shop"}};
  service.selector = {{"app", "cart"}};
  service.type = core::ServiceType::load_balancer;
  service.cluster_ip = "10.96.0.10";
  service.cluster_ips = {"10.96.0.10", "fd00:10:96::a"};
  service.ip_families = {net::Family::v4, net::Family::v6};
  service.ip_family_policy = core::IpFamilyPolicy::require_dual_stack;
  service.ports = {{"dns", core::ServiceProtocol::udp, 53, "domain", 30053, "example.org/dns"},
                   {"stream", core::ServiceProtocol::sctp, 65535, "8443", 32767, ""}};
  service.external_name = "cart.example.org";
  service.external_traffic_policy = core::TrafficPolicy::local;
  service.external_traffic_policy_given = true;
  service.health_check_node_port = 30118;
  service.allocate_load_balancer_node_ports = false;
  service.load_balancer_class = "example.org/balancer";
  service.deleting = true;
  return service;
}

core::ServiceCidrObject golden_service_cidr() {
  core::ServiceCidrObject object;
  object.name = "kubernetes";
  object.cidrs = {prefix("10.96.0.0/12"), prefix("fd00:10:96::/112")};
  return object;
}

core::NodeRangeSet golden_node_range_set() {
  core::NodeRangeSet set;
  set.generation = kAboveDouble;
  set.cluster_cidrs = {{prefix("10.244.0.0/16"), 24}, {prefix("fd00:10:244::/48"), 64}};
  set.excluded = {prefix("10.244.255.0/24")};
  set.cursors = {3, kAboveDouble};
  return set;
}

core::StockAddress golden_warm_address() {
  core::StockAddress warm;
  warm.address = address("10.9.0.7");
  warm.prefix_length = 24;
  warm.gateway = address("10.9.0.1");
  warm.mac = net::Mac::parse("52:54:00:26:6e:da").value();
  warm.vpc = "uvnet-1";
  warm.subnet = "subnet-1";
  warm.object = "uni-abc";
  warm.state = core::StockAddressState::cooling;
  warm.since = WallTime(1768471205123456789ns);
  warm.created = WallTime(1768471200s);
  warm.recycled = true;
  warm.recycled_at = WallTime(1768471205s);
  warm.verified = WallTime(1768471201s);
  warm.extra = {{"interfaceID", "uni-abc"}};
  warm.cooling = golden_cooling();
  warm.cooling->cooldown = 30s;
  warm.other_mac = net::Mac::parse("02:00:5e:10:00:ff").value();
  warm.doubts = {core::StockDoubt::not_in_cloud, core::StockDoubt::used_by_pod};
  warm.peer = "node-b";
  warm.request = "0123456789abcdef0123456789abcdef";
  return warm;
}

core::StockIntent golden_warm_intent() {
  core::StockIntent intent;
  intent.id = "0123456789abcdef0123456789abcdef";
  intent.what = core::StockIntent::What::borrow;
  intent.count = 1;
  intent.address = address("10.9.0.8");
  intent.mac = net::Mac::parse("52:54:00:26:6e:da").value();
  intent.subnet = "subnet-1";
  intent.peer = "10.9.0.2:7312";
  intent.begun = WallTime(1768471205123456789ns);
  for (std::uint8_t i = 0; i < 16; ++i) intent.begun_at.boot.bytes[i] = static_cast<std::uint8_t>(i * 17);
  intent.begun_at.since_boot = 123456789ns;
  intent.process = 4711;
  intent.process_started = 987654321;
  return intent;
}

core::StockNode golden_warm_node() {
  return {"node-a",  net::Mac::parse("52:54:00:26:6e:da").value(),
          "uvnet-1", "subnet-1",
          "uni-abc", "cn-bj2-04",
          "cn-bj2",  "org-test",
          3,         50,
          30,        kAboveDouble,
          110};
}

struct Golden {
  Key key;
  Value value;
};

std::vector<Golden> goldens() {
  const core::AffinityOwner balancer{core::AffinityOwner::Type::virtual_owner, "load-balancer"};
  const net::Prefix cidr = prefix("10.0.0.64/30");
  const core::Affinity affinity{balancer, cidr, core::AffinityState::pending_deletion, true};
  const core::Handle handle{"k8s-pod-network.7f3c0e", {{"10.0.0.64/30", 2}, {"fd00::/122", 1}}, false};
  return {
      {core::pool_key("default-ipv6"), golden_pool()},
      {core::reservation_key("gateways"),
       core::Reservation{"gateways", {prefix("10.0.0.0/32"), prefix("10.0.255.0/24")}}},
      {{Kind::ipam_config, "default"}, core::IpamConfig{true, false, 2147483647, "Enabled", 1200}},
      {core::block_key(cidr), golden_block()},
      {core::affinity_key(balancer, cidr), affinity},
      {core::handle_key(handle.id), handle},
      {core::vacancy_key(balancer, cidr), core::Vacancy{WallTime(1768471205123456789ns)}},
      {core::high_water_mark_key(cidr), core::HighWaterMark{core::SequenceNumber(kAboveDouble)}},
      {core::pool_set_key(), core::PoolSet{kAboveDouble}},
      {core::node_key("node-a"), core::Node{"node-a",
                                            {{"rack", "r1"}, {"zone", "a"}},
                                            {{"k8s", "node-a.example.org"}},
                                            {{core::TunnelKind::ipip, *net::Address::parse("10.0.0.66")},
                                             {core::TunnelKind::wireguard_v6, *net::Address::parse("fd00::1")}}}},
      {core::range_allocation_key(core::kServiceIps), core::RangeAllocation{"10.0.0.0/24", "\x08\x02\x01"}},
      {core::service_key({"shop", "cart"}), golden_service()},
      {core::service_cidr_key("kubernetes"), golden_service_cidr()},
      {core::node_range_key(prefix("10.244.3.0/24")), core::NodeRange{"node-a", prefix("10.244.3.0/24")}},
      {core::node_range_set_key(), golden_node_range_set()},
      {core::removed_node_key("node-a"),
       core::RemovedNode{
           "node-a", {{"10.0.0.0/26", core::SequenceNumber(kAboveDouble)}, {"fd00::/122", core::SequenceNumber(7)}}}},
      {core::foreign_service_key({"shop", "cart"}), core::ForeignService{golden_service()}},
      {core::namespace_key("shop"), core::Namespace{"shop", {{"kubernetes.io/metadata.name", "shop"}, {"team", "x"}}}},
      {core::warm_address_key(address("10.9.0.7")), golden_warm_address()},
      {core::warm_intent_key(golden_warm_intent().id), golden_warm_intent()},
      {core::warm_node_key(), golden_warm_node()},
  };
}

std::string golden_path(Kind kind) {
  return fmt::format("{}/records/{}.v{}.json", CROFT_TESTDATA, core::name_of(kind), core::traits_of(kind).version);
}

std::string read_golden(Kind kind) {
  std::ifstream file(golden_path(kind));
  std::string bytes{std::istreambuf_iterator<char>(file), {}};
  if (bytes.ends_with('\n')) bytes.pop_back();
  return bytes;
}

ErrorCode code_of(const Key& key, const std::string& bytes) {
  const auto decoded = decode_record(key, bytes);
  return decoded ? ErrorCode{} : decoded.error().code;
}

// CROFT_UPDATE_GOLDEN=1 writes the files anew, for a new kind or version. A file of a past version never changes.
TEST(Records, GoldenFilesOfEveryKind) {
  ASSERT_EQ(goldens().size(), core::kKindCount);
  for (const Golden& golden : goldens()) {
    const std::string bytes = encode_record(golden.value);
    if (std::getenv("CROFT_UPDATE_GOLDEN") != nullptr) std::ofstream(golden_path(golden.key.kind)) << bytes << '\n';
    EXPECT_EQ(bytes, read_golden(golden.key.kind));
    const auto decoded = decode_record(golden.key, read_golden(golden.key.kind));
    ASSERT_TRUE(decoded) << decoded.error().message;
    EXPECT_EQ(*decoded, golden.value) << bytes;
    EXPECT_FALSE(nlohmann::json::parse(bytes, nullptr, false).is_discarded()) << bytes;
  }
}

TEST(Records, NoLimitHasOneSpelling) {
  core::StockNode node = golden_warm_node();
  node.node_max.reset();
  EXPECT_EQ(encode_record(node).find("nodeMax"), std::string::npos);
  node.node_max = 0;
  EXPECT_EQ(code_of(core::warm_node_key(), encode_record(node)), ErrorCode::corrupt);
}

TEST(Records, DoubtsHaveOneSpelling) {
  core::StockAddress warm = golden_warm_address();
  const Key key = core::warm_address_key(warm.address);
  warm.doubts = {core::StockDoubt::used_by_pod, core::StockDoubt::not_in_cloud};
  EXPECT_EQ(code_of(key, encode_record(warm)), ErrorCode::corrupt);
  warm.doubts = {core::StockDoubt::used_by_pod, core::StockDoubt::used_by_pod};
  EXPECT_EQ(code_of(key, encode_record(warm)), ErrorCode::corrupt);
}

TEST(Records, NumbersOfKindsAreStable) {
  const std::pair<Kind, int> expected[] = {
      {Kind::pool, 0},          {Kind::reservation, 1},       {Kind::ipam_config, 2},
      {Kind::block, 3},         {Kind::affinity, 4},          {Kind::handle, 5},
      {Kind::vacancy, 6},       {Kind::high_water_mark, 8},   {Kind::pool_set, 9},
      {Kind::node, 10},         {Kind::range_allocation, 11}, {Kind::service, 12},
      {Kind::service_cidr, 14}, {Kind::node_range, 15},       {Kind::node_range_set, 16},
      {Kind::removed_node, 17}, {Kind::foreign_service, 18},  {Kind::name_space, 20},
      {Kind::warm_address, 21}, {Kind::warm_intent, 22},      {Kind::warm_node, 23},
  };
  for (const auto& [kind, number] : expected) {
    EXPECT_EQ(number_of(kind), number);
    EXPECT_EQ(kind_numbered(static_cast<std::uint8_t>(number)), kind);
  }
  EXPECT_EQ(kind_numbered(7), std::nullopt) << "it was given once";
  EXPECT_EQ(kind_numbered(19), std::nullopt) << "it was given once";
  EXPECT_EQ(kind_numbered(24), std::nullopt);
}

TEST(Records, NewerFormatIsNotDamage) {
  const auto decoded = decode_record(core::pool_set_key(), R"({"v":2,"whatever":[1]})");
  ASSERT_FALSE(decoded);
  EXPECT_EQ(decoded.error().code, ErrorCode::newer_version);
  EXPECT_NE(decoded.error().message.find("pool_set default"), std::string::npos);
}

TEST(Records, UnknownMissingAndMisplacedMembersAreDamage) {
  const Key key = core::pool_set_key();
  ASSERT_TRUE(decode_record(key, R"({"v":1,"generation":7})"));
  for (const char* bytes :
       {R"({"v":1,"generation":7,"extra":1})", R"({"v":1})", R"({"generation":7,"v":1})", R"({"v":1,"generation":7} )",
        R"({"v":0,"generation":7})", R"({"v":1,"generation":"7"})", R"({"v":1,"generation":7,"generation":7})", "",
        "{}", "null", "\0", R"({"v":1,"generation":99999999999999999999})"}) {
    EXPECT_EQ(code_of(key, bytes), ErrorCode::corrupt) << bytes;
  }
}

TEST(Records, AValueUnderAnotherKeyIsDamage) {
  for (const Golden& golden : goldens()) {
    constexpr std::array kNameless = {Kind::ipam_config, Kind::vacancy,          Kind::high_water_mark,
                                      Kind::pool_set,    Kind::range_allocation, Kind::node_range_set,
                                      Kind::warm_node};
    if (std::find(kNameless.begin(), kNameless.end(), golden.key.kind) != kNameless.end()) continue;
    Key other = golden.key;
    other.name += "x";
    EXPECT_EQ(code_of(other, encode_record(golden.value)), ErrorCode::corrupt) << golden.key.name;
  }
}

/// A /12 whose bitmap is full length: 128 KiB.
TEST(Records, TheLargestRangeSurvives) {
  core::RangeAllocation range{"10.96.0.0/12", std::string(131072, '\xa5')};
  range.data[0] = '\x20';
  const Key key = core::range_allocation_key(core::kServiceIps);
  const auto decoded = decode_record(key, encode_record(range));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(std::get<core::RangeAllocation>(*decoded), range);
}

TEST(Records, GarbageInBase64IsDamage) {
  const Key key = core::range_allocation_key(core::kServiceIps);
  ASSERT_TRUE(decode_record(key, R"({"v":1,"range":"10.0.0.0/24","data":"CAIB"})"));
  for (const char* bytes :
       {R"({"v":1,"range":"10.0.0.0/24","data":"CAI"})", R"({"v":1,"range":"10.0.0.0/24","data":null})",
        R"({"v":1,"range":"10.0.0.0/24","data":"CA?B"})"}) {
    EXPECT_EQ(code_of(key, bytes), ErrorCode::corrupt) << bytes;
  }
}

TEST(Records, AHandleNamesBlocksByTheirCidrs) {
  const core::Handle handle{"net.c", {{"10.0.0.0", 1}}, false};
  EXPECT_EQ(code_of(core::handle_key("net.c"), encode_record(handle)), ErrorCode::corrupt);
}

TEST(Records, ABlockThatContradictsItselfIsDamage) {
  core::Block block = golden_block();
  block.allocations[1] = std::nullopt;
  EXPECT_EQ(code_of(core::block_key(block.cidr), encode_record(block)), ErrorCode::corrupt);
}

// Cutting a record anywhere, or changing any one byte to another, is either noticed or gives another legal record:
// never a crash and never the same bytes for two values.
TEST(Records, DamagedBytesNeverCrashAndNeverReadAsTheOldValue) {
  for (const Golden& golden : goldens()) {
    const std::string bytes = encode_record(golden.value);
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      EXPECT_FALSE(decode_record(golden.key, bytes.substr(0, i)));
      for (const char flip : {'\x01', '\x20', '\x40', '\x80'}) {
        std::string damaged = bytes;
        damaged[i] = static_cast<char>(damaged[i] ^ flip);
        const auto decoded = decode_record(golden.key, damaged);
        EXPECT_FALSE(decoded && *decoded == golden.value) << damaged;
      }
    }
  }
}

rc::Gen<std::map<std::string, std::string>> any_texts() {
  return rc::gen::container<std::map<std::string, std::string>>(rc::gen::arbitrary<std::string>(),
                                                                rc::gen::arbitrary<std::string>());
}

core::Attribute any_attribute() {
  core::Attribute attribute;
  if (*rc::gen::arbitrary<bool>()) {
    attribute.handle_id = *rc::gen::arbitrary<std::string>();
    attribute.secondary = *any_texts();
    attribute.alternate_owner = *any_texts();
    return attribute;
  }
  core::Cooling cooling;
  cooling.released_at.wall =
      WallTime(std::chrono::nanoseconds{*rc::gen::inRange<std::int64_t>(-(1LL << 62), 1LL << 62)});
  cooling.released_at.since_boot = std::chrono::nanoseconds{*rc::gen::arbitrary<std::int64_t>()};
  for (auto& byte : cooling.released_at.boot.bytes) byte = *rc::gen::arbitrary<std::uint8_t>();
  cooling.previous_handle = *rc::gen::arbitrary<std::string>();
  cooling.previous_secondary = *any_texts();
  attribute.cooling = cooling;
  return attribute;
}

core::Block any_block() {
  core::Block block;
  const int host_bits = *rc::gen::inRange(0, 7);
  block.cidr = *rc::gen::arbitrary<bool>() ? net::Prefix::containing(address("10.1.2.3"), 32 - host_bits)
                                           : net::Prefix::containing(address("fd00::77"), 128 - host_bits);
  const std::uint32_t size = 1U << host_bits;
  block.sequence_number = core::SequenceNumber(*rc::gen::inRange<std::uint64_t>(1, 1ULL << 63));
  std::vector<std::uint32_t> free;
  for (std::uint32_t ordinal = 0; ordinal < size; ++ordinal) {
    if (*rc::gen::arbitrary<bool>()) {
      free.insert(free.begin() + *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(free.size()) + 1),
                  ordinal);
      block.allocations.emplace_back();
      continue;
    }
    block.allocations.emplace_back(block.attributes.size());
    block.attributes.push_back(any_attribute());
    const auto sequence_number = *rc::gen::inRange<std::uint64_t>(0, block.sequence_number.value);
    block.sequence_number_for_allocation[ordinal] = core::SequenceNumber(sequence_number);
  }
  block.unallocated = core::space::OrderedFreeList::from_order(size, free).value();
  block.deleted = block.unallocated.free_count() == block.unallocated.size() && *rc::gen::arbitrary<bool>();
  return block;
}

TEST(Records, BlocksSurviveExactly) {
  const bool ok = rc::check("decode(encode(block)) == block", [] {
    const core::Block block = any_block();
    const std::string bytes = encode_record(block);
    const auto decoded = decode_record(core::block_key(block.cidr), bytes);
    if (!decoded) RC_FAIL(decoded.error().message);
    RC_ASSERT(std::get<core::Block>(*decoded) == block);
    RC_ASSERT(encode_record(*decoded) == bytes);
  });
  EXPECT_TRUE(ok);
}

TEST(Records, WhatIsReadReplacesWhatANewValueHas) {
  core::Pool pool = golden_pool();
  pool.allowed_uses.clear();
  pool.node_selector.clear();
  pool.gateway.reset();
  const auto decoded = decode_record(core::pool_key(pool.name), encode_record(pool));
  ASSERT_TRUE(decoded) << decoded.error().message;
  EXPECT_EQ(std::get<core::Pool>(*decoded), pool);
}

TEST(Records, HandlesSurviveExactly) {
  const bool ok =
      rc::check("decode(encode(handle)) == handle",
                [](const std::string& id, const std::map<std::uint8_t, std::uint32_t>& blocks, bool deleted) {
                  core::Handle handle{id, {}, deleted};
                  for (const auto& [at, count] : blocks) {
                    handle.blocks.emplace("10.0." + std::to_string(at) + ".0/24", count);
                  }
                  const auto decoded = decode_record(core::handle_key(id), encode_record(handle));
                  if (!decoded) RC_FAIL(decoded.error().message);
                  RC_ASSERT(std::get<core::Handle>(*decoded) == handle);
                });
  EXPECT_TRUE(ok);
}

/// A member that is there when it says something, and a version that never wrote it is read.
TEST(Records, APoolSaysThatItIsBeingDeletedOnlyThen) {
  core::Pool pool = golden_pool();
  const std::string without = encode_record(pool);
  pool.being_deleted = true;
  const std::string with = encode_record(pool);
  EXPECT_EQ(with, without.substr(0, without.size() - 1) + R"(,"beingDeleted":true})");
  const auto again = decode_record(core::pool_key(pool.name), with);
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(std::get<core::Pool>(*again), pool);
  EXPECT_FALSE(std::get<core::Pool>(*decode_record(core::pool_key(pool.name), without)).being_deleted);
  const std::string odd = without.substr(0, without.size() - 1) + R"(,"beingDeleted":false})";
  EXPECT_FALSE(decode_record(core::pool_key(pool.name), odd));
}

}  // namespace
}  // namespace croft::wire
