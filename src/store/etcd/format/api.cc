#include "store/etcd/format/api.h"

#include <algorithm>
#include <utility>

#include "base/texts.h"

namespace croft::wire::etcd {
namespace {

namespace pb = etcdserverpb;

constexpr std::size_t kMessageBytesMax = std::size_t{1} << 30;  // protobuf counts in int

/// `what` names the message in an error.
template <class Message>
[[nodiscard]] Result<Message> parse(std::string_view bytes, std::string_view what) {
  Message message;
  if (bytes.size() > kMessageBytesMax || !message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return fail(ErrorCode::corrupt, "etcd's answer of {} bytes is no {}", bytes.size(), what);
  }
  return message;
}

[[nodiscard]] Result<void> check_revision(Revision revision, Revision least, std::string_view what) {
  if (revision >= least && revision <= kRevisionMax) return {};
  return fail(ErrorCode::corrupt, "etcd's answer has {} {}, which no store has", what, revision);
}

[[nodiscard]] Result<void> check_records(const RangeResponse& range) {
  for (const KeyValue& one : range.kvs()) {
    TRY_VOID(check_revision(one.mod_revision(), 1, "a record of the revision"));
  }
  if (!range.more() || !range.kvs().empty()) return {};
  return fail(ErrorCode::corrupt, "etcd's answer says that there is more, and has nothing");
}

Error other_than_asked(std::string_view what) {
  return make_error(ErrorCode::corrupt, "etcd's answer to a transaction has {}", what);
}

[[nodiscard]] bool answers(const ResponseOp& part, const RequestOp& asked) {
  return (asked.has_request_range() && part.has_response_range()) ||
         (asked.has_request_put() && part.has_response_put()) ||
         (asked.has_request_delete_range() && part.has_response_delete_range());
}

bool reads(const RequestOp& op) { return op.has_request_range(); }

Compare compare(std::string key, Compare::CompareTarget target) {
  Compare made;
  made.set_result(Compare::EQUAL);
  made.set_target(target);
  made.set_key(std::move(key));
  return made;
}

}  // namespace

std::string end_of_prefix(std::string_view prefix) {
  std::string end(prefix);
  while (!end.empty() && static_cast<unsigned char>(end.back()) == 0xFF) end.pop_back();
  if (end.empty()) return std::string(1, '\0');
  end.back() = static_cast<char>(static_cast<unsigned char>(end.back()) + 1);
  return end;
}

RangeRequest range_of_key(std::string key) {
  RangeRequest request;
  request.set_key(std::move(key));
  return request;
}

RangeRequest range_of_prefix(std::string prefix) {
  RangeRequest request;
  request.set_range_end(end_of_prefix(prefix));
  request.set_key(prefix.empty() ? std::string(1, '\0') : std::move(prefix));
  return request;
}

Compare absent(std::string key) {
  Compare made = compare(std::move(key), Compare::VERSION);
  made.set_version(0);
  return made;
}

Compare unchanged(std::string key, Revision mod_revision) {
  Compare made = compare(std::move(key), Compare::MOD);
  made.set_mod_revision(mod_revision);
  return made;
}

Compare has_value(std::string key, std::string value) {
  Compare made = compare(std::move(key), Compare::VALUE);
  made.set_value(std::move(value));
  return made;
}

RequestOp to_get(RangeRequest range) {
  RequestOp op;
  *op.mutable_request_range() = std::move(range);
  return op;
}

RequestOp to_put(std::string key, std::string value) {
  RequestOp op;
  op.mutable_request_put()->set_key(std::move(key));
  op.mutable_request_put()->set_value(std::move(value));
  return op;
}

RequestOp to_delete(std::string key) {
  RequestOp op;
  op.mutable_request_delete_range()->set_key(std::move(key));
  return op;
}

bool is_read_only(const TxnRequest& txn) {
  return std::ranges::all_of(txn.success(), reads) && std::ranges::all_of(txn.failure(), reads);
}

std::string encode_watch(WatchCreate watch) {
  // A server's message must fit its own limit; without this a large revision ends the stream.
  watch.set_fragment(true);
  pb::WatchRequest message;
  *message.mutable_create_request() = std::move(watch);
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
  TRY(auto message, parse<RangeResponse>(bytes, "RangeResponse"));
  TRY_VOID(check_revision(message.header().revision(), 1, "the revision"));
  TRY_VOID(check_records(message));
  return message;
}

Result<TxnResponse> decode_txn(std::string_view bytes, const TxnRequest& request) {
  TRY(auto message, parse<TxnResponse>(bytes, "TxnResponse"));
  TRY_VOID(check_revision(message.header().revision(), 1, "the revision"));
  if (!message.succeeded() && request.compare().empty()) {
    return fail(other_than_asked("failed a condition, and there was none"));
  }
  const auto& asked = message.succeeded() ? request.success() : request.failure();
  if (message.responses_size() != asked.size()) {
    return fail(other_than_asked(fmt::format("{} parts instead of {}", message.responses_size(), asked.size())));
  }
  for (int i = 0; i < asked.size(); ++i) {
    const ResponseOp& part = message.responses(i);
    if (!answers(part, asked[i])) return fail(other_than_asked("a part of another kind than asked"));
    if (part.has_response_range()) TRY_VOID(check_records(part.response_range()));
  }
  return message;
}

Result<WatchResponse> decode_watch(std::string_view bytes) {
  TRY(auto message, parse<WatchResponse>(bytes, "WatchResponse"));
  TRY_VOID(check_revision(message.header().revision(), 0, "the revision"));
  TRY_VOID(check_revision(message.compact_revision(), 0, "the compacted revision"));
  Revision last = 1;
  for (const Event& event : message.events()) {
    TRY_VOID(check_revision(event.kv().mod_revision(), last, "an event out of its order, of revision"));
    last = event.kv().mod_revision();
    if (event.kv().key().empty()) return fail(ErrorCode::corrupt, "a message of a watch has an event without a key");
  }
  return message;
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
