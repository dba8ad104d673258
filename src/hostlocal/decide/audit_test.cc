#include "hostlocal/decide/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"

namespace croft::core::host_local {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using namespace std::chrono_literals;
using Kind = Finding::Kind;
using Netns = RuntimeAttachment::Netns;

/// A node that booted an hour ago, with one reservation of ten minutes that a test spoils in one way.
class HostLocalAuditTest : public testing::Test {
 protected:
  HostLocalAuditTest() {
    now_.wall = WallTime(1'000'000s);
    now_.since_boot = 1h;
    life_.namespaces = 3;
  }

  Reservation& reserve(std::string_view text, std::optional<Holder> holder, std::chrono::seconds age) {
    Reservation reservation{address(text), std::move(holder), now_.wall - age, false, std::string(text)};
    reservation.empty = !reservation.holder;
    return directory_.reservations.emplace_back(std::move(reservation));
  }
  Reservation& reserve(std::chrono::seconds age = 10min) { return reserve("10.1.0.2", Holder{"c1", "eth0"}, age); }
  RuntimeAttachment& cache(Netns netns, const std::string& container = "c1", const std::string& ifname = "eth0") {
    life_.attachments.push_back({{"net", container, ifname}, netns, "/run/netns/x", {}, {}, "/cache/entry", {}});
    return life_.attachments.back();
  }
  std::vector<Finding> audit() const { return audit_host_local({"net", directory_, life_, now_, 60s}); }
  /// "leak 10.1.0.2 proven".
  std::vector<std::string> findings() const {
    std::vector<std::string> texts;
    for (const Finding& f : audit()) {
      texts.push_back(std::string(name_of(f.kind)) + " " + f.subject + (f.proven ? " proven" : ""));
    }
    return texts;
  }
  std::vector<std::string> evidence() const { return audit().at(0).evidence; }

  Instant now_;
  Directory directory_;
  SignsOfLife life_;
};

TEST_F(HostLocalAuditTest, NothingSpeaksForTheHolder) {
  reserve();
  EXPECT_THAT(findings(), ElementsAre("leak 10.1.0.2 proven"));
  EXPECT_THAT(evidence(), ElementsAre("held by container c1, interface eth0",
                                      "configured in none of the 3 network namespaces looked at",
                                      "the runtime's cache has no entry about it",
                                      AllOf(HasSubstr("written 10m ago"), Not(HasSubstr("boot")))));
  EXPECT_FALSE(audit()[0].before_boot);
}

TEST_F(HostLocalAuditTest, WhatSpeaksForTheHolder) {
  const auto found_after = [&](const std::function<void()>& arrange) {
    directory_ = {};
    life_ = {};
    life_.namespaces = 3;
    arrange();
    return findings();
  };
  const auto configured = [&] { reserve(2h), life_.configured[address("10.1.0.2")] = "eth0 in /run/netns/a"; };
  EXPECT_THAT(found_after(configured), IsEmpty());
  EXPECT_THAT(found_after([&] { reserve(2h), cache(Netns::present); }), IsEmpty());
  const auto another_network = [&] {
    reserve();
    cache(Netns::gone);
    cache(Netns::present, "c1", "net1").owner.network = "another";
  };
  EXPECT_THAT(found_after(another_network), IsEmpty()) << "any living attachment of the container";
  const auto dashes = [&] {
    reserve("10.1.0.2", Holder{"c-1", "eth0"}, 10min);
    life_.unreadable = {{"another-net-c-1-eth0", "/cache/another-net-c-1-eth0: empty"}};
  };
  EXPECT_THAT(found_after(dashes), ElementsAre("undecided 10.1.0.2")) << "a name with dashes is read in every way";
  const auto unreadable = [&] { reserve("10.1.0.3", std::nullopt, 2h).empty = false; };
  EXPECT_THAT(found_after(unreadable), ElementsAre("unreadable_file 10.1.0.3")) << "never proven";
  const auto no_interface = [&] { reserve("10.1.0.3", Holder{"c1", ""}, 10min), cache(Netns::present); };
  EXPECT_THAT(found_after(no_interface), IsEmpty());
  life_.attachments[0].netns = Netns::gone;
  EXPECT_THAT(findings(), ElementsAre("leak 10.1.0.3 proven"));
}

TEST_F(HostLocalAuditTest, WrittenBeforeThisBoot) {
  reserve(2h);
  EXPECT_TRUE(audit()[0].before_boot);
  EXPECT_THAT(evidence(), Contains(HasSubstr("written 2h ago, 1970-01-12T11:46:40Z, before this boot")));
}

TEST_F(HostLocalAuditTest, ACacheEntryWhoseNamespaceIsGoneIsEvidence) {
  reserve();
  cache(Netns::gone);
  EXPECT_THAT(findings(), ElementsAre("leak 10.1.0.2 proven"));
  EXPECT_THAT(evidence(), Contains("the network namespace /run/netns/x of its cache entry /cache/entry is gone"));
}

TEST_F(HostLocalAuditTest, ALivingResultWithTheAddressKeeps) {
  reserve();
  reserve("10.1.0.3", std::nullopt, 10min);
  cache(Netns::present, "c9").addresses = {address("10.1.0.2"), address("10.1.0.3")};
  EXPECT_THAT(findings(), ElementsAre("empty_file 10.1.0.3"));
  life_.attachments[0].owner.network = "another";  // there the same address is another one
  EXPECT_THAT(findings(), ElementsAre("leak 10.1.0.2 proven", "empty_file 10.1.0.3 proven"));
}

TEST_F(HostLocalAuditTest, DoubtKeeps) {
  reserve();
  cache(Netns::unclear);
  EXPECT_THAT(findings(), ElementsAre("undecided 10.1.0.2"));
  life_.attachments[0].netns_path.clear();
  EXPECT_THAT(findings(), ElementsAre("undecided 10.1.0.2"));
  EXPECT_THAT(evidence(), Contains(HasSubstr("names no network namespace")));
}

TEST_F(HostLocalAuditTest, AnEntryWithoutNamespaceSpeaksForThisBootOnly) {
  reserve();
  auto& entry = cache(Netns::unclear);
  entry.netns_path.clear();
  entry.written = now_.wall - 59min;
  EXPECT_THAT(findings(), ElementsAre("undecided 10.1.0.2"));
  entry.written = now_.wall - 61min;
  EXPECT_THAT(findings(), ElementsAre("leak 10.1.0.2 proven"));
  EXPECT_THAT(evidence(), Contains("its cache entry /cache/entry is from before this boot"));
  entry.netns_path = "/run/netns/x";
  EXPECT_THAT(findings(), ElementsAre("undecided 10.1.0.2"));
}

TEST_F(HostLocalAuditTest, AnEntryWithTheNumberOfAProcessSpeaksForThisBootOnly) {
  reserve();
  auto& entry = cache(Netns::present);
  entry.netns_path = "/proc/17/ns/net";
  entry.written = now_.wall - 59min;
  EXPECT_THAT(findings(), IsEmpty());
  entry.written = now_.wall - 61min;
  EXPECT_THAT(findings(), ElementsAre("leak 10.1.0.2 proven"));
  entry.netns_path = "/run/netns/x";
  EXPECT_THAT(findings(), IsEmpty());
}

TEST_F(HostLocalAuditTest, AnUnreadableEntryThatMayBeAboutTheHolderKeeps) {
  reserve();
  reserve("10.1.0.3", Holder{"old", ""}, 10min);
  life_.unreadable = {{"net-c1-eth1", "/cache/net-c1-eth1: empty"},
                      {"net-other-eth0", "/cache/net-other-eth0: empty"},
                      {"c1", "/cache/c1: empty"}};
  EXPECT_THAT(findings(), ElementsAre("leak 10.1.0.2 proven", "leak 10.1.0.3 proven"));
  life_.unreadable.push_back({"net-c1-eth0", "/cache/net-c1-eth0: empty"});
  life_.unreadable.push_back({"net-old-eth7", "/cache/net-old-eth7: empty"});
  EXPECT_THAT(findings(), ElementsAre("undecided 10.1.0.2", "undecided 10.1.0.3"));
  EXPECT_THAT(evidence(), Contains("its cache entry can't be read: /cache/net-c1-eth0: empty"));
}

TEST_F(HostLocalAuditTest, AnotherAddressOfTheContainerThatIsConfiguredKeeps) {
  reserve(2h);
  reserve("fd00::2", Holder{"c1", "eth0"}, 2h);
  life_.configured[address("10.1.0.2")] = "eth0 in /run/netns/a";
  EXPECT_THAT(findings(), ElementsAre("undecided fd00::2"));
  EXPECT_THAT(evidence(), Contains("the container lives: its address 10.1.0.2 is configured on eth0 in /run/netns/a"));
}

TEST_F(HostLocalAuditTest, WhatCouldNotAllBeSeenProvesNothing) {
  reserve(2h);
  reserve("10.1.0.3", std::nullopt, 2h);
  life_.unseen = {"/proc/1/ns/net: Operation not permitted"};
  EXPECT_THAT(findings(), ElementsAre("undecided 10.1.0.2", "empty_file 10.1.0.3", "not_all_seen this machine"));
  EXPECT_THAT(evidence(), Contains(HasSubstr("not everything could be looked at: /proc/1/ns/net")));
}

TEST_F(HostLocalAuditTest, YoungFilesAreNoNews) {
  reserve(60s);
  reserve("10.1.0.3", std::nullopt, 5s);
  reserve("10.1.0.4", Holder{"c2", ""}, -1h);  // the clock was set back
  EXPECT_THAT(findings(), IsEmpty());
  directory_.reservations[0].written -= 1s;
  EXPECT_THAT(findings(), ElementsAre("leak 10.1.0.2 proven"));
}

TEST_F(HostLocalAuditTest, EmptyFilesOfNobodyAreProven) {
  reserve("10.1.0.3", std::nullopt, 10min);
  EXPECT_THAT(findings(), ElementsAre("empty_file 10.1.0.3 proven"));
  life_.configured[address("10.1.0.3")] = "eth0 in /run/netns/a";
  EXPECT_THAT(findings(), ElementsAre("empty_file 10.1.0.3"));
  EXPECT_THAT(evidence(), Contains("the address is configured on eth0 in /run/netns/a"));
}

TEST_F(HostLocalAuditTest, BothLooksMustProveTheSameReservation) {
  reserve();
  reserve("10.1.0.3", Holder{"c2", "eth0"}, 10min);
  reserve("10.1.0.4", Holder{"c3", "eth0"}, 10min);
  const auto first = audit();
  cache(Netns::present, "c2");
  directory_.reservations[2].holder->container_id = "c4";  // released and given out again
  reserve("10.1.0.5", Holder{"c5", "eth0"}, 10min);
  const auto both = proven_by_both(first, audit());
  ASSERT_EQ(both.size(), 1U);
  EXPECT_EQ(both[0].subject, "10.1.0.2");
}

TEST_F(HostLocalAuditTest, TheBrakeCountsWhatWasWrittenSinceThisBoot) {
  for (int i = 2; i < 6; ++i) reserve("10.1.0." + std::to_string(i), Holder{"c", "eth0"}, i < 4 ? 2h : 10s * 60);
  const auto all = audit();
  ASSERT_EQ(all.size(), 4U);
  EXPECT_TRUE(check_share(all, 4, 0.5));
  const auto refused = check_share(all, 4, 0.4);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::refused_for_safety);
  EXPECT_THAT(refused.error().message, HasSubstr("2 of 4 reservations"));
  EXPECT_TRUE(check_share(all, 4, 1));
  EXPECT_TRUE(check_share({}, 0, 0));
}

TEST_F(HostLocalAuditTest, AttachmentsAreFoundByHolder) {
  cache(Netns::present, "c1", "eth0");
  cache(Netns::present, "c1", "net1");
  cache(Netns::present, "c2").owner.network = "another";
  const auto found = attachments_of(life_.attachments, "net");
  EXPECT_EQ(find_attachment(found, {"c1", "net1"}), &life_.attachments[1]);
  EXPECT_NE(find_attachment(found, {"c1", ""}), nullptr);
  EXPECT_EQ(find_attachment(found, {"c1", "eth1"}), nullptr);
  EXPECT_EQ(find_attachment(found, {"c2", "eth0"}), nullptr);
}

TEST(AgeText, TheTwoLargestUnits) {
  EXPECT_EQ(age_text(0s), "0s");
  EXPECT_EQ(age_text(-5s), "0s");
  EXPECT_EQ(age_text(59s), "59s");
  EXPECT_EQ(age_text(60s), "1m");
  EXPECT_EQ(age_text(61s), "1m1s");
  EXPECT_EQ(age_text(3h + 12min + 5s), "3h12m");
  EXPECT_EQ(age_text(3h + 5s), "3h");
  EXPECT_EQ(age_text(292h), "12d4h");
}

}  // namespace
}  // namespace croft::core::host_local
