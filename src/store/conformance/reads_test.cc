#include <algorithm>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "register/pool.h"
#include "store/conformance/conformance.h"

namespace croft::store {
namespace {

TEST_P(StoreConformance, ReadsRecordsInTheOrderOfTheirKeys) {
  ASSERT_TRUE(commit({put("a", 1)}));
  ASSERT_TRUE(commit({put("b", 2)}));
  core::Missing wanted;
  wanted.records = {mark_key("b"), mark_key("missing"), mark_key("a"), mark_key("b")};
  const auto records = store_->read(wanted, soon()).value().records;
  ASSERT_EQ(records.size(), 3U);
  EXPECT_EQ(records[0]->value, mark(1));
  EXPECT_EQ(records[1]->value, mark(2));
  EXPECT_FALSE(records[2].has_value());
  EXPECT_TRUE(store_->read({}, soon()).value().records.empty());
}

TEST_P(StoreConformance, AKindIsNotSeenUnderAnother) {
  ASSERT_TRUE(commit({put("default", 1)}));
  EXPECT_FALSE(store_->get({Kind::pool_set, "default"}, soon()).value().has_value());
  EXPECT_TRUE(names_of({Kind::pool_set, ""}).empty());
}

TEST_P(StoreConformance, ListsByPrefixInBytewiseOrder) {
  for (const char* name : {"a", "a/", "a/1", "a/10", "a/2", "a0", "b", "é", "éa", "z"})
    ASSERT_TRUE(commit({put(name, 1)}));
  const std::pair<const char*, std::vector<std::string>> cases[] = {
      {"", {"a", "a/", "a/1", "a/10", "a/2", "a0", "b", "z", "é", "éa"}},
      {"a/", {"a/", "a/1", "a/10", "a/2"}},
      {"a/1", {"a/1", "a/10"}},
      {"é", {"é", "éa"}},
      {"\xff", {}},
      {"nothing", {}},
  };
  for (const auto& [prefix, expected] : cases) {
    for (const std::size_t limit : {1U, 2U, 3U, 100U}) {
      for (const bool keys_only : {false, true}) {
        EXPECT_EQ(names_of({Kind::high_water_mark, prefix, limit, keys_only, true}), expected) << prefix << limit;
      }
    }
    std::vector<std::string> whole;
    const auto listed = store_->list({Kind::high_water_mark, prefix}, soon()).value();
    for (const Record& record : listed) whole.push_back(record.key.name);
    EXPECT_EQ(whole, expected) << prefix;
  }
}

TEST_P(StoreConformance, EachRecordOfAKindIsGivenOnce) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < 25; ++i) {
    all.push_back(fmt::format("n{:03}", i));
    ASSERT_TRUE(commit({put(all.back(), i)}));
  }
  ASSERT_TRUE(commit({put("other", 1)}));
  for (const bool keys_only : {false, true}) {
    for (const std::size_t limit : {1U, 7U, 24U, 25U, 26U, 1000U}) {
      std::vector<std::string> seen = names_of({Kind::high_water_mark, "n", limit, keys_only});
      std::ranges::sort(seen);
      EXPECT_EQ(seen, all) << "limit " << limit;
    }
  }
  int pages = 0;
  const auto until = [&] {
    ++pages;
    return soon();
  };
  ASSERT_TRUE(store_->for_each({Kind::high_water_mark, "n", 7}, until, [](Record&) { return Result<void>(); }));
  EXPECT_GE(pages, 4) << "each page has its time";
  int taken = 0;
  const auto ended = store_->for_each(
      {Kind::high_water_mark, "n", 7}, [&] { return soon(); },
      [&](Record&) -> Result<void> {
        if (++taken < 10) return {};
        return fail(ErrorCode::internal, "enough");
      });
  ASSERT_FALSE(ended);
  EXPECT_EQ(ended.error().message, "enough");
  EXPECT_EQ(taken, 10);
}

net::Prefix cidr(const char* text) { return net::Prefix::parse(text).value(); }

/// In commits that every store has room for.
std::vector<std::vector<Write>> to_make(const std::vector<net::Prefix>& blocks) {
  const core::AffinityOwner owner{core::AffinityOwner::Type::host, "a"};
  std::vector<std::vector<Write>> commits;
  for (const net::Prefix& block : blocks) {
    if (commits.empty() || commits.back().size() == 40) commits.emplace_back();
    commits.back().push_back({core::block_key(block), core::new_block(block, owner, {}, {}), Condition::if_absent()});
  }
  return commits;
}

core::FoundBlock find_free(Store& store, core::FreeBlock wanted, Deadline deadline) {
  core::Missing missing;
  missing.free_blocks.insert(std::move(wanted));
  auto answer = store.read(missing, deadline);
  EXPECT_TRUE(answer) << answer.error().message;
  return answer ? answer->free_blocks.at(0) : core::FoundBlock();
}

TEST_P(StoreConformance, AFreeBlockOfAnEmptyPoolIsTheOneToBeginWith) {
  const auto find = [&](core::FreeBlock wanted) { return find_free(*store_, std::move(wanted), soon()); };
  for (const auto& [pool, start] :
       {std::pair("10.0.0.0/16", "10.0.37.64/26"), std::pair("fd00::/64", "fd00::a:40/122")}) {
    EXPECT_EQ(find({cidr(pool), cidr(start).length(), cidr(start), {}, false, nullptr}).block, cidr(start));
    EXPECT_NE(find({cidr(pool), cidr(start).length(), cidr(start), {cidr(start)}, false, nullptr}).block, cidr(start));
  }
}

TEST_P(StoreConformance, TheLastFreeBlockOfACrowdedPoolIsFound) {
  const auto find = [&](core::FreeBlock wanted) { return find_free(*store_, std::move(wanted), soon()); };
  for (const char* pool : {"10.0.0.0/21", "fd00::f800/117"}) {
    const int length = cidr(pool).length() + 5;
    std::vector<net::Prefix> all;
    for (std::uint64_t i = 0; i < 32; ++i) all.push_back(cidr(pool).subprefix(i, length));
    const net::Prefix free = all[19];
    std::vector<net::Prefix> others = all;
    std::erase(others, free);
    for (auto& writes : to_make(others)) ASSERT_TRUE(write_all(std::move(writes)));
    for (const std::size_t start : {0U, 7U, 19U, 20U, 31U}) {
      EXPECT_EQ(find({cidr(pool), length, all[start], {}, false, nullptr}).block, free) << start;
    }
    const core::FoundBlock none = find({cidr(pool), length, all[3], {free}, false, nullptr});
    EXPECT_FALSE(none.block);
    EXPECT_EQ(none.there, 31U);
    EXPECT_FALSE(none.other);
    const auto reserved = std::make_shared<const net::Intervals>(std::vector<net::Prefix>{free});
    EXPECT_FALSE(find({cidr(pool), length, all[3], {}, false, reserved}).block);
  }
}

/// Another program changed the length of the pool's blocks.
TEST_P(StoreConformance, BlocksOfOtherLengthsKeepTheirAddressesOut) {
  const auto find = [&](core::FreeBlock wanted) { return find_free(*store_, std::move(wanted), soon()); };
  const std::vector<net::Prefix> others{cidr("10.0.0.0/23"), cidr("10.0.3.32/27"), cidr("10.0.3.128/30"),
                                        cidr("10.7.0.0/19"), cidr("fd00::/121"),   cidr("fd00::c0/123")};
  for (auto& writes : to_make(others)) ASSERT_TRUE(write_all(std::move(writes)));
  EXPECT_EQ(find({cidr("10.0.0.0/22"), 26, cidr("10.0.0.64/26"), {}, false, nullptr}).block, cidr("10.0.2.0/26"));
  const core::FreeBlock end{cidr("10.0.0.0/22"), 26, cidr("10.0.3.0/26"), {}, false, nullptr};
  EXPECT_EQ(find(end).block, cidr("10.0.3.64/26"));
  EXPECT_EQ(find({cidr("10.0.0.0/22"), 25, cidr("10.0.3.128/25"), {}, false, nullptr}).block, cidr("10.0.2.0/25"));
  EXPECT_EQ(find({cidr("10.7.0.0/18"), 22, cidr("10.7.8.0/22"), {}, false, nullptr}).block, cidr("10.7.32.0/22"));
  const core::FoundBlock none = find({cidr("10.7.16.0/20"), 20, cidr("10.7.16.0/20"), {}, false, nullptr});
  EXPECT_FALSE(none.block);
  EXPECT_EQ(none.other, cidr("10.7.0.0/19"));
  EXPECT_EQ(find({cidr("fd00::/120"), 122, cidr("fd00::/122"), {}, false, nullptr}).block, cidr("fd00::80/122"));
}

TEST_P(StoreConformance, ContentOutlivesTheClientThatWroteIt) {
  ASSERT_TRUE(commit({put("a", 1)}));
  store_.reset();
  store_ = backend_->open();
  EXPECT_EQ(read("a"), 1U);
  ASSERT_TRUE(commit({put("a", 2)}));
  const auto second = backend_->open();
  EXPECT_EQ(read_from(*second, "a"), 2U);
}

// ---------------------------------------------------------------- damaged records

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
    ASSERT_TRUE(*one);
    ASSERT_FALSE((*one)->value);
    EXPECT_EQ((*one)->key, keys[1]);
    EXPECT_NE((*one)->revision, Revision());
    const Error& why = (*one)->value.error();
    EXPECT_EQ(why.code, ErrorCode::corrupt);
    EXPECT_NE(why.message.find(keys[1].name.substr(keys[1].name.find('/') + 1, 6)), std::string::npos) << why.message;

    std::vector<Record> listed;
    ASSERT_TRUE(store_->for_each(
        {kind, "", 10, false, true}, [&] { return soon(); },
        [&](Record& record) -> Result<void> {
          listed.push_back(std::move(record));
          return {};
        }));
    ASSERT_EQ(listed.size(), 3U);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(listed[i].key, keys[i]);
      EXPECT_EQ(listed[i].value.has_value(), i != 1);
    }
    EXPECT_EQ(names_of({kind, "", 10, true}).size(), 3U);

    core::Missing wanted;
    wanted.records = {keys.begin(), keys.end()};
    wanted.lists = {{kind, ""}};
    const auto answer = store_->read(wanted, soon());
    ASSERT_TRUE(answer) << answer.error().message;
    EXPECT_FALSE(answer->records[1]->value);
    EXPECT_TRUE(answer->records[2]->value);
    EXPECT_FALSE(answer->lists.front()[1].value);
    EXPECT_EQ(answer->lists.front().size(), 3U);

    // It is there: who wants to make it fails. Its neighbours are written as ever.
    EXPECT_EQ(code_of(commit({{keys[1], *listed[0].value, Condition::if_absent()}})), ErrorCode::conflict);
    EXPECT_TRUE(commit({{keys[2], *listed[2].value, Condition::if_revision(listed[2].revision)}}));
    // It goes under its revision.
    EXPECT_TRUE(commit({{keys[1], std::nullopt, Condition::if_revision((*one)->revision)}}));
    EXPECT_EQ(store_->get(keys[1], soon()).value(), std::nullopt);
  }
}

TEST_P(StoreConformance, AWatchGoesOnPastADamagedRecord) {
  if (!backend_->damage_is_watched()) GTEST_SKIP() << "what another program writes into this file is not watched";
  ASSERT_TRUE(commit({put("a", 1)}));
  const auto watch = watch_of({{}, {{Kind::high_water_mark, ""}}});
  backend_->damage(mark_key("a"));
  ASSERT_TRUE(commit({put("b", 2)}));
  bool saw_damage = false, saw_next = false;
  for (int i = 0; i < 1000 && !saw_next; ++i) {
    const auto changes = watch->next(in(std::chrono::milliseconds{100}));
    ASSERT_TRUE(changes) << changes.error().message;
    for (const Change& change : *changes) {
      saw_damage |= change.key == mark_key("a") && change.record && !change.record->value;
      saw_next |= change.key == mark_key("b");
    }
  }
  EXPECT_TRUE(saw_damage);
  EXPECT_TRUE(saw_next);
}

}  // namespace
}  // namespace croft::store
