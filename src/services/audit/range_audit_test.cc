#include "services/audit/range_audit.h"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "base/net/test_values.h"
#include "register/test_register.h"

// The names in brackets are the rows of docs/notes/service-ranges.md#cases-repair.

namespace croft::core::audit {

namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Type = RepairFinding::Type;

service::ServiceCidr cidr(std::string_view text) { return service::ServiceCidr::parse(text).value(); }
service::NodePortRange ports(std::string_view text) { return service::NodePortRange::parse(text).value(); }

template <service::RangeMap M>
RangeAllocation allocation(const M& map, const std::vector<typename M::Value>& taken) {
  service::BitmapRange<M> bits(map);
  for (const auto& value : taken) EXPECT_TRUE(bits.take(value));
  return bits.snapshot();
}

ServiceUse with_ips(const std::string& name, std::vector<std::string> ips) {
  Service service;
  service.name = {"default", name};
  service.cluster_ips = std::move(ips);
  return use_of(service);
}

ServiceUse with_ports(const std::string& name, std::vector<ServiceUse::NodePort> node_ports, std::uint16_t health = 0) {
  if (health != 0) node_ports.push_back({ServiceProtocol::tcp, health});
  return {{"default", name}, {}, std::move(node_ports)};
}
constexpr auto kTcp = ServiceProtocol::tcp;
constexpr auto kUdp = ServiceProtocol::udp;

std::map<Type, std::size_t> counted(const std::vector<RangeRepair>& repairs) {
  std::map<Type, std::size_t> counts;
  for (const RangeRepair& repair : repairs) {
    const RepairCounts of_one = counts_of(repair.findings);
    for (std::size_t i = 0; i < of_one.size(); ++i) {
      if (of_one[i] > 0) counts[static_cast<Type>(i)] += of_one[i];
    }
  }
  return counts;
}
std::map<Type, std::size_t> counted(const RangeRepair& repair) { return counted(std::vector{repair}); }

std::vector<std::string> messages(const RangeRepair& repair) {
  std::vector<std::string> result;
  for (const RepairFinding& finding : repair.findings) {
    result.push_back(fmt::format("{} {}", finding.reason, finding.message));
  }
  return result;
}

template <class M>
service::BitmapRange<M> read(const RangeAllocation& record) {
  auto restored = service::range_from<M>(record);
  EXPECT_EQ(restored->beyond, 0U);
  return std::move(restored->range);
}

/// A range of addresses from pass to pass: each stores what the one before decided.
struct Addresses {
  AddressRangeSeen seen;
  RangeRepair last{};

  explicit Addresses(std::string_view wanted, std::optional<RangeAllocation> stored = {})
      : seen{"serviceips", std::move(stored), cidr(wanted), {}} {}

  const RangeRepair& pass(const std::vector<ServiceUse>& services) {
    last = repair_addresses({&seen, 1}, services).front();
    if (last.write) seen.stored = last.write;
    seen.leaks = last.leaks;
    return last;
  }
  bool has(std::string_view text) const { return read<service::ServiceCidr>(*seen.stored).has(address(text)); }
  std::uint32_t free() const { return read<service::ServiceCidr>(*seen.stored).free_count(); }
};

TEST(RangeRepair, MakesAnAbsentRangeEvenWithoutServices) {  // [R1]
  Addresses range("10.0.0.0/24");
  EXPECT_EQ(range.pass({}).write, (RangeAllocation{"10.0.0.0/24", "", nullptr}));
  EXPECT_FALSE(range.last.present);
  EXPECT_THAT(range.last.findings, IsEmpty());
  EXPECT_EQ(range.pass({}).write, std::nullopt) << "nothing to write when it is so already";
  EXPECT_TRUE(range.last.present);
}

TEST(RangeRepair, FreesALeakInTheThirdPass) {  // [R2]
  Addresses range("192.168.1.0/24", allocation(cidr("192.168.1.0/24"), {address("192.168.1.10")}));
  for (int pass = 1; pass <= 2; ++pass) {
    EXPECT_EQ(range.pass({}).write, std::nullopt);
    EXPECT_TRUE(range.has("192.168.1.10")) << pass;
    EXPECT_THAT(messages(range.last),
                ElementsAre("ClusterIPLeaked the cluster IP 192.168.1.10 may have leaked: flagging "
                            "for later clean up"));
    EXPECT_TRUE(counted(range.last).empty()) << "counted when it is freed";
  }
  range.pass({});
  EXPECT_FALSE(range.has("192.168.1.10"));
  EXPECT_EQ(counted(range.last), (std::map<Type, std::size_t>{{Type::leak, 1}}));
  EXPECT_THAT(range.last.leaks, IsEmpty());
}

/// A full /12 without Services: a million leaks, and no million findings.
TEST(RangeRepair, ManyLeaksAreCountedAndAFewNamed) {
  service::BitmapRange<service::ServiceCidr> full(cidr("10.0.0.0/12"));
  const auto first = full.snapshot();
  std::string bits((1U << 20) / 8, '\xff');
  bits.front() = '\x3f';  // neither the network's own address nor the one of all nodes has a bit
  AddressRangeSeen seen{"serviceips", RangeAllocation{first.range, bits, nullptr}, cidr("10.0.0.0/12"), {}};
  const std::vector<RangeRepair> repairs = repair_addresses(std::vector{seen}, {});
  ASSERT_EQ(repairs.size(), 1U);
  ASSERT_FALSE(repairs.front().failure);
  EXPECT_EQ(repairs.front().findings.size(), kLeakFindingsMax + 1);
  std::uint64_t count = 0;
  for (const RepairFinding& finding : repairs.front().findings) count += finding.count;
  EXPECT_EQ(count, repairs.front().leaks.size());
  EXPECT_EQ(count, (1U << 20) - 2);
  // Freed at last: counted all, as metrics have it.
  AddressRangeSeen again = seen;
  again.leaks = repairs.front().leaks;
  for (LeakedValue& leak : again.leaks) leak.passes = kPassesBeforeLeakIsFreed - 1;
  const std::vector<RangeRepair> freed = repair_addresses(std::vector{again}, {});
  EXPECT_EQ(counted(freed)[Type::leak], count);
  EXPECT_THAT(freed.front().leaks, IsEmpty());
}

TEST(RangeRepair, RepairsAndTellsWhatItCannot) {  // [R3]
  Addresses range("192.168.1.0/24", allocation(cidr("192.168.1.0/24"), {}));
  range.pass({with_ips("a", {"192.168.1.1"}), with_ips("b", {"192.168.1.100"}), with_ips("c", {"192.168.0.1"}),
              with_ips("d", {""}), with_ips("e", {"192.168.1.1"}), with_ips("f", {"None"})});
  EXPECT_EQ(range.free(), 252U);
  EXPECT_EQ(counted(range.last),
            (std::map<Type, std::size_t>{{Type::repair, 2}, {Type::out_of_range, 1}, {Type::duplicate, 1}}));
  EXPECT_THAT(messages(range.last),
              ElementsAre("ClusterIPNotAllocated Cluster IP [IPv4]:192.168.1.1 is not allocated; repairing",
                          "ClusterIPNotAllocated Cluster IP [IPv4]:192.168.1.100 is not allocated; "
                          "repairing",
                          "ClusterIPOutOfRange Cluster IP [IPv4]:192.168.0.1 is not within the service "
                          "CIDR 192.168.1.0/24; please recreate service",
                          "ClusterIPAlreadyAllocated Cluster IP [IPv4]:192.168.1.1 was assigned to "
                          "multiple services; please recreate service"));
  EXPECT_EQ(range.last.findings[3].service, (ServiceName{"default", "e"}));
}

TEST(RangeRepair, TwoFamilies) {  // [R4]
  const auto v4 = cidr("192.168.1.0/24");
  const auto v6 = cidr("2000::/108");
  const std::vector<AddressRangeSeen> ranges{{"serviceips", allocation(v4, {}), v4, {}},
                                             {"secondaryserviceips", allocation(v6, {}), v6, {}}};
  const std::vector<ServiceUse> services{
      with_ips("v4", {"192.168.1.1"}),
      with_ips("v6", {"2000::1"}),
      with_ips("both", {"192.168.1.100", "2000::2"}),
      with_ips("both-again", {"2000::2", "192.168.1.100"}),
      with_ips("third", {"192.168.1.2", "2000::1"}),
      with_ips("out4", {"192.168.0.1"}),
      with_ips("out6", {"3000::1"}),
      with_ips("out46", {"192.168.0.1", "3000::1"}),
      with_ips("out64", {"3000::1", "192.168.0.1"}),
      with_ips("none", {"None"}),
  };
  const auto repairs = repair_addresses(ranges, services);
  ASSERT_EQ(repairs.size(), 2U);
  EXPECT_EQ(read<service::ServiceCidr>(*repairs[0].write).free_count(), 251U);
  EXPECT_EQ(read<service::ServiceCidr>(*repairs[1].write).free_count(), 65533U);
  EXPECT_EQ(counted(repairs),
            (std::map<Type, std::size_t>{{Type::repair, 5}, {Type::out_of_range, 6}, {Type::duplicate, 3}}));
  EXPECT_EQ(repairs[1].findings.front().range, "secondaryserviceips");
  EXPECT_EQ(repairs[1].findings.front().message, "Cluster IP [IPv6]:2000::1 is not allocated; repairing");
}

TEST(RangeRepair, AFamilyThatIsNotThereAndATextThatIsNoAddress) {  // [R5]
  Addresses range("192.168.1.0/24", allocation(cidr("192.168.1.0/24"), {}));
  range.pass({with_ips("a", {"2000::1"}), with_ips("b", {"10.0.0"}), with_ips("c", {"192.168.1.1"})});
  EXPECT_EQ(counted(range.last), (std::map<Type, std::size_t>{{Type::invalid, 2}, {Type::repair, 1}}));
  EXPECT_THAT(messages(range.last), ElementsAre("ClusterIPNotValid Cluster IP 2000::1(IPv6) is of ip family that is no "
                                                "longer configured on cluster; please recreate service",
                                                "ClusterIPNotValid Cluster IP \"10.0.0\" is not a valid IP; please "
                                                "recreate service",
                                                "ClusterIPNotAllocated Cluster IP [IPv4]:192.168.1.1 is not allocated; "
                                                "repairing"));
}

/// kubernetes/kubernetes#108074: stored long ago, and in use as the kube-apiserver reads it.
TEST(RangeRepair, EachSpellingThatAKubeApiserverReadsIsAHolder) {
  const net::Address held = address("10.96.11.12");
  for (const char* text :
       {"10.96.011.012", "010.096.011.012", "::ffff:10.96.11.12", "::FFFF:0a60:0b0c", "0:0:0:0:0:ffff:10.96.011.12"}) {
    Addresses range("10.96.0.0/16", allocation(cidr("10.96.0.0/16"), {held}));
    for (int pass = 0; pass < 4; ++pass)
      EXPECT_THAT(range.pass({with_ips("zeros", {text})}).findings, IsEmpty()) << text;
    EXPECT_TRUE(range.has("10.96.11.12")) << text;
  }
  Addresses range("fd00:10:96::/112", allocation(cidr("fd00:10:96::/112"), {address("fd00:10:96::a")}));
  for (int pass = 0; pass < 4; ++pass) range.pass({with_ips("long", {"FD00:0010:0096:0000:0000:0000:0000:000A"})});
  EXPECT_TRUE(range.has("fd00:10:96::a"));
}

/// Nobody can tell which address it has.
TEST(RangeRepair, AServiceWhoseAddressCannotBeReadKeepsAllLeaks) {
  for (const char* text : {"10.96.11.12 ", "10.96.11.12/32", "10.96.11", "ten"}) {
    Addresses range("10.96.0.0/16", allocation(cidr("10.96.0.0/16"), {address("10.96.11.12")}));
    for (int pass = 0; pass < 5; ++pass) range.pass({with_ips("blanks", {text})});
    EXPECT_TRUE(range.has("10.96.11.12")) << text;
    EXPECT_THAT(messages(range.last).back(),
                "ClusterIPLeaked the cluster IP 10.96.11.12 may have leaked: kept, as the address of "
                "Service default/blanks can't be read and may be this one");
  }
}

TEST(RangeRepair, Ports) {  // [R8]
  const PortRangeSeen seen{"servicenodeports", allocation(ports("100-200"), {}), ports("100-200"), {}};
  const RangeRepair repair =
      repair_node_ports(seen, std::vector{with_ports("a", {{kTcp, 111}}), with_ports("b", {{kTcp, 122}, {kTcp, 133}}),
                                          with_ports("c", {{kTcp, 201}}), with_ports("d", {}),
                                          with_ports("e", {{kTcp, 111}}), with_ports("f", {}, 144)});
  EXPECT_EQ(read<service::NodePortRange>(*repair.write).free_count(), 97U);
  EXPECT_EQ(counted(repair),
            (std::map<Type, std::size_t>{{Type::repair, 4}, {Type::out_of_range, 1}, {Type::duplicate, 1}}));
  EXPECT_THAT(messages(repair), ElementsAre("PortNotAllocated Port 111 is not allocated; repairing",
                                            "PortNotAllocated Port 122 is not allocated; repairing",
                                            "PortNotAllocated Port 133 is not allocated; repairing",
                                            "PortOutOfRange Port 201 is not within the port range 100-200; please "
                                            "recreate service",
                                            "PortAlreadyAllocated Port 111 was assigned to multiple services; please "
                                            "recreate service",
                                            "PortNotAllocated Port 144 is not allocated; repairing"));
}

TEST(RangeRepair, CollectsNodePorts) {  // [R9] [R10]
  const auto collected = [](std::vector<ServiceUse::NodePort> node_ports, std::uint16_t health = 0) {
    return collect_node_ports(with_ports("a", std::move(node_ports), health));
  };
  EXPECT_THAT(collected({{kTcp, 111}, {kTcp, 111}, {kUdp, 112}}), ElementsAre(111, 111, 112));
  EXPECT_THAT(collected({{kTcp, 111}, {kTcp, 112}, {kUdp, 111}}), ElementsAre(111, 112));
  EXPECT_THAT(collected({{kUdp, 111}, {kTcp, 112}}, 113), ElementsAre(111, 112, 113));
  EXPECT_THAT(collected({{kUdp, 111}, {kTcp, 112}}, 111), ElementsAre(111, 112));
  EXPECT_THAT(collected({{kUdp, 111}, {kTcp, 112}}, 112), ElementsAre(111, 112, 112));
}

TEST(RangeRepair, AWiderRange) {  // [R11]
  Addresses range("10.0.0.0/16",
                  allocation(cidr("10.0.0.0/24"), {address("10.0.0.1"), address("10.0.0.7"), address("10.0.0.9")}));
  EXPECT_EQ(range.pass({with_ips("a", {"10.0.0.1"}), with_ips("b", {"10.0.0.7"})}).range, "10.0.0.0/24");
  EXPECT_EQ(range.seen.stored,
            allocation(cidr("10.0.0.0/16"), {address("10.0.0.1"), address("10.0.0.7"), address("10.0.0.9")}))
      << "what has leaked is kept";
  EXPECT_EQ(range.last.leaks, (Leaks{{address("10.0.0.9"), 1}}));
}

TEST(RangeRepair, AnotherRange) {  // [R12]
  Addresses range("10.1.0.0/16", allocation(cidr("10.0.0.0/16"), {address("10.0.0.5"), address("10.0.0.6")}));
  EXPECT_EQ(range.pass({with_ips("a", {"10.0.0.5"})}).write, (RangeAllocation{"10.1.0.0/16", "", nullptr}));
  EXPECT_EQ(counted(range.last), (std::map<Type, std::size_t>{{Type::out_of_range, 1}}));
  EXPECT_THAT(range.last.leaks, IsEmpty());
}

TEST(RangeRepair, ARecordThatIsNoRangeStopsOnlyItself) {
  const auto v4 = cidr("192.168.1.0/24");
  const auto v6 = cidr("2000::/108");
  const std::vector<AddressRangeSeen> ranges{{"serviceips", RangeAllocation{"rubbish", "", nullptr}, v4, {}},
                                             {"secondaryserviceips", allocation(v6, {}), v6, {}}};
  const auto repairs = repair_addresses(ranges, std::vector{with_ips("a", {"192.168.1.1", "2000::1"})});
  ASSERT_TRUE(repairs[0].failure);
  EXPECT_EQ(repairs[0].failure->code, ErrorCode::corrupt);
  EXPECT_TRUE(
      repairs[0].failure->message.starts_with("unable to rebuild allocator from snapshots for family:IPv4 with error:"))
      << repairs[0].failure->message;
  EXPECT_FALSE(repairs[0].write);
  EXPECT_TRUE(repairs[1].write);
}

TEST(RangeRepair, BitsBeyondTheEndAreDroppedAndTold) {
  Addresses range("10.0.0.0/28", RangeAllocation{"10.0.0.0/28", "\xff\xff", nullptr});
  range.pass({});
  EXPECT_EQ(range.last.findings.front().type, Type::unknown);
  EXPECT_EQ(range.last.findings.front().message, "the range \"10.0.0.0/28\" had 2 bits beyond its end; dropping them");
  EXPECT_EQ(range.seen.stored->data, "\x3f\xff");
}

TEST(RangeRepair, ZerosInFrontAreNoReasonToWrite) {
  Addresses range("10.0.0.0/28", RangeAllocation{"10.0.0.0/28", std::string("\0\1", 2), nullptr});
  EXPECT_EQ(range.pass({with_ips("a", {"10.0.0.1"})}).write, std::nullopt);
}

TEST(RangeRepair, BandsAreThoseOfTheRecord) {
  Addresses range("10.0.0.0/16", allocation(cidr("10.0.0.0/24"), {address("10.0.0.1"), address("10.0.0.200")}));
  range.pass({});
  EXPECT_EQ(range.last.in_static, (BandUse{16, 1}));
  EXPECT_EQ(range.last.in_dynamic, (BandUse{238, 1}));
}

/// The reference's loop in the plainest form, with the quirks of docs/notes/service-ranges.md#quirks mended.
struct Model {
  std::set<int> stored;
  std::map<int, int> seen;  ///< value: passes in which it looked leaked

  std::map<Type, std::size_t> pass(const std::vector<std::vector<int>>& services, int first, int last) {
    std::map<Type, std::size_t> counts;
    std::set<int> rebuilt;
    for (const auto& service : services) {
      for (const int value : service) {
        if (value < first || value > last) {
          ++counts[Type::out_of_range];
        } else if (!rebuilt.insert(value).second) {
          ++counts[Type::duplicate];
        } else if (!stored.contains(value)) {
          ++counts[Type::repair];
        }
      }
    }
    std::map<int, int> now;
    std::set<int> kept = rebuilt;
    for (const int value : stored) {
      if (rebuilt.contains(value)) continue;
      const int passes = (seen.contains(value) ? seen[value] : 0) + 1;
      if (passes == 3) {
        ++counts[Type::leak];
      } else {
        now[value] = passes;
        kept.insert(value);
      }
    }
    stored = kept;
    seen = now;
    return counts;
  }
};

RC_GTEST_PROP(RangeRepairModel, DoesWhatTheModelDoes, ()) {
  constexpr int kFirst = 100, kLast = 115;
  PortRangeSeen seen{"servicenodeports", allocation(ports("100-115"), {}), ports("100-115"), {}};
  Model model;
  const int passes = *rc::gen::inRange(1, 12);
  for (int pass = 0; pass < passes; ++pass) {
    // Somebody takes values that no Service has, and gives back some that one has.
    for (const int value : *rc::gen::container<std::vector<int>>(rc::gen::inRange(kFirst, kLast + 1))) {
      if (*rc::gen::inRange(0, 3) == 0) {
        if (!model.stored.erase(value)) model.stored.insert(value);
      }
    }
    const auto held = *rc::gen::container<std::vector<int>>(rc::gen::inRange(kFirst - 1, kLast + 2));
    std::vector<std::vector<int>> services;
    std::vector<ServiceUse> uses;
    for (const int value : held) {
      services.push_back({value});
      uses.push_back(with_ports(std::to_string(uses.size()), {{kTcp, static_cast<std::uint16_t>(value)}}));
    }
    seen.stored = allocation(ports("100-115"), {model.stored.begin(), model.stored.end()});
    const std::set<int> before = model.stored;
    const auto counts = model.pass(services, kFirst, kLast);

    const RangeRepair repair = repair_node_ports(seen, uses);
    seen.leaks = repair.leaks;
    RC_ASSERT(counted(repair) == counts);
    RC_ASSERT(repair.write.has_value() == (model.stored != before));
    if (repair.write) {
      RC_ASSERT(*repair.write == allocation(ports("100-115"), {model.stored.begin(), model.stored.end()}));
    }
    std::map<int, int> leaks;
    for (const LeakedValue& leak : repair.leaks) leaks[std::get<int>(leak.value)] = static_cast<int>(leak.passes);
    RC_ASSERT(leaks == model.seen);
  }
}

/// "NAME: CODE" of what failed, "NAME RANGE" of what is repaired.
std::vector<std::string> words_of(const std::vector<RangeRepair>& decided) {
  std::vector<std::string> words;
  for (const RangeRepair& repair : decided) {
    const std::string what = repair.failure ? ": " + std::string(name_of(repair.failure->code))
                                            : " " + (repair.write ? repair.write->range : repair.range);
    words.push_back(repair.name + what);
  }
  return words;
}

TEST(RangeDecision, TheFlagsSayWhatIsNotAsItsRecordSays) {
  using Words = std::vector<std::string>;
  struct Row {
    const char* what;
    const char* first;  ///< the record; nullptr: none
    const char* second;
    const char* primary;  ///< the flags; nullptr: none
    bool in_use;          ///< a Service has an address
    Words words;
  };
  const Row rows[] = {
      {"nothing", nullptr, nullptr, nullptr, false, {}},
      {"nothing, and somebody needs it", nullptr, nullptr, nullptr, true, {"serviceips: invalid_argument"}},
      {"made", nullptr, nullptr, "10.96.0.0/24", false, {"serviceips 10.96.0.0/24"}},
      {"made where a pool is", nullptr, nullptr, "10.9.0.0/24", false, {"serviceips: refused_by_configuration"}},
      {"as it is where a pool is", "10.9.0.0/24", nullptr, nullptr, false, {"serviceips 10.9.0.0/24"}},
      {"as recorded",
       "10.96.0.0/24",
       "fd00::/112",
       nullptr,
       false,
       {"serviceips 10.96.0.0/24", "secondaryserviceips fd00::/112"}},
      {"a record that is no range", "10.96.0.0", nullptr, nullptr, false, {"serviceips: corrupt"}},
      {"two of one family",
       "10.96.0.0/24",
       "10.97.0.0/24",
       nullptr,
       false,
       {"secondaryserviceips: refused_by_configuration"}},
      {"a second one that the flags leave out stays",
       "10.96.0.0/24",
       "fd00::/112",
       "10.96.0.0/24",
       false,
       {"serviceips 10.96.0.0/24"}},
  };
  for (const Row& row : rows) {
    TestRegister reg;
    Pool pool;
    pool.name = "p";
    pool.cidr = prefix("10.9.0.0/16");
    reg.put(pool_key("p"), pool);
    RangesSeen seen;
    if (row.first != nullptr) seen.stored[std::string(kServiceIps)] = {row.first, "", {}};
    if (row.second != nullptr) seen.stored[std::string(kSecondaryServiceIps)] = {row.second, "", {}};
    ServiceRanges wanted;
    if (row.primary != nullptr) wanted.cidrs.emplace().primary = prefix(row.primary);
    std::vector<ServiceUse> services;
    if (row.in_use) services.emplace_back().cluster_ips = {"10.96.0.1"};
    const auto plan = reg.plan<Words>([&](const Snapshot& snapshot) -> Step<Words> {
      Reader reader(snapshot);
      const AddressClaims claims(reader);
      if (!reader.is_all_read()) return reader.missing();
      return Plan<Words>{words_of(decide_addresses(seen, wanted, services, claims)), {}};
    });
    ASSERT_TRUE(plan) << row.what;
    EXPECT_EQ(plan->answer, row.words) << row.what;
  }
}

}  // namespace

}  // namespace croft::core::audit
