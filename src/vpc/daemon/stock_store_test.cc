#include "vpc/daemon/stock_store.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "base/clock.h"
#include "os/clock.h"
#include "os/scratch_directory.h"
#include "vpc/use/stock_calls.h"

namespace croft::app {
namespace {

namespace fs = std::filesystem;

class StockStoreTest : public testing::Test {
 protected:
  [[nodiscard]] std::string path() const { return scratch_.file("vpc.db"); }
  [[nodiscard]] Result<StockStore> open() { return open_stock_store(path(), clock_); }
  /// As an agent leaves it.
  void fill() {
    auto stock = open();
    ASSERT_TRUE(stock) << stock.error().message;
    core::StockNode node;
    node.node = "node-1";
    const auto described = engine::transact(
        {*stock->store, clock_, random_}, engine::TurnTaking::before_writing,
        [&](const core::Snapshot& snapshot, const Instant&) { return core::warm::plan_describe(snapshot, node); });
    ASSERT_TRUE(described) << described.error().message;
  }
  [[nodiscard]] engine::StockView view(const StockStore& stock) {
    auto view = engine::view_stock({*stock.store, clock_, random_});
    EXPECT_TRUE(view) << view.error().message;
    return view ? *std::move(view) : engine::StockView{};
  }
  void empty_file() const { std::ofstream(path(), std::ios::trunc).flush(); }
  [[nodiscard]] std::size_t set_aside() const {
    std::size_t count = 0;
    for (const auto& entry : fs::directory_iterator(fs::path(path()).parent_path())) {
      const std::string name = entry.path().filename().string();
      count += name.ends_with(".damaged") ? 1U : 0U;
    }
    return count;
  }

  os::SystemClock clock_;
  SeededRandom random_{1};
  os::ScratchDirectory scratch_;
};

TEST_F(StockStoreTest, ASoundOneIsOpenedAsItIs) {
  fill();
  const auto stock = open();
  ASSERT_TRUE(stock) << stock.error().message;
  EXPECT_EQ(stock->aside, "");
  EXPECT_EQ(view(*stock).node->node, "node-1");
}

TEST_F(StockStoreTest, ADamagedOneIsSetAside) {
  fill();
  empty_file();
  {
    const auto stock = open();
    ASSERT_TRUE(stock) << stock.error().message;
    EXPECT_TRUE(fs::exists(stock->aside)) << stock->aside;
    EXPECT_EQ(stock->why.find("backup-and-restore"), std::string::npos) << stock->why;
    EXPECT_FALSE(view(*stock).node);
  }
  EXPECT_EQ(open()->aside, "") << "it is told once";
  EXPECT_EQ(set_aside(), 1U);
}

TEST_F(StockStoreTest, WhatIsNoDamageChangesNothing) {
  {
    std::ofstream other(path(), std::ios::binary);
    other << std::string("SQLite format 3\0", 16) << std::string(4080, 'x');
  }
  auto stock = open();
  ASSERT_FALSE(stock);
  EXPECT_EQ(stock.error().code, ErrorCode::refused_by_configuration) << stock.error().message;
  EXPECT_TRUE(fs::exists(path()));
  EXPECT_EQ(set_aside(), 0U);
  for (const char* suffix : {"", "-wal", "-shm", "-lock"}) fs::remove(path() + suffix);
  fs::create_directory(path());
  stock = open();
  ASSERT_FALSE(stock);
  EXPECT_EQ(stock.error().code, ErrorCode::invalid_argument) << stock.error().message;
  EXPECT_EQ(set_aside(), 0U);
}

TEST_F(StockStoreTest, ALossWhileItIsOpenIsTold) {
  fill();
  const auto stock = open();
  ASSERT_TRUE(stock);
  EXPECT_FALSE(loss_of(*stock->store, path(), clock_));
  for (const char* suffix : {"", "-wal", "-shm"}) fs::remove(path() + suffix);
  const auto loss = loss_of(*stock->store, path(), clock_);
  ASSERT_TRUE(loss);
  EXPECT_NE(loss->message.find("vpc.db"), std::string::npos) << loss->message;
  fs::remove(path() + "-lock");
  EXPECT_TRUE(loss_of(*stock->store, path(), clock_)) << "with all that told of it";
}

}  // namespace
}  // namespace croft::app
