#include <algorithm>

#include "store/conformance/conformance.h"

namespace croft::store {
namespace {

TEST_P(StoreConformance, GetManyKeepsTheOrderAskedFor) {
  ASSERT_TRUE(commit({put("a", 1)}));
  ASSERT_TRUE(commit({put("b", 2)}));
  const std::vector<Key> keys = {mark_key("b"), mark_key("missing"), mark_key("a"), mark_key("b")};
  const auto records = store_->get_many(keys, soon()).value();
  ASSERT_EQ(records.size(), 4U);
  EXPECT_EQ(records[0]->value, mark(2));
  EXPECT_FALSE(records[1].has_value());
  EXPECT_EQ(records[2]->value, mark(1));
  EXPECT_EQ(records[3]->value, mark(2));
  EXPECT_TRUE(store_->get_many({}, soon()).value().empty());
}

TEST_P(StoreConformance, AKindIsNotSeenUnderAnother) {
  ASSERT_TRUE(commit({put("default", 1)}));
  EXPECT_FALSE(store_->get({Kind::claim_cursor, "default"}, soon()).value().has_value());
  ListRequest request;
  request.kind = Kind::claim_cursor;
  EXPECT_TRUE(store_->list(request, soon()).value().records.empty());
}

struct ListCase {
  std::string prefix, after;
  std::vector<std::string> expected;
};

TEST_P(StoreConformance, ListsByPrefixAndAfterInBytewiseOrder) {
  for (const char* name : {"a", "a/", "a/1", "a/10", "a/2", "a0", "b", "é", "éa", "z"})
    ASSERT_TRUE(commit({put(name, 1)}));
  const ListCase cases[] = {
      {"", "", {"a", "a/", "a/1", "a/10", "a/2", "a0", "b", "z", "é", "éa"}},
      {"a/", "", {"a/", "a/1", "a/10", "a/2"}},
      {"a/1", "", {"a/1", "a/10"}},
      {"a/", "a/1", {"a/10", "a/2"}},
      {"a/", "a", {"a/", "a/1", "a/10", "a/2"}},
      {"a/", "b", {}},
      {"", "z", {"é", "éa"}},
      {"é", "", {"é", "éa"}},
      {"\xff", "", {}},
      {"nothing", "", {}},
  };
  for (const ListCase& c : cases) {
    ListRequest request{Kind::high_water_mark, c.prefix, c.after, 100};
    std::vector<std::string> names;
    const auto page = store_->list(request, soon()).value();
    for (const Record& record : page.records) names.push_back(record.key.name);
    EXPECT_EQ(names, c.expected) << "prefix " << c.prefix << " after " << c.after;
    EXPECT_FALSE(page.more);
    std::vector<std::string> keys;
    const auto key_page = store_->list_keys(request, soon()).value();
    for (const Key& key : key_page.keys) keys.push_back(key.name);
    EXPECT_EQ(keys, c.expected);
  }
}

TEST_P(StoreConformance, PagesFollowEachOtherWithoutGapOrRepeat) {
  constexpr std::size_t kCount = 25;
  std::vector<std::string> all;
  for (std::size_t i = 0; i < kCount; ++i) {
    all.push_back(fmt::format("n{:03}", i));
    ASSERT_TRUE(commit({put(all.back(), i)}));
  }
  for (const std::size_t limit : {1U, 7U, 24U, 25U, 26U, 1000U}) {
    ListRequest request{Kind::high_water_mark, "n", "", limit};
    std::vector<std::string> seen;
    for (bool more = true; more;) {
      const auto page = store_->list(request, soon()).value();
      ASSERT_LE(page.records.size(), limit);
      for (const Record& record : page.records) seen.push_back(record.key.name);
      more = page.more;
      if (more) request.after = page.records.back().key.name;
    }
    EXPECT_EQ(seen, all) << "limit " << limit;
  }
}

TEST_P(StoreConformance, AWindowShowsTheKeysFromItsBeginningOn) {
  std::vector<Write> writes;
  for (std::size_t i = 0; i < core::kKeyWindowMax + 3; ++i) {
    writes.push_back(put(fmt::format("n{:03}", i), i));
    if (writes.size() < kCommitWritesMax && i != core::kKeyWindowMax + 2) continue;
    ASSERT_TRUE(commit(std::exchange(writes, {})));
  }
  const core::Listing listing{Kind::high_water_mark, "n"};
  const auto key = [](const char* name) { return Key{Kind::high_water_mark, name}; };
  core::Missing wanted;
  wanted.records = {key("n001")};
  wanted.windows = {
      {listing, "n000", "n999"}, {listing, "n0015", "n005"}, {listing, "n257", "n999"}, {listing, "n9", "n99"}};
  wanted.counts = wanted.windows;
  const auto answer = store_->read(wanted, soon());
  ASSERT_TRUE(answer) << answer.error().message;
  EXPECT_EQ(answer->counts, (std::vector<std::uint64_t>{core::kKeyWindowMax + 3, 3, 2, 0})) << "they have no limit";
  ASSERT_EQ(answer->windows.size(), 4U);
  EXPECT_EQ(answer->records.size(), 1U);
  EXPECT_EQ(answer->windows[0].keys.size(), core::kKeyWindowMax);
  EXPECT_EQ(answer->windows[0].keys.front(), key("n000"));
  EXPECT_EQ(answer->windows[0].keys.back(), key("n255"));
  EXPECT_TRUE(answer->windows[0].more);
  EXPECT_EQ(answer->windows[1].keys, (std::vector<Key>{key("n002"), key("n003"), key("n004")}))
      << "nor need its ends be";
  EXPECT_FALSE(answer->windows[1].more);
  EXPECT_EQ(answer->windows[2].keys, (std::vector<Key>{key("n257"), key("n258")}));
  EXPECT_FALSE(answer->windows[2].more);
  EXPECT_TRUE(answer->windows[3].keys.empty());
  EXPECT_FALSE(answer->windows[3].more);
}

TEST_P(StoreConformance, LimitsOfAList) {
  for (const std::size_t limit : {std::size_t{0}, kListLimitMax + 1}) {
    ListRequest request;
    request.limit = limit;
    EXPECT_EQ(store_->list(request, soon()).error().code, ErrorCode::invalid_argument);
    EXPECT_EQ(store_->list_keys(request, soon()).error().code, ErrorCode::invalid_argument);
  }
}

TEST_P(StoreConformance, ContentOutlivesTheClientThatWroteIt) {
  ASSERT_TRUE(commit({put("a", 1)}));
  if (store_->capabilities().durable) store_.reset();
  store_ = backend_->open();
  EXPECT_EQ(read("a"), 1U);
  ASSERT_TRUE(commit({put("a", 2)}));
  const auto second = backend_->open();
  EXPECT_EQ(read_from(*second, "a"), 2U);
}

}  // namespace
}  // namespace croft::store
