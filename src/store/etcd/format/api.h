#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <etcd/rpc.pb.h>

#include "base/result.h"

// etcd's version 3 API: the requests and answers that Croft uses, as protobuf makes them of proto/etcd. How requests
// are put together, and what an answer must be to be one. Field by field they mean what etcd's own documentation says.
namespace croft::wire::etcd {

using etcdserverpb::Compare;
using etcdserverpb::RangeRequest;
using etcdserverpb::RangeResponse;
using etcdserverpb::RequestOp;
using etcdserverpb::ResponseOp;
using etcdserverpb::TxnRequest;
using etcdserverpb::TxnResponse;
using etcdserverpb::WatchResponse;
using mvccpb::Event;
using mvccpb::KeyValue;
using WatchCreate = etcdserverpb::WatchCreateRequest;

/// etcd's one counter of writes. 0: none, or "the newest".
using Revision = std::int64_t;
/// No cluster comes to it: ten thousand writes a second for 55 years. An answer with a greater one is corrupt.
inline constexpr Revision kRevisionMax = (Revision{1} << 44) - 1;
/// In the place of a watch's id.
inline constexpr std::int64_t kAllWatches = -1;

/// The end of the range that has exactly the keys with a prefix. An empty prefix is every key; the range begins at "\0"
/// then, because etcd refuses an empty key.
[[nodiscard]] std::string end_of_prefix(std::string_view prefix);
[[nodiscard]] RangeRequest range_of_key(std::string key);
[[nodiscard]] RangeRequest range_of_prefix(std::string prefix);

// Conditions of a transaction. A key that is not there has version and mod_revision 0, and equals no value.
[[nodiscard]] Compare absent(std::string key);
[[nodiscard]] Compare unchanged(std::string key, Revision mod_revision);
[[nodiscard]] Compare has_value(std::string key, std::string value);

// Operations of one. etcd refuses more than 128 in a branch, and two puts of one key in one branch.
[[nodiscard]] RequestOp to_get(RangeRequest range);
[[nodiscard]] RequestOp to_put(std::string key, std::string value);
[[nodiscard]] RequestOp to_delete(std::string key);
/// True when no branch writes.
[[nodiscard]] bool is_read_only(const TxnRequest& txn);

// Messages of a watch stream, and a login.
[[nodiscard]] std::string encode_watch(WatchCreate watch);
[[nodiscard]] std::string encode_watch_cancel(std::int64_t id);
/// Asks how far the watches of a stream are. The answer has the id kAllWatches and no events.
[[nodiscard]] std::string encode_watch_progress();
[[nodiscard]] std::string encode_authenticate(std::string_view user, std::string_view password);

// Reading. Error: corrupt when the bytes are not such a message, or are no answer to what was asked: a branch that
// can't have run, parts of another kind or number than it has, an empty page before others; revisions that no store
// has.
[[nodiscard]] Result<RangeResponse> decode_range(std::string_view bytes);
[[nodiscard]] Result<TxnResponse> decode_txn(std::string_view bytes, const TxnRequest& request);
/// A server may cut the events of one revision into several messages, one behind the other (`fragment`). Newer servers
/// say kAllWatches of a watch that they refuse.
[[nodiscard]] Result<WatchResponse> decode_watch(std::string_view bytes);
/// The token to send with each request.
[[nodiscard]] Result<std::string> decode_authenticate(std::string_view bytes);
/// The version of the member that was asked for its status, as "3.4.23".
[[nodiscard]] Result<std::string> decode_version(std::string_view bytes);

}  // namespace croft::wire::etcd
