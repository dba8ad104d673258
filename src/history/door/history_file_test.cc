#include "history/door/history_file.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "os/files.h"
#include "os/scratch_directory.h"

namespace croft::edge {
namespace {

using namespace std::chrono_literals;
using core::history::Begun;
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

TEST_F(HistoryFileTest, OldRecordsGoAndTheHistoryBeginsLater) {
  const auto file = open({std::chrono::hours(24), std::int64_t{1} << 40});
  for (int hour = 0; hour < 72; ++hour) {
    const WallTime at = kBegin + std::chrono::hours(hour);
    write(*file, {{}, {begun("10.1.0.7", at, "web-" + std::to_string(hour))}}, at);
    write(*file, {{{ip("10.1.0.7"), Moment::at(at + 30min)}}, {}}, at + 30min);
  }
  engine::HistoryEntry entry;
  entry.at = kBegin + 72h;
  entry.uses.push_back({"pods", 10, 256});
  ASSERT_TRUE(file->write(entry));
  // Rows go by thousands, so a short history goes as a whole.
  EXPECT_GE(file->reach()->since, kBegin + 48h);
  EXPECT_EQ(file->uses(kBegin)->at("pods").size(), 1U);
  EXPECT_FALSE(file->holder_at(ip("10.1.0.7"), kBegin + 1h)->is_sure) << "it is not told that nobody had it";
}

TEST_F(HistoryFileTest, AFileOfAnotherProgramIsNotTouched) {
  ASSERT_TRUE(os::replace_file_durably(
      path_, "something else, longer than a header of SQLite's " + std::string(200, 'x'), os::FileMode::for_user));
  const auto file = HistoryFile::open(path_, {});
  ASSERT_FALSE(file);
  EXPECT_NE(file.error().message.find(path_), std::string::npos) << file.error().message;
  EXPECT_EQ(HistoryFile::open_to_read(scratch_.file("none")).error().code, ErrorCode::not_found);
}

}  // namespace
}  // namespace croft::edge
