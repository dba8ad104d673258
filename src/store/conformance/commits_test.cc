#include "store/conformance/conformance.h"
#include "store/test_commits.h"

namespace croft::store {
namespace {

TEST_P(StoreConformance, CreateReadUpdateDelete) {
  const Key key = mark_key("a");
  const auto created = create_if_absent(*store_, key, mark(1), sample_token(1), soon());
  ASSERT_TRUE(created) << created.error().message;
  EXPECT_GT(created->value, 0U);
  const auto updated = update_if_revision(*store_, key, mark(2), *created, sample_token(2), soon());
  ASSERT_TRUE(updated) << updated.error().message;
  EXPECT_GT(*updated, *created);
  const auto record = store_->get(key, soon()).value();
  ASSERT_TRUE(record.has_value());
  EXPECT_EQ(record->key, key);
  EXPECT_EQ(record->value, mark(2));
  EXPECT_EQ(record->revision, *updated);
  EXPECT_EQ(record->token, sample_token(2));
  ASSERT_TRUE(delete_if_revision(*store_, key, *updated, sample_token(3), soon()));
  EXPECT_FALSE(store_->get(key, soon()).value().has_value());
}

TEST_P(StoreConformance, AConditionThatFailsIsAConflictThatNamesTheKey) {
  const auto first = commit({put("a", 1)}).value();
  const auto second = commit({put("a", 2)}).value();
  for (const Write& write :
       {put("a", 9, Condition::if_absent()), put("a", 9, Condition::if_revision(first)),
        remove("a", Condition::if_revision(first)), remove("a", Condition::if_absent()),
        put("missing", 9, Condition::if_revision(second)), put("missing", 9, Condition::if_revision({}))}) {
    const auto result = commit({write});
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::conflict);
    EXPECT_NE(result.error().message.find(write.key.name), std::string::npos) << result.error().message;
  }
  EXPECT_EQ(read("a"), 2U);
  EXPECT_EQ(read("missing"), std::nullopt);
}

TEST_P(StoreConformance, AlwaysPutsAndDeletesWhateverIsThere) {
  EXPECT_TRUE(commit({remove("a")}));
  EXPECT_TRUE(commit({put("a", 1)}));
  EXPECT_TRUE(commit({put("a", 2)}));
  EXPECT_EQ(read("a"), 2U);
  EXPECT_TRUE(commit({remove("a")}));
  EXPECT_EQ(read("a"), std::nullopt);
}

TEST_P(StoreConformance, ADeletedRecordMadeAgainHasALaterRevision) {
  const auto old = commit({put("a", 1)}).value();
  ASSERT_TRUE(commit({remove("a")}));
  const auto renewed = commit({put("a", 1, Condition::if_absent())}).value();
  EXPECT_GT(renewed, old);
  EXPECT_EQ(code_of(commit({put("a", 2, Condition::if_revision(old))})), ErrorCode::conflict);
}

TEST_P(StoreConformance, ACommitOfSeveralIsAllOrNothing) {
  if (!store_->capabilities().atomic_commit) GTEST_SKIP() << "the backend writes one record at a time";
  ASSERT_TRUE(commit({put("a", 1), put("b", 1)}));
  const auto revision_of_b = store_->get(mark_key("b"), soon()).value()->revision;
  ASSERT_TRUE(commit({put("b", 2)}));
  const auto failed =
      commit({put("a", 9), put("new", 9, Condition::if_absent()), remove("b", Condition::if_revision(revision_of_b))});
  EXPECT_EQ(code_of(failed), ErrorCode::conflict);
  EXPECT_EQ(read("a"), 1U);
  EXPECT_EQ(read("b"), 2U);
  EXPECT_EQ(read("new"), std::nullopt);
}

TEST_P(StoreConformance, ACommitGivesOneRevisionAndItsTokenToAll) {
  if (!store_->capabilities().atomic_commit) GTEST_SKIP() << "the backend writes one record at a time";
  const WriteToken token = next_token();
  const auto revision = store_->commit(std::vector{put("a", 1), put("b", 2)}, token, soon()).value();
  for (const char* name : {"a", "b"}) {
    const auto record = store_->get(mark_key(name), soon()).value();
    EXPECT_EQ(record->revision, revision);
    EXPECT_EQ(record->token, token);
  }
}

TEST_P(StoreConformance, AnOnlyCheckHoldsTheCommitToItsConditionAndChangesNothing) {
  if (!store_->capabilities().atomic_commit) GTEST_SKIP() << "the backend writes one record at a time";
  const WriteToken token = next_token();
  const auto revision = store_->commit(std::vector{put("guard", 1)}, token, soon()).value();
  Write check = remove("guard", Condition::if_revision(revision));
  check.only_check = true;
  ASSERT_TRUE(store_->commit(std::vector{check, put("a", 1)}, sample_token(2), soon()));
  const auto guard = store_->get(mark_key("guard"), soon()).value();
  ASSERT_TRUE(guard.has_value());
  EXPECT_EQ(guard->revision, revision);
  EXPECT_EQ(guard->token, token);
  ASSERT_TRUE(commit({put("guard", 2)}));
  EXPECT_EQ(code_of(commit({check, put("a", 2)})), ErrorCode::conflict);
  EXPECT_EQ(read("a"), 1U);
  check.condition = Condition::if_absent();
  EXPECT_EQ(code_of(commit({check, put("a", 3)})), ErrorCode::conflict);
  check.key = mark_key("nowhere");
  EXPECT_TRUE(commit({check, put("a", 4)}));
  EXPECT_EQ(read("nowhere"), std::nullopt);
  check.value = mark(1);
  EXPECT_EQ(code_of(commit({check})), ErrorCode::invalid_argument);
}

TEST_P(StoreConformance, LimitsOfACommit) {
  std::vector<Write> writes;
  for (std::size_t i = 0; i <= kCommitWritesMax; ++i) writes.push_back(put(fmt::format("{:04}", i), i));
  EXPECT_EQ(code_of(commit(writes)), ErrorCode::invalid_argument);
  writes.pop_back();
  EXPECT_EQ(commit(writes).has_value(), store_->capabilities().atomic_commit);
  EXPECT_EQ(code_of(commit({})), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(commit({put("a", 1), remove("a")})), ErrorCode::invalid_argument);
  EXPECT_EQ(code_of(commit({{core::pool_set_key(), mark(1), Condition::always()}})), ErrorCode::invalid_argument);
}

TEST_P(StoreConformance, LimitsOfAName) {
  const std::string longest(core::kKeyNameBytesMax, 'x');
  EXPECT_TRUE(commit({put(longest, 7)}));
  EXPECT_EQ(read(longest), 7U);
  for (const std::string& name :
       {longest + "x", std::string(), std::string("a\nb"), std::string("a\0b", 3), std::string("\x7f")}) {
    EXPECT_EQ(code_of(commit({put(name, 1)})), ErrorCode::invalid_argument) << name.size();
  }
}

TEST_P(StoreConformance, ValuesOfEveryKindComeBackAsTheyWere) {
  const core::Block block = sample_block(3, 64);
  const core::Handle handle = sample_handle(77, 3);
  core::Pool pool;
  pool.name = "a";
  pool.cidr = net::Prefix::parse("10.0.0.0/8").value();
  pool.block_length = 26;
  pool.gateway = net::Address::parse("10.0.0.1").value();
  core::WarmAddress warm;
  warm.address = net::Address::parse("10.9.0.7").value();
  warm.prefix_length = 24;
  warm.state = core::WarmState::free;
  core::WarmIntent intent;
  intent.id = "0123456789abcdef0123456789abcdef";
  std::vector<std::pair<Key, Value>> records = {
      {core::pool_key("a"), pool},
      {core::reservation_key("r"), core::Reservation{"r", {block.cidr}}},
      {{Kind::ipam_config, "default"}, core::IpamConfig{true, false, 5, "Enabled", 60}},
      {core::block_key(block.cidr), block},
      {core::affinity_key(kSampleNode, block.cidr),
       core::Affinity{kSampleNode, block.cidr, core::AffinityState::pending, false}},
      {core::handle_key(handle.id), handle},
      {core::vacancy_key(kSampleNode, block.cidr),
       core::Vacancy{WallTime(std::chrono::nanoseconds{1768471205123456789})}},
      {core::high_water_mark_key(block.cidr), mark(core::kHighWaterMarkMax)},
      {core::pool_set_key(), core::PoolSet{3}},
      {core::node_key("node-a"), core::Node{"node-a", {{"zone", "a"}}, {{"k8s", "a"}}, {}}},
      {core::range_allocation_key(core::kServiceIps), core::RangeAllocation{"10.0.0.0/24", "\x08\x02\x01"}},
      {core::service_key({"default", "web"}), sample_service()},
      {core::ip_address_key("10.96.0.1"), sample_ip_address()},
      {core::service_cidr_key("kubernetes"), sample_service_cidr()},
      {core::node_range_key(block.cidr), core::NodeRange{"node-a", block.cidr}},
      {core::node_range_set_key(), core::NodeRangeSet{7, {{pool.cidr, 24}}, {block.cidr}, {3}}},
      {core::removed_node_key("node-a"),
       core::RemovedNode{"node-a", {{block.cidr.to_string(), core::SequenceNumber(7)}}}},
      {core::foreign_service_key({"default", "web"}), core::ForeignService{sample_service()}},
      {core::block_beside_key(block.cidr), core::BlockBeside{}},
      {core::namespace_key("shop"), core::Namespace{"shop", {{"team", "x"}}}},
      {core::warm_address_key(warm.address), warm},
      {core::warm_intent_key("0123456789abcdef0123456789abcdef"), intent},
      {core::warm_node_key(), core::WarmNode{"node-a", {}, "uvnet-1", "subnet-1", "", "", "", "", 3, 50, 30}},
  };
  ASSERT_EQ(records.size(), core::kKindCount);
  std::erase_if(records, [&](const auto& record) { return !backend_->writes(record.first.kind); });
  for (const auto& [key, value] : records) ASSERT_TRUE(create_if_absent(*store_, key, value, sample_token(1), soon()));
  store_ = backend_->open();
  for (const auto& [key, value] : records) {
    const auto record = store_->get(key, soon());
    ASSERT_TRUE(record && *record) << core::name_of(key.kind);
    ASSERT_TRUE((*record)->value) << (*record)->value.error().message;
    EXPECT_EQ(without_rest(*(*record)->value), value) << core::name_of(key.kind);
  }
}

TEST_P(StoreConformance, ADeadlineInThePastEndsTheCallAndChangesNothingOnFailure) {
  const auto result = store_->commit(std::vector{put("a", 1)}, sample_token(1), Deadline{std::chrono::nanoseconds{0}});
  EXPECT_EQ(read("a").has_value(), result.has_value());
}

}  // namespace
}  // namespace croft::store
