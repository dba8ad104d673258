#include "store/etcd/store_list.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "store/calico/layout.h"
#include "store/check_request.h"
#include "store/etcd/codec.h"
#include "store/etcd/one_moment.h"
#include "store/etcd/requests.h"

namespace croft::store::etcd {
namespace {

using wire::etcd::KeyValue;

/// A key that is listed, and what etcd has under it.
struct Listed {
  Key key;
  const KeyValue* kv;
};

/// The entries of an answer that the request asks for, in its order.
[[nodiscard]] std::vector<Listed> listed_in(const RangeResponse& answer, const ListRequest& request,
                                            const Places& places) {
  std::vector<Listed> listed;
  for (const KeyValue& kv : answer.kvs) {
    auto key = places.record_at(request.kind, kv.key);
    const bool asked_for =
        key && key->name.starts_with(request.name_prefix) && (request.after.empty() || key->name > request.after);
    if (asked_for) listed.push_back({*std::move(key), &kv});
  }
  return listed;
}

[[nodiscard]] Result<void> add_records(Kv& kv, const Places& places, std::span<const Listed> listed, EpochNumber epoch,
                                       Revision moment, Deadline deadline, std::vector<Record>& records) {
  if (listed.empty()) return {};
  const Key& first = listed.front().key;
  std::map<Key, std::string> beside;
  if (const auto from = places.place_beside(first)) {
    const RangeRequest request =
        range_over({*from, *places.place_beside(listed.back().key) + '\0'}, kRecordsAtOnce, false);
    RangeRequest first_page = request;
    first_page.at_revision = moment;
    TRY(const RangeResponse found, kv.range(first_page, deadline));
    TRY(beside, all_beside(kv, first.kind, request, found, moment, deadline));
  }
  for (const Listed& one : listed) {
    TRY(Record record, decode(places, one.key, *one.kv, beside_of(one.key, beside), epoch));
    records.push_back(std::move(record));
  }
  return {};
}

[[nodiscard]] Result<Page> list_in_one_epoch(Kv& kv, const Places& places, Epoch& epoch, EpochNumber number,
                                             const ListRequest& request, Deadline deadline) {
  Page page;
  std::size_t left = request.limit;
  std::string after;
  if (!request.after.empty()) {
    if (const auto place = places.place_of({request.kind, request.after})) after = *place;
  }
  TRY(const std::vector<PlaceRange> ranges, places.ranges_of({request.kind, request.name_prefix}));
  for (PlaceRange rest : ranges) {
    if (after >= rest.from) rest.from = after + '\0';
    while (rest.from < rest.to) {
      const auto limit =
          std::min<std::int64_t>(static_cast<std::int64_t>(left) + 1, request.keys_only ? kKeysAtOnce : kRecordsAtOnce);
      TRY(const RangeResponse answer,
          range_with_epoch(kv, places, epoch, range_over(rest, limit, request.keys_only), deadline));
      const std::vector<Listed> listed = listed_in(answer, request, places);
      const auto taken = std::span(listed).first(std::min(listed.size(), left));
      if (request.keys_only) {
        for (const Listed& one : taken) page.keys.push_back(one.key);
      } else {
        TRY_VOID(add_records(kv, places, taken, number, answer.revision, deadline, page.records));
      }
      left -= taken.size();
      page.more = listed.size() > taken.size();
      if (page.more) return page;
      if (!answer.more || answer.kvs.empty()) break;
      rest.from = answer.kvs.back().key + '\0';
    }
  }
  return page;
}

}  // namespace

Result<Page> list_page(Kv& kv, const Places& places, Epoch& epoch, const ListRequest& request, Deadline deadline) {
  TRY_VOID(check_list(request));
  return read_in_one_epoch(
      epoch, [&](EpochNumber number) { return list_in_one_epoch(kv, places, epoch, number, request, deadline); });
}

}  // namespace croft::store::etcd
