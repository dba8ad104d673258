#include "cli/croft/report.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ipam/use/test_world.h"

namespace croft::app {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using namespace std::chrono_literals;

class ReportTest : public testing::Test, public engine::World {
 protected:
  void SetUp() override {
    pool("a", "10.1.0.0/28", 29);
    add("c1");
    add("c2");
    add("c3");
    del("c3");
    put(core::handle_key("net.x"), core::Handle{"net.x", {{"10.1.0.0/29", 1}}, false});
    clock.advance(10min);
    add("c4");
    del("c4");
  }
  std::string text(const std::optional<core::audit::LiveAttachments>& live) {
    const auto report = engine::audit(context, live).value();
    return report_of(report, {"1.2.3", "sqlite:/x", clock.now().wall, live.has_value()});
  }
};

TEST_F(ReportTest, HasCalicoctlsMembers) {
  const std::string json = text({});
  for (const char* name : {"version",
                           "clusterGUID",
                           "datastoreLocked",
                           "clusterInformationRevision",
                           "clusterType",
                           "allocations",
                           "leakedHandles",
                           "ip",
                           "handle",
                           "sequenceNumber",
                           "pod",
                           "namespace",
                           "node",
                           "type",
                           "creationTimestamp",
                           "inUse",
                           "borrowed",
                           "coolingDown",
                           "owners",
                           "ID",
                           "UID",
                           "Revision"}) {
    EXPECT_THAT(json, HasSubstr("\"" + std::string(name) + "\": ")) << name;
  }
}

TEST_F(ReportTest, WithoutTheRuntimeNothingIsUnused) {
  const ReportContent content = parse_report(text({})).value();
  EXPECT_THAT(content.unused, IsEmpty());
  EXPECT_THAT(content.leaked_handles, SizeIs(1));
  EXPECT_EQ(content.version, "1.2.3");
  EXPECT_EQ(content.cluster, cluster_of("sqlite:/x"));
}

TEST_F(ReportTest, WhatTheRuntimeDoesNotKnowIsUnusedWithHandleAndSequenceNumber) {
  const ReportContent content = parse_report(text(runtime({{"net", "c1", "eth0"}}))).value();
  ASSERT_THAT(content.unused, SizeIs(1));
  EXPECT_EQ(content.unused[0].handle_id, "net.c2");
  const auto shown = engine::show_address(context, content.unused[0].address).value();
  EXPECT_EQ(content.unused[0].sequence_number, shown.sequence_number);
}

TEST_F(ReportTest, WhatTheClusterDoesNotHaveIsMarked) {
  auto report = engine::audit(context, {}).value();
  auto held =
      std::find_if(report.allocations.begin(), report.allocations.end(), [](const auto& one) { return !one.cooling; });
  held->gone = true;
  const ReportContent content = parse_report(report_of(report, {"1.2.3", "sqlite:/x", clock.now().wall})).value();
  ASSERT_THAT(content.unused, SizeIs(1));
  EXPECT_EQ(content.unused[0].address, held->address);
  EXPECT_THAT(content.by_cluster, testing::ElementsAre(held->address));
  // What the runtime proved is not asked of the cluster.
  held->unattached = true;
  EXPECT_THAT(parse_report(report_of(report, {"1.2.3", "sqlite:/x", clock.now().wall})).value().by_cluster, IsEmpty());
}

TEST_F(ReportTest, OfSeveralReportsOnlyWhatAllSay) {
  const auto both = parse_report(text(runtime({{"net", "x", "eth0"}}))).value();
  const auto one = parse_report(text(runtime({{"net", "c1", "eth0"}}))).value();
  EXPECT_THAT(both.unused, SizeIs(2));
  EXPECT_THAT(intersection_of({both, one}).unused, SizeIs(1));
  EXPECT_THAT(intersection_of({one, both}).leaked_handles, SizeIs(1));
  auto newer = both;
  newer.unused[0].sequence_number = core::SequenceNumber(1);
  newer.leaked_handles.clear();
  EXPECT_THAT(intersection_of({both, newer}).unused, SizeIs(1)) << "another sequence number is another holder";
  EXPECT_THAT(intersection_of({both, newer}).leaked_handles, IsEmpty());
}

TEST(ReportTextTest, BadReportsNameTheMember) {
  const auto message = [](const char* text) { return parse_report(text).error().message; };
  EXPECT_THAT(message("{"), HasSubstr("not a JSON object"));
  EXPECT_THAT(message("{}"), HasSubstr("allocations"));
  EXPECT_THAT(message(R"({"allocations": {"10.0.0.1": [{"inUse": false}]}})"), HasSubstr("10.0.0.1.handle"));
  EXPECT_THAT(message(R"({"allocations": {"10.0.0.1": [{"inUse": false, "handle": "h", "sequenceNumber": -1}]}})"),
              HasSubstr("10.0.0.1.sequenceNumber"));
  EXPECT_THAT(message(R"({"allocations": {"ten": [{"inUse": false, "handle": "h", "sequenceNumber": 1}]}})"),
              HasSubstr("ten"));
  EXPECT_THAT(message(R"({"allocations": {}, "leakedHandles": [{"ID": "h", "Revision": "x1"}]})"),
              HasSubstr("leakedHandles"));
}

TEST(ReportTextTest, InDoubtAnAddressIsInUse) {
  const char* text = R"({"allocations": {"10.0.0.1": [{"handle": "h", "sequenceNumber": 1}],
                                         "10.0.0.2": [{"handle": "h", "sequenceNumber": 1, "inUse": false,
                                                       "coolingDown": true}]}})";
  EXPECT_THAT(parse_report(text).value().unused, IsEmpty());
}

TEST(ReportTextTest, WhatIsNotReadIsNotKept) {
  EXPECT_THAT(parse_report(std::string(5'000'000, '[')).error().message, HasSubstr("not a JSON object"));
  const std::string deep = std::string(100'000, '[') + std::string(100'000, ']');
  const std::string text = R"({"x": [{"allocations": "none"}], "version": "[[[[[[[[[[[[[[[[[[[[[[\"",
      "allocations": {"10.0.0.1": [{"owners": [{"handle": "other"}], "deep": )" +
                           deep + R"(, "handle": "h", "sequenceNumber": 1, "inUse": false}]},
      "leakedHandles": [{"UID": {"ID": "no"}, "ID": "h", "Revision": "7"}]})";
  const ReportContent content = parse_report(text).value();
  EXPECT_EQ(content.unused.at(0).handle_id, "h");
  EXPECT_EQ(content.leaked_handles.at(0).id, "h");
}

/// 4,000 addresses, 4,000 handles and 50,000 values that are none.
TEST(ReportTextTest, LengthCostsNoMoreThanItself) {
  std::string addresses, handles;
  for (int i = 0; i < 4'000; ++i) {
    const std::string end = (i > 0 ? "," : "");
    addresses += end + "\"10.1." + std::to_string(i / 256) + "." + std::to_string(i % 256) +
                 R"(": [{"inUse": false, "handle": "h", "sequenceNumber": 1, "owners": [{}, {"a": [0]}]}])";
    handles += end + R"({"ID": "h)" + std::to_string(i) + R"(", "Revision": "1"})";
  }
  std::string filler = "0";
  for (int i = 0; i < 50'000; ++i) filler += ",0";
  const auto content = parse_report(R"({"x": [)" + filler + R"(], "allocations": {)" + addresses +
                                    R"(}, "leakedHandles": [)" + handles + "]}");
  ASSERT_TRUE(content) << content.error().message;
  EXPECT_THAT(content->unused, SizeIs(4'000));
  EXPECT_THAT(content->leaked_handles, SizeIs(4'000));
}

TEST(ReportTextTest, ElementsThatAreNoneEndIt) {
  const auto message = [](const std::string& text) { return parse_report(text).error().message; };
  EXPECT_THAT(message(R"({"allocations": {"10.0.0.1": [0, 0]}})"), HasSubstr("10.0.0.1: not an object"));
  EXPECT_THAT(message(R"({"allocations": {"10.0.0.1": [[]]}})"), HasSubstr("10.0.0.1: not an object"));
  EXPECT_THAT(message(R"({"allocations": {"10.0.0.1": {}}})"), HasSubstr("10.0.0.1: not an array"));
  EXPECT_THAT(message(R"({"allocations": {"10.0.0.1": 1}})"), HasSubstr("10.0.0.1: not an array"));
  EXPECT_THAT(message(R"({"allocations": []})"), HasSubstr("allocations: not an object"));
  for (const char* handles : {"[0]", "[[]]", "{}", "1", R"([{"ID": ["h"], "Revision": "1"}])", R"([{"ID": "h"}])"}) {
    EXPECT_THAT(message(R"({"allocations": {}, "leakedHandles": )" + std::string(handles) + "}"),
                HasSubstr("leakedHandles"));
  }
  for (const char* text : {"", "[]", "1", "null", "{} {}", R"({"allocations": {)"}) {
    EXPECT_THAT(message(text), HasSubstr("not a JSON object")) << text;
  }
  EXPECT_TRUE(parse_report(R"({"allocations": {}, "leakedHandles": null})"));
}

TEST(ReportTextTest, OfAMemberThatComesAgainTheLastCounts) {
  const auto unused = [](const std::string& members) {
    return parse_report(R"({"allocations": {"10.0.0.1": [{"handle": "h", "sequenceNumber": 1, )" + members + "}]}}")
        ->unused.size();
  };
  EXPECT_EQ(unused(R"("inUse": false)"), 1U);
  EXPECT_EQ(unused(R"("inUse": false, "inUse": true)"), 0U);
  EXPECT_EQ(unused(R"("inUse": false, "inUse": [false])"), 0U);
  EXPECT_EQ(unused(R"("inUse": false, "owners": [{"inUse": true, "handle": "x"}])"), 1U);
}

TEST(ReportTextTest, SequenceNumbersAreExact) {
  const char* text =
      R"({"allocations": {"10.0.0.1": [{"handle": "h", "sequenceNumber": 1768471200000000007, "inUse": false}]}})";
  EXPECT_EQ(parse_report(text).value().unused.at(0).sequence_number, core::SequenceNumber(1768471200000000007U));
  // As text, as it is written, so that no reader in between rounds it.
  const char* as_text =
      R"({"allocations": {"10.0.0.1": [{"handle": "h", "sequenceNumber": "1768471200000000007", "inUse": false}]}})";
  EXPECT_EQ(parse_report(as_text).value().unused.at(0).sequence_number, core::SequenceNumber(1768471200000000007U));
  EXPECT_FALSE(
      parse_report(R"({"allocations": {"10.0.0.1": [{"handle": "h", "sequenceNumber": "7x", "inUse": false}]}})"));
}

}  // namespace
}  // namespace croft::app
