#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/croft/json_output.h"
#include "cli/croft/table.h"
#include "services/commands/service_views.h"
#include "services/use/test_services.h"
#include "store/test_records.h"

namespace croft::app {
namespace {

using core::audit::RepairFinding;
using testing::HasSubstr;
using Type = RepairFinding::Type;

/// A store with a range of 14 addresses and one of 32 node ports, and Services in it.
class ServiceAuditViews : public testing::Test, public engine::Services {
 protected:
  ServiceAuditViews() : Services("10.0.0.0/28", "30000-30031") {}

  void SetUp() override {
    auto web = service("web", core::ServiceType::node_port, {port("", 80, 30001)});
    ASSERT_EQ(create(with_ip(web, "10.0.0.3")), "ok");
    ASSERT_EQ(create(with_ip(service("db"), "10.0.0.12")), "ok");
  }

  engine::RangeRepairReport look() {
    engine::RangeRepairMemory memory;
    auto report = engine::repair_ranges(context, {}, memory);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *std::move(report) : engine::RangeRepairReport{};
  }
  std::string text(bool wide = false) {
    const auto report = look();
    return text_of(report, report.findings(), wide);
  }
  /// A Service that was written past the ranges.
  void plant(const std::string& name, const std::string& ip, std::uint16_t node_port = 0) {
    core::Service planted = stored("web");
    planted.name.name = name;
    planted.cluster_ip = ip;
    planted.cluster_ips = {ip};
    planted.ports.front().node_port = node_port;
    if (node_port == 0) planted.type = core::ServiceType::cluster_ip;
    ASSERT_TRUE(store::create_if_absent(store, core::service_key(planted.name), planted, {}, Deadline{}));
  }
  /// Takes the record of a Service away, and nothing else.
  void forget(const std::string& name) {
    const store::Key key = core::service_key({"default", name});
    const auto record = store.get(key, Deadline{}).value();
    ASSERT_TRUE(record);
    ASSERT_TRUE(store::delete_if_revision(store, key, record->revision, {}, Deadline{}));
  }
};

TEST_F(ServiceAuditViews, NothingToFind) {
  EXPECT_EQ(text(),
            "2 services; addresses are kept as bitmaps\n"
            "NAME               RANGE         USED      STATIC    DYNAMIC\n"
            "serviceips         10.0.0.0/28   2 of 14   0 of 0    2 of 14\n"
            "servicenodeports   30000-30031   1 of 32   1 of 16   0 of 16\n"
            "no findings\n");
}

TEST_F(ServiceAuditViews, WhoHoldsWhat) {
  EXPECT_THAT(text(true), HasSubstr("\n\nVALUE       HELD BY\n"
                                    "10.0.0.3    default/web\n"
                                    "10.0.0.12   default/db\n"
                                    "30001       default/web\n"
                                    "no findings\n"));
  plant("copy", "10.0.0.3", 30001);
  forget("db");
  EXPECT_THAT(text(true), HasSubstr("\n\nVALUE       HELD BY\n"
                                    "10.0.0.3    default/copy, default/web\n"
                                    "10.0.0.12   nobody\n"
                                    "30001       default/copy, default/web\n"
                                    "\nTYPE "));
}

TEST_F(ServiceAuditViews, Findings) {
  plant("copy", "10.0.0.3", 30001);  // a collision
  plant("lost", "10.0.0.5");         // not allocated
  plant("off", "10.9.0.1");          // in no range
  plant("bad", "oak");
  forget("db");  // a leak
  EXPECT_EQ(text(),
            "5 services; addresses are kept as bitmaps\n"
            "NAME               RANGE         USED      STATIC    DYNAMIC\n"
            "serviceips         10.0.0.0/28   2 of 14   0 of 0    2 of 14\n"
            "servicenodeports   30000-30031   1 of 32   1 of 16   0 of 16\n"
            "\n"
            "TYPE         RANGE              VALUE       SERVICE        MESSAGE\n"
            "invalid      serviceips         oak         default/bad    Cluster IP \"oak\" is not a valid IP; please "
            "recreate service\n"
            "repair       serviceips         10.0.0.5    default/lost   Cluster IP [IPv4]:10.0.0.5 is not allocated; "
            "repairing\n"
            "outOfRange   serviceips         10.9.0.1    default/off    Cluster IP [IPv4]:10.9.0.1 is not within the "
            "service CIDR 10.0.0.0/28; please recreate service\n"
            "duplicate    serviceips         10.0.0.3    default/web    Cluster IP [IPv4]:10.0.0.3 was assigned to "
            "multiple services; please recreate service\n"
            "leak         serviceips         10.0.0.12   -              the cluster IP 10.0.0.12 may have leaked: "
            "kept, as the address of Service default/bad can't be read and may be this one\n"
            "duplicate    servicenodeports   30001       default/web    Port 30001 was assigned to multiple services; "
            "please recreate service\n"
            "6 findings\n");
}

TEST_F(ServiceAuditViews, Json) {
  plant("lost", "10.0.0.5");
  forget("db");
  const auto report = look();
  EXPECT_EQ(json_of(report, report.findings()).yaml(),
            "form: \"bitmap\"\n"
            "ranges:\n"
            "  - name: \"serviceips\"\n"
            "    range: \"10.0.0.0/28\"\n"
            "    size: 14\n"
            "    used: 2\n"
            "    static:\n"
            "      size: 0\n"
            "      used: 0\n"
            "    dynamic:\n"
            "      size: 14\n"
            "      used: 2\n"
            "    present: true\n"
            "  - name: \"servicenodeports\"\n"
            "    range: \"30000-30031\"\n"
            "    size: 32\n"
            "    used: 1\n"
            "    static:\n"
            "      size: 16\n"
            "      used: 1\n"
            "    dynamic:\n"
            "      size: 16\n"
            "      used: 0\n"
            "    present: true\n"
            "services: 2\n"
            "findings:\n"
            "  - type: \"repair\"\n"
            "    reason: \"ClusterIPNotAllocated\"\n"
            "    range: \"serviceips\"\n"
            "    value: \"10.0.0.5\"\n"
            "    service: \"default/lost\"\n"
            "    message: \"Cluster IP [IPv4]:10.0.0.5 is not allocated; repairing\"\n"
            "  - type: \"leak\"\n"
            "    reason: \"ClusterIPLeaked\"\n"
            "    range: \"serviceips\"\n"
            "    value: \"10.0.0.12\"\n"
            "    service: null\n"
            "    message: \"the cluster IP 10.0.0.12 may have leaked: flagging for later clean up\"\n"
            "applied: false\n"
            "changedMeanwhile: []\n"
            "failures: []\n");
}

TEST(ServiceAuditText, ABitmapThatCoversTheBeginningOfItsRange) {
  engine::Services services("fd00::/64");
  ASSERT_EQ(services.create(engine::Services::with_ip(engine::Services::service("last"), "fd00::ffff")), "ok");
  engine::RangeRepairMemory memory;
  const auto report = engine::repair_ranges(services.context, {}, memory);
  ASSERT_TRUE(report);
  const std::string told =
      "serviceips covers the first 65536 addresses of fd00::/64, as each bitmap does: no Service gets one beyond "
      "them\n";
  EXPECT_THAT(text_of(*report, {}, false),
              HasSubstr("1 of 65279\nservicenodeports   30000-32767   0 of 2768    0 of 86    0 of 2682\n" + told +
                        "no findings\n"));
  engine::Services whole("fd00::/112");
  const auto fits = engine::repair_ranges(whole.context, {}, memory);
  ASSERT_TRUE(fits);
  EXPECT_THAT(text_of(*fits, {}, false), testing::Not(HasSubstr("covers")));
}

/// Addresses are objects: node ports alone are told.
TEST(ServiceAuditText, AReportOfObjectsWithFailures) {
  engine::RangeRepairReport report;
  report.objects = true;
  report.applied = true;
  core::audit::RangeRepair ports;
  ports.name = "servicenodeports";
  ports.range = "30000-32767\x1b";
  ports.in_dynamic = {2682, 0};
  ports.in_static = {86, 0};
  report.ranges.push_back(ports);
  report.changed_meanwhile = {"servicenodeports"};
  report.failures.push_back({"servicenodeports", {ErrorCode::corrupt, "it is \"damaged\"", {}}});
  EXPECT_EQ(text_of(report, {}, false),
            "0 services; addresses are kept as IPAddress objects, which the kube-apiservers mend\n"
            "NAME               RANGE             USED        STATIC    DYNAMIC\n"
            "servicenodeports   30000-32767\\x1b   no record   0 of 86   0 of 2682\n"
            "servicenodeports was changed by others during the look: what is said of it may be of Services in the "
            "making\n"
            "no findings\n");
  RepairFinding finding;
  finding.type = Type::duplicate;
  finding.range = "servicenodeports";
  finding.service = core::ServiceName{"a", "b"};
  finding.message = "bad \xff byte";
  const std::string yaml = json_of(report, {finding}).yaml();
  EXPECT_THAT(yaml, testing::StartsWith("form: \"objects\"\nranges:\n  - name: \"servicenodeports\"\n"));
  EXPECT_THAT(yaml, HasSubstr("    present: false\n"));
  EXPECT_THAT(
      yaml, testing::EndsWith("    service: \"a/b\"\n    message: \"bad \ufffd byte\"\n"
                              "applied: true\nchangedMeanwhile:\n  - \"servicenodeports\"\n"
                              "failures:\n  - range: \"servicenodeports\"\n    message: \"it is \\\"damaged\\\"\"\n"));
}

RepairFinding finding_of(Type type, const std::string& value, const std::string& message) {
  RepairFinding finding;
  finding.type = type;
  finding.range = "serviceips";
  finding.value = value;
  finding.message = message;
  return finding;
}

TEST(ServiceAuditMerged, EachOnceAsItWasToldLast) {
  const auto leak = finding_of(Type::leak, "10.0.0.7", "keeping"), lost = finding_of(Type::repair, "10.0.0.9", "was");
  auto freed = finding_of(Type::leak, "10.0.0.7", "freed");
  freed.mended = true;
  auto others = lost;
  others.service = core::ServiceName{"a", "b"};
  const auto all = merged_findings(merged_findings({}, {leak, lost}), {others, freed});
  EXPECT_THAT(all, testing::ElementsAre(freed, lost, others));
  EXPECT_THAT(merged_findings(all, {}), testing::ElementsAre(freed, lost, others));
}

}  // namespace
}  // namespace croft::app
