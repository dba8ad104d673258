#include <chrono>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "base/time_text.h"
#include "calico/etcd_records.h"
#include "calico/test_calico.h"
#include "register/format/records.h"

namespace croft::wire::calico {
namespace {

using core::AssignmentMode;
using core::Encapsulation;
using core::PoolUse;
using core::TunnelKind;

constexpr WallTime kCreated{std::chrono::seconds(1768471200)};
constexpr const char* kUid = "0b5f1f0e-6a4e-4a3b-9d0c-1f2e3d4c5b6a";

core::Pool pool_in(const std::string& name, const std::string& bytes) {
  return read_as<core::Pool>(core::pool_key(name), bytes);
}
core::Reservation reservation_in(const std::string& name, const std::string& bytes) {
  return read_as<core::Reservation>(core::reservation_key(name), bytes);
}
core::Node node_in(const std::string& name, const std::string& bytes) {
  return read_as<core::Node>(core::node_key(name), bytes);
}
Birth born(const char* uid, const char* at) { return {uid, parse_rfc3339(at).value()}; }

/// The least that says a kind, a name and a spec.
std::string resource(const std::string& kind, const std::string& name, const std::string& spec) {
  return R"({"kind":")" + kind + R"(","apiVersion":"projectcalico.org/v3","metadata":{"name":")" + name +
         R"("},"spec":)" + spec + "}";
}
std::string pool_with(const std::string& spec) { return resource("IPPool", "p", spec); }

// ---------------------------------------------------------------- pools

core::Pool new_pool() {
  core::PoolSpec spec;
  spec.name = "default-ipv4-ippool";
  spec.cidr = prefix("192.168.0.0/16");
  spec.gateway = core::GatewayChoice{core::GatewayChoice::Kind::none, {}};
  spec.cooldown = std::chrono::seconds(0);
  return core::make_pool(spec).value();
}

TEST(CalicoPool, ANewPoolIsWrittenAsCalicoDoes) {
  EXPECT_EQ(written(new_pool(), {kUid, kCreated}), golden("pool_new"));
  const core::Pool read = pool_in("default-ipv4-ippool", golden("pool_new"));
  EXPECT_EQ(bare(read), new_pool());
  EXPECT_EQ(written(read), golden("pool_new"));
  EXPECT_EQ(uid_in(core::pool_key("default-ipv4-ippool"), golden("pool_new")), kUid);
}

TEST(CalicoPool, WhatCroftAloneKnowsHasNoPlace) {
  core::Pool pool = new_pool();
  pool.gateway = address("192.168.0.1");
  pool.cooldown = std::chrono::seconds(30);
  EXPECT_EQ(written(pool, {kUid, kCreated + std::chrono::milliseconds(999)}), golden("pool_new"));
}

TEST(CalicoPool, WhatTheLibraryOfVersion328WroteIsReadAndWrittenTheSame) {
  for (const char* name : {"pool-v4", "pool-v4-all", "pool-v6", "pool-small"}) {
    const std::string bytes = golden(std::string("library_") + name);
    const core::Pool pool = pool_in(name, bytes);
    EXPECT_EQ(pool.name, name);
    EXPECT_EQ(written(pool), bytes);
  }
}

TEST(CalicoPool, EveryFieldOfTheLibrary) {
  const core::Pool pool = pool_in("pool-v4-all", golden("library_pool-v4-all"));
  EXPECT_EQ(pool.rest->identity(), "3aa51567-49e4-43d1-b23c-9944bef73eb0");
  EXPECT_EQ(pool.cidr, prefix("172.20.0.0/16"));
  EXPECT_EQ(pool.block_length, 28);
  EXPECT_EQ(pool.node_selector, R"(rack in {"a","b"} && !has(gpu))");
  EXPECT_EQ(pool.allowed_uses, std::vector{PoolUse::tunnel});
  EXPECT_EQ(pool.ipip_mode, Encapsulation::cross_subnet);
  EXPECT_EQ(pool.vxlan_mode, Encapsulation::never);
  EXPECT_TRUE(pool.nat_outgoing);
  EXPECT_TRUE(pool.disable_bgp_export);
  EXPECT_FALSE(pool.disabled);
  EXPECT_FALSE(pool.gateway);
  EXPECT_EQ(pool.cooldown.count(), 0);
  EXPECT_EQ(pool_in("pool-v6", golden("library_pool-v6")).block_length, 122);
}

TEST(CalicoPool, EveryMemberSurvivesAChange) {
  const std::string bytes = golden("pool_full");
  core::Pool pool = pool_in("default-ipv4-ippool", bytes);
  EXPECT_EQ(pool.namespace_selector, R"(team in {"x"})");
  EXPECT_EQ(pool.assignment_mode, AssignmentMode::manual);
  EXPECT_EQ(pool.allowed_uses, (std::vector{PoolUse::load_balancer, PoolUse::tunnel, PoolUse::workload}));
  EXPECT_EQ(written(pool), bytes);
  pool.disabled = false;
  EXPECT_EQ(written(pool), with(bytes, R"("disabled":true,)", ""));
}

TEST(CalicoPool, UnknownMembersSurvive) {
  constexpr const char* kMembers = R"("new":{"a":[1,-2.50e+3,18446744073709551616,null,"\u003cü"],"b":{}},"n":0.10)";
  std::string bytes = golden("pool_new");
  bytes = with(bytes, R"(T10:00:00Z"})", std::string(R"(T10:00:00Z",)") + kMembers + "}");
  bytes = with(bytes, R"("Automatic"}})", std::string(R"("Automatic",)") + kMembers + "}," + kMembers + "}");
  EXPECT_EQ(written(pool_in("default-ipv4-ippool", bytes)), bytes);
  const std::string old = R"j("nodeSelector":"all()","ipip":{"enabled":true},"nat-outgoing":true,"allowedUses")j";
  const std::string with_old = with(golden("pool_new"), R"j("nodeSelector":"all()","allowedUses")j", old);
  EXPECT_EQ(written(pool_in("default-ipv4-ippool", with_old)), with_old);
}

TEST(CalicoPool, WhatAloneIsNotStoredByCalicoGoes) {
  const std::string bytes = with(golden("pool_new"), R"("uid":)", R"("resourceVersion":"17","selfLink":"/x","uid":)");
  EXPECT_EQ(written(pool_in("default-ipv4-ippool", bytes)), golden("pool_new"));
}

TEST(CalicoPool, DefaultsAreAppliedWhenReading) {
  for (const char* spec :
       {R"({"cidr":"10.0.0.0/16"})",
        R"({"cidr":"10.0.0.0/16","vxlanMode":"","ipipMode":null,"natOutgoing":null,"disabled":false,"blockSize":0,)"
        R"("nodeSelector":"","namespaceSelector":null,"allowedUses":[],"assignmentMode":null})"}) {
    const core::Pool pool = pool_in("p", pool_with(spec));
    core::Pool expected;
    expected.name = "p";
    expected.cidr = prefix("10.0.0.0/16");
    expected.block_length = 26;
    expected.cooldown = std::chrono::seconds(0);
    EXPECT_EQ(bare(pool), expected);
    EXPECT_EQ(
        written(pool),
        R"({"kind":"IPPool","apiVersion":"projectcalico.org/v3","metadata":{"name":"p","creationTimestamp":null},)"
        R"("spec":{"cidr":"10.0.0.0/16","vxlanMode":"Never","ipipMode":"Never","blockSize":26,)"
        R"j("nodeSelector":"all()","allowedUses":["Workload","Tunnel"]}})j");
  }
  EXPECT_EQ(pool_in("p", pool_with(R"({"cidr":"fd00::/64"})")).block_length, 122);
}

TEST(CalicoPool, AModeThatWasAbsentIsWrittenWhenItIsSet) {
  core::Pool pool = pool_in("p", pool_with(R"({"cidr":"10.0.0.0/16"})"));
  pool.assignment_mode = AssignmentMode::manual;
  EXPECT_NE(written(pool).find(R"("assignmentMode":"Manual"})"), std::string::npos);
}

TEST(CalicoPool, UsesThatAreNotKnownAreKeptAndDoNotCount) {
  const core::Pool pool = pool_in("p", pool_with(R"({"cidr":"10.0.0.0/16","allowedUses":["Moon","Tunnel"]})"));
  EXPECT_EQ(pool.allowed_uses, std::vector{PoolUse::tunnel});
  EXPECT_NE(written(pool).find(R"("allowedUses":["Tunnel","Moon"])"), std::string::npos) << written(pool);
  const core::Pool only = pool_in("p", pool_with(R"({"cidr":"10.0.0.0/16","allowedUses":["Moon"]})"));
  EXPECT_TRUE(only.allowed_uses.empty());
  EXPECT_NE(written(only).find(R"("allowedUses":["Moon"])"), std::string::npos) << written(only);
}

TEST(CalicoPool, ReasonsNotToUseItLeaveWhatIsStored) {
  const std::string bytes = with(golden("pool_full"), R"("disabled":true,)", "");
  const core::Pool both = pool_in("default-ipv4-ippool", bytes);
  EXPECT_FALSE(both.disabled);
  EXPECT_FALSE(core::is_enabled(both));
  EXPECT_EQ(written(both), bytes);

  const std::string live = with(with(bytes, R"("deletionTimestamp":"2026-01-15T10:01:40Z",)", ""),
                                R"("type":"Allocatable","status":"False")", R"("type":"Allocatable","status":"True")");
  EXPECT_TRUE(core::is_enabled(pool_in("default-ipv4-ippool", live)));
  const std::string not_yet = with(live, R"("Allocatable","status":"True")", R"("Allocatable","status":"Unknown")");
  EXPECT_TRUE(core::is_enabled(pool_in("default-ipv4-ippool", not_yet)));

  const std::string end = with(golden("pool_new"), "}}", R"(},"status":{"conditions":[%]}})");
  const core::Pool no_reason =
      pool_in("default-ipv4-ippool", with(end, "%", R"({"type":"Allocatable","status":"False"})"));
  EXPECT_FALSE(core::is_enabled(no_reason));
  const std::string deleted = with(golden("pool_new"), R"(Z"})", R"(Z","deletionTimestamp":"2026-01-15T10:00:00Z"})");
  EXPECT_FALSE(core::is_enabled(pool_in("default-ipv4-ippool", deleted)));
  const std::string null = with(golden("pool_new"), R"(Z"})", R"(Z","deletionTimestamp":null})");
  EXPECT_TRUE(core::is_enabled(pool_in("default-ipv4-ippool", null)));
}

TEST(CalicoPool, OneSmallerThanABlockIsNotUsedAndKeepsItsBlockSize) {
  core::Pool pool = pool_in("pool-small", golden("library_pool-small"));
  EXPECT_EQ(pool.block_length, 28);
  pool.disabled = false;
  EXPECT_NE(pool.unallocatable, "");
  EXPECT_EQ(written(pool), with(golden("library_pool-small"), R"("disabled":true,)", ""));
}

/// What Calico reads (net.ParseCIDR), Croft reads; a text that is no strict one stays as it was found.
TEST(CalicoPool, HostBitsAreDroppedAndKept) {
  for (const auto& [found, cidr] :
       {std::pair("192.168.0.1/16", "192.168.0.0/16"), std::pair("192.168.7.255/16", "192.168.0.0/16"),
        std::pair("192.168.0.0/016", "192.168.0.0/16"), std::pair("::ffff:192.168.0.0/112", "192.168.0.0/16"),
        std::pair("::FFFF:c0a8:1/112", "192.168.0.0/16")}) {
    const std::string bytes = with(golden("pool_new"), "192.168.0.0/16", found);
    const core::Pool pool = pool_in("default-ipv4-ippool", bytes);
    EXPECT_EQ(pool.cidr, prefix(cidr));
    EXPECT_EQ(pool.rest->cidr_as_found(), found);
    EXPECT_EQ(written(pool), bytes);
  }
  const std::string six = R"({"cidr":"C001:C0AF::12/120","blockSize":122})";
  const core::Pool pool = pool_in("p", pool_with(six));
  EXPECT_EQ(pool.cidr, prefix("c001:c0af::/120"));
  EXPECT_NE(written(pool).find(R"("cidr":"C001:C0AF::12/120")"), std::string::npos) << written(pool);
  for (const char* same : {"FD00::/112", "fd00:0:0::/112", "fd00:0000::0/112"}) {
    const core::Pool strict = pool_in("p", pool_with(std::string(R"({"cidr":")") + same + "\"}"));
    EXPECT_EQ(strict.cidr, prefix("fd00::/112")) << same;
    EXPECT_EQ(strict.rest->cidr_as_found(), "") << same;
  }
}

TEST(CalicoPool, WhyNothingMayBeAssignedIsTold) {
  const core::Pool small = pool_in("p", pool_with(R"({"cidr":"10.6.0.0/28","blockSize":26})"));
  EXPECT_EQ(small.unallocatable, "10.6.0.0/28 is smaller than its blocks, which are /26 (blockSize)");
  const std::string end = with(golden("pool_new"), "}}", R"(},"status":{"conditions":[%]}})");
  const std::string why = R"({"type":"Allocatable","status":"False","reason":"CIDROverlap"})";
  EXPECT_EQ(pool_in("default-ipv4-ippool", with(end, "%", why)).unallocatable,
            "Calico's condition Allocatable of it is False, reason \"CIDROverlap\"");
}

TEST(CalicoPool, DamageIsNamed) {
  const Damage table[] = {
      {R"("kind":"IPPool")", R"("kind":"Node")", "kind: \"Node\" is not IPPool"},
      {"projectcalico.org/v3", "projectcalico.org/v4", "apiVersion: "},
      {R"("name":"default-ipv4-ippool",)", "", "metadata.name: it is missing"},
      {R"("default-ipv4-ippool")", R"("other")", "metadata.name: \"other\" is not that of the key"},
      {R"("default-ipv4-ippool")", "7", "metadata.name: an integer (7) where a string is wanted"},
      {"2026-01-15T10:00:00Z", "today", "metadata.creationTimestamp: "},
      {R"("uid":)", R"("uid":"","UID":)", "metadata.uid: it is spelled \"UID\""},
      {R"("creationTimestamp")", R"("labels":{"a":1},"creationTimestamp")", "metadata.labels.a: "},
      {R"("creationTimestamp")", R"("labels":{"a":"1","a":"2"},"creationTimestamp")", "it is there twice"},
      {R"("creationTimestamp")", R"("deletionTimestamp":7,"creationTimestamp")", "metadata.deletionTimestamp: "},
      {R"("192.168.0.0/16")", R"("192.168.0.1/33")", "spec.cidr: "},
      {R"("192.168.0.0/16")", R"("192.168.0.00/16")", "spec.cidr: "},
      {R"("192.168.0.0/16")", R"("192.168.0.0")", "spec.cidr: "},
      {R"("192.168.0.0/16")", R"("")", "spec.cidr: "},
      {R"("cidr":"192.168.0.0/16",)", "", "spec.cidr: it is missing"},
      {R"("vxlanMode":"Never")", R"("vxlanMode":"never")", "spec.vxlanMode: \"never\" is not known"},
      {R"("ipipMode":"Never")", R"("ipipMode":1)", "spec.ipipMode: "},
      {R"("blockSize":26)", R"("blockSize":19)", "spec.blockSize: 19 is not 20 to 32"},
      {R"("blockSize":26)", R"("blockSize":33)", "spec.blockSize: 33 is not 20 to 32"},
      {R"("blockSize":26)", R"("blockSize":-1)", "spec.blockSize: "},
      {R"("blockSize":26)", R"("blockSize":26,"blocksize":27)", "spec.blockSize: it is spelled"},
      {R"j("all()")j", "true", "spec.nodeSelector: "},
      {R"("Workload")", "1", "spec.allowedUses[0]: "},
      {R"(["Workload","Tunnel"])", R"("Workload")", "spec.allowedUses: "},
      {R"("Automatic")", R"("Sometimes")", "spec.assignmentMode: "},
      {R"("Automatic"}})", R"("Automatic"},"status":{"conditions":[{"status":1}]}})", "status.conditions[0].status: "},
      {R"("Automatic"}})", R"("Automatic"})", "invalid JSON"},
  };
  expect_named(core::pool_key("default-ipv4-ippool"), golden("pool_new"), table, "/ippools/default-ipv4-ippool");
  expect_corrupt(core::pool_key("p"), {"", "null", "[]", pool_with(R"({"cidr":"fd00::/64","blockSize":26})")});
  EXPECT_TRUE(decode_value(core::pool_key("p"), pool_with(R"({"cidr":"fd00::/64","blockSize":116})")));
}

// ---------------------------------------------------------------- reservations

TEST(CalicoReservation, WhatTheLibraryOfVersion328WroteIsReadAndWrittenTheSame) {
  const core::Reservation reservation = reservation_in("res", golden("library_res"));
  EXPECT_EQ(reservation.name, "res");
  EXPECT_EQ(reservation.cidrs,
            (std::vector{prefix("192.168.0.0/32"), prefix("192.168.255.255/32"), prefix("fd00:20::/120")}));
  EXPECT_EQ(written(reservation), golden("library_res"));
  const core::Reservation empty = reservation_in("res-empty", golden("library_res-empty"));
  EXPECT_TRUE(empty.cidrs.empty());
  EXPECT_EQ(written(empty), golden("library_res-empty"));
}

TEST(CalicoReservation, ANewOneIsWrittenAsCalicoDoes) {
  const core::Reservation reservation = bare(reservation_in("res", golden("library_res")));
  EXPECT_EQ(written(reservation, born("52019e43-1769-4118-be7a-c6f62bb68969", "2026-11-21T15:08:46.9Z")),
            with(golden("library_res"), "192.168.255.255", "192.168.255.255/32"));
}

TEST(CalicoReservation, EntriesAreReadAsCalicoDoes) {
  core::Reservation reservation = reservation_in("gateways", golden("reservation_found"));
  EXPECT_EQ(reservation.cidrs, (std::vector{prefix("10.0.0.1/32"), prefix("10.0.0.0/32"), prefix("10.0.255.0/24"),
                                            prefix("fd00::1/128"), prefix("fd00:1::/64")}));
  EXPECT_EQ(written(reservation), golden("reservation_found"));
  reservation.cidrs.erase(reservation.cidrs.begin() + 1);
  reservation.cidrs.push_back(prefix("10.9.0.0/16"));
  EXPECT_EQ(written(reservation), with(with(golden("reservation_found"), R"("10.0.0.0/32\t",)", ""),
                                       R"("10.0.0.0/33"])", R"("10.0.0.0/33","10.9.0.0/16"])"));
  reservation.cidrs.clear();
  EXPECT_NE(written(reservation).find(R"("reservedCIDRs":["nonsense","","10.0.0.0/33"])"), std::string::npos)
      << written(reservation);
}

TEST(CalicoReservation, WhiteSpaceIsUnicodesAndAMappedAddressIsAnIpv4One) {
  const auto cidrs = [](const std::string& entry) {
    return reservation_in("r", resource("IPReservation", "r", R"({"reservedCIDRs":[")" + entry + "\"]}")).cidrs;
  };
  EXPECT_EQ(cidrs("\u00a010.0.0.1\u3000"), std::vector{prefix("10.0.0.1/32")});
  EXPECT_EQ(cidrs("::ffff:10.0.0.1"), std::vector{prefix("10.0.0.1/32")});
  for (const char* text : {"::ffff:10.0.0.7/120", "::FFFF:a00:0/120", "10.0.0.7/024", "010.0.0.0/24", "10.0.00.0/24"}) {
    EXPECT_EQ(cidrs(text), std::vector{prefix("10.0.0.0/24")}) << text;
  }
  EXPECT_EQ(cidrs("010.0.0.1"), std::vector{prefix("10.0.0.1/32")});
  EXPECT_EQ(cidrs("FD00:0:0::0001"), std::vector{prefix("fd00::1/128")});
  EXPECT_EQ(cidrs("FD00:0:0::7/064"), std::vector{prefix("fd00::/64")});
  EXPECT_TRUE(cidrs("10.0.0.1 /32").empty());
  EXPECT_TRUE(cidrs(" ").empty());
}

/// One flipped bit anywhere else would stop every assignment of the cluster.
TEST(CalicoReservation, WhatItReservesCountsWhenOtherMembersAreDamaged) {
  const std::string good = resource("IPReservation", "r", R"({"reservedCIDRs":["10.79.0.0/32","10.79.0.1/32"]})");
  const core::Reservation expected = reservation_in("r", good);
  for (const char* member : {"IPReservation", "\"r\"", "projectcalico"}) {
    std::string bad = good;
    const std::size_t at = bad.find(member);
    ASSERT_NE(at, bad.npos) << member;
    bad[at + 1] = 'x';
    EXPECT_EQ(bare(reservation_in("r", bad)), bare(expected)) << bad;
  }
  for (const char* member : {"reservedCIDRs\":[", "10.79"}) {
    std::string bad = good;
    bad[bad.find(member) - 1] = 'x';  // a quotation mark
    EXPECT_FALSE(decode_value(core::reservation_key("r"), bad)) << bad;
  }
}

TEST(CalicoReservation, UnknownMembersSurviveAndDamageIsNamed) {
  const std::string bytes =
      with(golden("library_res-empty"), R"("spec":{}})", R"("spec":{"new":[1]},"status":{"x":null}})");
  EXPECT_EQ(written(reservation_in("res-empty", bytes)), bytes);
  for (const char* spec : {R"({"reservedCIDRs":"10.0.0.1"})", R"({"reservedCIDRs":[1]})", "[]"}) {
    expect_corrupt(core::reservation_key("r"), {resource("IPReservation", "r", spec)}, "spec");
  }
  expect_corrupt(core::reservation_key("r"), {resource("IPPool", "r", "{}"), resource("IPReservation", "s", "{}")});
}

// ---------------------------------------------------------------- nodes

core::Node new_node() {
  core::Node node;
  node.name = "node-tunnels";
  node.labels = {{"kubernetes.io/arch", "amd64"}, {"zone", ""}};
  node.orchestrators = {{"k8s", "node-tunnels.example"}};
  node.tunnels = {{TunnelKind::ipip, address("192.168.0.1")},
                  {TunnelKind::vxlan_v4, address("192.168.0.2")},
                  {TunnelKind::vxlan_v6, address("fd00:20::2")},
                  {TunnelKind::wireguard_v4, address("192.168.0.3")},
                  {TunnelKind::wireguard_v6, address("fd00:20::3")}};
  return node;
}

TEST(CalicoNode, ANewNodeIsWrittenAsTheLibraryDoes) {
  constexpr const char* kAt = "2026-11-21T15:08:46Z";
  EXPECT_EQ(written(new_node(), born("22e7a2dd-3ef4-41e7-b55a-f2e1d86b5c04", kAt)), golden("library_node-tunnels"));
  const core::Node read = node_in("node-tunnels", golden("library_node-tunnels"));
  EXPECT_EQ(bare(read), new_node());
  EXPECT_EQ(written(read), golden("library_node-tunnels"));
  const core::Node plain{"node-plain", {}, {}, {}};
  EXPECT_EQ(written(plain, born("23e80162-d23c-41e0-8326-199c71126ce3", kAt)), golden("library_node-plain"));
  EXPECT_EQ(bare(node_in("node-plain", golden("library_node-plain"))), plain);
}

TEST(CalicoNode, EveryMemberSurvivesAChange) {
  const std::string bytes = golden("node_full");
  core::Node node = node_in("Node_A.example", bytes);
  EXPECT_EQ(written(node), bytes);
  EXPECT_EQ(node.orchestrators, (std::vector<core::OrchestratorRef>{{"k8s", "a"}, {"openstack", ""}}));
  node.labels = {{"rack", "7"}};
  std::string changed = with(bytes, R"({"":"odd","topology.kubernetes.io/zone":"eu-1"})", R"({"rack":"7"})");
  EXPECT_EQ(written(node), changed);
  node.tunnels.erase(node.tunnels.begin());
  changed = with(changed, R"("ipv4IPIPTunnelAddr":"192.168.0.1",)", "");
  EXPECT_EQ(written(node), changed);
  node.tunnels.clear();
  EXPECT_NE(written(node).find(R"("wireguard":{})"), std::string::npos);
  EXPECT_NE(written(node).find(R"("spec":{"bgp":{"asNumber":64512,)"), std::string::npos);
}

TEST(CalicoNode, UnknownMembersSurvive) {
  std::string bytes = golden("node_full");
  bytes = with(bytes, R"("orchestrator":"k8s"})", R"("orchestrator":"k8s","x":1})");
  bytes = with(bytes, R"("1.0.0.1"})", R"("1.0.0.1","x":[2]})");
  bytes = with(bytes, R"("fd00:20::3"})", R"("fd00:20::3","x":3})");
  bytes = with(bytes, R"("InternalIP"}])", R"("InternalIP"}],"x":4)");
  bytes = with(bytes, R"(0/24"]})", R"(0/24"],"x":5},"x":6)");
  core::Node node = node_in("Node_A.example", bytes);
  EXPECT_EQ(written(node), bytes);
  node.orchestrators[0].node_name = "b";
  EXPECT_NE(written(node).find(R"([{"nodeName":"b","orchestrator":"k8s"},)"), std::string::npos) << written(node);
}

TEST(CalicoNode, ATunnelThatIsNoAddressIsKeptUntilOneIsSet) {
  for (const char* text : {"none", "192.168.0.1/32", "fd00::1", "::ffff:192.168.0.1"}) {
    const std::string bytes = with(golden("library_node-tunnels"), "192.168.0.1", text);
    core::Node node = node_in("node-tunnels", bytes);
    EXPECT_EQ(node.tunnels.size(), 4U) << text;
    EXPECT_EQ(written(node), bytes);
    node.tunnels.push_back({TunnelKind::ipip, address("192.168.0.1")});
    EXPECT_EQ(written(node), golden("library_node-tunnels"));
  }
  const std::string vxlan = with(golden("library_node-tunnels"), R"("192.168.0.2")", R"("x")");
  EXPECT_EQ(written(node_in("node-tunnels", vxlan)), vxlan);
  const std::string wireguard = with(golden("library_node-tunnels"), R"("192.168.0.3")", R"("x")");
  EXPECT_EQ(written(node_in("node-tunnels", wireguard)), wireguard);
}

TEST(CalicoNode, DamageIsNamed) {
  const Damage table[] = {
      {R"("kind":"Node")", R"("kind":"IPPool")", "kind: "},
      {R"("node-tunnels")", R"("x")", "metadata.name: "},
      {R"({"kubernetes.io/arch":"amd64","zone":""})", "[]", "metadata.labels: an array where an object is wanted"},
      {R"({"ipv4IPIPTunnelAddr":"192.168.0.1"})", "7", "spec.bgp: "},
      {R"("192.168.0.1")", "7", "spec.bgp.ipv4IPIPTunnelAddr: "},
      {R"("192.168.0.2")", "{}", "spec.ipv4VXLANTunnelAddr: "},
      {R"("orchestrator":"k8s")", R"("orchestrator":true)", "spec.orchRefs[0].orchestrator: "},
      {R"([{"nodeName":"node-tunnels.example","orchestrator":"k8s"}])", "{}", "spec.orchRefs: "},
      {R"("fd00:20::3")", "[]", "spec.wireguard.interfaceIPv6Address: "},
  };
  expect_named(core::node_key("node-tunnels"), golden("library_node-tunnels"), table, "/nodes/node-tunnels");
}

// ---------------------------------------------------------------- all

TEST(CalicoResources, DamagedBytes) {
  expect_read_alike_when_damaged(core::pool_key("default-ipv4-ippool"), golden("pool_full"));
  expect_read_alike_when_damaged(core::reservation_key("gateways"), golden("reservation_found"));
  expect_read_alike_when_damaged(core::node_key("Node_A.example"), golden("node_full"));
}

}  // namespace
}  // namespace croft::wire::calico

namespace croft::wire {
namespace {

using std::chrono::seconds;

core::CoolingBeside cooling(std::uint32_t ordinal, std::uint64_t sequence_number = 7) {
  core::CoolingBeside one{ordinal, core::SequenceNumber(sequence_number), {}};
  one.cooling.released_at.wall = WallTime(seconds(1'700'000'000)) + std::chrono::nanoseconds(120'000'000);
  one.cooling.released_at.since_boot = std::chrono::nanoseconds(5'000'000'001);
  one.cooling.released_at.boot.bytes = {0x01, 0xab};
  one.cooling.previous_handle = "net.c1";
  one.cooling.previous_secondary.own() = {{"node", "oak"}, {"pod", "a \"b\"\n"}};
  return one;
}

std::vector<PoolBeside> pools() {
  const auto v4 = net::Prefix::parse("10.0.0.0/16").value(), v6 = net::Prefix::parse("fd00::/64").value();
  return {{v4, {}, seconds(0)},
          {v4, net::Address::parse("10.0.0.1").value(), seconds(90)},
          {v6, net::Address::parse("fd00::1").value(), core::kCooldownMax},
          {v6, net::Address::parse("::ffff:10.0.0.1").value(), seconds(1)},
          {v4, {}, seconds(0), true},
          {v4, {}, seconds(0), false, true}};
}

const std::string kPool = R"({"v":1,"cidr":"10.0.0.0/16","gateway":"10.0.0.1","cooldownSeconds":90})";
const std::string kCooling =
    R"({"v":1,"cooling":[{"ordinal":3,"sequenceNumber":7,"releasedAt":"2023-11-14T22:13:20.12Z",)"
    R"("sinceBootNanoseconds":5000000001,"bootID":"01ab0000000000000000000000000000",)"
    R"("previousHandle":"net.c1","previousSecondary":{"node":"oak","pod":"a \"b\"\u000a"}}]})";

std::string pool_error(const std::string& bytes) {
  const auto read = decode_pool_beside("pool a", bytes);
  return read ? "read" : std::string(name_of(read.error().code)) + ": " + read.error().message;
}
std::string cooling_error(const std::string& bytes) {
  const auto read = decode_cooling_beside("block b", bytes);
  return read ? "read" : std::string(name_of(read.error().code)) + ": " + read.error().message;
}

using calico::with;

/// Older versions take it for what the last holder had, and keep it.
TEST(BesideCalico, TheCooldownOfTheReleaseIsAmongTheTexts) {
  core::CoolingBeside one = cooling(3);
  one.cooling.cooldown = seconds(600);
  const std::string with_it =
      with(kCooling, R"("previousSecondary":{)", R"("previousSecondary":{"croft-cooldown":"600",)");
  EXPECT_EQ(encode_cooling_beside({one}), with_it);
  EXPECT_EQ(decode_cooling_beside("block b", with_it).value(), std::vector{one});
  for (const char* text : {"0600", "0", "-1", "1201", "", "soon", "99999999999999999999"}) {
    const std::string other = with(with_it, "600", text);
    const auto read = decode_cooling_beside("block b", other).value();
    EXPECT_EQ(read.front().cooling.cooldown, seconds(0)) << text;
    EXPECT_EQ(encode_cooling_beside(read), other) << "stays a text";
  }
}

TEST(BesideCalico, AsDocumented) {
  EXPECT_EQ(encode_pool_beside(pools()[1]), kPool);
  EXPECT_EQ(encode_pool_beside(pools()[0]), R"({"v":1,"cidr":"10.0.0.0/16","cooldownSeconds":0})");
  EXPECT_EQ(encode_cooling_beside({cooling(3)}), kCooling);
  EXPECT_EQ(encode_cooling_beside({}), R"({"v":1,"cooling":[]})");
}

TEST(BesideCalico, RoundTrips) {
  for (const PoolBeside& pool : pools()) {
    const std::string bytes = encode_pool_beside(pool);
    const auto again = decode_pool_beside("p", bytes);
    ASSERT_TRUE(again) << again.error().message << bytes;
    EXPECT_EQ(*again, pool) << bytes;
  }
  core::CoolingBeside bare{0, core::SequenceNumber(std::numeric_limits<std::uint64_t>::max()), {}};
  bare.cooling.released_at.wall = WallTime(seconds(-1));
  std::vector<core::CoolingBeside> whole_block;
  for (std::uint32_t ordinal = 0; ordinal < 4096; ++ordinal) whole_block.push_back({ordinal, {}, {}});
  for (const auto& list :
       {std::vector<core::CoolingBeside>{}, {bare}, {bare, cooling(1), cooling(4095)}, whole_block}) {
    const auto again = decode_cooling_beside("b", encode_cooling_beside(list));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(*again, list) << list.size();
  }
}

TEST(BesideCalico, DamageIsNamedWithItsKey) {
  EXPECT_EQ(pool_error(""), "corrupt: \"pool a\" is damaged: no {\"v\": found at byte 0");
  EXPECT_EQ(pool_error(with(kPool, "\"10.0.0.1\"", "\"oak\"")),
            "corrupt: \"pool a\" is damaged: gateway is no IP address at byte 43");
  EXPECT_EQ(cooling_error(with(kCooling, ":3,", ":65536,")),
            "corrupt: \"block b\" is damaged: number 65536 is larger than 65535 at byte 34");
  EXPECT_EQ(pool_error(std::string(kRecordBytesMax + 1, ' ')), "corrupt: \"pool a\" is damaged: it is too long");
  EXPECT_EQ(decode_pool_beside("a\nb\x1b", "").error().message,
            "\"a\\x0ab\\x1b\" is damaged: no {\"v\": found at byte 0");
}

TEST(BesideCalico, NewerVersions) {
  EXPECT_EQ(pool_error(with(kPool, "\"v\":1", "\"v\":2")),
            "newer_version: \"pool a\" has format 2, this program reads up to 1; upgrade Croft here");
  EXPECT_EQ(cooling_error(R"({"v":4294967295,"anything":[])"),
            "newer_version: \"block b\" has format 4294967295, this program reads up to 1; upgrade Croft here");
  EXPECT_EQ(cooling_error(R"({"v":4294967296,"cooling":[]})").substr(0, 8), "corrupt:");
}

TEST(BesideCalico, NothingIsReadThatIsNotWrittenHere) {
  EXPECT_EQ(pool_error(with(kPool, "\"v\":1", "\"v\":0")).substr(0, 8), "corrupt:");
  EXPECT_EQ(cooling_error(with(kCooling, "\"v\":1", "\"v\":0")).substr(0, 8), "corrupt:");
  EXPECT_EQ(pool_error(kPool + " ").substr(0, 8), "corrupt:");
  EXPECT_EQ(pool_error(with(kPool, ",\"gateway\"", ",\"color\":1,\"gateway\"")).substr(0, 8), "corrupt:");
  EXPECT_EQ(pool_error(with(kPool, "10.0.0.0/16", "10.0.0.1/16")).substr(0, 8), "corrupt:");
  // Ascending, each once: the address of one entry is not cooling twice.
  std::vector<core::CoolingBeside> list{cooling(3), cooling(3, 8)};
  EXPECT_EQ(cooling_error(encode_cooling_beside(list)).substr(0, 8), "corrupt:");
  list = {cooling(4), cooling(3)};
  EXPECT_EQ(cooling_error(encode_cooling_beside(list)).substr(0, 8), "corrupt:");
}

/// Each way of cutting a record short, and of changing one byte: refused, or what was read stays what it is.
template <class Decode, class Encode>
void damage_everywhere(const std::string& good, Decode decode, Encode encode) {
  const auto refused = [](const Error& error) {
    return error.code == ErrorCode::corrupt || error.code == ErrorCode::newer_version;
  };
  for (std::size_t length = 0; length < good.size(); ++length) {
    const auto read = decode("k", good.substr(0, length));
    ASSERT_FALSE(read) << length;
    EXPECT_EQ(read.error().code, ErrorCode::corrupt) << length;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char c : {'0', '1', '9', 'a', 'A', '"', '\\', '}', ']', ',', ':', '-', ' ', '\0', '\xff'}) {
      std::string bytes = good;
      bytes[at] = c;
      const auto read = decode("k", bytes);
      if (read) {
        const auto again = decode("k", encode(*read));
        ASSERT_TRUE(again) << again.error().message << bytes;
        EXPECT_EQ(*again, *read) << bytes;
      } else {
        EXPECT_TRUE(refused(read.error())) << at << " " << read.error().message;
      }
    }
  }
}

TEST(BesideCalico, DamageAnywhere) {
  damage_everywhere(kPool, decode_pool_beside, encode_pool_beside);
  damage_everywhere(encode_pool_beside(pools()[2]), decode_pool_beside, encode_pool_beside);
  damage_everywhere(encode_cooling_beside({cooling(3), cooling(14)}), decode_cooling_beside, encode_cooling_beside);
}

}  // namespace
}  // namespace croft::wire
