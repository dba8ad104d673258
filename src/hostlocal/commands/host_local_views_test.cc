#include "hostlocal/commands/host_local_views.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/net/test_values.h"
#include "cli/croft/json_output.h"
#include "hostlocal/decide/test_range_sets.h"

namespace croft::app {
namespace {

using testing::HasSubstr;
using namespace std::chrono_literals;

class HostLocalViews : public testing::Test {
 protected:
  HostLocalViews() {
    reserve("10.1.0.2", store::Holder{"0123456789abcdef", "eth0"});
    reserve("10.1.0.3", store::Holder{"old", ""});
    reserve("10.1.0.9", std::nullopt).empty = true;
    reserve("10.2.0.1", store::Holder{"far", "eth0"}).file = "x";
    directory_.cursors = {{0, address("10.1.0.3")}, {1, std::nullopt}};
    attachments_.push_back({{"net", "0123456789abcdef", "eth0"},
                            core::RuntimeAttachment::Netns::present,
                            "/run/netns/x",
                            {"web", "default", ""},
                            {},
                            "/cache/entry",
                            {}});
  }
  store::Reservation& reserve(std::string_view text, std::optional<store::Holder> holder) {
    return directory_.reservations.emplace_back(
        store::Reservation{address(text), std::move(holder), WallTime(0s), false, std::string(text)});
  }
  static std::string text_of(const HostLocalList& list, bool wide, bool colour) {
    return reservation_table(list, {.wide = wide}).to_string() + "\n" + sets_text(list, colour);
  }
  HostLocalList list() const { return list_of(directory_, attachments_, "net", sets_, WallTime(3h + 5min)); }

  core::host_local::Directory directory_;
  std::vector<core::RuntimeAttachment> attachments_;
  std::vector<core::host_local::RangeSet> sets_{core::host_local::range_set({core::host_local::spec("10.1.0.0/28")}),
                                                core::host_local::range_set({core::host_local::spec("fd00::/64")})};
};

TEST_F(HostLocalViews, Table) {
  auto shown = list();
  shown.source = "/etc/cni/net.d/net.conf";
  shown.foreign = {"notes"};
  EXPECT_EQ(text_of(shown, false, false),
            "ADDRESS    CONTAINER       IFNAME   POD           AGE    NOTES\n"
            "10.1.0.2   0123456789abc   eth0     default/web   3h5m   -\n"
            "10.1.0.3   old             -        -             3h5m   no interface recorded\n"
            "10.1.0.9   -               -        -             3h5m   empty\n"
            "10.2.0.1   far             eth0     -             3h5m   foreign name x, outside all ranges\n"
            "\n"
            "SET   RANGES                              USED   FREE                   PERCENT   CURSOR\n"
            "0     10.1.0.1-10.1.0.14                  2      11                     15.4%     10.1.0.3\n"
            "1     fd00::1-fd00::ffff:ffff:ffff:ffff   0      18446744073709551614   0.0%      unreadable\n"
            "ranges of /etc/cni/net.d/net.conf\n"
            "\n"
            "set 0:\n"
            "  ▄▀·····\n"
            "  two addresses a character: █ both held  ▀ ▄ one held  ▒ cooling  ░ reserved  · free\n"
            "\n"
            "set 1: nothing is held\n"
            "\n"
            "other files: notes\n");
}

TEST_F(HostLocalViews, WithoutAgeARowChangesOnlyWithItsReservation) {
  const std::string text = reservation_table(list(), {.age = false}).to_string();
  EXPECT_THAT(text, HasSubstr("ADDRESS    CONTAINER       IFNAME   POD           NOTES\n"));
  EXPECT_THAT(text, HasSubstr("10.1.0.2   0123456789abc   eth0     default/web   -\n"));
}

TEST_F(HostLocalViews, WideHasWholeNamesTimesAndNamespaces) {
  const std::string text = text_of(list(), true, false);
  EXPECT_THAT(text, HasSubstr("0123456789abcdef   eth0     default/web   3h5m   -"));
  EXPECT_THAT(text, HasSubstr("1970-01-01T00:00:00Z   /run/netns/x\n"));
}

TEST_F(HostLocalViews, WithoutConfigurationOnlyCountsAndCursors) {
  sets_.clear();
  const std::string text = text_of(list(), false, false);
  EXPECT_THAT(text, HasSubstr("SET   RANGES   USED   FREE   PERCENT   CURSOR\n"
                              "0     -        3      -      -         10.1.0.3\n"));
  EXPECT_THAT(text, HasSubstr("no configuration of this network was found"));
  directory_.cursors.clear();
  EXPECT_THAT(text_of(list(), false, false), HasSubstr("0     -        3      -      -         -\n"));
  EXPECT_THAT(json_of(list()).json(), HasSubstr("\"ranges\": null"));
}

TEST_F(HostLocalViews, LargeSetsAreSummedUp) {
  reserve("fd00::8000:0:0:1", store::Holder{"six", "eth0"});
  const std::string text = text_of(list(), false, false);
  EXPECT_THAT(text, HasSubstr("half a character stands for 2^55 addresses"));
}

TEST_F(HostLocalViews, JsonHasTheNamesThatScriptsRelyOn) {
  const std::string json = json_of(list()).json();
  for (const char* name :
       {"kind", "address", "containerId", "ifname", "pod", "namespace", "netns", "written", "ageSeconds", "notes",
        "set", "ranges", "size", "used", "free", "percent", "cursor", "source"}) {
    EXPECT_THAT(json, HasSubstr("\"" + std::string(name) + "\": ")) << name;
  }
  core::host_local::Finding finding{
      core::host_local::Finding::Kind::leak, "10.1.0.2", {"because"}, "mend", std::nullopt, true, false};
  const std::string findings = json_of(std::vector{finding}).json();
  for (const char* name :
       {"finding", "subject", "address", "containerId", "ifname", "proven", "beforeBoot", "evidence", "remedy"}) {
    EXPECT_THAT(findings, HasSubstr("\"" + std::string(name) + "\": ")) << name;
  }
  EXPECT_EQ(app::text_of(std::vector{finding}), "leak: 10.1.0.2\n  because\n  remedy: mend\n");
  EXPECT_EQ(json_of(std::vector<core::host_local::Finding>()).json(), "[]\n");
}

}  // namespace
}  // namespace croft::app
