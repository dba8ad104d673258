#include "store/etcd/format/api.h"

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
  out.set_prev_kv(watch.previous);
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

// Messages that are not to be taken in at all.

/// The fields of a message, one by one, as they stand in its bytes.
class Fields {
 public:
  explicit Fields(std::string_view message) : rest_(message) {}

  /// False at the end, and at bytes that are no field: parsing will say so.
  [[nodiscard]] bool next() {
    std::uint64_t tag = 0;
    if (!varint(tag)) return false;
    number = tag >> 3;
    bytes = {};
    value = 0;
    switch (tag & 7) {
      case 0:
        return varint(value);
      case 1:
        return skip(8);
      case 2: {
        std::uint64_t size = 0;
        if (!varint(size) || size > rest_.size()) return false;
        bytes = rest_.substr(0, static_cast<std::size_t>(size));
        rest_.remove_prefix(bytes.size());
        return true;
      }
      case 5:
        return skip(4);
      default:
        return false;
    }
  }

  std::uint64_t number = 0;
  std::uint64_t value = 0;
  std::string_view bytes;

 private:
  [[nodiscard]] bool varint(std::uint64_t& out) {
    out = 0;
    for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      out |= static_cast<std::uint64_t>(byte & 0x7F) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  [[nodiscard]] bool skip(std::size_t size) {
    if (size > rest_.size()) return false;
    rest_.remove_prefix(size);
    return true;
  }

  std::string_view rest_;
};

// The numbers of fields, as in rpc.proto.
constexpr std::uint64_t kKvsOfRange = 2;
constexpr std::uint64_t kPreviousOfDelete = 3;
constexpr std::uint64_t kPartsOfTxn = 3;
constexpr std::uint64_t kRangePart = 1, kDeletePart = 3, kTxnPart = 4;
constexpr std::uint64_t kEventsOfWatch = 11;
constexpr std::uint64_t kErrorsOfStatus = 8;

/// Soon after `most` it counts no further.
std::size_t count_of(std::string_view message, std::uint64_t field, std::size_t most) {
  std::size_t count = 0;
  for (Fields fields(message); count <= most && fields.next();) count += fields.number == field ? 1 : 0;
  return count;
}

std::size_t keys_asked_for(const std::string& range_end, std::int64_t limit) {
  if (range_end.empty()) return 1;
  return limit > 0 ? static_cast<std::size_t>(limit) : kUnlimitedMax;
}
std::size_t keys_asked_for(const RangeRequest& range) {
  return range.count_only ? 0 : keys_asked_for(range.range_end, range.limit);
}

/// The sum, or its bound, of the parts of an answer to a transaction.
struct Size {
  std::size_t parts = 0;
  std::size_t keys = 0;
};

Size size_asked_for(const TxnRequest& txn);

Size size_asked_for(const std::vector<RequestOp>& branch) {
  Size size{branch.size(), 0};
  for (const RequestOp& op : branch) {
    if (const auto* range = std::get_if<RangeRequest>(&op)) size.keys += keys_asked_for(*range);
    if (const auto* request = std::get_if<DeleteRequest>(&op); request != nullptr && request->previous) {
      size.keys += keys_asked_for(request->range_end, 0);
    }
    if (const auto* txn = std::get_if<TxnRequestPointer>(&op)) {
      const Size inner = size_asked_for(**txn);
      size.parts += inner.parts;
      size.keys += inner.keys;
    }
  }
  return size;
}

Size size_asked_for(const TxnRequest& txn) {
  const Size success = size_asked_for(txn.success), failure = size_asked_for(txn.failure);
  return {std::max(success.parts, failure.parts), std::max(success.keys, failure.keys)};
}

/// Stops counting soon after `most` is passed, and below any depth that a request has.
void add_size(std::string_view txn, const Size& most, Size& size, int depth = 0) {
  constexpr int kDepthMax = 16;
  if (depth > kDepthMax) size.parts = most.parts + 1;
  for (Fields parts(txn); size.parts <= most.parts && size.keys <= most.keys && parts.next();) {
    if (parts.number != kPartsOfTxn) continue;
    ++size.parts;
    for (Fields part(parts.bytes); part.next();) {
      if (part.number == kRangePart) size.keys += count_of(part.bytes, kKvsOfRange, most.keys);
      if (part.number == kDeletePart) size.keys += count_of(part.bytes, kPreviousOfDelete, most.keys);
      if (part.number == kTxnPart) add_size(part.bytes, most, size, depth + 1);
    }
  }
}

Error more_than_asked(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("etcd's answer has more {} than were asked for", what), {}};
}

// Messages that were taken in.

KeyValue take(mvccpb::KeyValue& kv) {
  return {std::move(*kv.mutable_key()), std::move(*kv.mutable_value()), kv.create_revision(), kv.mod_revision(),
          kv.version()};
}

[[nodiscard]] Result<Revision> check_revision(Revision revision, Revision least, std::string_view what) {
  if (revision >= least && revision <= kRevisionMax) return revision;
  return fail(ErrorCode::corrupt, fmt::format("etcd's answer has {} {}, which no store has", what, revision));
}

/// Keys and end as a request has them.
bool is_in(const std::string& key, const std::string& from, const std::string& end) {
  if (end.empty()) return key == from;
  return key >= from && (end == std::string_view("\0", 1) || key < end);
}

/// Takes the records of a range in which nothing was written after `newest`.
template <class Kvs>
[[nodiscard]] Result<std::vector<KeyValue>> take_kvs(Kvs& kvs, const std::string& from, const std::string& end,
                                                     Revision newest) {
  std::vector<KeyValue> taken;
  taken.reserve(static_cast<std::size_t>(kvs.size()));
  for (mvccpb::KeyValue& one : kvs) {
    KeyValue kv = take(one);
    if (!is_in(kv.key, from, end)) return fail(ErrorCode::corrupt, "etcd's answer has a key that was not asked for");
    if (!taken.empty() && kv.key <= taken.back().key) {
      return fail(ErrorCode::corrupt, "etcd's answer has keys out of their order");
    }
    if (kv.create_revision < 1 || kv.mod_revision < kv.create_revision || kv.mod_revision > newest || kv.version < 1) {
      return fail(ErrorCode::corrupt,
                  fmt::format("etcd's answer of revision {} has a record with the revisions {} and {} and the version "
                              "{}, which none has",
                              newest, kv.create_revision, kv.mod_revision, kv.version));
    }
    taken.push_back(std::move(kv));
  }
  return taken;
}

/// `revision` is that of the whole answer: of a part of a transaction etcd gives none.
[[nodiscard]] Result<RangeResponse> take(pb::RangeResponse& message, const RangeRequest& request, Revision revision) {
  RangeResponse response;
  response.revision = revision;
  response.cluster = message.header().cluster_id();
  response.more = message.more();
  response.count = message.count();
  if (static_cast<std::size_t>(message.kvs_size()) > keys_asked_for(request)) return fail(more_than_asked("keys"));
  const Revision newest = request.at_revision > 0 ? std::min(request.at_revision, revision) : revision;
  TRY(response.kvs, take_kvs(*message.mutable_kvs(), request.key, request.range_end, newest));
  if (response.count < static_cast<std::int64_t>(response.kvs.size())) {
    return fail(ErrorCode::corrupt,
                fmt::format("etcd's answer has {} keys and counts {}", response.kvs.size(), response.count));
  }
  if (response.more && (request.limit <= 0 || response.kvs.empty())) {
    return fail(ErrorCode::corrupt, "etcd's answer is cut though nothing was to cut it");
  }
  const auto has_value = [](const KeyValue& kv) { return !kv.value.empty(); };
  if (request.keys_only && std::any_of(response.kvs.begin(), response.kvs.end(), has_value)) {
    return fail(ErrorCode::corrupt, "etcd's answer has values though only keys were asked for");
  }
  return response;
}

[[nodiscard]] Result<DeleteResponse> take(pb::DeleteRangeResponse& message, const DeleteRequest& request,
                                          Revision revision) {
  DeleteResponse response;
  response.deleted = message.deleted();
  if (message.prev_kvs_size() > 0 && !request.previous) return fail(more_than_asked("records"));
  TRY(response.previous, take_kvs(*message.mutable_prev_kvs(), request.key, request.range_end, revision));
  if (response.deleted < static_cast<std::int64_t>(response.previous.size())) {
    return fail(ErrorCode::corrupt, "etcd's answer has more records than it deleted");
  }
  return response;
}

Error other_than_asked(std::string_view what) {
  return {ErrorCode::corrupt, fmt::format("etcd's answer to a transaction has {}", what), {}};
}

[[nodiscard]] Result<TxnResponse> take(pb::TxnResponse& message, const TxnRequest& request, Revision revision);

[[nodiscard]] Result<ResponseOp> take(pb::ResponseOp& message, const RequestOp& request, Revision revision) {
  const auto* range = std::get_if<RangeRequest>(&request);
  if (range != nullptr && message.has_response_range()) {
    TRY(RangeResponse part, take(*message.mutable_response_range(), *range, revision));
    return ResponseOp(std::move(part));
  }
  if (std::holds_alternative<PutRequest>(request) && message.has_response_put()) return ResponseOp(PutResponse());
  const auto* deletion = std::get_if<DeleteRequest>(&request);
  if (deletion != nullptr && message.has_response_delete_range()) {
    TRY(DeleteResponse part, take(*message.mutable_response_delete_range(), *deletion, revision));
    return ResponseOp(std::move(part));
  }
  const auto* txn = std::get_if<TxnRequestPointer>(&request);
  if (txn == nullptr || !message.has_response_txn()) return fail(other_than_asked("a part of another kind than asked"));
  TRY(TxnResponse response, take(*message.mutable_response_txn(), **txn, revision));
  return ResponseOp(std::make_shared<const TxnResponse>(std::move(response)));
}

Result<TxnResponse> take(pb::TxnResponse& message, const TxnRequest& request, Revision revision) {
  TxnResponse response;
  response.revision = revision;
  response.cluster = message.header().cluster_id();
  response.succeeded = message.succeeded();
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

Result<RangeResponse> decode_range(std::string_view bytes, const RangeRequest& request) {
  if (count_of(bytes, kKvsOfRange, keys_asked_for(request)) > keys_asked_for(request))
    return fail(more_than_asked("keys"));
  TRY(auto message, parse<pb::RangeResponse>(bytes, "RangeResponse"));
  TRY(const Revision revision, check_revision(message.header().revision(), 1, "the revision"));
  return take(message, request, revision);
}

Result<TxnResponse> decode_txn(std::string_view bytes, const TxnRequest& request) {
  const Size most = size_asked_for(request);
  Size size;
  add_size(bytes, most, size);
  if (size.parts > most.parts) return fail(more_than_asked("parts"));
  if (size.keys > most.keys) return fail(more_than_asked("keys"));
  TRY(auto message, parse<pb::TxnResponse>(bytes, "TxnResponse"));
  TRY(const Revision revision, check_revision(message.header().revision(), 1, "the revision"));
  return take(message, request, revision);
}

Result<WatchResponse> decode_watch(std::string_view bytes) {
  if (count_of(bytes, kEventsOfWatch, kUnlimitedMax) > kUnlimitedMax) {
    return fail(ErrorCode::corrupt, fmt::format("a message of a watch has more than {} events", kUnlimitedMax));
  }
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

Result<StatusResponse> decode_status(std::string_view bytes) {
  constexpr std::size_t kErrorsMax = 1000;
  if (count_of(bytes, kErrorsOfStatus, kErrorsMax) > kErrorsMax) return fail(more_than_asked("errors"));
  TRY(auto message, parse<pb::StatusResponse>(bytes, "StatusResponse"));
  StatusResponse response;
  TRY(response.revision, check_revision(message.header().revision(), 0, "the revision"));
  response.version = std::move(*message.mutable_version());
  response.member_id = message.header().member_id();
  response.errors.assign(message.errors().begin(), message.errors().end());
  return response;
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
