#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

// etcd's version 3 API: the requests and answers that Croft uses, as values, and their bytes (protobuf;
// proto/etcd/etcd.proto). Field by field they mean what etcd's own documentation says; a default is etcd's default.
namespace croft::wire::etcd {

/// etcd's one counter of writes. 0: none, or "the newest".
using Revision = std::int64_t;
/// No cluster comes to it: ten thousand writes a second for 55 years. An answer with a greater one is corrupt.
inline constexpr Revision kRevisionMax = (Revision{1} << 44) - 1;
/// How many keys an answer may have where the request has no limit, and events a message of a watch.
inline constexpr std::size_t kUnlimitedMax = 200'000;

struct KeyValue {
  std::string key;
  std::string value;  ///< empty in answers with `keys_only`, and in the event of a deletion
  Revision create_revision = 0;
  Revision mod_revision = 0;
  std::int64_t version = 0;  ///< 1 after the creation; 0: deleted
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

/// The end of the range that has exactly the keys with a prefix. An empty prefix is every key; the range begins at "\0"
/// then, because etcd refuses an empty key.
[[nodiscard]] std::string end_of_prefix(std::string_view prefix);

struct RangeRequest {
  std::string key;
  std::string range_end;      ///< empty: the one key; else keys in [key, range_end); "\0": all from `key` on
  std::int64_t limit = 0;     ///< 0: no limit
  Revision at_revision = 0;   ///< the state after this write; 0: the newest
  bool serializable = false;  ///< whatever the member has, perhaps old. Never for what decides "free"
  bool keys_only = false;
  bool count_only = false;

  [[nodiscard]] static RangeRequest one(std::string key) {
    RangeRequest request;
    request.key = std::move(key);
    return request;
  }
  [[nodiscard]] static RangeRequest prefix(std::string prefix) {
    RangeRequest request;
    request.range_end = end_of_prefix(prefix);
    request.key = prefix.empty() ? std::string(1, '\0') : std::move(prefix);
    return request;
  }
  friend bool operator==(const RangeRequest&, const RangeRequest&) = default;
};
struct RangeResponse {
  Revision revision = 0;      ///< of the store when it answered
  std::uint64_t cluster = 0;  ///< which cluster it is; one made anew from a backup may have the same number
  std::vector<KeyValue> kvs;  ///< ascending by key
  bool more = false;          ///< `limit` cut the answer
  std::int64_t count = 0;     ///< of all keys in the range, also with `limit`
};

struct PutRequest {
  std::string key;
  std::string value;
  friend bool operator==(const PutRequest&, const PutRequest&) = default;
};
struct PutResponse {};

struct DeleteRequest {
  std::string key;
  std::string range_end;
  bool previous = false;  ///< the answer has the records that were deleted
  friend bool operator==(const DeleteRequest&, const DeleteRequest&) = default;
};
struct DeleteResponse {
  std::int64_t deleted = 0;
  std::vector<KeyValue> previous;
};

/// A condition on one key. A key that is not there has version, create_revision and mod_revision 0.
struct Compare {
  enum class Target : std::uint8_t { version, create_revision, mod_revision, value } target = Target::mod_revision;
  enum class Relation : std::uint8_t { equal, greater, less, not_equal } relation = Relation::equal;
  std::string key;
  std::int64_t number = 0;  ///< for all targets but `value`
  std::string value;        ///< for the target `value`; never equal for a key that is not there

  [[nodiscard]] static Compare absent(std::string key) {
    return {Target::version, Relation::equal, std::move(key), 0, {}};
  }
  [[nodiscard]] static Compare unchanged(std::string key, Revision mod_revision) {
    return {Target::mod_revision, Relation::equal, std::move(key), mod_revision, {}};
  }
  friend bool operator==(const Compare&, const Compare&) = default;
};

struct TxnRequest;
struct TxnResponse;
/// A transaction within a branch of another.
using RequestOp = std::variant<RangeRequest, PutRequest, DeleteRequest, std::shared_ptr<const TxnRequest>>;
using ResponseOp = std::variant<RangeResponse, PutResponse, DeleteResponse, std::shared_ptr<const TxnResponse>>;

/// All of `success` when every compare holds, else all of `failure`. etcd refuses more than 128 operations in a branch
/// and two puts of one key in one branch.
struct TxnRequest {
  std::vector<Compare> compares;
  std::vector<RequestOp> success;
  std::vector<RequestOp> failure;
};
struct TxnResponse {
  Revision revision = 0;  ///< of the store after it: what was put has this mod_revision
  std::uint64_t cluster = 0;
  bool succeeded = false;
  std::vector<ResponseOp> responses;  ///< one for each operation of the branch that ran, in its order
};

/// True when no branch, at any depth, writes.
[[nodiscard]] bool is_read_only(const TxnRequest& txn);

struct WatchCreate {
  std::int64_t id = 0;  ///< chosen by the client, unique in its stream, not 0
  std::string key;
  std::string range_end;
  Revision start_revision = 0;  ///< events from this write on; 0: from now on
  bool previous = false;        ///< events have the record before them, where it was not compacted
  friend bool operator==(const WatchCreate&, const WatchCreate&) = default;
};
struct WatchCancel {
  std::int64_t id = 0;
};
struct WatchProgress {};
using WatchRequest = std::variant<WatchCreate, WatchCancel, WatchProgress>;

struct Event {
  enum class Type : std::uint8_t { put, deletion } type = Type::put;
  KeyValue kv;  ///< of a deletion: the key, and the deletion's own revision as mod_revision
  std::optional<KeyValue> previous;
  friend bool operator==(const Event&, const Event&) = default;
};

/// One message of a watch stream, as it came. A server may cut the events of one revision into several (`fragment`).
struct WatchResponse {
  Revision revision = 0;
  std::uint64_t cluster = 0;
  std::int64_t id = 0;  ///< -1 in answers to WatchProgress
  bool created = false;
  bool canceled = false;
  Revision compact_revision = 0;  ///< with `canceled`: the start revision is gone; the oldest that is left
  std::string cancel_reason;
  bool fragment = false;  ///< more of the same follows
  std::vector<Event> events;
};

struct StatusResponse {
  Revision revision = 0;
  std::string version;
  std::uint64_t member_id = 0;
  std::vector<std::string> errors;
};

// ---------------------------------------------------------------- bytes

// Writing.
[[nodiscard]] std::string encode(const RangeRequest& request);
[[nodiscard]] std::string encode(const TxnRequest& request);
[[nodiscard]] std::string encode(const WatchRequest& request);
[[nodiscard]] std::string encode_compaction(Revision revision, bool physical);
[[nodiscard]] std::string encode_authenticate(std::string_view user, std::string_view password);

// Reading. Error: corrupt when the bytes are not such a message, or contradict what was asked: keys that were not asked
// for, more of them, not in their order, values where there were to be none; a branch that can't have run, parts of
// another kind or number than it has; revisions that no store has. A returned answer needs no further look. An answer
// is not taken in before its parts have been counted: empty ones take a hundred times their bytes.
[[nodiscard]] Result<RangeResponse> decode_range(std::string_view bytes, const RangeRequest& request);
[[nodiscard]] Result<TxnResponse> decode_txn(std::string_view bytes, const TxnRequest& request);
[[nodiscard]] Result<WatchResponse> decode_watch(std::string_view bytes);
[[nodiscard]] Result<StatusResponse> decode_status(std::string_view bytes);
/// The token to send with each request.
[[nodiscard]] Result<std::string> decode_authenticate(std::string_view bytes);

}  // namespace croft::wire::etcd
