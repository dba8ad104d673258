#pragma once

#include <cstdint>
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

struct KeyValue {
  std::string key;
  std::string value;  ///< empty in answers with `keys_only`, and in the event of a deletion
  Revision mod_revision = 0;
  friend bool operator==(const KeyValue&, const KeyValue&) = default;
};

/// The end of the range that has exactly the keys with a prefix. An empty prefix is every key; the range begins at "\0"
/// then, because etcd refuses an empty key.
[[nodiscard]] std::string end_of_prefix(std::string_view prefix);

struct RangeRequest {
  std::string key;
  std::string range_end;     ///< empty: the one key; else keys in [key, range_end); "\0": all from `key` on
  std::int64_t limit = 0;    ///< 0: no limit
  Revision at_revision = 0;  ///< the state after this write; 0: the newest
  bool keys_only = false;

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
  bool more = false;          ///< `limit` cut the answer, which has a key then
};

struct PutRequest {
  std::string key;
  std::string value;
  friend bool operator==(const PutRequest&, const PutRequest&) = default;
};
struct PutResponse {};

struct DeleteRequest {
  std::string key;
  friend bool operator==(const DeleteRequest&, const DeleteRequest&) = default;
};
struct DeleteResponse {};

/// A condition on one key: that something of it equals. A key that is not there has version and mod_revision 0.
struct Compare {
  enum class Target : std::uint8_t { version, mod_revision, value } target = Target::mod_revision;
  std::string key;
  std::int64_t number = 0;  ///< for the other targets than `value`
  std::string value;        ///< for the target `value`; never equal for a key that is not there

  [[nodiscard]] static Compare absent(std::string key) { return {Target::version, std::move(key), 0, {}}; }
  [[nodiscard]] static Compare unchanged(std::string key, Revision mod_revision) {
    return {Target::mod_revision, std::move(key), mod_revision, {}};
  }
  [[nodiscard]] static Compare is(std::string key, std::string value) {
    return {Target::value, std::move(key), 0, std::move(value)};
  }
  friend bool operator==(const Compare&, const Compare&) = default;
};

using RequestOp = std::variant<RangeRequest, PutRequest, DeleteRequest>;
using ResponseOp = std::variant<RangeResponse, PutResponse, DeleteResponse>;

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

/// True when no branch writes.
[[nodiscard]] bool is_read_only(const TxnRequest& txn);

struct WatchCreate {
  std::int64_t id = 0;  ///< chosen by the client, unique in its stream, not 0
  std::string key;
  std::string range_end;
  Revision start_revision = 0;  ///< events from this write on; 0: from now on
  friend bool operator==(const WatchCreate&, const WatchCreate&) = default;
};

struct Event {
  enum class Type : std::uint8_t { put, deletion } type = Type::put;
  KeyValue kv;  ///< of a deletion: the key, and the deletion's own revision as mod_revision
  friend bool operator==(const Event&, const Event&) = default;
};

/// In the place of a watch's id.
inline constexpr std::int64_t kAllWatches = -1;

/// One message of a watch stream. A server may cut the events of one revision into several, one behind the other
/// (`fragment`).
struct WatchResponse {
  Revision revision = 0;
  std::uint64_t cluster = 0;
  std::int64_t id = 0;  ///< newer servers say kAllWatches of a watch that they refuse
  bool created = false;
  bool canceled = false;
  Revision compact_revision = 0;  ///< with `canceled`: the start revision is gone; the oldest that is left
  std::string cancel_reason;
  bool fragment = false;  ///< more of the same follows
  std::vector<Event> events;
};

// ---------------------------------------------------------------- bytes

// Writing.
[[nodiscard]] std::string encode(const RangeRequest& request);
[[nodiscard]] std::string encode(const TxnRequest& request);
[[nodiscard]] std::string encode(const WatchCreate& watch);
[[nodiscard]] std::string encode_watch_cancel(std::int64_t id);
/// Asks how far the watches of a stream are. The answer has the id kAllWatches and no events.
[[nodiscard]] std::string encode_watch_progress();
[[nodiscard]] std::string encode_authenticate(std::string_view user, std::string_view password);

// Reading. Error: corrupt when the bytes are not such a message, or are no answer to what was asked: a branch that
// can't have run, parts of another kind or number than it has, an empty page before others; revisions that no store
// has.
[[nodiscard]] Result<RangeResponse> decode_range(std::string_view bytes);
[[nodiscard]] Result<TxnResponse> decode_txn(std::string_view bytes, const TxnRequest& request);
[[nodiscard]] Result<WatchResponse> decode_watch(std::string_view bytes);
/// The token to send with each request.
[[nodiscard]] Result<std::string> decode_authenticate(std::string_view bytes);
/// The version of the member that was asked for its status, as "3.4.23".
[[nodiscard]] Result<std::string> decode_version(std::string_view bytes);

}  // namespace croft::wire::etcd
