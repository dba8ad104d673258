#include <algorithm>
#include <set>

#include "register/pool.h"
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

TEST_P(StoreConformance, EachRecordOfAKindIsGivenOnce) {
  std::set<std::string> all;
  for (std::size_t i = 0; i < 25; ++i) {
    const std::string name = fmt::format("n{:03}", i);
    all.insert(name);
    ASSERT_TRUE(commit({put(name, i)}));
  }
  ASSERT_TRUE(commit({put("other", 1)}));
  for (const bool keys_only : {false, true}) {
    for (const std::size_t limit : {1U, 7U, 1000U}) {
      std::set<std::string> seen;
      const auto done = store_->for_each(
          {Kind::high_water_mark, "n", "", limit, keys_only}, [&] { return soon(); },
          [&](Record& record) -> Result<void> {
            EXPECT_TRUE(seen.insert(record.key.name).second) << record.key.name;
            EXPECT_TRUE(keys_only || std::holds_alternative<core::HighWaterMark>(record.value));
            return {};
          });
      ASSERT_TRUE(done) << done.error().message;
      EXPECT_EQ(seen, all) << "limit " << limit;
    }
  }
  int taken = 0;
  const auto ended = store_->for_each(
      {Kind::high_water_mark, "n", "", 7}, [&] { return soon(); },
      [&](Record&) -> Result<void> {
        if (++taken < 10) return {};
        return fail(ErrorCode::internal, "enough");
      });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "enough");
  EXPECT_EQ(taken, 10);
}

TEST_P(StoreConformance, AWindowShowsTheKeysFromItsBeginningOn) {
  std::vector<Write> writes;
  for (std::size_t i = 0; i < core::kKeyWindowMax + 3; ++i) {
    writes.push_back(put(fmt::format("n{:03}", i), i));
    if (writes.size() < kCommitWritesMax && i != core::kKeyWindowMax + 2) continue;
    ASSERT_TRUE(write_all(std::exchange(writes, {})));
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

// ---------------------------------------------------------------- damaged records

/// Why a record can't be understood; null when it can.
const Error* damage_in(const std::optional<Record>& record) {
  return record ? core::damage_of(record->value) : nullptr;
}

TEST_P(StoreConformance, ADamagedRecordCostsOnlyItself) {
  for (const Kind kind : {Kind::high_water_mark, Kind::block, Kind::pool}) {
    if (!backend_->writes(kind)) continue;
    std::vector<Key> keys;
    for (std::uint32_t i = 0; i < 3; ++i) {
      Value value = mark(i + 1);
      Key key = core::high_water_mark_key(sample_cidr(i));
      if (kind == Kind::block) {
        value = sample_block(i, 3);
        key = core::block_key(sample_cidr(i));
      } else if (kind == Kind::pool) {
        core::PoolSpec spec;
        spec.name = "pool-" + std::to_string(i);
        spec.cidr = sample_cidr(i);
        value = core::make_pool(spec).value();
        key = core::pool_key(spec.name);
      }
      ASSERT_TRUE(commit({{key, value, Condition::if_absent()}}));
      keys.push_back(key);
    }
    std::sort(keys.begin(), keys.end());  // as lists are
    backend_->damage(keys[1]);

    const auto one = store_->get(keys[1], soon());
    ASSERT_TRUE(one) << one.error().message;
    ASSERT_NE(damage_in(*one), nullptr);
    EXPECT_EQ(core::kind_of((*one)->value), kind);
    EXPECT_EQ((*one)->key, keys[1]);
    EXPECT_NE((*one)->revision, Revision());
    EXPECT_EQ(damage_in(*one)->code, ErrorCode::corrupt);
    EXPECT_NE(damage_in(*one)->message.find(keys[1].name.substr(keys[1].name.find('/') + 1, 6)), std::string::npos)
        << damage_in(*one)->message;

    const auto page = store_->list({kind, "", "", 10}, soon());
    ASSERT_TRUE(page) << page.error().message;
    ASSERT_EQ(page->records.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(page->records[i].key, keys[i]);
      EXPECT_EQ(core::damage_of(page->records[i].value) != nullptr, i == 1);
    }
    EXPECT_EQ(store_->list_keys({kind, "", "", 10}, soon())->keys.size(), 3U);

    core::Missing wanted;
    wanted.records = {keys.begin(), keys.end()};
    wanted.lists = {{kind, ""}};
    const auto answer = store_->read(wanted, soon());
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_NE(damage_in(answer->records[1]), nullptr);
    EXPECT_EQ(damage_in(answer->records[2]), nullptr);
    EXPECT_NE(core::damage_of(answer->lists.front()[1].value), nullptr);
    EXPECT_EQ(answer->lists.front().size(), 3U);

    // It is there: who wants to make it fails. Its neighbours are written as ever.
    EXPECT_EQ(code_of(commit({{keys[1], page->records[0].value, Condition::if_absent()}})), ErrorCode::conflict);
    EXPECT_TRUE(commit({{keys[2], page->records[2].value, Condition::if_revision(page->records[2].revision)}}));
    // Nobody writes damage.
    EXPECT_EQ(code_of(commit({{keys[0], (*one)->value, Condition::always()}})), ErrorCode::invalid_argument);
    // It goes under its revision.
    EXPECT_TRUE(commit({{keys[1], std::nullopt, Condition::if_revision((*one)->revision)}}));
    EXPECT_EQ(store_->get(keys[1], soon()).value(), std::nullopt);
  }
}

TEST_P(StoreConformance, AWatchGoesOnPastADamagedRecord) {
  if (!backend_->damage_is_watched()) GTEST_SKIP() << "what another program writes into this file is not watched";
  ASSERT_TRUE(commit({put("a", 1)}));
  const auto position = store_->position(soon());
  ASSERT_TRUE(position);
  auto watch = store_->watch({{}, {{Kind::high_water_mark, ""}}}, *position, soon());
  ASSERT_TRUE(watch) << watch.error().message;
  backend_->damage(mark_key("a"));
  ASSERT_TRUE(commit({put("b", 2)}));
  bool saw_damage = false, saw_next = false;
  for (int i = 0; i < 1000 && !saw_next; ++i) {
    const auto changes = (*watch)->next(in(std::chrono::milliseconds{100}));
    ASSERT_TRUE(changes) << changes.error().message;
    for (const Change& change : *changes) {
      saw_damage |= change.key == mark_key("a") && damage_in(change.record) != nullptr;
      saw_next |= change.key == mark_key("b");
    }
  }
  EXPECT_TRUE(saw_damage);
  EXPECT_TRUE(saw_next);
}

}  // namespace
}  // namespace croft::store
