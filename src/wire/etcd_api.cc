#include "wire/etcd_api.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include <etcd/rpc.pb.h>
#include <fmt/format.h>

#include "base/assert.h"

namespace croft::wire::etcd {
namespace {

namespace pb = etcdserverpb;
using TxnRequestPointer = std::shared_ptr<const TxnRequest>;

constexpr std::size_t kMessageBytesMax = std::size_t{1} << 30;  // protobuf counts in int

// ---------------------------------------------------------------- writing

void fill(pb::TxnRequest& out, const TxnRequest& txn);

void fill(pb::RangeRequest& out, const RangeRequest& range) {
  out.set_key(range.key);
  out.set_range_end(range.range_end);
  out.set_limit(range.limit);
  out.set_revision(range.at_revision);
  out.set_serializable(range.serializable);
  out.set_keys_only(range.keys_only);
  out.set_count_only(range.count_only);
  out.set_min_mod_revision(range.min_mod_revision);
}

void fill(pb::PutRequest& out, const PutRequest& put) {
  out.set_key(put.key);
  out.set_value(put.value);
}

void fill(pb::DeleteRangeRequest& out, const DeleteRequest& request) {
  out.set_key(request.key);
  out.set_range_end(request.range_end);
  out.set_prev_kv(request.previous);
}

void fill(pb::RequestOp& out, const RequestOp& op) {
  if (const auto* range = std::get_if<RangeRequest>(&op)) return fill(*out.mutable_request_range(), *range);
  if (const auto* put = std::get_if<PutRequest>(&op)) return fill(*out.mutable_request_put(), *put);
  if (const auto* request = std::get_if<DeleteRequest>(&op)) {
    return fill(*out.mutable_request_delete_range(), *request);
  }
  const auto& txn = std::get<TxnRequestPointer>(op);
  CROFT_ASSERT(txn != nullptr);
  fill(*out.mutable_request_txn(), *txn);
}

pb::Compare::CompareResult relation_of(Compare::Relation relation) {
  switch (relation) {
    case Compare::Relation::equal:
      return pb::Compare::EQUAL;
    case Compare::Relation::greater:
      return pb::Compare::GREATER;
    case Compare::Relation::less:
      return pb::Compare::LESS;
    case Compare::Relation::not_equal:
      return pb::Compare::NOT_EQUAL;
  }
  return pb::Compare::EQUAL;
}

void fill(pb::Compare& out, const Compare& compare) {
  out.set_result(relation_of(compare.relation));
  out.set_key(compare.key);
  switch (compare.target) {
    case Compare::Target::version:
      out.set_target(pb::Compare::VERSION);
      out.set_version(compare.number);
      break;
    case Compare::Target::create_revision:
      out.set_target(pb::Compare::CREATE);
      out.set_create_revision(compare.number);
      break;
    case Compare::Target::mod_revision:
      out.set_target(pb::Compare::MOD);
      out.set_mod_revision(compare.number);
      break;
    case Compare::Target::value:
      out.set_target(pb::Compare::VALUE);
      out.set_value(compare.value);
      break;
  }
}

void fill(pb::TxnRequest& out, const TxnRequest& txn) {
  for (const Compare& compare : txn.compares) fill(*out.add_compare(), compare);
  for (const RequestOp& op : txn.success) fill(*out.add_success(), op);
  for (const RequestOp& op : txn.failure) fill(*out.add_failure(), op);
}

void fill(pb::WatchCreateRequest& out, const WatchCreate& watch) {
  out.set_watch_id(watch.id);
  out.set_key(watch.key);
  out.set_range_end(watch.range_end);
  out.set_start_revision(watch.start_revision);
  out.set_progress_notify(watch.progress_notify);
  out.set_prev_kv(watch.previous);
  if (watch.without_puts) out.add_filters(pb::WatchCreateRequest::NOPUT);
  if (watch.without_deletes) out.add_filters(pb::WatchCreateRequest::NODELETE);
  // What a server sends must fit its own limit of a message; without this a large revision ends the stream.
  out.set_fragment(true);
}

// ---------------------------------------------------------------- reading

/// `what` names the message in an error.
template <class Message>
[[nodiscard]] Result<Message> parse(std::string_view bytes, std::string_view what) {
  Message message;
  if (bytes.size() > kMessageBytesMax || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(ErrorCode::corrupt, fmt::format("etcd's answer of {} bytes is no {}", bytes.size(), what));
  }
  return message;
}

KeyValue take(mvccpb::KeyValue& kv) {
  return {std::move(*kv.mutable_key()), std::move(*kv.mutable_value()), kv.create_revision(), kv.mod_revision(),
          kv.version()};
}

RangeResponse take(pb::RangeResponse& message) {
  RangeResponse response;
  response.revision = message.header().revision();
  response.more = message.more();
  response.count = message.count();
  response.kvs.reserve(static_cast<std::size_t>(message.kvs_size()));
  for (mvccpb::KeyValue& kv : *message.mutable_kvs()) response.kvs.push_back(take(kv));
  return response;
}

DeleteResponse take(pb::DeleteRangeResponse& message) {
  DeleteResponse response;
  response.deleted = message.deleted();
  for (mvccpb::KeyValue& kv : *message.mutable_prev_kvs()) response.previous.push_back(take(kv));
  return response;
}

Error other_than_asked(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("etcd's answer to a transaction has {}", what), {}};
}

[[nodiscard]] Result<TxnResponse> take(pb::TxnResponse& message, const TxnRequest& request);

[[nodiscard]] Result<ResponseOp> take(pb::ResponseOp& message, const RequestOp& request) {
  if (std::holds_alternative<RangeRequest>(request) && message.has_response_range()) {
    return ResponseOp(take(*message.mutable_response_range()));
  }
  if (std::holds_alternative<PutRequest>(request) && message.has_response_put()) return ResponseOp(PutResponse());
  if (std::holds_alternative<DeleteRequest>(request) && message.has_response_delete_range()) {
    return ResponseOp(take(*message.mutable_response_delete_range()));
  }
  const auto* txn = std::get_if<TxnRequestPointer>(&request);
  if (txn == nullptr || !message.has_response_txn()) return fail(other_than_asked("a part of another kind than asked"));
  TRY(TxnResponse response, take(*message.mutable_response_txn(), **txn));
  return ResponseOp(std::make_shared<const TxnResponse>(std::move(response)));
}

Result<TxnResponse> take(pb::TxnResponse& message, const TxnRequest& request) {
  TxnResponse response;
  response.revision = message.header().revision();
  response.succeeded = message.succeeded();
  const std::vector<RequestOp>& asked = response.succeeded ? request.success : request.failure;
  if (static_cast<std::size_t>(message.responses_size()) != asked.size()) {
    return fail(other_than_asked(fmt::format("{} parts instead of {}", message.responses_size(), asked.size())));
  }
  response.responses.reserve(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    TRY(ResponseOp part, take(*message.mutable_responses(static_cast<int>(i)), asked[i]));
    response.responses.push_back(std::move(part));
  }
  return response;
}

Event take(mvccpb::Event& message) {
  Event event;
  event.type = message.type() == mvccpb::Event::DELETE ? Event::Type::deletion : Event::Type::put;
  event.kv = take(*message.mutable_kv());
  if (message.has_prev_kv()) event.previous = take(*message.mutable_prev_kv());
  return event;
}

template <class Message, class Value>
[[nodiscard]] std::string bytes_of(const Value& value) {
  Message message;
  fill(message, value);
  return message.SerializeAsString();
}

bool writes(const RequestOp& op) {
  if (const auto* txn = std::get_if<TxnRequestPointer>(&op)) return !is_read_only(**txn);
  return !std::holds_alternative<RangeRequest>(op);
}

}  // namespace

std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

bool is_read_only(const TxnRequest& txn) {
  return std::none_of(txn.success.begin(), txn.success.end(), writes) &&
         std::none_of(txn.failure.begin(), txn.failure.end(), writes);
}

std::string encode(const RangeRequest& request) { return bytes_of<pb::RangeRequest>(request); }

std::string encode(const TxnRequest& request) { return bytes_of<pb::TxnRequest>(request); }

std::string encode(const WatchRequest& request) {
  pb::WatchRequest message;
  if (const auto* create = std::get_if<WatchCreate>(&request)) {
    fill(*message.mutable_create_request(), *create);
  } else if (const auto* cancel = std::get_if<WatchCancel>(&request)) {
    message.mutable_cancel_request()->set_watch_id(cancel->id);
  } else {
    message.mutable_progress_request();
  }
  return message.SerializeAsString();
}

std::string encode_compaction(Revision revision, bool physical) {
  pb::CompactionRequest message;
  message.set_revision(revision);
  message.set_physical(physical);
  return message.SerializeAsString();
}

std::string encode_authenticate(std::string_view user, std::string_view password) {
  pb::AuthenticateRequest message;
  message.set_name(std::string(user));
  message.set_password(std::string(password));
  return message.SerializeAsString();
}

Result<RangeResponse> decode_range(std::string_view bytes) {
  TRY(auto message, parse<pb::RangeResponse>(bytes, "RangeResponse"));
  return take(message);
}

Result<TxnResponse> decode_txn(std::string_view bytes, const TxnRequest& request) {
  TRY(auto message, parse<pb::TxnResponse>(bytes, "TxnResponse"));
  return take(message, request);
}

Result<WatchResponse> decode_watch(std::string_view bytes) {
  TRY(auto message, parse<pb::WatchResponse>(bytes, "WatchResponse"));
  WatchResponse response;
  response.revision = message.header().revision();
  response.id = message.watch_id();
  response.created = message.created();
  response.canceled = message.canceled();
  response.compact_revision = message.compact_revision();
  response.cancel_reason = std::move(*message.mutable_cancel_reason());
  response.fragment = message.fragment();
  for (mvccpb::Event& event : *message.mutable_events()) response.events.push_back(take(event));
  return response;
}

Result<StatusResponse> decode_status(std::string_view bytes) {
  TRY(auto message, parse<pb::StatusResponse>(bytes, "StatusResponse"));
  StatusResponse response;
  response.revision = message.header().revision();
  response.version = std::move(*message.mutable_version());
  response.database_bytes = message.dbsize();
  response.member_id = message.header().member_id();
  response.leader_id = message.leader();
  response.errors.assign(message.errors().begin(), message.errors().end());
  return response;
}

Result<std::string> decode_authenticate(std::string_view bytes) {
  TRY(auto message, parse<pb::AuthenticateResponse>(bytes, "AuthenticateResponse"));
  if (message.token().empty()) return fail(ErrorCode::corrupt, "etcd's answer to a login has no token");
  return std::move(*message.mutable_token());
}

}  // namespace croft::wire::etcd
