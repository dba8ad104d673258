#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "store/etcd/format/api.h"
#include "store/etcd/place.h"

// The common part of the store's requests to etcd.
namespace croft::store::etcd {

/// etcd's own limit of operations in a transaction.
inline constexpr std::size_t kOpsMax = 128;
/// How many records of a listing are asked for at once: a full block has 20 KB.
inline constexpr std::int64_t kRecordsAtOnce = 500;
inline constexpr std::int64_t kKeysAtOnce = 10000;

[[nodiscard]] inline wire::etcd::RangeRequest range_over(const PlaceRange& range, std::int64_t limit, bool keys_only) {
  wire::etcd::RangeRequest request;
  request.key = range.from;
  request.range_end = range.to;
  request.limit = limit;
  request.keys_only = keys_only;
  return request;
}

/// The key-value of the answer to RangeRequest::one; null when there is no such key.
[[nodiscard]] inline const wire::etcd::KeyValue* only_one(const wire::etcd::ResponseOp& response) {
  const auto& kvs = std::get<wire::etcd::RangeResponse>(response).kvs;
  return kvs.empty() ? nullptr : &kvs.front();
}

}  // namespace croft::store::etcd
