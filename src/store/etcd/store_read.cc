#include "store/etcd/store_read.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "store/calico/layout.h"
#include "store/etcd/codec.h"
#include "store/etcd/one_moment.h"
#include "store/etcd/requests.h"
#include "store/free_block.h"

namespace croft::store::etcd {
namespace {

using wire::etcd::KeyValue;
using wire::etcd::RequestOp;

/// One or two operations a key: the record, and what is beside it; none for one that is left out.
[[nodiscard]] Result<void> add_gets(const Places& places, std::span<const Key> keys, TxnRequest& txn) {
  for (const Key& key : keys) {
    if (places.leaves_out(key.kind)) continue;
    TRY(std::string place, places.place_of(key));
    txn.success.emplace_back(RangeRequest::one(std::move(place)));
    if (auto beside = places.place_beside(key)) txn.success.emplace_back(RangeRequest::one(*std::move(beside)));
  }
  return {};
}

/// The record that the operations from `op` on asked for; `op` moves behind them.
[[nodiscard]] Result<std::optional<Record>> record_from(const Places& places, const Key& key, EpochNumber epoch,
                                                        const TxnResponse& response, std::size_t& op) {
  if (places.leaves_out(key.kind)) return std::optional<Record>();
  const KeyValue* kv = only_one(response.responses[op++]);
  std::optional<std::string> beside;
  if (places.place_beside(key)) {
    if (const KeyValue* found = only_one(response.responses[op++])) beside = found->value;
  }
  if (kv == nullptr) return std::optional<Record>();
  TRY(Record record, decode(places, key, *kv, beside, epoch));
  return std::optional(std::move(record));
}

/// Several records as of one moment, which becomes that of the first answer when it is now.
[[nodiscard]] Result<std::vector<std::optional<Record>>> get_at(Kv& kv, const Places& places, std::span<const Key> keys,
                                                                EpochNumber epoch, Revision& moment,
                                                                Deadline deadline) {
  std::vector<std::optional<Record>> records;
  for (std::size_t from = 0; from < keys.size(); from += kOpsMax / 2) {
    const auto some = keys.subspan(from, std::min(kOpsMax / 2, keys.size() - from));
    TxnRequest txn;
    TRY_VOID(add_gets(places, some, txn));
    for (RequestOp& op : txn.success) std::get<RangeRequest>(op).at_revision = moment;
    TxnResponse response;
    if (!txn.success.empty()) {
      TRY(response, kv.txn(txn, deadline));
      if (moment == 0) moment = response.revision;
    }
    std::size_t op = 0;
    for (const Key& key : some) {
      TRY(auto record, record_from(places, key, epoch, response, op));
      records.push_back(std::move(record));
    }
  }
  return records;
}

/// A page of keys, and single ones, in one request.
[[nodiscard]] Result<BlockKeys> look_at_blocks(Kv& kv, const Places& places, const std::optional<ListRequest>& page,
                                               std::span<const Key> single, Deadline deadline) {
  TxnRequest txn;
  for (const Key& key : single) {
    TRY(std::string place, places.place_of(key));
    RangeRequest one = RangeRequest::one(std::move(place));
    one.keys_only = true;
    txn.success.emplace_back(std::move(one));
  }
  if (page) {
    TRY(std::vector<PlaceRange> ranges, places.ranges_of({page->kind, page->name_prefix}));
    CROFT_ASSERT(ranges.size() == 1);  // of one family
    PlaceRange& rest = ranges.front();
    if (!page->after.empty()) {
      TRY(const std::string after, places.place_of({page->kind, page->after}));
      if (after >= rest.from) rest.from = after + '\0';
    }
    txn.success.emplace_back(range_over(rest, static_cast<std::int64_t>(page->limit), true));
  }
  TRY(const TxnResponse response, kv.txn(txn, deadline));
  BlockKeys seen;
  for (std::size_t i = 0; i < single.size(); ++i) {
    if (only_one(response.responses[i]) != nullptr) seen.there.insert(single[i]);
  }
  if (!page) return seen;
  const auto& found = std::get<RangeResponse>(response.responses.back());
  seen.page.more = found.more;
  for (const KeyValue& kv_found : found.kvs) {
    if (auto key = places.listed_at(page->kind, kv_found.key)) seen.page.keys.push_back(*std::move(key));
  }
  return seen;
}

/// One read: the request that asks for as much as it can, and then what is made of its answer.
class OneRead {
 public:
  OneRead(Kv& kv, const Places& places, Epoch& epoch, EpochNumber number, const core::Missing& wanted,
          Deadline deadline)
      : kv_(kv),
        places_(places),
        epoch_(epoch),
        number_(number),
        wanted_(wanted),
        deadline_(deadline),
        keys_(wanted.records.begin(), wanted.records.end()) {}

  /// False when one request can't ask for it.
  [[nodiscard]] Result<bool> fits_one_request() {
    // A free block is a hint, of whatever epoch.
    const bool is_hint = keys_.empty() && wanted_.lists.empty() && wanted_.keys.empty();
    if (places_.has_own() && !is_hint) txn_.success.emplace_back(RangeRequest::one(kEpochPlace));
    first_keys_ = count_of_first_keys();
    TRY_VOID(add_gets(places_, std::span(keys_).first(first_keys_), txn_));
    for (const core::Listing& listing : wanted_.lists) TRY_VOID(add_list(listing, false));
    for (const core::Listing& listing : wanted_.keys) TRY_VOID(add_list(listing, true));
    return txn_.success.size() <= kOpsMax;
  }

  /// After fits_one_request().
  [[nodiscard]] Result<ReadAnswer> read() {
    if (!txn_.success.empty()) {
      TRY(response_, kv_.txn(txn_, deadline_));
      moment_ = response_.revision;
      if (places_.has_own())
        TRY_VOID(epoch_.take(only_one(response_.responses.front()), response_.cluster, response_.revision));
    }
    ReadAnswer answer;
    TRY_VOID(add_records(answer));
    TRY_VOID(add_lists(answer));
    for (const core::FreeBlock& block : wanted_.free_blocks) {
      const auto look = [&](const auto& page, auto single) {
        return look_at_blocks(kv_, places_, page, single, deadline_);
      };
      TRY(core::FoundBlock found, find_free_block(block, look));
      answer.free_blocks.push_back(std::move(found));
    }
    return answer;
  }

 private:
  /// A range of a listing, and the operation that asked for its first page; the next one for what is beside that.
  struct Part {
    core::Listing listing;
    bool keys_only;
    RangeRequest request;
    std::optional<RangeRequest> request_beside;
    std::size_t op;
  };

  /// Records have all the operations, or leave half of them to the lists.
  [[nodiscard]] std::size_t count_of_first_keys() const {
    const bool only_records = wanted_.lists.empty() && wanted_.keys.empty();
    const std::size_t ops_max = only_records ? kOpsMax - 1 : kOpsMax / 2;
    std::size_t ops = 0;
    std::size_t count = 0;
    for (; count < keys_.size(); ++count) {
      ops += places_.place_beside(keys_[count]) ? 2 : 1;
      if (ops > ops_max) break;
    }
    return count;
  }

  [[nodiscard]] Result<void> add_list(const core::Listing& listing, bool keys_only) {
    TRY(const std::vector<PlaceRange> ranges, places_.ranges_of(listing));
    for (const PlaceRange& range : ranges) {
      Part part{listing, keys_only, range_over(range, keys_only ? kKeysAtOnce : kRecordsAtOnce, keys_only),
                std::nullopt, txn_.success.size()};
      txn_.success.emplace_back(part.request);
      if (const auto root = places_.places_beside(listing.kind); root && !keys_only) {
        const std::string prefix = *root + listing.name_prefix;
        part.request_beside = range_over({prefix, wire::etcd::end_of_prefix(prefix)}, kRecordsAtOnce, false);
        txn_.success.emplace_back(*part.request_beside);
      }
      parts_.push_back(std::move(part));
    }
    return {};
  }

  [[nodiscard]] const RangeResponse& range_at(std::size_t op) const {
    return std::get<RangeResponse>(response_.responses[op]);
  }

  [[nodiscard]] Result<void> add_records(ReadAnswer& answer) {
    std::size_t op = places_.has_own() ? 1 : 0;
    for (const Key& key : std::span(keys_).first(first_keys_)) {
      TRY(auto record, record_from(places_, key, number_, response_, op));
      answer.records.push_back(std::move(record));
    }
    TRY(auto rest, get_at(kv_, places_, std::span(keys_).subspan(first_keys_), number_, moment_, deadline_));
    std::move(rest.begin(), rest.end(), std::back_inserter(answer.records));
    return {};
  }

  [[nodiscard]] Result<void> add_lists(ReadAnswer& answer) {
    std::map<core::Listing, std::vector<Record>> lists;
    std::map<core::Listing, std::vector<Key>> keys;
    for (const Part& part : parts_) {
      TRY_VOID(part.keys_only ? collect_keys(part, keys[part.listing]) : collect(part, lists[part.listing]));
    }
    for (const core::Listing& listing : wanted_.lists) answer.lists.push_back(std::move(lists[listing]));
    for (const core::Listing& listing : wanted_.keys) {
      answer.keys.push_back(std::make_shared<const std::vector<Key>>(std::move(keys[listing])));
    }
    return {};
  }

  [[nodiscard]] Result<void> collect(const Part& part, std::vector<Record>& records) {
    std::map<Key, std::string> beside;
    if (part.request_beside) {
      TRY(beside, all_beside(kv_, part.listing.kind, *part.request_beside, range_at(part.op + 1), moment_, deadline_));
    }
    return for_each_key(kv_, part.request, range_at(part.op), moment_, deadline_,
                        [&](const KeyValue& kv) -> Result<void> {
                          const auto key = places_.record_at(part.listing.kind, kv.key);
                          if (!key || !key->name.starts_with(part.listing.name_prefix)) return {};
                          TRY(Record record, decode(places_, *key, kv, beside_of(*key, beside), number_));
                          records.push_back(std::move(record));
                          return {};
                        });
  }

  [[nodiscard]] Result<void> collect_keys(const Part& part, std::vector<Key>& keys) {
    return for_each_key(kv_, part.request, range_at(part.op), moment_, deadline_,
                        [&](const KeyValue& kv) -> Result<void> {
                          auto key = places_.listed_at(part.listing.kind, kv.key);
                          if (key && key->name.starts_with(part.listing.name_prefix)) keys.push_back(*std::move(key));
                          return {};
                        });
  }

  Kv& kv_;
  const Places& places_;
  Epoch& epoch_;
  const EpochNumber number_;
  const core::Missing& wanted_;
  const Deadline deadline_;
  const std::vector<Key> keys_;
  TxnRequest txn_;
  std::size_t first_keys_ = 0;  ///< so many of keys_ are in the request
  std::vector<Part> parts_;
  TxnResponse response_;
  Revision moment_ = 0;
};

/// The records as of one moment; the rest page by page.
[[nodiscard]] Result<ReadAnswer> read_apart(Store& store, Kv& kv, const Places& places, EpochNumber number,
                                            const core::Missing& wanted, Deadline deadline) {
  ReadAnswer answer;
  Revision now = 0;
  const std::vector<Key> keys(wanted.records.begin(), wanted.records.end());
  TRY(answer.records, get_at(kv, places, keys, number, now, deadline));
  TRY_VOID(read_by_pages(store, wanted, answer, deadline));
  return answer;
}

}  // namespace

Result<ReadAnswer> read_wanted(Store& store, Kv& kv, const Places& places, Epoch& epoch, const core::Missing& wanted,
                               Deadline deadline) {
  return read_in_one_epoch(epoch, [&](EpochNumber number) -> Result<ReadAnswer> {
    OneRead one(kv, places, epoch, number, wanted, deadline);
    TRY(const bool fits, one.fits_one_request());
    if (fits) return one.read();
    if (places.has_own()) TRY_VOID(epoch.look(deadline));
    return read_apart(store, kv, places, number, wanted, deadline);
  });
}

Result<store::Revision> position_now(Kv& kv, Epoch& epoch, Deadline deadline) {
  return read_in_one_epoch(epoch, [&](EpochNumber number) -> Result<store::Revision> {
    TRY(const RangeResponse found, kv.range(RangeRequest::one(kEpochPlace), deadline));
    TRY_VOID(epoch.take(found.kvs.empty() ? nullptr : &found.kvs.front(), found.cluster, found.revision));
    return in_epoch(number, found.revision);
  });
}

}  // namespace croft::store::etcd
