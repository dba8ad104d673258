#include "store/etcd/format/api.h"

#include <etcd/rpc.pb.h>
#include <gtest/gtest.h>

namespace croft::wire::etcd {
namespace {

namespace pb = etcdserverpb;

void add_record(pb::RangeResponse& range, const std::string& key) {
  mvccpb::KeyValue& kv = *range.add_kvs();
  kv.set_key(key);
  kv.set_create_revision(1);
  kv.set_mod_revision(1);
  kv.set_version(1);
}

TEST(EtcdApi, TheEndOfAPrefix) {
  EXPECT_EQ(end_of_prefix("/calico/"), "/calico0");
  EXPECT_EQ(end_of_prefix("a\xFF\xFF"), "b");
  EXPECT_EQ(end_of_prefix("\xFF"), std::string(1, '\0'));
  EXPECT_EQ(end_of_prefix(""), std::string(1, '\0'));
}

TEST(EtcdApi, ARangeIsWrittenWithEtcdsNumbers) {
  RangeRequest request;
  request.key = "a";
  request.range_end = "b";
  request.limit = 3;
  request.at_revision = 4;
  request.serializable = true;
  request.keys_only = true;
  request.count_only = true;
  // Taken from etcd's rpc.proto by hand: 1 key, 2 range_end, 3 limit, 4 revision, 7, 8, 9 flags.
  EXPECT_EQ(encode(request),
            "\x0A\x01"
            "a\x12\x01"
            "b\x18\x03\x20\x04\x38\x01\x40\x01\x48\x01");
}

TEST(EtcdApi, ATransactionIsWrittenWithEtcdsNumbers) {
  TxnRequest txn;
  txn.compares = {Compare::absent("k")};
  txn.success = {PutRequest{"k", "v"}};
  txn.failure = {DeleteRequest{"k", "", true}};
  // Compare 1: result EQUAL and target VERSION are zero and left out, 3 key, 4 version (in a oneof: written though
  // zero).
  EXPECT_EQ(encode(txn), std::string("\x0A\x05\x1A\x01k\x20\x00"
                                     "\x12\x08\x12\x06\x0A\x01k\x12\x01v"
                                     "\x1A\x07\x1A\x05\x0A\x01k\x18\x01",
                                     26));
}

TEST(EtcdApi, AWatchIsWrittenWithEtcdsNumbers) {
  WatchCreate watch;
  watch.id = 2;
  watch.key = "k";
  watch.start_revision = 9;
  // WatchCreateRequest: 1 key, 3 start_revision, 7 watch_id, 8 fragment.
  EXPECT_EQ(encode(WatchRequest(watch)), "\x0A\x09\x0A\x01k\x18\x09\x38\x02\x40\x01");
  EXPECT_EQ(encode(WatchRequest(WatchCancel{3})), "\x12\x02\x08\x03");
  EXPECT_EQ(encode(WatchRequest(WatchProgress{})), std::string("\x1A\x00", 2));
}

TEST(EtcdApi, AnAnswerMustFitItsTransaction) {
  TxnRequest txn;
  txn.success = {RangeRequest::one("k"), PutRequest{"k", "v"}};
  pb::TxnResponse answer;
  answer.set_succeeded(true);
  answer.mutable_header()->set_revision(7);
  pb::RangeResponse& range = *answer.add_responses()->mutable_response_range();
  range.set_count(1);
  add_record(range, "k");
  EXPECT_EQ(decode_txn(answer.SerializeAsString(), txn).error().code, ErrorCode::corrupt) << "a part is missing";
  answer.add_responses()->mutable_response_delete_range();
  EXPECT_EQ(decode_txn(answer.SerializeAsString(), txn).error().code, ErrorCode::corrupt) << "a part of another kind";
  answer.mutable_responses(1)->mutable_response_put();
  const auto response = decode_txn(answer.SerializeAsString(), txn);
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_EQ(response->revision, 7);
  EXPECT_EQ(std::get<RangeResponse>(response->responses[0]).kvs[0].key, "k");
  answer.set_succeeded(false);
  EXPECT_EQ(decode_txn(answer.SerializeAsString(), txn).error().code, ErrorCode::corrupt)
      << "the other branch is empty";
}

TEST(EtcdApi, ATransactionWithinATransaction) {
  TxnRequest inner;
  inner.success = {RangeRequest::one("k")};
  TxnRequest outer;
  outer.compares = {Compare::absent("k")};
  outer.failure = {std::make_shared<const TxnRequest>(inner)};
  EXPECT_TRUE(is_read_only(outer));
  inner.failure = {PutRequest{"k", "v"}};
  outer.failure = {std::make_shared<const TxnRequest>(inner)};
  EXPECT_FALSE(is_read_only(outer));

  pb::TxnResponse answer;
  answer.mutable_header()->set_revision(1);
  pb::TxnResponse& part = *answer.add_responses()->mutable_response_txn();
  part.set_succeeded(true);
  part.add_responses()->mutable_response_range()->set_count(5);
  const auto response = decode_txn(answer.SerializeAsString(), outer);
  ASSERT_TRUE(response) << response.error().message;
  const auto& nested = std::get<std::shared_ptr<const TxnResponse>>(response->responses[0]);
  EXPECT_EQ(std::get<RangeResponse>(nested->responses[0]).count, 5);
}

TEST(EtcdApi, BytesThatAreNoMessageAreCorrupt) {
  const std::string cut =
      "\x0A\x05"
      "ab";
  EXPECT_EQ(decode_range(cut, {}).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_txn(cut, {}).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_watch(cut).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_status(cut).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_authenticate(cut).error().code, ErrorCode::corrupt);
  EXPECT_EQ(decode_authenticate("").error().code, ErrorCode::corrupt) << "no token";
}

TEST(EtcdApi, AConditionThatWasNotAskedForCanNotFail) {
  TxnRequest txn;
  txn.success = {RangeRequest::one("k")};
  pb::TxnResponse answer;
  answer.mutable_header()->set_revision(7);
  answer.set_succeeded(false);
  EXPECT_EQ(decode_txn(answer.SerializeAsString(), txn).error().code, ErrorCode::corrupt);
}

TEST(EtcdApi, RevisionsThatNoStoreHas) {
  for (const Revision revision : {INT64_MIN, Revision{-1}, Revision{0}, kRevisionMax + 1, INT64_MAX}) {
    pb::RangeResponse answer;
    answer.mutable_header()->set_revision(revision);
    EXPECT_EQ(decode_range(answer.SerializeAsString(), RangeRequest::one("k")).error().code, ErrorCode::corrupt);
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

TEST(EtcdApi, OnlyWhatWasAskedForComesBack) {
  const auto is_refused = [](const RangeRequest& request, const pb::RangeResponse& answer) {
    const auto decoded = decode_range(answer.SerializeAsString(), request);
    return !decoded && decoded.error().code == ErrorCode::corrupt;
  };
  RangeRequest request = RangeRequest::prefix("k/");
  request.limit = 3;
  pb::RangeResponse good;
  good.mutable_header()->set_revision(5);
  good.set_count(9);
  good.set_more(true);
  for (const char* key : {"k/a", "k/b", "k/c"}) add_record(good, key);
  ASSERT_FALSE(is_refused(request, good));
  pb::RangeResponse bad = good;
  add_record(bad, "k/d");
  EXPECT_TRUE(is_refused(request, bad)) << "more than the limit";
  for (const char* key : {"k/a", "k/b", "l", "", "k"}) {
    bad = good;
    bad.mutable_kvs(2)->set_key(key);
    EXPECT_TRUE(is_refused(request, bad)) << "the key " << key;
  }
  bad = good;
  bad.mutable_kvs(0)->set_mod_revision(6);
  EXPECT_TRUE(is_refused(request, bad)) << "written after the answer";
  bad = good;
  bad.mutable_kvs(0)->set_version(0);
  EXPECT_TRUE(is_refused(request, bad)) << "deleted";
  bad = good;
  bad.set_count(-1);
  EXPECT_TRUE(is_refused(request, bad));
  bad = good;
  bad.clear_kvs();
  EXPECT_TRUE(is_refused(request, bad)) << "a page that says there is more, and ends the list";
  RangeRequest keys = request;
  keys.keys_only = true;
  bad = good;
  bad.mutable_kvs(1)->set_value("v");
  EXPECT_TRUE(is_refused(keys, bad));
  RangeRequest count = request;
  count.count_only = true;
  EXPECT_TRUE(is_refused(count, good));
  EXPECT_TRUE(is_refused(RangeRequest::one("k/a"), good));
}

TEST(EtcdApi, EmptyPartsAreCountedBeforeTheyAreTakenIn) {
  // Each would take a hundred times its two bytes.
  constexpr std::size_t kMany = 10'000'000;
  std::string many;
  for (std::size_t i = 0; i < kMany; ++i) many += std::string_view("\x12\x00", 2);
  EXPECT_EQ(decode_range(many, RangeRequest::prefix("k")).error().code, ErrorCode::corrupt);
  for (std::size_t i = 0; i < many.size(); i += 2) many[i] = 0x1A;
  TxnRequest txn;
  txn.success = {RangeRequest::prefix("k")};
  EXPECT_EQ(decode_txn(many, txn).error().code, ErrorCode::corrupt);
  for (std::size_t i = 0; i < many.size(); i += 2) many[i] = 0x5A;
  EXPECT_EQ(decode_watch(many).error().code, ErrorCode::corrupt);
  for (std::size_t i = 0; i < many.size(); i += 2) many[i] = 0x42;
  EXPECT_EQ(decode_status(many).error().code, ErrorCode::corrupt);
}

TEST(EtcdApi, EventsWithWhatWasThereBefore) {
  pb::WatchResponse answer;
  answer.set_watch_id(4);
  answer.set_fragment(true);
  mvccpb::Event& event = *answer.add_events();
  event.set_type(mvccpb::Event::DELETE);
  event.mutable_kv()->set_key("k");
  event.mutable_kv()->set_mod_revision(12);
  event.mutable_prev_kv()->set_value("v");
  const auto response = decode_watch(answer.SerializeAsString());
  ASSERT_TRUE(response) << response.error().message;
  EXPECT_TRUE(response->fragment);
  ASSERT_EQ(response->events.size(), 1U);
  EXPECT_EQ(response->events[0].type, Event::Type::deletion);
  EXPECT_EQ(response->events[0].kv.mod_revision, 12);
  EXPECT_EQ(response->events[0].previous.value().value, "v");
}

}  // namespace
}  // namespace croft::wire::etcd
