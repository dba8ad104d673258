#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "services/audit/range_repair.h"

namespace croft::core::audit {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Type = RepairFinding::Type;
using namespace std::chrono_literals;

const WallTime kNow{std::chrono::hours(1000)};

struct Scene {
  std::vector<IpAddressObject> objects;
  std::vector<ServiceCidrObject> cidrs;
  std::vector<ServiceUse> services;

  Scene() { cidr("kubernetes", {"10.0.0.0/24", "fd00::/112"}); }

  void cidr(const std::string& name, const std::vector<std::string>& texts) {
    ServiceCidrObject object;
    object.name = name;
    for (const std::string& text : texts) object.cidrs.push_back(*net::parse_prefix(text));
    cidrs.push_back(std::move(object));
  }
  ServiceUse& service(const std::string& name, std::vector<std::string> ips,
                      ServiceType type = ServiceType::cluster_ip) {
    services.push_back({{"default", name}, kNow - 1h, type, std::move(ips), {}, 0});
    return services.back();
  }
  IpAddressObject& object(const std::string& ip, const std::string& parent, std::chrono::seconds age = 1h) {
    objects.push_back(ip_address_for(address(ip), {"default", parent}));
    objects.back().created = kNow - age;
    return objects.back();
  }
  /// A look that every leaked object was seen in before, for as long as it takes.
  [[nodiscard]] IpAddressAudit audit(std::chrono::nanoseconds seen_for = kIpAddressLeakAge) const {
    LeakedFor leaked_for;
    for (const IpAddressObject& one : objects) leaked_for[one.address] = seen_for;
    return audit_ip_addresses(objects, cidrs, services, kNow, leaked_for);
  }
  [[nodiscard]] IpAddressAudit first_look() const { return audit_ip_addresses(objects, cidrs, services, kNow, {}); }
};

std::vector<std::string> told(const IpAddressAudit& audit) {
  std::vector<std::string> result;
  for (const RepairFinding& finding : audit.findings) {
    result.push_back(fmt::format("{} {}: {}", name_of(finding.type), finding.reason, finding.message));
  }
  return result;
}

std::vector<std::string> done(const IpAddressAudit& audit) {
  std::vector<std::string> result;
  for (const IpAddressMend& mend : audit.mends) {
    result.push_back(fmt::format("{}{}{}", mend.remove ? "-" : "", mend.make ? "+" : "", mend.address) +
                     (mend.make ? " " + mend.make->parent.name : ""));
  }
  return result;
}

TEST(IpAddressAudit, ACleanCluster) {
  Scene scene;
  scene.service("a", {"10.0.0.1", "fd00::1"});
  scene.service("headless", {});
  scene.object("10.0.0.1", "a");
  scene.object("fd00::1", "a");
  const IpAddressAudit audit = scene.audit();
  EXPECT_THAT(audit.findings, IsEmpty());
  EXPECT_THAT(audit.mends, IsEmpty());
  ASSERT_EQ(audit.cidrs.size(), 2U);
  EXPECT_EQ(audit.cidrs[0].in_static, (BandUse{16, 1}));
  EXPECT_EQ(audit.cidrs[0].in_dynamic, (BandUse{238, 0}));
  EXPECT_EQ(audit.cidrs[1].in_static, (BandUse{256, 1}));
  EXPECT_EQ(audit.cidrs[1].in_dynamic, (BandUse{65279, 0}));
}

TEST(IpAddressAudit, MissingObjectsAreMade) {
  Scene scene;
  scene.service("a", {"10.0.0.1"});
  const IpAddressAudit audit = scene.audit();
  EXPECT_THAT(told(audit),
              ElementsAre("repair ClusterIPNotAllocated: Cluster IP [IPv4]: 10.0.0.1 is not allocated; repairing"));
  EXPECT_THAT(done(audit), ElementsAre("+10.0.0.1 a"));
  const IpAddressObject& made = *audit.mends.front().make;
  EXPECT_EQ(made.parent, (ServiceName{"default", "a"}));
  EXPECT_EQ(made.parent_resource, "services");
  EXPECT_EQ(made.labels,
            (std::map<std::string, std::string>{{"ipaddress.kubernetes.io/ip-family", "IPv4"},
                                                {"ipaddress.kubernetes.io/managed-by", "ipallocator.k8s.io"}}));
}

TEST(IpAddressAudit, WhatCannotBeMended) {
  Scene scene;
  scene.service("a", {"10.0.1.1"});
  scene.service("b", {"10.0.0.0"});
  scene.service("c", {"10.0.0"});
  scene.service("d", {"10.0.0.255"});
  EXPECT_THAT(told(scene.audit()),
              ElementsAre("outOfRange ClusterIPOutOfRange: Cluster IP [IPv4]: 10.0.1.1 is not within any configured "
                          "Service CIDR; please recreate service",
                          "outOfRange ClusterIPOutOfRange: Cluster IP [IPv4]: 10.0.0.0 is not within any configured "
                          "Service CIDR; please recreate service",
                          "invalid ClusterIPNotValid: Cluster IP \"10.0.0\" is not a valid IP; please recreate service",
                          "outOfRange ClusterIPOutOfRange: Cluster IP [IPv4]: 10.0.0.255 is not within any configured "
                          "Service CIDR; please recreate service"));
  EXPECT_THAT(scene.audit().mends, IsEmpty());
  scene.cidr("wide", {"10.0.0.0/16"});
  EXPECT_THAT(done(scene.audit()), ElementsAre("+10.0.1.1 a", "+10.0.0.255 d")) << "inside the wider one";
}

TEST(IpAddressAudit, EachSpellingThatAKubeApiserverReadsIsAHolder) {
  for (const char* text : {"10.0.00.01", "::ffff:10.0.0.1"}) {
    Scene scene;
    scene.service("zeros", {text});
    scene.object("10.0.0.1", "zeros");
    EXPECT_THAT(scene.audit().findings, IsEmpty()) << text;
    EXPECT_THAT(scene.audit().mends, IsEmpty()) << text;
  }
}

TEST(IpAddressAudit, AServiceWhoseAddressCannotBeReadKeepsAllLeaks) {
  Scene scene;
  scene.service("blanks", {"10.0.0.1 "});
  scene.object("10.0.0.1", "blanks");
  scene.object("10.0.0.2", "gone");
  scene.object("fd00::2", "gone");
  EXPECT_THAT(
      told(scene.audit()),
      ElementsAre("invalid ClusterIPNotValid: Cluster IP \"10.0.0.1 \" is not a valid IP; please recreate service",
                  "leak IPAddressWrongReference: IPAddress: \"10.0.0.1\" for Service default/blanks has a wrong "
                  "reference: kept, as the address of Service default/blanks can't be read and may be this one",
                  "leak IPAddressNotAllocated: IPAddress: \"10.0.0.2\" for Service default/gone appears to have "
                  "leaked: kept, as the address of Service default/blanks can't be read and may be this one",
                  "leak IPAddressNotAllocated: IPAddress: \"fd00::2\" for Service default/gone appears to have "
                  "leaked: kept, as the address of Service default/blanks can't be read and may be this one"));
  EXPECT_THAT(done(scene.audit()), IsEmpty());
}

TEST(IpAddressAudit, WrongReferences) {
  Scene scene;
  scene.service("a", {"10.0.0.1"});
  scene.service("b", {"10.0.0.2"});
  scene.object("10.0.0.1", "gone");
  scene.object("10.0.0.2", "b").parent_resource = "pods";
  const IpAddressAudit audit = scene.audit();
  EXPECT_THAT(told(audit), ElementsAre("repair ClusterIPNotAllocated: the ClusterIP [IPv4]: 10.0.0.1 for Service "
                                       "default/a has a wrong reference; repairing",
                                       "repair ClusterIPNotAllocated: the ClusterIP [IPv4]: 10.0.0.2 for Service "
                                       "default/b has a wrong reference; repairing"));
  EXPECT_THAT(done(audit), ElementsAre("-+10.0.0.1 a", "-+10.0.0.2 b"));
}

TEST(IpAddressAudit, TwoServicesOneAddress) {
  Scene scene;
  scene.service("a", {"10.0.0.1"});
  scene.service("b", {"10.0.0.1"});
  scene.object("10.0.0.1", "a");
  EXPECT_THAT(told(scene.audit()),
              ElementsAre("duplicate ClusterIPAlreadyAllocated: Cluster IP [IPv4]:10.0.0.1 was assigned to multiple "
                          "services; please recreate service"));
  EXPECT_EQ(scene.audit().findings.front().service, (ServiceName{"default", "b"}));
  EXPECT_THAT(scene.audit().mends, IsEmpty());
  scene.objects.clear();
  EXPECT_THAT(done(scene.audit()), ElementsAre("+10.0.0.1 a")) << "the first gets it";
  EXPECT_EQ(scene.audit().findings.back().type, Type::duplicate);
}

TEST(IpAddressAudit, AnObjectOfAServiceWithAnotherAddress) {
  Scene scene;
  scene.service("a", {"10.0.0.1"});
  scene.service("b", {"10.0.0.2"});
  scene.object("10.0.0.1", "b");
  scene.object("10.0.0.2", "b");
  const IpAddressAudit audit = scene.audit();
  EXPECT_THAT(told(audit), ElementsAre("leak IPAddressWrongReference: IPAddress: \"10.0.0.1\" for Service default/b "
                                       "has a wrong reference: cleaning up"));
  EXPECT_THAT(done(audit), ElementsAre("-+10.0.0.1 a")) << "the one that has the address gets it";
}

TEST(IpAddressAudit, WrongLabels) {
  Scene scene;
  scene.service("a", {"10.0.0.1"});
  scene.object("10.0.0.1", "a").labels["ipaddress.kubernetes.io/ip-family"] = "IPv6";
  EXPECT_THAT(done(scene.audit()), ElementsAre("-+10.0.0.1 a"));
  scene.objects.front().labels.clear();
  EXPECT_THAT(done(scene.audit()), ElementsAre("-+10.0.0.1 a"));
}

TEST(IpAddressAudit, LeaksGoAfterAMinute) {  // [O7]
  Scene scene;
  scene.object("10.0.0.1", "gone", 70s);
  scene.object("10.0.0.2", "gone", 30s);
  const IpAddressAudit audit = scene.audit();
  EXPECT_THAT(told(audit), ElementsAre("leak IPAddressNotAllocated: IPAddress: \"10.0.0.1\" for Service default/gone "
                                       "appears to have leaked: cleaning up"));
  EXPECT_THAT(done(audit), ElementsAre("-10.0.0.1"));
  EXPECT_EQ(audit.waiting, 1U);
}

// This machine's clock may be hours ahead of the one that wrote the object's time.
TEST(IpAddressAudit, OneLookFreesNothingHoweverOldAnObjectLooks) {
  Scene scene;
  scene.object("10.0.0.1", "in-the-making", 24h);
  scene.object("10.0.0.2", "no-service", 24h).parent_group = "example.com";
  for (const IpAddressAudit& audit : {scene.first_look(), scene.audit(kIpAddressLeakAge - 1ns)}) {
    EXPECT_THAT(audit.mends, IsEmpty());
    EXPECT_EQ(audit.to_be_seen_again, 2U);
    EXPECT_THAT(audit.leaked, ElementsAre("10.0.0.1", "10.0.0.2"));
    ASSERT_EQ(audit.findings.size(), 2U);
    EXPECT_FALSE(audit.findings[0].mended);
    EXPECT_THAT(told(audit)[0], testing::HasSubstr("appears to have leaked: flagging for later clean up"));
  }
  EXPECT_THAT(done(scene.audit()), ElementsAre("-10.0.0.1", "-10.0.0.2"));
}

TEST(IpAddressAudit, CroftsOwnServicesHaveNoObjects) {
  Scene scene;
  scene.service("web", {"10.0.0.1"}).beside_kubernetes = true;
  scene.service("other", {"10.0.0.2"}).beside_kubernetes = true;
  scene.service("web", {"10.0.0.2"});
  scene.object("10.0.0.2", "web");
  const IpAddressAudit audit = scene.audit();
  ASSERT_EQ(audit.findings.size(), 2U);
  EXPECT_EQ(audit.findings[0].type, Type::invalid);
  EXPECT_EQ(audit.findings[1].type, Type::duplicate);
  EXPECT_EQ(audit.findings[1].service, (ServiceName{"default", "other"}));
  EXPECT_THAT(audit.mends, IsEmpty()) << "an object for Croft's own would be a leak to Kubernetes";
}

TEST(IpAddressAudit, AnObjectFromTheFutureIsNew) {
  Scene scene;
  scene.object("10.0.0.1", "gone", -1h);
  EXPECT_THAT(scene.audit().mends, IsEmpty());
}

TEST(IpAddressAudit, GraceForServicesThatAreChanging) {
  Scene scene;
  scene.service("external", {}, ServiceType::external_name);
  scene.object("10.0.0.1", "external", 59s);
  scene.service("young", {});
  scene.object("10.0.0.2", "young", 4s);
  EXPECT_THAT(scene.audit().findings, IsEmpty());
  EXPECT_EQ(scene.audit().waiting, 2U);
  scene.objects[0].created -= 1s;
  scene.objects[1].created -= 1s;
  EXPECT_THAT(done(scene.audit()), ElementsAre("-10.0.0.1", "-10.0.0.2"));
}

TEST(IpAddressAudit, ObjectsOfOthersAreLeftAlone) {
  Scene scene;
  scene.object("10.0.0.1", "gone").labels.clear();
  EXPECT_THAT(scene.audit().findings, IsEmpty());
  EXPECT_THAT(scene.audit().mends, IsEmpty());
}

TEST(IpAddressAudit, AnObjectThatRefersToNoService) {
  Scene scene;
  scene.object("10.0.0.1", "a", 1s).parent_group = "example.com";
  EXPECT_THAT(done(scene.audit()), ElementsAre("-10.0.0.1"));
}

}  // namespace
}  // namespace croft::core::audit
