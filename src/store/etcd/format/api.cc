#include "store/etcd/format/api.h"

#include <algorithm>
#include <utility>

#include <etcd/rpc.pb.h>
#include <fmt/format.h>

namespace croft::wire::etcd {
namespace {

namespace pb = etcdserverpb;

constexpr std::size_t kMessageBytesMax = std::size_t{1} << 30;  // protobuf counts in int

// ---------------------------------------------------------------- writing

void fill(pb::RangeRequest& out, const RangeRequest& range) {
  out.set_key(range.key);
  out.set_range_end(range.range_end);
  out.set_limit(range.limit);
  out.set_revision(range.at_revision);
  out.set_keys_only(range.keys_only);
}

void fill(pb::PutRequest& out, const PutRequest& put) {
  out.set_key(put.key);
  out.set_value(put.value);
}

void fill(pb::DeleteRangeRequest& out, const DeleteRequest& request) {
  out.set_key(request.key);
}

void fill(pb::RequestOp& out, const RequestOp& op) {
  if (const auto* range = std::get_if<RangeRequest>(&op)) return fill(*out.mutable_request_range(), *range);
  if (const auto* put = std::get_if<PutRequest>(&op)) return fill(*out.mutable_request_put(), *put);
  fill(*out.mutable_request_delete_range(), std::get<DeleteRequest>(op));
}

void fill(pb::Compare& out, const Compare& compare) {
  out.set_result(pb::Compare::EQUAL);
  out.set_key(compare.key);
  switch (compare.target) {
    case Compare::Target::version:
      out.set_target(pb::Compare::VERSION);
      out.set_version(compare.number);
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
  // A server's message must fit its own limit; without this a large revision ends the stream.
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
  return {std::move(*kv.mutable_key()), std::move(*kv.mutable_value()), kv.mod_revision()};
}

[[nodiscard]] Result<Revision> check_revision(Revision revision, Revision least, std::string_view what) {
  if (revision >= least && revision <= kRevisionMax) return revision;
  return fail(ErrorCode::corrupt, fmt::format("etcd's answer has {} {}, which no store has", what, revision));
}

/// `revision` is that of the whole answer: of a part of a transaction etcd gives none.
[[nodiscard]] Result<RangeResponse> take(pb::RangeResponse& message, Revision revision) {
  RangeResponse response{revision, message.header().cluster_id(), {}, message.more()};
  response.kvs.reserve(static_cast<std::size_t>(message.kvs_size()));
  for (mvccpb::KeyValue& one : *message.mutable_kvs()) {
    TRY_VOID(check_revision(one.mod_revision(), 1, "a record of the revision"));
    response.kvs.push_back(take(one));
  }
  if (!response.more || !response.kvs.empty()) return response;
  return fail(ErrorCode::corrupt, "etcd's answer says that there is more, and has nothing");
}

Error other_than_asked(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("etcd's answer to a transaction has {}", what), {}};
}

[[nodiscard]] Result<ResponseOp> take(pb::ResponseOp& message, const RequestOp& request, Revision revision) {
  if (std::holds_alternative<RangeRequest>(request) && message.has_response_range()) {
    TRY(RangeResponse part, take(*message.mutable_response_range(), revision));
    return ResponseOp(std::move(part));
  }
  if (std::holds_alternative<PutRequest>(request) && message.has_response_put()) return ResponseOp(PutResponse());
  const bool is_deletion = std::holds_alternative<DeleteRequest>(request) && message.has_response_delete_range();
  if (is_deletion) return ResponseOp(DeleteResponse());
  return fail(other_than_asked("a part of another kind than asked"));
}

[[nodiscard]] Result<TxnResponse> take(pb::TxnResponse& message, const TxnRequest& request, Revision revision) {
  TxnResponse response{revision, message.header().cluster_id(), message.succeeded(), {}};
  if (!response.succeeded && request.compares.empty()) {
    return fail(other_than_asked("failed a condition, and there was none"));
  }
  const std::vector<RequestOp>& asked = response.succeeded ? request.success : request.failure;
  if (static_cast<std::size_t>(message.responses_size()) != asked.size()) {
    return fail(other_than_asked(fmt::format("{} parts instead of {}", message.responses_size(), asked.size())));
  }
  response.responses.reserve(asked.size());
  for (std::size_t i = 0; i < asked.size(); ++i) {
    TRY(ResponseOp part, take(*message.mutable_responses(static_cast<int>(i)), asked[i], revision));
    response.responses.push_back(std::move(part));
  }
  return response;
}

Event take(mvccpb::Event& message) {
  Event event;
  event.type = message.type() == mvccpb::Event::DELETE ? Event::Type::deletion : Event::Type::put;
  event.kv = take(*message.mutable_kv());
  return event;
}

template <class Message, class Value>
[[nodiscard]] std::string bytes_of(const Value& value) {
  Message message;
  fill(message, value);
  return message.SerializeAsString();
}

bool writes(const RequestOp& op) { return !std::holds_alternative<RangeRequest>(op); }

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

std::string encode(const WatchCreate& watch) {
  pb::WatchRequest message;
  fill(*message.mutable_create_request(), watch);
  return message.SerializeAsString();
}

std::string encode_watch_cancel(std::int64_t id) {
  pb::WatchRequest message;
  message.mutable_cancel_request()->set_watch_id(id);
  return message.SerializeAsString();
}

std::string encode_watch_progress() {
  pb::WatchRequest message;
  message.mutable_progress_request();
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
  TRY(const Revision revision, check_revision(message.header().revision(), 1, "the revision"));
  return take(message, revision);
}

Result<TxnResponse> decode_txn(std::string_view bytes, const TxnRequest& request) {
  TRY(auto message, parse<pb::TxnResponse>(bytes, "TxnResponse"));
  TRY(const Revision revision, check_revision(message.header().revision(), 1, "the revision"));
  return take(message, request, revision);
}

Result<WatchResponse> decode_watch(std::string_view bytes) {
  TRY(auto message, parse<pb::WatchResponse>(bytes, "WatchResponse"));
  WatchResponse response;
  response.cluster = message.header().cluster_id();
  TRY(response.revision, check_revision(message.header().revision(), 0, "the revision"));
  TRY(response.compact_revision, check_revision(message.compact_revision(), 0, "the compacted revision"));
  response.id = message.watch_id();
  response.created = message.created();
  response.canceled = message.canceled();
  response.cancel_reason = std::move(*message.mutable_cancel_reason());
  response.fragment = message.fragment();
  Revision last = 1;
  for (mvccpb::Event& one : *message.mutable_events()) {
    Event event = take(one);
    TRY(last, check_revision(event.kv.mod_revision, last, "an event out of its order, of revision"));
    if (event.kv.key.empty()) return fail(ErrorCode::corrupt, "a message of a watch has an event without a key");
    response.events.push_back(std::move(event));
  }
  return response;
}

Result<std::string> decode_version(std::string_view bytes) {
  TRY(auto message, parse<pb::StatusResponse>(bytes, "StatusResponse"));
  return std::move(*message.mutable_version());
}

Result<std::string> decode_authenticate(std::string_view bytes) {
  TRY(auto message, parse<pb::AuthenticateResponse>(bytes, "AuthenticateResponse"));
  constexpr std::size_t kTokenBytesMax = std::size_t{16} << 10;
  const std::string& token = message.token();
  if (token.empty()) return fail(ErrorCode::corrupt, "etcd's answer to a login has no token");
  const auto is_text = [](char c) { return c > 0x20 && c < 0x7F; };
  if (token.size() > kTokenBytesMax || !std::all_of(token.begin(), token.end(), is_text)) {
    return fail(ErrorCode::corrupt, "etcd's answer to a login has a token that is none");
  }
  return std::move(*message.mutable_token());
}

}  // namespace croft::wire::etcd
