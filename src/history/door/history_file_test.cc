#include "history/door/history_file.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sqlite3.h>

#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

using namespace std::chrono_literals;
using core::history::Begun;
using core::history::Holding;
using core::history::Moment;

const WallTime kBegin{std::chrono::seconds(1768471200)};

net::Address ip(const std::string& text) { return net::Address::parse(text).value(); }

Begun begun(const std::string& address, WallTime at, const std::string& pod) {
  Begun one;
  one.holding.address = ip(address);
  one.holding.pool = "pods";
  one.holding.holder = {"node-a", "shop", pod, "0f1e2d3c-4b5a-4697-8877-665544332211", "net", std::string(64, 'a'),
                        "eth0",   ""};
  one.holding.begin = Moment::at(at);
  one.print = 7;
  return one;
}

class HistoryFileTest : public testing::Test {
 protected:
  void write(HistoryFile& file, const core::history::Changes& changes, WallTime at) {
    engine::HistoryEntry entry;
    entry.changes.push_back(changes);
    entry.alive = at;
    const auto done = file.write(entry);
    ASSERT_TRUE(done) << done.error().message;
  }
  std::unique_ptr<HistoryFile> open(const HistoryBounds& bounds = {}) {
    auto file = HistoryFile::open(path_, bounds);
    EXPECT_TRUE(file) << file.error().message;
    return file ? *std::move(file) : nullptr;
  }
  os::ScratchDirectory scratch_;
  const std::string path_ = scratch_.file("history.db");
};

TEST_F(HistoryFileTest, AnEmptyFileIsNoneYet) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "PRAGMA journal_mode=WAL", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const auto read = HistoryFile::open_to_read(path_);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().code, ErrorCode::not_found) << read.error().message;
}

TEST_F(HistoryFileTest, ARangeAtAMoment) {
  const auto file = open();
  write(*file, {}, kBegin);
  auto late = begun("10.1.0.9", kBegin + 40s, "late");
  late.holding.begin.after = kBegin + 20s;
  write(*file, {{}, {begun("10.1.0.7", kBegin + 5s, "first"), begun("fd00::7", kBegin + 5s, "six"), late}},
        kBegin + 45s);
  write(*file, {{{ip("10.1.0.7"), Moment::at(kBegin + 50s)}}, {begun("10.1.0.7", kBegin + 50s, "second")}},
        kBegin + 90s);
  const auto range = net::Prefix::parse("10.1.0.0/24").value();
  const auto text_at = [&](std::chrono::seconds since, std::size_t count_max = 10) {
    const auto found = file->holders_at(range, kBegin + since, count_max);
    if (!found) return found.error().message;
    std::string text;
    for (const auto& one : found->held) text += one.address.to_string() + (one.is_sure ? " " : "? ");
    return text + (found->open.empty() ? "" : "open");
  };
  EXPECT_EQ(text_at(1s), "");
  EXPECT_EQ(text_at(10s), "10.1.0.7 ");
  EXPECT_EQ(text_at(30s), "10.1.0.7 10.1.0.9? ");
  EXPECT_EQ(text_at(50s), "10.1.0.7 10.1.0.9 ") << "one after the other are two holders of one address";
  EXPECT_EQ(text_at(50s, 1), "more than 1 addresses of 10.1.0.0/24 were held then: choose a smaller part");
  EXPECT_EQ(text_at(95s), "10.1.0.7? 10.1.0.9? open") << "nobody has looked yet";

  engine::HistoryEntry gaps;
  gaps.unseen.push_back({net::Prefix::parse("10.1.0.0/29").value(), kBegin + 60s, kBegin + 70s});
  gaps.gap = core::history::Gap{kBegin + 80s, kBegin + 85s};
  gaps.alive = kBegin + 90s;
  ASSERT_TRUE(file->write(gaps));
  EXPECT_EQ(text_at(65s), "10.1.0.7 10.1.0.9 open") << "they hold still; others came and went, perhaps";
  EXPECT_EQ(text_at(75s), "10.1.0.7 10.1.0.9 ");
  EXPECT_EQ(text_at(82s), "10.1.0.7 10.1.0.9 open");
  // As for one address alone.
  for (int second = 0; second < 95; ++second) {
    const auto all = file->holders_at(range, kBegin + std::chrono::seconds(second), 10).value();
    for (const char* const address : {"10.1.0.7", "10.1.0.9"}) {
      const auto alone = file->holder_at(ip(address), kBegin + std::chrono::seconds(second)).value();
      const auto found = std::ranges::find(all.held, ip(address), &HistoryFile::Holders::One::address);
      EXPECT_EQ(found != all.held.end(), !alone.holdings.empty()) << address << " at " << second;
      EXPECT_TRUE(found == all.held.end() || found->is_sure == alone.is_sure) << address << " at " << second;
    }
  }
}

/// The clock was set back by an hour: one who began before another one held on when that was long over.
TEST_F(HistoryFileTest, AHolderOfTimesThatCameTwiceIsFoundBehindThem) {
  const auto file = open();
  write(*file, {}, kBegin);
  const auto holder = [&](const char* pod, std::chrono::minutes from, std::chrono::minutes until) {
    write(*file, {{}, {begun("10.1.0.7", kBegin + from, pod)}}, kBegin + from);
    write(*file, {{{ip("10.1.0.7"), Moment::at(kBegin + until)}}, {}}, kBegin + until);
  };
  holder("h1", 40min, 45min);
  holder("h2", 50min, 55min);
  engine::HistoryEntry set_back;
  set_back.gap = core::history::Gap{kBegin, kBegin + 60min, true};
  set_back.alive = kBegin + 60min;
  ASSERT_TRUE(file->write(set_back));
  holder("h3", 10min, 90min);
  write(*file, {}, kBegin + 100min);
  const WallTime at = kBegin + 65min;
  const auto alone = file->holder_at(ip("10.1.0.7"), at).value();
  ASSERT_EQ(alone.holdings.size(), 1U);
  EXPECT_EQ(alone.holdings[0].holder.pod, "h3");
  EXPECT_EQ(file->holders_at(net::Prefix::parse("10.1.0.0/28").value(), at, 10)->held.size(), 1U);
}

TEST_F(HistoryFileTest, OfManyHoldersOfOneAddressThoseOfAMomentAreFound) {
  const auto file = open();
  write(*file, {}, kBegin);
  // Of two addresses one is free between two holders; each change is known to five seconds.
  constexpr int kHolders = 40;
  const std::vector<const char*> addresses{"10.1.0.7", "10.1.0.8"};
  const auto look = [](std::chrono::seconds by) { return Moment{kBegin + by - 5s, kBegin + by}; };
  for (int i = 1; i <= kHolders; ++i) {
    core::history::Changes changes;
    for (std::size_t k = 0; k < addresses.size(); ++k) {
      const bool is_there = i % 2 == 1 || k == 0;
      if (i > 1 && (k == 0 || !is_there)) changes.ended.push_back({ip(addresses[k]), look(20s * i)});
      if (!is_there) continue;
      auto next = begun(addresses[k], kBegin, fmt::format("{}-{}", k, i));
      next.holding.begin = look(20s * i);
      changes.begun.push_back(std::move(next));
    }
    write(*file, changes, kBegin + 20s * i + 1s);
  }
  const auto range = net::Prefix::parse("10.1.0.0/28").value();
  for (const char* const address : addresses) {
    HistoryQuestion question;
    question.address = ip(address);
    const std::vector<Holding> every = file->holdings(question).value();
    EXPECT_GE(every.size(), kHolders / 2U);
    for (int second = 0; second < 20 * kHolders; ++second) {
      const WallTime at = kBegin + std::chrono::seconds(second);
      std::set<std::string> expected, found;
      for (const Holding& one : every) {
        if (core::history::held_at(one, at) != core::history::Held::no) expected.insert(one.holder.pod);
      }
      const auto alone = file->holder_at(ip(address), at).value();
      for (const Holding& one : alone.holdings) found.insert(one.holder.pod);
      EXPECT_EQ(found, expected) << address << " at " << second;
      const auto all = file->holders_at(range, at, 10).value();
      const auto one = std::ranges::find(all.held, ip(address), &HistoryFile::Holders::One::address);
      EXPECT_EQ(one != all.held.end(), !expected.empty()) << address << " at " << second;
      EXPECT_EQ(one != all.held.end() && one->is_sure, !expected.empty() && alone.is_sure) << address;
      question.from = at;
      question.until = at + 30s;
      const auto touches = [&](const Holding& holding) {
        return holding.begin.after < at + 30s && (!holding.end || holding.end->by > at);
      };
      EXPECT_EQ(static_cast<long>(file->holdings(question)->size()), std::ranges::count_if(every, touches))
          << address << " at " << second;
    }
  }
}

TEST_F(HistoryFileTest, AQuestionReadsNoHoldersThatItIsNotAbout) {
  static_cast<void>(open());
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  // As the questions are written: by an address, a pod, a node, and a node in some hours.
  const std::string id = "(SELECT id FROM texts WHERE text=?)", by_node = "node=" + id;
  const std::pair<std::string, std::string> questions[] = {
      {"address=?", "address"},
      {fmt::format("pod_back=? AND pod_front=ifnull({}, 0)", id), "by_pod"},
      {by_node, "by_node"},
      {by_node + " AND begin - begin_width < ?", "by_node"}};
  for (const std::string table : {"open", "ended"}) {
    for (const auto& [where, index] : questions) {
      const bool is_by_end = table == "ended" && index == "by_node";
      const std::string sql = fmt::format("EXPLAIN QUERY PLAN SELECT uid FROM {} WHERE {} ORDER BY {} DESC LIMIT 9",
                                          table, where, is_by_end ? "id" : "begin");
      sqlite3_stmt* plan = nullptr;
      ASSERT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &plan, nullptr), SQLITE_OK);
      ASSERT_EQ(sqlite3_step(plan), SQLITE_ROW);
      const std::string first = reinterpret_cast<const char*>(sqlite3_column_text(plan, 3));
      EXPECT_TRUE(first.starts_with("SEARCH " + table)) << sql << ": " << first;
      EXPECT_NE(first.find(index), std::string::npos) << sql << ": " << first;
      while (sqlite3_step(plan) == SQLITE_ROW) {
        const std::string step = reinterpret_cast<const char*>(sqlite3_column_text(plan, 3));
        EXPECT_TRUE(index != "by_node" || step.find("B-TREE") == std::string::npos)
            << "the latest come first: " << sql << ": " << step;
      }
      sqlite3_finalize(plan);
    }
  }
  sqlite3_close(db);
}

TEST_F(HistoryFileTest, GivesBackWhatWasWritten) {
  const auto file = open();
  const Begun four = begun("10.1.0.7", kBegin, "web-7d9f8b6c5-x2x4z"), six = begun("fd00::7", kBegin, "lone");
  write(*file, {{}, {four, six}}, kBegin);
  write(*file, {{{ip("10.1.0.7"), {kBegin + 50s, kBegin + 60s}}}, {}}, kBegin + 70s);
  const auto read = HistoryFile::open_to_read(path_);
  ASSERT_TRUE(read) << read.error().message;

  HistoryQuestion question;
  question.pod = "web-7d9f8b6c5-x2x4z";
  question.namespace_name = "shop";
  auto found = (*read)->holdings(question).value();
  ASSERT_EQ(found.size(), 1U);
  auto expected = four.holding;
  expected.end = Moment{kBegin + 50s, kBegin + 60s};
  EXPECT_EQ(found[0], expected);
  question = {.pod = "lone"};
  found = (*read)->holdings(question).value();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0], six.holding);
  question = {.node = "node-a"};
  EXPECT_EQ((*read)->holdings(question).value().size(), 2U);
  question.from = kBegin + 65s;
  EXPECT_EQ((*read)->holdings(question).value().size(), 1U) << "the other one ended before";
  question = {.node = "node-b"};
  EXPECT_TRUE((*read)->holdings(question).value().empty());
  EXPECT_EQ((*read)->reach()->until, kBegin + 70s);

  const auto state = file->state();
  EXPECT_EQ(state->alive, kBegin + 70s);
  EXPECT_EQ(state->open, (core::history::Open{{ip("fd00::7"), 7}}));
}

TEST_F(HistoryFileTest, OldRecordsGoAndNoOthers) {
  const auto file = open({std::chrono::hours(24), std::int64_t{1} << 40});
  for (int hour = 0; hour < 72; ++hour) {
    const WallTime at = kBegin + std::chrono::hours(hour);
    write(*file, {{}, {begun("10.1.0.7", at, "web-" + std::to_string(hour))}}, at);
    write(*file, {{{ip("10.1.0.7"), Moment::at(at + 30min)}}, {}}, at + 30min);
  }
  // The last that went was held until 47:30.
  EXPECT_GE(file->reach()->since, kBegin + 46h);
  EXPECT_LE(file->reach()->since, kBegin + 48h);
  EXPECT_FALSE(file->holder_at(ip("10.1.0.7"), kBegin + 1h)->is_sure) << "it is not told that nobody had it";
  for (int hour = 48; hour < 71; ++hour) {
    const auto answer = file->holder_at(ip("10.1.0.7"), kBegin + std::chrono::hours(hour) + 10min);
    EXPECT_EQ(answer->holdings.size(), 1U) << hour;
  }
}

TEST_F(HistoryFileTest, TheBoundOfBytesTakesTheOldestAFewAtATime) {
  const auto file = open({std::chrono::hours(24 * 90), std::int64_t{300} << 10});
  int pods = 0;
  const auto pass = [&](int count) {
    engine::HistoryEntry entry;
    for (int i = 0; i < count; ++i, ++pods) {
      const WallTime at = kBegin + std::chrono::seconds(pods);
      entry.changes.push_back(
          {{{ip("10.1.0.7"), Moment::at(at)}}, {begun("10.1.0.7", at, fmt::format("job-{}-x", pods))}});
      entry.alive = at;
    }
    ASSERT_TRUE(file->write(entry));
  };
  HistoryQuestion all;
  all.address = ip("10.1.0.7");
  all.limit = 100'000;
  for (int i = 0; i < 200; ++i) pass(30);
  const auto kept = file->holdings(all).value();
  EXPECT_GT(kept.size(), 500U);
  EXPECT_LT(kept.size(), 5000U);
  EXPECT_EQ(file->reach()->since, kept.front().begin.by) << "the end of the last that went";
  const std::size_t before = kept.size();
  pass(1);
  EXPECT_LE(before - std::min(before, file->holdings(all).value().size()), 250U) << "nobody waits long";
}

TEST_F(HistoryFileTest, AWriteTakesAsMuchAsItAdds) {
  const auto file = open({std::chrono::hours(24 * 90), std::int64_t{300} << 10});
  const auto held = [&] {
    HistoryQuestion all;
    all.address = ip("10.1.0.7");
    all.limit = 100'000;
    return file->holdings(all)->size();
  };
  const auto pass = [&](int i) {
    engine::HistoryEntry entry;
    const WallTime at = kBegin + std::chrono::seconds(i);
    for (int k = 0; k < 600; ++k) {
      entry.changes.push_back(
          {{{ip("10.1.0.7"), Moment::at(at)}}, {begun("10.1.0.7", at, fmt::format("job-{}-{}", i, k))}});
    }
    entry.alive = at;
    ASSERT_TRUE(file->write(entry));
  };
  for (int i = 0; i < 10; ++i) pass(i);
  const std::size_t before = held();
  for (int i = 10; i < 20; ++i) pass(i);
  EXPECT_LE(held(), before + 600) << "it grows on";
}

TEST_F(HistoryFileTest, ItIsForItsUserAlone) {
  const auto file = open();
  write(*file, {}, kBegin);
  for (const char* const end : {"", "-wal", "-shm"}) {
    struct stat s {};
    ASSERT_EQ(::stat((path_ + end).c_str(), &s), 0) << end;
    EXPECT_EQ(s.st_mode & 0777U, 0600U) << end;
  }
}

TEST_F(HistoryFileTest, ANetworkThatIsCalledLikeAPodStays) {
  const auto file = open({std::chrono::hours(1), std::int64_t{1} << 40});
  Begun stays = begun("10.1.0.8", kBegin, "web");
  stays.holding.holder.network = stays.holding.holder.interface_name = "net-";
  write(*file, {{}, {stays, begun("10.1.0.7", kBegin, "net-1")}}, kBegin);
  write(*file, {{{ip("10.1.0.7"), Moment::at(kBegin)}}, {}}, kBegin);
  write(*file, {}, kBegin + 3h);
  EXPECT_TRUE(file->holdings({.pod = "net-1"})->empty());
  const auto left = file->holdings({.pod = "web"}).value();
  ASSERT_EQ(left.size(), 1U);
  EXPECT_EQ(left[0].holder.network, "net-");
  EXPECT_EQ(left[0].holder.interface_name, "net-");
}

TEST_F(HistoryFileTest, NamesOfJobsGoWithTheirRecords) {
  const auto file = open({std::chrono::hours(1), std::int64_t{1} << 40});
  for (int hour = 0; hour < 20; ++hour) {
    const WallTime at = kBegin + std::chrono::hours(hour);
    write(*file, {{}, {begun("10.1.0.7", at, fmt::format("job-{}-x", hour)), begun("10.1.0.8", at, "web-a-x")}}, at);
    write(*file, {{{ip("10.1.0.7"), Moment::at(at)}, {ip("10.1.0.8"), Moment::at(at)}}, {}}, at);
  }
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open_v2(path_.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  const auto count = [&](const std::string& like) {
    sqlite3_stmt* query = nullptr;
    const std::string sql = "SELECT count(*) FROM texts WHERE text LIKE '" + like + "'";
    EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &query, nullptr), SQLITE_OK);
    EXPECT_EQ(sqlite3_step(query), SQLITE_ROW);
    const int found = sqlite3_column_int(query, 0);
    sqlite3_finalize(query);
    return found;
  };
  EXPECT_LE(count("job-%"), 3);
  EXPECT_EQ(count("web-a-"), 1);
  sqlite3_close(db);
  EXPECT_EQ(file->holdings({.pod = "web-a-x"}).value().back().holder.pod, "web-a-x");
}

TEST_F(HistoryFileTest, LaterHoldersDoNotHideTheOneThatIsAskedFor) {
  const auto file = open();
  // Clocks were set: they begin behind the one that is asked for, and ended before.
  write(*file, {{}, {begun("10.1.0.7", kBegin, "long")}}, kBegin);
  write(*file, {{{ip("10.1.0.7"), Moment::at(kBegin + 1h)}}, {}}, kBegin + 1h);
  for (int i = 1; i < 9; ++i) {
    Begun one = begun("10.1.0.7", kBegin + std::chrono::seconds(i), "short-" + std::to_string(i));
    write(*file, {{}, {one}}, kBegin + 2h);
    write(*file, {{{ip("10.1.0.7"), Moment::at(kBegin + std::chrono::seconds(i + 1))}}, {}}, kBegin + 2h);
  }
  const auto answer = file->holder_at(ip("10.1.0.7"), kBegin + 30min);
  ASSERT_EQ(answer->holdings.size(), 1U);
  EXPECT_EQ(answer->holdings[0].holder.pod, "long");
}

TEST_F(HistoryFileTest, WhatChangedInTheSecondOfALogIsNotSure) {
  const auto file = open();
  const auto asked = [&](std::chrono::milliseconds from) {
    return file->holder_at(ip("10.1.0.7"), Moment{kBegin + from, kBegin + from + 1s - 1ns}).value();
  };
  write(*file, {}, kBegin);
  write(*file, {{}, {begun("10.1.0.7", kBegin + 1300ms, "first")}}, kBegin + 1300ms);
  write(*file, {{{ip("10.1.0.7"), Moment::at(kBegin + 3600ms)}}, {begun("10.1.0.7", kBegin + 3600ms, "second")}},
        kBegin + 4s);
  write(*file, {{{ip("10.1.0.7"), Moment::at(kBegin + 5s)}}, {}}, kBegin + 5s);
  write(*file, {{}, {begun("10.1.0.7", kBegin + 6300ms, "short")}}, kBegin + 6300ms);
  engine::HistoryEntry entry;
  entry.changes.push_back({{{ip("10.1.0.7"), Moment::at(kBegin + 6600ms)}}, {}});
  entry.unseen.push_back({net::Prefix::parse("10.1.0.0/26").value(), kBegin + 8200ms, kBegin + 8400ms});
  entry.alive = kBegin + 9500ms;
  ASSERT_TRUE(file->write(entry));

  EXPECT_TRUE(asked(0ms).is_sure);
  EXPECT_FALSE(asked(1000ms).is_sure);
  EXPECT_TRUE(asked(2000ms).is_sure);
  EXPECT_EQ(asked(2000ms).holdings.size(), 1U);
  EXPECT_FALSE(asked(3000ms).is_sure);
  EXPECT_EQ(asked(3000ms).holdings.size(), 2U);
  EXPECT_EQ(asked(3000ms).known, "it changed in that time");
  EXPECT_FALSE(asked(6000ms).is_sure) << "nobody had it at both ends";
  EXPECT_TRUE(asked(7000ms).is_sure);
  EXPECT_FALSE(asked(8000ms).is_sure) << "and somebody may have in the middle";
  EXPECT_FALSE(asked(9000ms).is_sure) << "its end is not recorded yet";
}

TEST_F(HistoryFileTest, ALaterBlockInsideOfOneDoesNotHideWhatWasNotSeenOfIt) {
  const auto file = open();
  engine::HistoryEntry entry;
  entry.unseen.push_back({net::Prefix::parse("10.1.0.0/24").value(), kBegin + 10s, kBegin + 20s});
  entry.unseen.push_back({net::Prefix::parse("10.1.0.64/26").value(), kBegin + 50s, kBegin + 60s});
  write(*file, {}, kBegin);
  entry.alive = kBegin + 100s;
  ASSERT_TRUE(file->write(entry));
  const auto is_sure = [&](const char* address, std::chrono::seconds at) {
    return file->holder_at(ip(address), kBegin + at)->is_sure;
  };
  EXPECT_FALSE(is_sure("10.1.0.70", 15s));
  EXPECT_FALSE(is_sure("10.1.0.70", 55s));
  EXPECT_TRUE(is_sure("10.1.0.70", 30s));
  EXPECT_TRUE(is_sure("10.1.0.7", 55s));
}

TEST_F(HistoryFileTest, GapsStayAsLongAsTheHistoryAnswersForThem) {
  const auto file = open({std::chrono::hours(24), std::int64_t{1} << 40});
  const auto gap = [&](WallTime from, WallTime until, bool is_twice) {
    engine::HistoryEntry entry;
    entry.gap = core::history::Gap{from, until, is_twice};
    ASSERT_TRUE(file->write(entry));
  };
  write(*file, {{}, {begun("10.1.0.7", kBegin, "long")}}, kBegin);
  gap(kBegin + 1h, kBegin + 2h, false);
  gap(kBegin + 3h, kBegin + 4h, true);
  write(*file, {{{ip("10.1.0.7"), Moment::at(kBegin + 20h)}}, {}}, kBegin + 40h);
  EXPECT_GE(file->reach()->since, kBegin + 16h) << "older than it is kept";
  EXPECT_FALSE(file->holder_at(ip("10.1.0.9"), kBegin + 90min)->is_sure) << "nobody looked";
  EXPECT_FALSE(file->holder_at(ip("10.1.0.7"), kBegin + 210min)->is_sure) << "these times came twice";
  EXPECT_TRUE(file->holder_at(ip("10.1.0.7"), kBegin + 10h)->is_sure);
}

TEST_F(HistoryFileTest, PoolsThatWentAreCountedNoMore) {
  const auto file = open();
  const auto count = [&](WallTime at, const std::vector<std::string>& pools) {
    engine::HistoryEntry entry;
    entry.at = at;
    for (const std::string& pool : pools) entry.uses.push_back({pool, 10, 256});
    ASSERT_TRUE(file->write(entry));
  };
  count(kBegin - 9 * 24h, {"a"});
  count(kBegin, {"a", "gone", "anew"});
  count(kBegin + 5min, {"a", "gone"});
  count(kBegin + 10min, {"a", "anew"});
  const auto uses = file->uses(WallTime{}).value();
  ASSERT_EQ(uses.size(), 2U);
  EXPECT_EQ(uses.at("a").size(), 3U) << "what no forecast looks at is gone";
  EXPECT_EQ(uses.at("anew").size(), 1U) << "it is another pool";
}

TEST_F(HistoryFileTest, TwoProcessesDoNotWriteOneFile) {
  const auto first = open();
  const auto second = HistoryFile::open(path_, {});
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("another process records in"), std::string::npos) << second.error().message;
  EXPECT_TRUE(HistoryFile::open_to_read(path_));
}

TEST_F(HistoryFileTest, AnOlderCopyInItsPlaceIsNotWrittenOn) {
  const auto file = open();
  engine::HistoryEntry entry;
  entry.alive = kBegin;
  ASSERT_TRUE(file->write(entry));
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "UPDATE about SET value=value-1 WHERE id=2", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  entry.alive = kBegin + 1min;
  EXPECT_EQ(file->write(entry).error().code, ErrorCode::unavailable) << "a gap is needed before what follows";
}

TEST_F(HistoryFileTest, ADatabaseOfAnotherProgramIsNotTouched) {
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(path_.c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE theirs(a)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const auto file = HistoryFile::open(path_, {});
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find("is no history"), std::string::npos) << file.error().message;
}

TEST_F(HistoryFileTest, AFileOfAnotherProgramIsNotTouched) {
  ASSERT_TRUE(os::replace_file_durably(
      path_, "something else, longer than a header of SQLite's " + std::string(200, 'x'), os::FileMode::for_user));
  const auto file = HistoryFile::open(path_, {});
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find(path_ + " is damaged"), std::string::npos) << file.error().message;
  EXPECT_EQ(file.error().message.find("backup-and-restore"), std::string::npos) << "that is of the register";
  EXPECT_EQ(HistoryFile::open_to_read(scratch_.file("none")).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace croft::edge
