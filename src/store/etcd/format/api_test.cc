#include "store/etcd/format/api.h"

#include <gtest/gtest.h>

namespace croft::wire::etcd {
namespace {

namespace pb = etcdserverpb;

void add_record(pb::RangeResponse& range, const std::string& key) {
  mvccpb::KeyValue& kv = *range.add_kvs();
  kv.set_key(key);
  kv.set_mod_revision(1);
}

TEST(EtcdApi, TheEndOfAPrefix) {
  EXPECT_EQ(end_of_prefix("/calico/"), "/calico0");
  EXPECT_EQ(end_of_prefix("a\xFF\xFF"), "b");
  EXPECT_EQ(end_of_prefix("\xFF"), std::string(1, '\0'));
  EXPECT_EQ(end_of_prefix(""), std::string(1, '\0'));
}

TEST(EtcdApi, AnAnswerMustFitItsTransaction) {
  TxnRequest txn;
  *txn.add_success() = to_get(range_of_key("k"));
  *txn.add_success() = to_put("k", "v");
  pb::TxnResponse answer;
  answer.set_succeeded(true);
  answer.mutable_header()->set_revision(7);
  pb::RangeResponse& range = *answer.add_responses()->mutable_response_range();
  add_record(range, "k");
  EXPECT_EQ(decode_txn(answer.SerializeAsString(), txn).error().code, ErrorCode::corrupt) << "a part is missing";
  answer.add_responses()->mutable_response_delete_range();
  EXPECT_EQ(decode_txn(answer.SerializeAsString(), txn).error().code, ErrorCode::corrupt) << "a part of another kind";
  answer.mutable_responses(1)->mutable_response_put();
  const auto response = decode_txn(answer.SerializeAsString(), txn);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->responses(0).response_range().kvs(0).key(), "k");
  answer.set_succeeded(false);
  EXPECT_EQ(decode_txn(answer.SerializeAsString(), txn).error().code, ErrorCode::corrupt)
      << "the other branch is empty";
}

TEST(EtcdApi, BytesThatAreNoMessageAreCorrupt) {
  const std::string cut =
      "\x0A\x05"
      "ab";
  EXPECT_EQ(decode_range(cut).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_txn(cut, {}).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_watch(cut).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_authenticate(cut).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_authenticate("").error().code, ErrorCode::corrupt) << "no token";
}

TEST(EtcdApi, AConditionThatWasNotAskedForCanNotFail) {
  TxnRequest txn;
  *txn.add_success() = to_get(range_of_key("k"));
  pb::TxnResponse answer;
  answer.mutable_header()->set_revision(7);
  answer.set_succeeded(false);
  EXPECT_EQ(decode_txn(answer.SerializeAsString(), txn).error().code, ErrorCode::corrupt);
}

TEST(EtcdApi, RevisionsThatNoStoreHas) {
  for (const Revision revision : {INT64_MIN, Revision{-1}, Revision{0}, kRevisionMax + 1, INT64_MAX}) {
    pb::RangeResponse answer;
    answer.mutable_header()->set_revision(revision);
    EXPECT_EQ(decode_range(answer.SerializeAsString()).error().code, ErrorCode::corrupt);
    pb::TxnResponse txn;
    txn.mutable_header()->set_revision(revision);
    txn.set_succeeded(true);
    EXPECT_EQ(decode_txn(txn.SerializeAsString(), {}).error().code, ErrorCode::corrupt);
    pb::WatchResponse watch;
    mvccpb::Event& event = *watch.add_events();
    event.mutable_kv()->set_key("k");
    event.mutable_kv()->set_mod_revision(revision);
    EXPECT_EQ(decode_watch(watch.SerializeAsString()).error().code, ErrorCode::corrupt);
    if (revision == 0) continue;
    watch.clear_events();
    watch.set_compact_revision(revision);
    EXPECT_EQ(decode_watch(watch.SerializeAsString()).error().code, ErrorCode::corrupt);
  }
}

TEST(EtcdApi, APageThatSaysThereIsMoreHasSomething) {
  pb::RangeResponse answer;
  answer.mutable_header()->set_revision(5);
  answer.set_more(true);
  EXPECT_EQ(decode_range(answer.SerializeAsString()).error().code, ErrorCode::corrupt);
  add_record(answer, "k");
  EXPECT_TRUE(decode_range(answer.SerializeAsString())->more());
  answer.mutable_kvs(0)->set_mod_revision(-1);
  EXPECT_EQ(decode_range(answer.SerializeAsString()).error().code, ErrorCode::corrupt);
}

}  // namespace
}  // namespace croft::wire::etcd
