#include "store/etcd/one_moment.h"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "store/calico/layout.h"
#include "store/etcd/requests.h"

namespace croft::store::etcd {
namespace {

/// The bytes of the pages of one listing: half a million keys. It stops a list without an end.
constexpr std::size_t kListingBytesMax = std::size_t{96} << 20;

[[nodiscard]] Result<void> count_bytes(const RangeResponse& page, std::size_t& bytes) {
  for (const auto& kv : page.kvs) bytes += sizeof(kv) + kv.key.size() + kv.value.size();
  if (bytes <= kListingBytesMax) return {};
  return fail(ErrorCode::corrupt, fmt::format("etcd lists more than {} bytes of records", kListingBytesMax));
}

}  // namespace

Result<RangeResponse> range_with_epoch(Kv& kv, const Places& places, Epoch& epoch, const RangeRequest& request,
                                       Deadline deadline) {
  if (!places.has_own()) return kv.range(request, deadline);
  TxnRequest txn;
  txn.success = {RangeRequest::one(kEpochPlace), request};
  TRY(TxnResponse response, kv.txn(txn, deadline));
  TRY_VOID(epoch.take(only_one(response.responses[0]), response.cluster, response.revision));
  RangeResponse found = std::get<RangeResponse>(std::move(response.responses[1]));
  found.revision = response.revision;
  return found;
}

Result<void> for_each_key(Kv& kv, RangeRequest request, const RangeResponse& first, Revision moment, Deadline deadline,
                          const std::function<Result<void>(const wire::etcd::KeyValue&)>& visit) {
  request.at_revision = moment;
  const RangeResponse* page = &first;
  RangeResponse next;
  std::size_t bytes = 0;
  for (;;) {
    TRY_VOID(count_bytes(*page, bytes));
    for (const auto& found : page->kvs) TRY_VOID(visit(found));
    if (!page->more || page->kvs.empty()) return {};
    request.key = page->kvs.back().key + '\0';
    TRY(next, kv.range(request, deadline));
    page = &next;
  }
}

Result<std::map<Key, std::string>> all_beside(Kv& kv, Kind kind, const RangeRequest& request,
                                              const RangeResponse& first, Revision moment, Deadline deadline) {
  std::map<Key, std::string> beside;
  TRY_VOID(for_each_key(kv, request, first, moment, deadline, [&](const wire::etcd::KeyValue& found) -> Result<void> {
    if (auto key = calico::record_beside(kind, found.key)) beside[*std::move(key)] = found.value;
    return {};
  }));
  return beside;
}

std::optional<std::string> beside_of(const Key& key, const std::map<Key, std::string>& all) {
  const auto known = all.find(key);
  return known == all.end() ? std::nullopt : std::optional(known->second);
}

}  // namespace croft::store::etcd
