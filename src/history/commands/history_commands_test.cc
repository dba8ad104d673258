// The words of `croft who`, `croft history` and `croft forecast`.

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/croft/command_line.h"
#include "history/door/history_file.h"
#include "os/clock.h"
#include "os/scratch_directory.h"

namespace croft::app {
namespace {

using core::history::Moment;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

/// 2025-01-01T00:00:00Z
const WallTime kBegin{std::chrono::seconds(1735689600)};

core::history::Begun begun(const char* address, const char* pod, const Moment& begin) {
  core::history::Begun one;
  one.print = 1;
  one.holding.address = net::parse_address(address).value();
  one.holding.holder.namespace_name = "shop";
  one.holding.holder.pod = pod;
  one.holding.begin = begin;
  return one;
}

class HistoryCommands : public testing::Test {
 protected:
  struct Said {
    std::string out, err;  ///< also the message of what failed
  };
  Said said(std::vector<std::string> words) {
    os::SystemClock clock;
    os::SystemRandom random;
    CommandLine line{"", CommandLine::Output::table, "auto", {}, clock, random, nullptr};
    CLI::App app{"Croft", "croft"};
    add_everything(app, line);
    words.insert(words.end(), {"--history", path_});
    std::ranges::reverse(words);
    app.parse(words);
    testing::internal::CaptureStdout();
    testing::internal::CaptureStderr();
    const auto done = line.run(line);
    Said all{testing::internal::GetCapturedStdout(), testing::internal::GetCapturedStderr()};
    if (!done) all.err += done.error().message;
    return all;
  }
  void write(const core::history::Changes& changes, std::chrono::seconds alive) {
    engine::HistoryEntry entry;
    entry.changes = {changes};
    entry.alive = kBegin + alive;
    write(entry);
  }
  void write(const engine::HistoryEntry& entry) {
    const auto file = edge::HistoryFile::open(path_, {std::chrono::hours(24 * 36600)});
    ASSERT_TRUE(file) << file.error().message;
    ASSERT_TRUE((*file)->write(entry));
  }
  os::ScratchDirectory scratch_;
  const std::string path_ = scratch_.file("history.db");
};

TEST_F(HistoryCommands, AHolderIsKnownAsFarAsTheHistoryGoes) {
  write({}, 0s);
  write({{}, {begun("10.1.0.7", "web-0", Moment::at(kBegin + 10s))}}, 60s);
  const std::string text = said({"who", "10.1.0.7"}).out;
  EXPECT_THAT(text, HasSubstr("from 2025-01-01T00:00:10Z and still at 2025-01-01T00:01:00Z, when the history ends\n"));
  EXPECT_THAT(text, HasSubstr("the controller has written nothing since 2025-01-01T00:01:00Z\n"));
  engine::HistoryEntry lives;
  lives.alive = os::SystemClock().now().wall;
  write(lives);
  EXPECT_THAT(said({"who", "10.1.0.7"}).out, Not(HasSubstr("has written nothing")));
}

TEST_F(HistoryCommands, BetweenTwoHoldersBothAreNamed) {
  const auto address = net::parse_address("10.1.0.8").value();
  write({}, 0s);
  write({{}, {begun("10.1.0.8", "a", Moment::at(kBegin + 10s))}}, 10s);
  write({{{address, Moment::at(kBegin + 20s)}}, {}}, 20s);
  write({{}, {begun("10.1.0.8", "b", Moment::at(kBegin + 40s))}}, 60s);
  const std::string text = said({"who", "10.1.0.8", "--at", "2025-01-01 00:00:30"}).out;
  EXPECT_THAT(text, HasSubstr("nobody held 10.1.0.8\n"));
  EXPECT_THAT(text,
              HasSubstr("before: shop/a until 2025-01-01T00:00:20Z\n  after: shop/b from 2025-01-01T00:00:40Z\n"));
  for (const char* time : {"soon", "15", "0"}) {
    EXPECT_THAT(said({"who", "10.1.0.8", "--at", time}).err, HasSubstr("is no time")) << "15 may be minutes, not 1970";
  }
}

TEST_F(HistoryCommands, GapsBesideWhatIsShownAreNamedAndOthersCounted) {
  write({}, 0s);
  for (int i = 1; i <= 12; ++i) {
    engine::HistoryEntry entry;
    entry.gap = core::history::Gap{kBegin + i * 60s, kBegin + i * 60s + 30s};
    entry.alive = entry.gap->until;
    write(entry);
  }
  const Moment in_third{kBegin + 180s, kBegin + 210s};
  write({{}, {begun("10.1.0.7", "web-0", in_third)}}, 900s);
  const std::string text = said({"history", "10.1.0.7"}).out;
  EXPECT_THAT(text, HasSubstr("\ngap: nobody looked between 2025-01-01T00:03:00Z and 2025-01-01T00:03:30Z\n"
                              "12 gaps, 6m in all; the last: between 2025-01-01T00:12:00Z and 2025-01-01T00:12:30Z\n"));
  EXPECT_EQ(text.find("gap: ", text.find("gap: ") + 1), std::string::npos) << text;
  EXPECT_THAT(said({"history", "10.1.0.0/25"}).err, HasSubstr("is a range"));
}

TEST_F(HistoryCommands, ThePoolThatFillsFirstComesFirst) {
  engine::HistoryEntry entry;
  entry.uses = {{"quiet", 3, 256}, {"small", 8, 8}};
  entry.at = os::SystemClock().now().wall;
  entry.alive = entry.at;
  write(entry);
  const std::string text = said({"forecast"}).out;
  EXPECT_THAT(text, HasSubstr("small   8      8     +0.0       now"));
  EXPECT_LT(text.find("small"), text.find("quiet")) << text;
  EXPECT_THAT(text, HasSubstr("counted at 20"));
}

TEST_F(HistoryCommands, ALogWithLinesThatCannotBeReadIsToldOf) {
  write({}, 0s);
  write({{}, {begun("10.1.0.7", "web-0", Moment::at(kBegin + 10s))}}, 60s);
  const std::string flows = scratch_.file("flows.csv");
  std::ofstream(flows) << "time,src\n2025-01-01 00:00:30,10.1.0.7\n01/Jan/2025 00:00,10.1.0.7\n";
  const Said all = said({"history", "join", flows});
  EXPECT_EQ(all.out, "time,src,src_holder\n2025-01-01 00:00:30,10.1.0.7,shop/web-0\n01/Jan/2025 00:00,10.1.0.7,?\n");
  EXPECT_THAT(all.err, HasSubstr("1 of 2 lines has a time or an address that cannot be read: the first is line 3"));
}

}  // namespace
}  // namespace croft::app
