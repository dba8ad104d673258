#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/assert.h"
#include "base/texts.h"
#include "store/etcd/store_parts.h"
#include "store/free_block.h"

namespace croft::store::etcd {
namespace {

using wire::etcd::KeyValue;
using wire::etcd::range_of_key;
using wire::etcd::RequestOp;
using wire::etcd::to_get;

/// etcd's own limit of operations in a transaction.
constexpr std::size_t kOpsMax = 128;
constexpr std::int64_t kKeysAtOnce = 10000;
/// How many records of a listing are asked for at once: a full block has 20 KB.
constexpr std::int64_t kRecordsAtOnce = 500;
/// The bytes of the pages of one listing: half a million keys. It stops a list without an end.
constexpr std::size_t kListingBytesMax = std::size_t{96} << 20;

[[nodiscard]] RangeRequest range_over(const PlaceRange& range, std::int64_t limit, bool keys_only) {
  RangeRequest request;
  request.set_key(range.from);
  request.set_range_end(range.to);
  request.set_limit(limit);
  request.set_keys_only(keys_only);
  return request;
}

/// How often a read begins anew because the epoch became another meanwhile.
constexpr int kReadsMax = 3;

/// Calls `read` with the number of the epoch that all it reads has to be of, and again where it was not.
template <class Read>
auto read_in_one_epoch(Epoch& epoch, Read read) -> decltype(read(EpochNumber{})) {
  for (int i = 0; i < kReadsMax; ++i) {
    const EpochNumber number = epoch.number();
    auto answer = read(number);
    if (epoch.number() == number) return answer;
  }
  return fail(ErrorCode::unavailable,
              "etcd answers from one cluster and then from another; are its endpoints those of one?");
}

[[nodiscard]] Result<void> count_bytes(const RangeResponse& page, std::size_t& bytes) {
  for (const KeyValue& kv : page.kvs()) bytes += sizeof(kv) + kv.key().size() + kv.value().size();
  if (bytes <= kListingBytesMax) return {};
  return fail(ErrorCode::corrupt, "etcd lists more than {} bytes of records", kListingBytesMax);
}

/// Calls `visit` for all that `request` asks for, page by page; `first` is the page that has come, and the others are
/// as of `moment`. Errors: those of range() and of `visit`; corrupt for a listing that does not end.
[[nodiscard]] Result<void> for_each_key(Client& client, RangeRequest request, const RangeResponse& first,
                                        Revision moment, Deadline deadline,
                                        const std::function<Result<void>(const KeyValue&)>& visit) {
  request.set_revision(moment);
  const RangeResponse* page = &first;
  RangeResponse next;
  std::size_t bytes = 0;
  for (;;) {
    TRY_VOID(count_bytes(*page, bytes));
    for (const KeyValue& found : page->kvs()) TRY_VOID(visit(found));
    if (!page->more()) return {};
    request.set_key(page->kvs().rbegin()->key() + '\0');
    TRY(next, client.range(request, deadline));
    page = &next;
  }
}

/// The data beside the records of a kind, read in the same way.
[[nodiscard]] Result<std::map<Key, std::string>> all_beside(Client& client, Kind kind, const RangeRequest& request,
                                                            const RangeResponse& first, Revision moment,
                                                            Deadline deadline) {
  std::map<Key, std::string> beside;
  TRY_VOID(for_each_key(client, request, first, moment, deadline, [&](const KeyValue& found) -> Result<void> {
    if (auto key = calico::record_beside(kind, found.key())) beside[*std::move(key)] = found.value();
    return {};
  }));
  return beside;
}

std::optional<std::string> beside_of(const Key& key, const std::map<Key, std::string>& all) {
  const auto known = all.find(key);
  return known == all.end() ? std::nullopt : std::optional(known->second);
}

// ---------------------------------------------------------------- a page

/// A key that is listed, and what etcd has under it.
struct Listed {
  Key key;
  const KeyValue* kv;
};

/// The entries of an answer that the request asks for, in its order.
[[nodiscard]] std::vector<Listed> listed_in(const RangeResponse& answer, const ListRequest& request,
                                            const Places& places) {
  std::vector<Listed> listed;
  for (const KeyValue& kv : answer.kvs()) {
    auto key = places.record_at(request.kind, kv.key());
    if (key && key->name.starts_with(request.name_prefix)) listed.push_back({*std::move(key), &kv});
  }
  return listed;
}

[[nodiscard]] Result<void> add_records(const CallContext& parts, std::span<const Listed> listed, EpochNumber epoch,
                                       Revision moment, Deadline deadline, std::vector<Record>& records) {
  if (listed.empty()) return {};
  const Key& first = listed.front().key;
  std::map<Key, std::string> beside;
  if (const auto from = parts.places.place_beside(first)) {
    const RangeRequest request =
        range_over({*from, *parts.places.place_beside(listed.back().key) + '\0'}, kRecordsAtOnce, false);
    RangeRequest first_page = request;
    first_page.set_revision(moment);
    TRY(const RangeResponse found, parts.client.range(first_page, deadline));
    TRY(beside, all_beside(parts.client, first.kind, request, found, moment, deadline));
  }
  for (const Listed& one : listed) {
    TRY(Record record, decode(parts.places, one.key, *one.kv, beside_of(one.key, beside), epoch));
    records.push_back(std::move(record));
  }
  return {};
}

/// The records of a request's first keys in a range, which begins behind them then.
[[nodiscard]] Result<std::vector<Record>> page_of(const CallContext& parts, EpochNumber number,
                                                  const ListRequest& request, PlaceRange& rest, Deadline deadline) {
  const auto limit =
      std::min(static_cast<std::int64_t>(request.limit), request.keys_only ? kKeysAtOnce : kRecordsAtOnce);
  TRY(const RangeResponse answer, range_with_epoch(parts, range_over(rest, limit, request.keys_only), deadline));
  const std::vector<Listed> listed = listed_in(answer, request, parts.places);
  std::vector<Record> records;
  if (request.keys_only) {
    for (const Listed& one : listed) records.push_back({one.key, {}, {}, {}});
  } else {
    TRY_VOID(add_records(parts, listed, number, answer.header().revision(), deadline, records));
  }
  rest.from = answer.more() ? answer.kvs().rbegin()->key() + '\0' : rest.to;
  return records;
}

// ---------------------------------------------------------------- a read

/// One or two operations a key: the record, and what is beside it; none for one that is left out.
[[nodiscard]] Result<void> add_gets(const Places& places, std::span<const Key> keys, TxnRequest& txn) {
  for (const Key& key : keys) {
    if (places.leaves_out(key.kind)) continue;
    TRY(std::string place, places.place_of(key));
    *txn.add_success() = to_get(range_of_key(std::move(place)));
    if (auto beside = places.place_beside(key)) *txn.add_success() = to_get(range_of_key(*std::move(beside)));
  }
  return {};
}

/// The record that the operations from `op` on asked for; `op` moves behind them.
[[nodiscard]] Result<std::optional<Record>> record_from(const Places& places, const Key& key, EpochNumber epoch,
                                                        const TxnResponse& response, std::size_t& op) {
  if (places.leaves_out(key.kind)) return std::optional<Record>();
  const KeyValue* kv = only_one(response, op++);
  std::optional<std::string> beside;
  if (places.place_beside(key)) {
    if (const KeyValue* found = only_one(response, op++)) beside = found->value();
  }
  if (kv == nullptr) return std::optional<Record>();
  TRY(Record record, decode(places, key, *kv, beside, epoch));
  return std::optional(std::move(record));
}

/// Several records as of one moment, which becomes that of the first answer when it is now.
[[nodiscard]] Result<std::vector<std::optional<Record>>> get_at(const CallContext& parts, std::span<const Key> keys,
                                                                EpochNumber epoch, Revision& moment,
                                                                Deadline deadline) {
  std::vector<std::optional<Record>> records;
  for (std::size_t from = 0; from < keys.size(); from += kOpsMax / 2) {
    const auto some = keys.subspan(from, std::min(kOpsMax / 2, keys.size() - from));
    TxnRequest txn;
    TRY_VOID(add_gets(parts.places, some, txn));
    for (RequestOp& op : *txn.mutable_success()) op.mutable_request_range()->set_revision(moment);
    TxnResponse response;
    if (!txn.success().empty()) {
      TRY(response, parts.client.txn(txn, deadline));
      if (moment == 0) moment = response.header().revision();
    }
    std::size_t op = 0;
    for (const Key& key : some) {
      TRY(auto record, record_from(parts.places, key, epoch, response, op));
      records.push_back(std::move(record));
    }
  }
  return records;
}

/// A page of keys, and single ones, in one request.
[[nodiscard]] Result<BlockKeys> look_at_blocks(const CallContext& parts, const std::optional<BlockPage>& page,
                                               std::span<const Key> single, Deadline deadline) {
  TxnRequest txn;
  for (const Key& key : single) {
    TRY(std::string place, parts.places.place_of(key));
    RangeRequest one = range_of_key(std::move(place));
    one.set_keys_only(true);
    *txn.add_success() = to_get(std::move(one));
  }
  if (page) {
    TRY(std::vector<PlaceRange> ranges, parts.places.ranges_of(page->blocks));
    CROFT_ASSERT(ranges.size() == 1);  // of one family
    PlaceRange& rest = ranges.front();
    if (!page->after.empty()) {
      TRY(const std::string after, parts.places.place_of({Kind::block, page->after}));
      if (after >= rest.from) rest.from = after + '\0';
    }
    *txn.add_success() = to_get(range_over(rest, static_cast<std::int64_t>(page->limit), true));
  }
  TRY(const TxnResponse response, parts.client.txn(txn, deadline));
  BlockKeys seen;
  for (std::size_t i = 0; i < single.size(); ++i) {
    if (only_one(response, i) != nullptr) seen.there.insert(single[i]);
  }
  if (!page) return seen;
  const RangeResponse& found = response.responses().rbegin()->response_range();
  seen.more = found.more();
  for (const KeyValue& one : found.kvs()) {
    if (auto key = parts.places.listed_at(Kind::block, one.key())) seen.page.push_back(*std::move(key));
  }
  return seen;
}

/// One read: the request that asks for as much as it can, and then what is made of its answer.
class OneRead {
 public:
  OneRead(const CallContext& parts, EpochNumber number, const core::Missing& wanted, Deadline deadline)
      : parts_(parts),
        places_(parts.places),
        number_(number),
        wanted_(wanted),
        deadline_(deadline),
        keys_(wanted.records.begin(), wanted.records.end()) {}

  [[nodiscard]] Result<ReadAnswer> read() {
    // A free block is a hint, of whatever epoch.
    const bool is_hint = keys_.empty() && wanted_.lists.empty() && wanted_.keys.empty();
    if (places_.has_own() && !is_hint) *txn_.add_success() = to_get(range_of_key(kEpochPlace));
    first_keys_ = count_of_first_keys();
    TRY_VOID(add_gets(places_, std::span(keys_).first(first_keys_), txn_));
    for (const core::Listing& listing : wanted_.lists) TRY_VOID(add_list(listing, false));
    for (const core::Listing& listing : wanted_.keys) TRY_VOID(add_list(listing, true));
    if (!txn_.success().empty()) {
      TRY(response_, parts_.client.txn(txn_, deadline_));
      moment_ = response_.header().revision();
      if (places_.has_own()) {
        TRY_VOID(parts_.epoch.take(only_one(response_, 0), response_.header().cluster_id(), moment_));
      }
    }
    ReadAnswer answer;
    TRY_VOID(add_records(answer));
    TRY_VOID(add_lists(answer));
    for (const core::FreeBlock& block : wanted_.free_blocks) {
      const auto look = [&](const auto& page, auto single) { return look_at_blocks(parts_, page, single, deadline_); };
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
    int op;
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
                std::nullopt, txn_.success_size()};
      *txn_.add_success() = to_get(part.request);
      if (const auto root = places_.places_beside(listing.kind); root && !keys_only) {
        const std::string prefix = *root + listing.name_prefix;
        part.request_beside = range_over({prefix, wire::etcd::end_of_prefix(prefix)}, kRecordsAtOnce, false);
        *txn_.add_success() = to_get(*part.request_beside);
      }
      lists_.push_back(std::move(part));
    }
    return {};
  }

  [[nodiscard]] const RangeResponse& range_at(int op) const { return response_.responses(op).response_range(); }

  [[nodiscard]] Result<void> add_records(ReadAnswer& answer) {
    std::size_t op = places_.has_own() ? 1 : 0;
    for (const Key& key : std::span(keys_).first(first_keys_)) {
      TRY(auto record, record_from(places_, key, number_, response_, op));
      answer.records.push_back(std::move(record));
    }
    TRY(auto rest, get_at(parts_, std::span(keys_).subspan(first_keys_), number_, moment_, deadline_));
    std::move(rest.begin(), rest.end(), std::back_inserter(answer.records));
    return {};
  }

  [[nodiscard]] Result<void> add_lists(ReadAnswer& answer) {
    std::map<core::Listing, std::vector<Record>> lists;
    std::map<core::Listing, std::vector<Key>> keys;
    for (const Part& part : lists_) {
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
      TRY(beside, all_beside(parts_.client, part.listing.kind, *part.request_beside, range_at(part.op + 1), moment_,
                             deadline_));
    }
    return for_each_key(parts_.client, part.request, range_at(part.op), moment_, deadline_,
                        [&](const KeyValue& kv) -> Result<void> {
                          const auto key = places_.record_at(part.listing.kind, kv.key());
                          if (!key || !key->name.starts_with(part.listing.name_prefix)) return {};
                          TRY(Record record, decode(places_, *key, kv, beside_of(*key, beside), number_));
                          records.push_back(std::move(record));
                          return {};
                        });
  }

  [[nodiscard]] Result<void> collect_keys(const Part& part, std::vector<Key>& keys) {
    return for_each_key(parts_.client, part.request, range_at(part.op), moment_, deadline_,
                        [&](const KeyValue& kv) -> Result<void> {
                          auto key = places_.listed_at(part.listing.kind, kv.key());
                          if (key && key->name.starts_with(part.listing.name_prefix)) keys.push_back(*std::move(key));
                          return {};
                        });
  }

  const CallContext& parts_;
  const Places& places_;
  const EpochNumber number_;
  const core::Missing& wanted_;
  const Deadline deadline_;
  const std::vector<Key> keys_;
  TxnRequest txn_;
  std::size_t first_keys_ = 0;  ///< so many of keys_ are in the request
  std::vector<Part> lists_;
  TxnResponse response_;
  Revision moment_ = 0;
};

}  // namespace

Result<RangeResponse> range_with_epoch(const CallContext& parts, const RangeRequest& request, Deadline deadline) {
  if (!parts.places.has_own()) return parts.client.range(request, deadline);
  TxnRequest txn;
  *txn.add_success() = to_get(range_of_key(kEpochPlace));
  *txn.add_success() = to_get(request);
  TRY(TxnResponse response, parts.client.txn(txn, deadline));
  TRY_VOID(parts.epoch.take(only_one(response, 0), response.header().cluster_id(), response.header().revision()));
  RangeResponse found = std::move(*response.mutable_responses(1)->mutable_response_range());
  *found.mutable_header() = response.header();
  return found;
}

Result<void> for_each_record(const CallContext& parts, const ListRequest& request, const Store::Until& until,
                             const Store::Take& take) {
  TRY(const std::vector<PlaceRange> ranges, parts.places.ranges_of({request.kind, request.name_prefix}));
  for (PlaceRange rest : ranges) {
    while (rest.from < rest.to) {
      const Deadline deadline = until();
      PlaceRange left;
      TRY(std::vector<Record> page, read_in_one_epoch(parts.epoch, [&](EpochNumber number) {
            left = rest;
            return page_of(parts, number, request, left, deadline);
          }));
      rest = std::move(left);
      for (Record& record : page) TRY_VOID(take(record));
    }
  }
  return {};
}

Result<ReadAnswer> read_missing(const CallContext& parts, const core::Missing& wanted, Deadline deadline) {
  return read_in_one_epoch(parts.epoch,
                           [&](EpochNumber number) { return OneRead(parts, number, wanted, deadline).read(); });
}

Result<store::Revision> position_now(const CallContext& parts, Deadline deadline) {
  return read_in_one_epoch(parts.epoch, [&](EpochNumber number) -> Result<store::Revision> {
    TRY(const RangeResponse found, parts.client.range(range_of_key(kEpochPlace), deadline));
    const auto& header = found.header();
    TRY_VOID(parts.epoch.take(only_one(found), header.cluster_id(), header.revision()));
    return revision_in_epoch(number, header.revision());
  });
}

}  // namespace croft::store::etcd
