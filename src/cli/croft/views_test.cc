#include <algorithm>
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/croft/json_output.h"
#include "cli/croft/leak_report.h"
#include "cli/croft/table.h"
#include "cli/croft/top.h"
#include "ipam/use/assign.h"
#include "ipam/use/test_world.h"
#include "register/format/records.h"
#include "store/test_records.h"

namespace croft::app {
namespace {

using testing::HasSubstr;
using testing::Not;
using Json = nlohmann::ordered_json;

class Views : public testing::Test, public engine::World {
 protected:
  void SetUp() override {
    pool("a", "10.1.0.0/28", 29);
    for (int i = 0; i < 10; ++i) add("c" + std::to_string(i));
    del("c1");
  }
  engine::PoolView view() { return engine::read_overview(context)->pools.front(); }
};

TEST(TableTest, ColumnsAreAsWideAsTheirWidestCellAndEmptyReadsDash) {
  Table table({"NAME", "WHAT"});
  table.add({"a", "pool"});
  table.add({"überlang", ""});
  EXPECT_EQ(table.to_string(), "NAME       WHAT\na          pool\nüberlang   -\n");
}

TEST_F(Views, PictureWithoutColour) {
  // node-a starts with the upper block: eight held, one of them (the second) cooling; then .2 .3 .4 of the lower.
  EXPECT_EQ(draw(view(), false),
            "blocks, one each half character, filled when claimed:\n"
            "  █\n"
            "two addresses a character: █ both held  ▀ ▄ one held  ▒ cooling  ░ reserved  · free\n"
            "  10.1.0.0/29 node-a  ░█▀·  3 held, 0 cooling, 3 free\n"
            "  10.1.0.8/29 node-a  ▒██▀  6 held, 1 cooling, 0 free\n");
}

TEST_F(Views, ANameIsNoSecondLine) {
  engine::PoolView pool = view();
  pool.blocks.at(0).block.affinity->name = "a\nb";
  EXPECT_THAT(draw(pool, false), testing::Not(HasSubstr("a\nb")));
}

TEST_F(Views, TopShowsTheFullestPoolFirstAndHowFastItFills) {
  pool("b", "10.2.0.0/24", 26);
  TopView view;
  TopRates rates;
  const auto see = [&] {
    const auto overview = engine::read_overview(context);
    rates.add(*overview, clock.now());
    view.see(*overview, rates, clock.now());
  };
  see();
  EXPECT_THAT(view.text(), Not(HasSubstr("+0.0"))) << "one look has no rate";
  clock.advance(std::chrono::seconds(60));
  for (int i = 10; i < 13; ++i) add("c" + std::to_string(i));
  view.forecasts["a"] = {true, "", 1, std::chrono::hours(7), {}, {}};
  see();
  const std::string text = view.text();
  EXPECT_LT(text.find("10.1.0.0/28"), text.find("10.2.0.0/24"));
  EXPECT_THAT(text, HasSubstr("+2.0       7h"));  // the address that cooled is taken again
  EXPECT_THAT(text, HasSubstr("node-a"));
  for (int i = 13; i < 20; ++i) add("c" + std::to_string(i));
  see();
  EXPECT_THAT(view.text(), HasSubstr("   now\n")) << "a full pool is full, whatever a forecast said";
  view.next_pool();
  EXPECT_THAT(view.text(), HasSubstr("\nb\nblocks"));
  view.next_pool();
  EXPECT_THAT(view.text(), HasSubstr("\na\nblocks"));
}

TEST(TableTest, SortsSpansByTheirLength) {
  Table table({"POOL", "FULL IN"});
  for (const char* const text : {"unknown: why", ">14d", "7h", "", "now", "45m", "3d"}) table.add({"a", text});
  ASSERT_TRUE(table.sort_by("full in"));
  EXPECT_EQ(table.to_string({false, 0}),
            "a      now\na      45m\na      7h\na      3d\na      >14d\na      unknown: why\na      -\n");
}

TEST_F(Views, PictureInColourHasTheSameShape) {
  const std::string text = draw(view(), true);
  EXPECT_THAT(text, HasSubstr("\x1b[38;5;34;48;5;214m▀\x1b[0m"));  // held over cooling
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 5);
}

TEST_F(Views, LargePoolsAreSummedUp) {
  pool("big", "10.64.0.0/10", 26);
  auto request = World::request("x");
  request.pools.v4 = {"big"};
  add(request);
  const std::string text = draw(engine::read_overview(context)->pools[1], false);
  EXPECT_THAT(text, HasSubstr("blocks, 2^8 to a half character"));
  pool("six", "fd00::/32", 122);
  EXPECT_THAT(draw(engine::read_overview(context)->pools[2], false), HasSubstr("no block is claimed yet"));
}

TEST_F(Views, UsageHasSharesAndBlocks) {
  const std::string text = usage_table(*engine::read_overview(context), true);
  EXPECT_THAT(text,
              HasSubstr("pool       a      10.1.0.0/28   -             16      9 (56.2%)   1 (6.25%)   3 (18.8%)"));
  EXPECT_THAT(text, HasSubstr("block      a      10.1.0.8/29   host:node-a   8       6 (75%)"));
  config([](core::IpamConfig& c) { c.strict_affinity = true; });
  EXPECT_THAT(usage_table(*engine::read_overview(context), false), HasSubstr("3 (18.8%)   3\n"));
  EXPECT_THAT(json_of(engine::read_overview(context)->pools).json(), HasSubstr("\"stranded\": 3"));
}

TEST_F(Views, ExplanationOfAnAssignmentAndOfARefusal) {
  auto request = World::request("x");
  const std::string told = text_of(*engine::explain(context, request), request);
  EXPECT_THAT(told, HasSubstr("  1. pool a (10.1.0.0/28): serves all nodes\n"));
  EXPECT_THAT(told, HasSubstr("own block 10.1.0.8/29: none free, the first cooling one is free again at "));
  EXPECT_THAT(told, HasSubstr("nothing to claim: "));
  EXPECT_THAT(told, HasSubstr("Answer: 10.1.0.5 of pool a, own block 10.1.0.0/29\n"));
  request.pools.v4 = {"nowhere"};
  EXPECT_THAT(text_of(*engine::explain(context, request), request),
              HasSubstr("Answer: refused (refused_by_configuration): the given pool (nowhere) does not exist"));
}

TEST_F(Views, JsonIsOneArrayWithTheNamesThatScriptsRelyOn) {
  const std::string addresses = json_of(engine::list_addresses(context).value()).json();
  for (const char* name : {"address", "state", "pool", "block", "network", "containerId", "ifname", "node", "pod",
                           "namespace", "since", "until"}) {
    EXPECT_THAT(addresses, HasSubstr("\"" + std::string(name) + "\": ")) << name;
  }
  EXPECT_EQ(addresses.front(), '[');
  const std::string pools = json_of(std::vector{view()}).json();
  for (const char* name :
       {"cidr", "blockSize", "disabled", "allocatable", "nodeSelector", "gateway", "cooldownSeconds", "usage"}) {
    EXPECT_THAT(pools, HasSubstr("\"" + std::string(name) + "\": ")) << name << pools;
  }
  const std::string blocks = json_of(view().blocks).json();
  for (const char* name : {"cidr", "affinity", "affinityClaimTime", "allocations", "unallocated", "attributes",
                           "sequenceNumber", "sequenceNumberForAllocation", "deleted"}) {
    EXPECT_THAT(blocks, HasSubstr("\"" + std::string(name) + "\": ")) << name << blocks;
  }
  EXPECT_EQ(json_of(std::vector<core::audit::Finding>()).json(), "[]\n");
}

Table addresses() {
  Table table({"ADDRESS", "POD"});
  table.add({"10.0.0.10", "web-0"});
  table.add({"10.0.0.9", ""});
  table.add({"10.0.0.100", "a-long-name-of-a-pod-that-nobody-reads"});
  return table;
}

TEST(TableTest, RowsAloneWithoutHeadings) {
  Table table({"A", "B"});
  table.add({"1", "2"});
  EXPECT_EQ(table.to_string({false, 0}), "1   2\n");
}

TEST(TableTest, FitsByCuttingTheWidestCellButNotTheFirst) {
  for (const std::string& line : addresses().lines({true, 30})) EXPECT_LE(width_of(line), 30U) << line;
  EXPECT_THAT(addresses().to_string({true, 30}), HasSubstr("10.0.0.100   a-long-name-of-a…\n"));
  // Then closer together, then without the last columns.
  EXPECT_THAT(addresses().to_string({true, 19}), HasSubstr("10.0.0.100 a-long-…\n"));
  EXPECT_EQ(addresses().to_string({true, 5}), "ADDRESS\n10.0.0.10\n10.0.0.9\n10.0.0.100\n");
}

TEST(TableTest, SortsNumbersAsNumbersAndEmptyCellsLast) {
  Table table = addresses();
  ASSERT_TRUE(table.sort_by("address"));
  EXPECT_THAT(table.to_string({false, 0}), testing::MatchesRegex("10.0.0.9 .*\n10.0.0.10 .*\n10.0.0.100 .*\n"));
  ASSERT_TRUE(table.sort_by("POD"));
  EXPECT_THAT(table.to_string({false, 0}), testing::MatchesRegex("10.0.0.100 .*\n10.0.0.10 .*\n10.0.0.9 .*\n"));
}

TEST(TableTest, NamesTheColumnsThatThereAre) {
  Table table = addresses();
  const auto sorted = table.sort_by("pods");
  ASSERT_FALSE(sorted);
  EXPECT_EQ(sorted.error().message,
            "--sort-by: there is no column \"pods\"; did you mean \"pod\"?; the columns are ADDRESS, POD");
}

TEST(RecordJson, IsWhatIsStoredWithoutItsVersionAndWithSequenceNumbersAsTexts) {
  core::Block block = store::sample_block(3, 2);
  block.attributes[0].cooling.emplace().seen.push_back({{}, std::chrono::nanoseconds(99)});
  Json stored = Json::parse(wire::encode_record(block));
  stored.erase("v");
  stored["sequenceNumber"] = std::to_string(block.sequence_number.value);
  for (const auto& [ordinal, number] : block.sequence_number_for_allocation) {
    stored["sequenceNumberForAllocation"][std::to_string(ordinal)] = std::to_string(number.value);
  }
  EXPECT_EQ(record_json(block), stored);
}

TEST(RecordJson, APoolSaysWhetherItGivesAddresses) {
  engine::PoolView view;
  view.pool.cidr = net::Prefix::parse("10.1.0.0/16").value();
  view.pool.unallocatable = "it is being deleted";
  view.pool.disabled = view.pool.being_deleted = true;
  const std::string shown = json_of(std::vector{view}).json();
  EXPECT_THAT(shown, HasSubstr("\"disabled\": true,\n    \"allocatable\": false,\n    \"nodeSelector\""));
  EXPECT_THAT(shown, testing::Not(HasSubstr("being")));
}

TEST(RecordJson, BytesThatAreNoUtf8KeepNothingElseFromBeingShown) {
  core::Pool pool;
  pool.cidr = net::Prefix::parse("10.1.0.0/16").value();
  pool.node_selector = "zone == \"\xff\"";
  const std::string shown_pool = Data(record_json(pool)).json();
  EXPECT_EQ(Json::parse(shown_pool)["nodeSelector"], "zone == \"\ufffd\"");

  core::Block block = store::sample_block(3, 2);
  block.attributes[0].handle_id = "net.\xc3";
  block.attributes[0].secondary = {{"p\x80od", "web\xf0\x9f"}};
  core::Cooling cooling;
  cooling.previous_handle = "\xed\xa0\x80";  // a surrogate
  cooling.previous_secondary = {{"\xfe", "a"}};
  block.attributes[1].cooling = cooling;
  const Data data(record_json(block));
  const Json shown = Json::parse(data.json());
  EXPECT_EQ(shown["cidr"], block.cidr.to_string());
  EXPECT_EQ(shown["attributes"][0]["handle_id"], "net.\ufffd");
  EXPECT_EQ(shown["attributes"][0]["secondary"], Json({{"p\ufffdod", "web\ufffd"}}));
  EXPECT_EQ(shown["attributes"][1]["previousSecondary"], Json({{"\ufffd", "a"}}));
  EXPECT_NE(data.yaml().find("previousHandle: \"\ufffd"), std::string::npos);
}

std::string yaml_of(const char* json) { return Data(nlohmann::ordered_json::parse(json)).yaml(); }

TEST(Data, YamlIsTheSameData) {
  EXPECT_EQ(yaml_of(R"([{"address":"a: \"b\"","list":[1,{"deep":null,"y":[]}],"none":{}},{"more":[[true]]}])"),
            "- address: \"a: \\\"b\\\"\"\n"
            "  list:\n"
            "    - 1\n"
            "    - deep: null\n"
            "      \"y\": []\n"
            "  none: {}\n"
            "- more:\n"
            "    - - true\n");
  EXPECT_EQ(yaml_of("[]\n"), "[]\n");
}

TEST(Data, WhatYamlHasNoPlaceForIsEscaped) {
  EXPECT_EQ(yaml_of("[\"a\x7f\u0080\u0085\u009f\u00a0\"]"), "- \"a\\u007f\\u0080\\u0085\\u009f\u00a0\"\n");
  EXPECT_EQ(yaml_of("[\"\u2028\u2029\ufeff\ufffe\uffff\"]"), "- \"\\u2028\\u2029\\ufeff\\ufffe\\uffff\"\n");
  EXPECT_EQ(yaml_of("[\"\u00e4 \u20ac \U0001f600 \\u0001\"]"), "- \"\u00e4 \u20ac \U0001f600 \\u0001\"\n");
  EXPECT_EQ(yaml_of("{\"k\x7f\":{\"\u0085\":1}}"), "\"k\\u007f\":\n  \"\\u0085\": 1\n");
}

TEST(Data, KeysThatAreNoWords) {
  EXPECT_EQ(yaml_of(R"({"True":1,"FALSE":2,"nULL":3,"yes":4,"a/b":5,"":6,"port":7,"truer":8})"),
            "\"True\": 1\n\"FALSE\": 2\n\"nULL\": 3\n\"yes\": 4\n\"a/b\": 5\n\"\": 6\nport: 7\ntruer: 8\n");
}

TEST(Data, BothFormsOfOneValue) {
  const Data data(nlohmann::ordered_json{{"b", {1, "x\xff"}}, {"a", nullptr}});
  EXPECT_EQ(data.json(), "{\n  \"b\": [\n    1,\n    \"x\ufffd\"\n  ],\n  \"a\": null\n}\n");
  EXPECT_EQ(data.yaml(), "\"b\":\n  - 1\n  - \"x\ufffd\"\n\"a\": null\n");
  EXPECT_EQ(Data().json() + Data().yaml(), "");
}

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
    const auto report = engine::audit(context, {live}).value();
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
