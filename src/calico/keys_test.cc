#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "calico/etcd.h"

namespace croft::wire::calico {
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
