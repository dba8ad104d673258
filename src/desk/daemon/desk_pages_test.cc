#include "desk/daemon/desk_pages.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <new>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "base/time_text.h"
#include "history/door/history_file.h"
#include "ipam/use/test_world.h"
#include "os/scratch_directory.h"

namespace croft::app {
namespace {

using Json = nlohmann::json;
using edge::Verdict;
using edge::WebAnswer;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::Pair;
using namespace std::chrono_literals;

class Pages : public testing::Test, public engine::World {
 protected:
  DeskPages& pages() {
    if (pages_) return *pages_;
    DeskPages::Parts parts{
        context, "sqlite:/var/lib/croft/croft.db", [this]() -> Result<DeskFindings> {
          if (broken) return fail(ErrorCode::unavailable, "the store is away");
          if (starved) throw std::bad_alloc();
          ++checks;
          return DeskFindings{clock.now().wall, {400, core::audit::found("pool_full", "a", "it is")}};
        }};
    parts.judge = judge;
    parts.history = history;
    return pages_.emplace(std::move(parts));
  }
  WebAnswer get(std::string_view path, std::string_view query = "", std::string_view host = "127.0.0.1:9680",
                std::string_view authorization = "") {
    return pages().answer({path, query, host, authorization});
  }
  Json json(std::string_view path, std::string_view query = "") {
    const WebAnswer answer = get(path, query);
    EXPECT_EQ(answer.status, 200U) << answer.body;
    EXPECT_EQ(answer.type, "application/json");
    return Json::parse(answer.body);
  }

  bool broken = false, starved = false;
  std::atomic<int> checks = 0;
  std::optional<edge::Doorkeeper::Judge> judge;
  std::string history;

 private:
  std::optional<DeskPages> pages_;
};

TEST_F(Pages, AssetsAreServedWithAStrictPolicy) {
  for (const DeskAsset& asset : desk_assets()) {
    const WebAnswer answer = get(asset.path);
    EXPECT_EQ(answer.status, 200U);
    EXPECT_EQ(answer.body, asset.content);
    EXPECT_THAT(answer.fields, Contains(Pair("Content-Security-Policy",
                                             AllOf(HasSubstr("default-src 'none'"), HasSubstr("script-src 'self';"),
                                                   HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe"))))));
    EXPECT_THAT(std::string(asset.content), Not(HasSubstr("innerHTML")));
  }
  EXPECT_THAT(get("/api/overview").fields, Contains(Pair("Content-Security-Policy", HasSubstr("default-src 'none'"))));
  for (const char* absent : {"", "/desk.ts", "/api/", "/api/overview/", "/../etc/passwd", "//", "/metrics"}) {
    EXPECT_EQ(get(absent).status, 404U) << absent;
  }
}

TEST_F(Pages, WithoutATokenOthersNamesOfThisMachineAreRefused) {
  EXPECT_EQ(get("/", "", "evil.example:9680").status, 403U);
  EXPECT_EQ(get("/api/overview", "", "evil.example").status, 403U);
  EXPECT_EQ(get("/api/overview", "", "").status, 403U);
  EXPECT_EQ(get("/api/overview", "", "[::1]:9680").status, 200U);
}

TEST_F(Pages, TheVerdictOnATokenIsTheStatus) {
  judge = [](const std::string& token) -> Verdict {
    if (token == "good") return {Verdict::Kind::welcome, {}};
    if (token == "poor") return {Verdict::Kind::forbidden, "bob may not"};
    if (token == "away") return {Verdict::Kind::unsure, "nobody answers"};
    return {Verdict::Kind::unknown, "not known"};
  };
  const auto status = [&](const char* authorization) {
    return get("/api/overview", "", "desk.example", authorization).status;
  };
  EXPECT_EQ(status("Bearer good"), 200U);
  EXPECT_EQ(status("Bearer poor"), 403U);
  EXPECT_EQ(status("Bearer away"), 503U);
  EXPECT_EQ(status("Bearer bad"), 401U);
  EXPECT_EQ(status(""), 401U);
  EXPECT_THAT(get("/api/overview", "", "desk.example").fields, Contains(Pair("WWW-Authenticate", "Bearer")));
  EXPECT_EQ(get("/", "", "desk.example").status, 200U) << "the page itself says nothing of the register";
  for (const char* path :
       {"/api/map", "/api/who", "/api/nodes", "/api/blocks", "/api/findings", "/api/reliefs", "/api/explain"}) {
    EXPECT_EQ(get(path, "", "desk.example").status, 401U) << path;
  }
}

TEST_F(Pages, OverviewIsWhatPoolsSay) {
  pool("a", "10.1.0.0/28", 28);
  add("c1");
  const Json seen = json("/api/overview");
  const Json& one = seen["pools"][0];
  EXPECT_EQ(one["name"], "a");
  EXPECT_EQ(one["held"], 1);
  EXPECT_EQ(one["capacity"], 16);
  EXPECT_EQ(one["fullness"], "room");
  EXPECT_EQ(one["occupied"], "10.1.0.0/28");
  EXPECT_TRUE(one["forecast"].is_null());
  EXPECT_TRUE(seen["history"].is_null());
  EXPECT_EQ(seen["strictAffinity"], false);
  // Read anew only when it is old.
  add("c2");
  EXPECT_EQ(json("/api/overview")["pools"][0]["held"], 1);
  clock.advance(6s);
  static_cast<void>(get("/api/overview"));
  for (int i = 0; i < 500 && json("/api/overview")["pools"][0]["held"] != 2; ++i) std::this_thread::sleep_for(10ms);
  EXPECT_EQ(json("/api/overview")["pools"][0]["held"], 2);
}

TEST_F(Pages, MapTellsCellsByALetterOrNumbers) {
  pool("a", "10.1.0.0/27", 28, 0);
  const std::string first = add("c1");
  const Json fine = json("/api/map", "cidr=10.1.0.0/27");
  EXPECT_EQ(fine["cellLength"], 32);
  ASSERT_EQ(fine["cells"].size(), 32U);
  const auto place = net::ordinal_of(prefix("10.1.0.0/27"), ip(first.c_str()))->value;
  EXPECT_EQ(fine["cells"][place], "u");
  // The pool keeps its first two addresses and its last one, with a block or without.
  EXPECT_EQ(std::ranges::count(fine["cells"], Json("r")), 3);
  EXPECT_EQ(std::ranges::count(fine["cells"], Json("o")), place < 16 ? 15 : 14);
  const Json coarse = json("/api/map", "cidr=10.0.0.0%2F14");
  ASSERT_EQ(coarse["cells"].size(), 4096U);
  EXPECT_EQ(coarse["cells"][0], "o");
  const Json& mixed = coarse["cells"][1024];
  ASSERT_EQ(mixed.size(), 7U);
  EXPECT_EQ(mixed[4], 1) << "used";
  EXPECT_EQ(get("/api/map").status, 400U);
  EXPECT_EQ(get("/api/map", "cidr=10.1.0.1/24").status, 400U);
  EXPECT_EQ(get("/api/map", "cidr=10.1.0.0/24&at=2026-01-15T10:00:00Z").status, 404U) << "no history here";
  EXPECT_EQ(get("/api/map", "cidr=10.1.0.0/24&at=yesterday").status, 400U);
}

TEST_F(Pages, WhoNamesTheHolderWhateverItIsCalled) {
  pool("a", "10.1.0.0/28", 28);
  auto wanted = request("c1");
  wanted.pod = {"<img src=x onerror=alert(1)>", "shop", "u1"};
  const std::string address = add(wanted).front();
  const Json who = json("/api/who", "address=" + address);
  EXPECT_EQ(who["state"], "used");
  EXPECT_EQ(who["holder"]["pod"], "<img src=x onerror=alert(1)>");
  EXPECT_EQ(who["holder"]["node"], "node-a");
  EXPECT_EQ(who["block"], "10.1.0.0/28");
  EXPECT_EQ(who["blockOwner"], "host:node-a");
  EXPECT_EQ(del("c1"), 1U);
  EXPECT_EQ(json("/api/who", "address=" + address)["state"], "cooling") << "asked of the register itself";
  pool("later", "10.2.0.0/28", 28);
  EXPECT_EQ(json("/api/who", "address=10.2.0.3")["pool"], "later");
  const Json reserved = json("/api/who", "address=10.1.0.0");
  EXPECT_EQ(reserved["state"], "reserved");
  EXPECT_EQ(reserved["holder"]["state"], "reserved");
  const Json outside = json("/api/who", "address=192.0.2.1");
  EXPECT_EQ(outside["state"], "outside");
  EXPECT_TRUE(outside["pool"].is_null());
  EXPECT_EQ(get("/api/who", "address=ten").status, 400U);
}

TEST_F(Pages, NodesBlocksFindingsAndReliefs) {
  pool("a", "10.1.0.0/28", 28, 0);
  std::string last;
  for (int i = 0; i < 20 && !last.starts_with("exhausted"); ++i) last = add("c" + std::to_string(i));
  EXPECT_EQ(json("/api/nodes")[0]["name"], "node-a");
  EXPECT_EQ(json("/api/blocks", "owner=host:node-a")[0]["cidr"], "10.1.0.0/28");
  EXPECT_THAT(json("/api/blocks", "owner=host:nobody"), IsEmpty());
  const Json shown = json("/api/overview")["reliefs"];
  EXPECT_EQ(shown[0]["pool"], "a");
  EXPECT_EQ(shown[0]["command"], "croft pool create a-more --cidr 10.1.0.16/28 --block-size 28 --cooldown-seconds 0");
  EXPECT_EQ(checks, 0) << "nobody asked for one";
  const Json findings = json("/api/findings");
  EXPECT_EQ(findings["findings"][0]["finding"], "pool_full");
  EXPECT_EQ(findings["total"], 400) << "of which the first come";
  EXPECT_EQ(findings["findings"].size(), 300U);
  const Json reliefs = json("/api/reliefs");
  EXPECT_EQ(reliefs["reliefs"], shown);
  EXPECT_EQ(reliefs["checkedAt"], findings["checkedAt"]);
  EXPECT_EQ(checks, 1);
}

TEST_F(Pages, AnOldReadingIsWaitedFor) {
  pool("a", "10.1.0.0/28", 28);
  EXPECT_EQ(json("/api/overview")["pools"][0]["held"], 0);
  add("c1");
  clock.advance(11s);
  EXPECT_EQ(json("/api/overview")["pools"][0]["held"], 1) << "older than twice its age";
}

TEST_F(Pages, ACheckThatFailsSaysSo) {
  broken = true;
  const WebAnswer answer = get("/api/findings");
  EXPECT_EQ(answer.status, 503U);
  EXPECT_THAT(answer.body, HasSubstr("the store is away"));
}

TEST_F(Pages, ACheckWithoutMemoryIsTriedAgain) {
  starved = true;
  EXPECT_EQ(get("/api/findings").status, 500U);
  starved = false;
  clock.advance(61s);
  EXPECT_EQ(get("/api/findings").status, 200U);
}

/// As a restored or shared register has it, a block at a time.
TEST_F(Pages, ALargeRegisterIsNotCheckedHere) {
  pool("a", "10.0.0.0/12", 20, 0);
  core::Block full = core::new_block(prefix("10.0.0.0/20"), std::nullopt, clock.now(), std::nullopt);
  full.attributes = {core::Attribute{"net.c1", {}, {}, {}}};
  full.unallocated = core::space::OrderedFreeList::from_order(4096, {}).value();
  for (auto& one : full.allocations) one = 0;
  for (std::uint64_t i = 0; i < 25; ++i) {
    full.cidr = prefix("10.0.0.0/12").subprefix(i, 20);
    put(core::block_key(full.cidr), full);
  }
  const WebAnswer answer = get("/api/findings");
  EXPECT_EQ(answer.status, 409U);
  EXPECT_THAT(answer.body, HasSubstr("102400 addresses are held"));
  EXPECT_THAT(answer.body, HasSubstr("run croft check instead"));
  EXPECT_THAT(json("/api/reliefs")["reliefs"], IsEmpty()) << "what is known without a check";
  EXPECT_EQ(checks, 0);
  EXPECT_EQ(json("/api/overview")["pools"][0]["held"], 102400);
}

TEST_F(Pages, ExplainSaysWhatTheCommandSays) {
  pool("a", "10.1.0.0/28", 28);
  node("oak", {});
  const Json known = json("/api/explain", "node=oak&pool=a");
  EXPECT_THAT(known["text"].get<std::string>(), AllOf(HasSubstr("Answer: 10.1.0."), HasSubstr("Node oak")));
  EXPECT_EQ(known["refused"], false);
  EXPECT_TRUE(known["note"].is_null());
  const Json refused = json("/api/explain", "node=elm&pool=nope");
  EXPECT_EQ(refused["refused"], true);
  EXPECT_THAT(refused["note"].get<std::string>(), HasSubstr("knows no node"));
  EXPECT_EQ(get("/api/explain").status, 400U);
  EXPECT_EQ(get("/api/explain", "node=oak&ip=ten").status, 400U);
  EXPECT_EQ(get("/api/explain", "node=oak&label=x").status, 400U);
}

TEST_F(Pages, AHistoryThatIsNotThereIsNamed) {
  history = "/nowhere/history.db";
  EXPECT_THAT(json("/api/overview")["history"]["trouble"].get<std::string>(),
              HasSubstr("no history /nowhere/history.db"));
  EXPECT_EQ(get("/api/map", "cidr=10.1.0.0/28&at=2025-01-01T00:00:00Z").status, 404U);
}

TEST_F(Pages, AHistoryIsShownWhereThereIsOne) {
  const os::ScratchDirectory directory;
  history = directory.file("history.db");
  pool("a", "10.1.0.0/24", 28);
  pool("new", "10.2.0.0/24", 28);
  const WallTime now = clock.now().wall, began = now - 100s;
  const auto at = [&](std::chrono::seconds since) { return rfc3339_exact(began + since); };
  const auto held = [&](const char* address, const char* pod, std::chrono::seconds since) {
    core::history::Begun begun;
    begun.print = 1;
    begun.holding.address = net::parse_address(address).value();
    begun.holding.holder.namespace_name = "shop";
    begun.holding.holder.pod = pod;
    begun.holding.holder.node = "oak";
    begun.holding.begin = core::history::Moment::at(began + since);
    return begun;
  };
  {
    const auto file = edge::HistoryFile::open(history, {}).value();
    engine::HistoryEntry first;
    first.alive = began + 1s;
    ASSERT_TRUE(file->write(first));
    core::history::Changes changes;
    changes.begun = {held("10.1.0.3", "web-0", 50s), held("10.1.0.4", "web-1", 60s)};
    changes.begun[1].holding.begin.after = began + 20s;
    engine::HistoryEntry second;
    second.changes = {changes};
    second.uses = {{"a", 2, 256}};
    second.at = now;
    second.alive = now;
    ASSERT_TRUE(file->write(second));
  }
  const Json seen = json("/api/overview");
  EXPECT_EQ(seen["history"]["since"], at(1s));
  EXPECT_THAT(seen["pools"][0]["forecast"]["unknownBecause"].get<std::string>(), Not(IsEmpty()))
      << "one count is too few";
  EXPECT_EQ(seen["pools"][1]["forecast"]["unknownBecause"], "no count of it is known");
  const auto map = [&](std::chrono::seconds since) { return json("/api/map", "cidr=10.1.0.0/28&at=" + at(since)); };
  EXPECT_EQ(map(10s)["cells"], map(15s)["cells"]);
  EXPECT_EQ(map(10s)["cells"][3], "o");
  EXPECT_EQ(map(55s)["cells"][3], "u");
  EXPECT_EQ(map(55s)["cells"][4], "c") << "between two looks";
  EXPECT_EQ(map(70s)["cells"][4], "u");
  EXPECT_TRUE(map(70s)["open"].is_null());
  EXPECT_THAT(map(0s)["open"].get<std::string>(), HasSubstr("the history begins"));
  const Json who = json("/api/who", "address=10.1.0.3&at=" + at(60s));
  EXPECT_EQ(who["past"]["holders"][0]["who"], "shop/web-0");
  EXPECT_EQ(who["past"]["holders"][0]["node"], "oak");
  EXPECT_EQ(who["past"]["isSure"], true);
  EXPECT_EQ(json("/api/who", "address=10.1.0.9&at=" + at(60s))["past"]["holders"].size(), 0U);
}

}  // namespace
}  // namespace croft::app
