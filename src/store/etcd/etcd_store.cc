#include "store/etcd/etcd_store.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "net/echo.h"
#include "store/calico/codec.h"
#include "store/calico/layout.h"
#include "store/check_request.h"
#include "store/etcd/codec.h"
#include "store/etcd/looks.h"
#include "store/etcd/place.h"
#include "store/etcd/revisions.h"
#include "store/etcd/store_watch.h"
#include "store/etcd/verdict.h"

namespace croft::store {
namespace {

using etcd::Line;
using etcd::Over;
using etcd::PlaceRange;
using wire::etcd::Compare;
using wire::etcd::DeleteRequest;
using wire::etcd::KeyValue;
using wire::etcd::PutRequest;
using wire::etcd::RangeRequest;
using wire::etcd::RangeResponse;
using wire::etcd::RequestOp;
using wire::etcd::TxnRequest;
using wire::etcd::TxnResponse;

/// etcd's own limit of operations in a transaction.
constexpr std::size_t kOpsMax = 128;
/// etcd takes 1.5 MiB a request, unless it is told otherwise: the rest is for keys, conditions and small records.
constexpr std::size_t kBlockBytesMax = (std::size_t{1536} - 256) << 10;
/// How many records of a listing are asked for at once: a full block has 20 KB.
constexpr std::int64_t kRecordsAtOnce = 500;
constexpr std::int64_t kKeysAtOnce = 10000;
/// No record has it.
constexpr wire::etcd::Revision kNoRevision = -1;
/// What the pages of one listing may come to: half a million keys. Who lists for ever is stopped by it.
constexpr std::size_t kListingBytesMax = std::size_t{96} << 20;
/// How often a read of several requests begins anew because the connection did not last.
constexpr int kReadsMax = 3;

/// Where a read of several requests looks: as of one revision, which only its first connection has.
struct Moment {
  wire::etcd::Revision revision = 0;  ///< 0: now
  std::optional<Line> line;

  void is_of(const Over<RangeResponse>& answer) { set(answer.revision, answer.line); }
  void is_of(const Over<TxnResponse>& answer) { set(answer.revision, answer.line); }

 private:
  void set(wire::etcd::Revision at, Line over) {
    if (line) return;
    revision = at;
    line = over;
  }
};

/// Reads again what several requests could not read over one connection.
template <class Read>
auto read_at_once(Read read) -> decltype(read()) {
  for (int i = 1;; ++i) {
    auto answer = read();
    if (answer || !etcd::is_other_line(answer.error())) return answer;
    if (i == kReadsMax) return fail(ErrorCode::unavailable, "etcd's connections do not last as long as a read");
  }
}

RangeRequest range_over(const PlaceRange& range, std::int64_t limit, bool keys_only) {
  RangeRequest request;
  request.key = range.from;
  request.range_end = range.to;
  request.limit = limit;
  request.keys_only = keys_only;
  return request;
}

/// The single key's value in an answer; nothing when there is none.
const KeyValue* only_one(const wire::etcd::ResponseOp& response) {
  const auto& kvs = std::get<RangeResponse>(response).kvs;
  return kvs.empty() ? nullptr : &kvs.front();
}

class EtcdStore final : public Store {
 public:
  EtcdStore(std::unique_ptr<etcd::Kv> kv, const Clock& clock, Random& random, std::unique_ptr<etcd::Registry> registry)
      : kv_(std::move(kv)), clock_(clock), random_(random), registry_(std::move(registry)), places_(registry_.get()) {}

  [[nodiscard]] Result<Page> list(const ListRequest& request, Deadline deadline) override {
    TRY_VOID(check_list(request));
    return read_at_once([&]() -> Result<Page> {
      Page page;
      const auto add = [&](Record record) {
        if (request.keys_only) {
          page.keys.push_back(std::move(record.key));
        } else {
          page.records.push_back(std::move(record));
        }
      };
      TRY(page.more, for_page(request, request.keys_only, deadline, add));
      return page;
    });
  }

  [[nodiscard]] Result<ReadAnswer> read(const core::Missing& wanted, Deadline deadline) override {
    return read_at_once([&] { return read_once(wanted, deadline); });
  }

  [[nodiscard]] Result<ReadAnswer> read_once(const core::Missing& wanted, Deadline deadline) {
    // All first pages in one request; what does not fit follows, as of the same moment.
    TxnRequest txn;
    const std::vector<Key> keys(wanted.records.begin(), wanted.records.end());
    const bool only_records =
        wanted.lists.empty() && wanted.keys.empty() && wanted.windows.empty() && wanted.counts.empty();
    const std::size_t ops_for_records = only_records ? kOpsMax : kOpsMax / 2;
    std::size_t first_keys = 0;
    for (std::size_t ops = 0; first_keys < keys.size(); ++first_keys) {
      ops += calico::place_beside(keys[first_keys]) ? 2 : 1;
      if (ops > ops_for_records) break;
    }
    TRY_VOID(add_gets(std::span(keys).first(first_keys), txn));
    struct Part {
      core::Listing listing;
      bool keys_only;
      PlaceRange range;
      std::size_t op;
    };
    std::vector<Part> parts;
    const auto add_list = [&](const core::Listing& listing, bool keys_only) -> Result<void> {
      TRY(const std::vector<PlaceRange> ranges, places_.ranges_of(listing));
      for (const PlaceRange& range : ranges) {
        parts.push_back({listing, keys_only, range, txn.success.size()});
        txn.success.emplace_back(range_over(range, keys_only ? kKeysAtOnce : kRecordsAtOnce, keys_only));
        const auto beside = calico::places_beside(listing.kind);
        if (!keys_only && beside) txn.success.emplace_back(range_beside(listing, *beside));
      }
      return {};
    };
    for (const core::Listing& listing : wanted.lists) TRY_VOID(add_list(listing, false));
    for (const core::Listing& listing : wanted.keys) TRY_VOID(add_list(listing, true));
    const std::size_t windows_at = txn.success.size();
    for (const core::KeyWindow& window : wanted.windows) {
      const auto range = range_of(window);
      if (!range) return read_apart(wanted, deadline);
      txn.success.emplace_back(range_over(*range, static_cast<std::int64_t>(core::kKeyWindowMax), true));
    }
    for (const core::KeyWindow& window : wanted.counts) {
      const auto range = range_of(window);
      if (!range) return read_apart(wanted, deadline);
      RangeRequest count = range_over(*range, 0, false);
      count.count_only = true;
      txn.success.emplace_back(std::move(count));
    }
    if (txn.success.size() > kOpsMax) return read_apart(wanted, deadline);
    if (txn.success.empty()) return ReadAnswer{};
    TRY(const Over<TxnResponse> response, kv_->txn(txn, deadline));

    ReadAnswer answer;
    std::size_t op = 0;
    for (std::size_t i = 0; i < first_keys; ++i) {
      TRY(auto record, record_from(keys[i], response, op));
      answer.records.push_back(std::move(record));
    }
    Moment moment;
    moment.is_of(response);
    if (first_keys < keys.size()) {
      TRY(auto rest, get_at(std::span(keys).subspan(first_keys), moment, deadline));
      std::move(rest.begin(), rest.end(), std::back_inserter(answer.records));
    }
    std::map<core::Listing, std::vector<Record>> lists;
    std::map<core::Listing, std::vector<Key>> key_lists;
    for (const Part& part : parts) {
      const auto& first = std::get<RangeResponse>(response.responses[part.op]);
      if (part.keys_only) {
        auto& found = key_lists[part.listing];
        TRY_VOID(collect(
            part.listing, part.range, first, moment, deadline,
            [&](const KeyValue& kv, Key key) -> Result<void> {
              static_cast<void>(kv);
              found.push_back(std::move(key));
              return {};
            },
            true));
        continue;
      }
      std::map<Key, std::string> beside;
      if (calico::places_beside(part.listing.kind)) {
        TRY(beside,
            all_beside(part.listing, std::get<RangeResponse>(response.responses[part.op + 1]), moment, deadline));
      }
      auto& found = lists[part.listing];
      TRY_VOID(collect(
          part.listing, part.range, first, moment, deadline,
          [&](const KeyValue& kv, const Key& key) -> Result<void> {
            const auto known = beside.find(key);
            TRY(Record record,
                etcd::decode(places_, key, kv, known == beside.end() ? std::nullopt : std::optional(known->second),
                             response.line));
            found.push_back(std::move(record));
            return {};
          },
          false));
    }
    for (const core::Listing& listing : wanted.lists) answer.lists.push_back(std::move(lists[listing]));
    for (const core::Listing& listing : wanted.keys) {
      answer.keys.push_back(std::make_shared<const std::vector<Key>>(std::move(key_lists[listing])));
    }
    op = windows_at;
    for (const core::KeyWindow& window : wanted.windows) {
      const auto& found = std::get<RangeResponse>(response.responses[op++]);
      core::KeysInWindow& seen = answer.windows.emplace_back();
      seen.more = found.more;
      for (const KeyValue& kv : found.kvs) {
        auto key = places_.listed_at(window.listing.kind, kv.key);
        if (key && key->name.starts_with(window.listing.name_prefix)) seen.keys.push_back(*std::move(key));
      }
    }
    for (std::size_t i = 0; i < wanted.counts.size(); ++i) {
      answer.counts.push_back(static_cast<std::uint64_t>(std::get<RangeResponse>(response.responses[op++]).count));
    }
    return answer;
  }

  /// A commit whose conditions, and what it rests on besides, were read over one connection: only over that.
  [[nodiscard]] Result<Revision> commit_as_of(std::optional<Revision> as_of, std::span<const Write> writes,
                                              const WriteToken& token, Deadline deadline) override {
    std::optional<Line> line;
    if (as_of) line = etcd::line_of(*as_of);
    TRY_VOID(check_writes(writes));
    for (const Write& write : writes) {
      if (write.condition.kind != Condition::Kind::revision) continue;
      const Line read_over = etcd::line_of(write.condition.revision);
      if (!line) line = read_over;
      if (*line != read_over) return fail(of_other_line(write.key));
    }
    TxnRequest txn;
    std::vector<const Key*> compared;
    for (const Write& write : writes) TRY_VOID(add_write(write, token, txn, compared));
    if (txn.success.size() > kOpsMax || txn.compares.size() > kOpsMax) {
      return fail(ErrorCode::invalid_argument,
                  fmt::format("commit of {} writes is more than etcd takes at once", writes.size()));
    }
    const auto response = kv_->txn(txn, deadline, line);
    if (!response) {
      if (response.error().code == ErrorCode::permission_denied) return fail(refused_write(response.error(), writes));
      if (!etcd::is_no_space(response.error())) return fail(response.error());
      return settle_full(writes, token, response.error(), deadline);
    }
    if (!response->succeeded) return fail(conflict_in(*response, txn, compared));
    return etcd::on_line(response->line, response->revision);
  }

  [[nodiscard]] Result<Fate> fate_of(std::span<const Write> writes, const WriteToken& token,
                                     Deadline deadline) override {
    const Write& witness = witness_of(writes);
    TRY(const std::string place, places_.place_of(witness.key));
    TRY(const RangeResponse found, kv_->range(RangeRequest::one(place), deadline));
    const KeyValue* kv = found.kvs.empty() ? nullptr : &found.kvs.front();
    if (kv != nullptr && witness.value && etcd::is_written_by(places_, witness.key, *witness.value, token, kv->value)) {
      return Fate::applied;
    }
    switch (witness.condition.kind) {
      case Condition::Kind::absent:
        return kv != nullptr ? Fate::lost : Fate::may_still_come;
      case Condition::Kind::revision:
        return kv != nullptr && kv->mod_revision == etcd::in_etcd(witness.condition.revision) ? Fate::may_still_come
                                                                                              : Fate::lost;
      case Condition::Kind::any:
        break;
    }
    return Fate::may_still_come;
  }

  [[nodiscard]] Result<Revision> position(Deadline deadline) override {
    TRY(const std::string place, places_.place_of(core::pool_set_key()));
    RangeRequest request = RangeRequest::one(place);
    request.count_only = true;
    TRY(const Over<RangeResponse> found, kv_->range(request, deadline));
    return etcd::on_line(found.line, found.revision);
  }

  [[nodiscard]] Result<std::unique_ptr<Watch>> watch(const WatchScope& scope, Revision after, Deadline) override {
    for (const Key& key : scope.records) TRY_VOID(places_.check_kind(key.kind));
    for (const core::Listing& listing : scope.lists) TRY_VOID(places_.check_kind(listing.kind));
    return etcd::make_watch(*this, *kv_, places_, clock_, random_, scope, after);
  }

  [[nodiscard]] Result<std::unique_ptr<Turn>> take_turn(Deadline) override { return std::unique_ptr<Turn>(); }

  [[nodiscard]] Capabilities capabilities() const override {
    return {.atomic_commit = true,
            .shared = true,
            .durable = true,
            .foreign_writers = true,
            .cheap_counts = true,
            .commit_bytes_max = kBlockBytesMax,
            .sees_kubernetes = registry_ != nullptr,
            .kubernetes_services = registry_ != nullptr && registry_->has(Kind::service)};
  }

  [[nodiscard]] std::uint64_t history() const override { return kv_->history() + marks_gone_; }

  [[nodiscard]] Result<std::uint64_t> prove_history(Deadline deadline) override {
    TRY(marks_gone_, looks_.renew(*kv_, deadline));
    return history();
  }

 private:
  /// What one request can't ask for.
  [[nodiscard]] Result<ReadAnswer> read_apart(const core::Missing& wanted, Deadline deadline) {
    ReadAnswer answer;
    Moment now;
    const std::vector<Key> keys(wanted.records.begin(), wanted.records.end());
    TRY(answer.records, get_at(keys, now, deadline));
    TRY_VOID(read_by_pages(*this, wanted, answer, deadline));
    return answer;
  }

  /// As conflict_in: what was read before must be read again.
  static Error of_other_line(const Key& key) {
    return etcd::other_line().in(fmt::format("{} {}", core::name_of(key.kind), key.name));
  }

  /// Where the keys of a window are; nothing when that is not one range, or an empty one.
  [[nodiscard]] std::optional<PlaceRange> range_of(const core::KeyWindow& window) const {
    const auto ranges = places_.ranges_of(window.listing);
    const auto from = places_.place_of({window.listing.kind, window.from});
    const auto before = places_.place_of({window.listing.kind, window.before});
    if (!ranges || ranges->size() != 1 || !from || !before) return {};
    PlaceRange range{std::max(ranges->front().from, *from), std::min(ranges->front().to, *before)};
    if (range.from >= range.to) return {};
    return range;
  }

  /// etcd does not say which key its user may not write.
  [[nodiscard]] static Error refused_write(const Error& error, std::span<const Write> writes) {
    std::set<std::string_view> kinds;
    for (const Write& write : writes) kinds.insert(name_of(write.key.kind));
    return error.in(fmt::format("etcd's user may not write one of {} (its role: docs/runbooks/etcd-roles.md)",
                                fmt::join(kinds, ", ")));
  }

  /// The write by which a commit is recognised: best one that names it.
  [[nodiscard]] const Write& witness_of(std::span<const Write> writes) const {
    const auto names = [&](const Write& write) { return etcd::names_its_commit(places_, write); };
    if (const auto named = std::find_if(writes.begin(), writes.end(), names); named != writes.end()) return *named;
    const auto put = std::find_if(writes.begin(), writes.end(), [](const Write& w) { return w.value.has_value(); });
    return put != writes.end() ? *put : writes.front();
  }

  /// One or two operations a key: the record, and what is beside it.
  [[nodiscard]] Result<void> add_gets(std::span<const Key> keys, TxnRequest& txn) const {
    for (const Key& key : keys) {
      TRY(std::string place, places_.place_of(key));
      txn.success.emplace_back(RangeRequest::one(std::move(place)));
      if (auto beside = calico::place_beside(key)) txn.success.emplace_back(RangeRequest::one(*std::move(beside)));
    }
    return {};
  }

  /// The record that the operations from `op` on asked for; `op` moves behind them.
  [[nodiscard]] Result<std::optional<Record>> record_from(const Key& key, const Over<TxnResponse>& response,
                                                          std::size_t& op) const {
    const KeyValue* kv = only_one(response.responses[op++]);
    std::optional<std::string> beside;
    if (calico::place_beside(key)) {
      if (const KeyValue* found = only_one(response.responses[op++])) beside = found->value;
    }
    if (kv == nullptr) return std::optional<Record>();
    TRY(Record record, etcd::decode(places_, key, *kv, beside, response.line));
    return std::optional(std::move(record));
  }

  /// Several records as of one moment, which becomes that of the first answer when it is now.
  [[nodiscard]] Result<std::vector<std::optional<Record>>> get_at(std::span<const Key> keys, Moment& moment,
                                                                  Deadline deadline) {
    std::vector<std::optional<Record>> records;
    for (std::size_t from = 0; from < keys.size(); from += kOpsMax / 2) {
      const auto some = keys.subspan(from, std::min(kOpsMax / 2, keys.size() - from));
      TxnRequest txn;
      TRY_VOID(add_gets(some, txn));
      for (RequestOp& op : txn.success) std::get<RangeRequest>(op).at_revision = moment.revision;
      TRY(const Over<TxnResponse> response, kv_->txn(txn, deadline, moment.line));
      moment.is_of(response);
      std::size_t op = 0;
      for (const Key& key : some) {
        TRY(auto record, record_from(key, response, op));
        records.push_back(std::move(record));
      }
    }
    return records;
  }

  static RangeRequest range_beside(const core::Listing& listing, const std::string& root) {
    return range_over({root + listing.name_prefix, wire::etcd::end_of_prefix(root + listing.name_prefix)},
                      kRecordsAtOnce, false);
  }

  /// Calls `add(kv, key)` for every record of a listing in a range, of which the first page has come.
  template <class Add>
  [[nodiscard]] Result<void> collect(const core::Listing& listing, PlaceRange range, const RangeResponse& first,
                                     const Moment& moment, Deadline deadline, Add add, bool keys_only) {
    const RangeResponse* page = &first;
    RangeResponse next;
    std::size_t bytes = 0;
    for (;;) {
      TRY_VOID(count_bytes(*page, bytes));
      for (const KeyValue& kv : page->kvs) {
        auto key = keys_only ? places_.listed_at(listing.kind, kv.key) : places_.record_at(listing.kind, kv.key);
        if (key && key->name.starts_with(listing.name_prefix)) TRY_VOID(add(kv, *std::move(key)));
      }
      if (!page->more || page->kvs.empty()) return {};
      range.from = page->kvs.back().key + '\0';
      RangeRequest request = range_over(range, keys_only ? kKeysAtOnce : kRecordsAtOnce, keys_only);
      request.at_revision = moment.revision;
      TRY(next, kv_->range(request, deadline, moment.line));
      page = &next;
    }
  }

  [[nodiscard]] static Result<void> count_bytes(const RangeResponse& page, std::size_t& bytes) {
    for (const KeyValue& kv : page.kvs) bytes += sizeof(KeyValue) + kv.key.size() + kv.value.size();
    if (bytes <= kListingBytesMax) return {};
    return fail(ErrorCode::corrupt, fmt::format("etcd lists more than {} bytes of records", kListingBytesMax));
  }

  /// What is beside the records of a listing.
  [[nodiscard]] Result<std::map<Key, std::string>> all_beside(const core::Listing& listing, const RangeResponse& first,
                                                              const Moment& moment, Deadline deadline) {
    return pages_beside(listing.kind, range_beside(listing, *calico::places_beside(listing.kind)), first, moment,
                        deadline);
  }

  /// What is beside the records of a kind in a range, of which the first page has come.
  [[nodiscard]] Result<std::map<Key, std::string>> pages_beside(Kind kind, RangeRequest request,
                                                                const RangeResponse& first, const Moment& moment,
                                                                Deadline deadline) {
    std::map<Key, std::string> beside;
    const RangeResponse* page = &first;
    RangeResponse next;
    std::size_t bytes = 0;
    for (;;) {
      TRY_VOID(count_bytes(*page, bytes));
      for (const KeyValue& kv : page->kvs) {
        if (auto key = calico::record_beside(kind, kv.key)) beside[*std::move(key)] = kv.value;
      }
      if (!page->more) return beside;
      request.key = page->kvs.back().key + '\0';
      request.at_revision = moment.revision;
      TRY(next, kv_->range(request, deadline, moment.line));
      page = &next;
    }
  }

  /// Calls `add(record)` for the records of a page; with `keys_only` they have nothing but their key.
  template <class Add>
  [[nodiscard]] Result<bool> for_page(const ListRequest& request, bool keys_only, Deadline deadline, Add add) {
    const core::Listing listing{request.kind, request.name_prefix};
    std::size_t left = request.limit;
    std::string after;
    if (!request.after.empty()) {
      if (const auto place = places_.place_of({request.kind, request.after})) after = *place;
    }
    TRY(const std::vector<PlaceRange> ranges, places_.ranges_of(listing));
    for (const PlaceRange& range : ranges) {
      PlaceRange rest = range;
      if (after >= rest.from) rest.from = after + '\0';
      while (rest.from < rest.to) {
        const auto limit =
            std::min<std::int64_t>(static_cast<std::int64_t>(left) + 1, keys_only ? kKeysAtOnce : kRecordsAtOnce);
        TRY(const Over<RangeResponse> page, kv_->range(range_over(rest, limit, keys_only), deadline));
        Moment moment;
        moment.is_of(page);
        std::vector<Key> keys;
        std::vector<const KeyValue*> kvs;
        for (const KeyValue& kv : page.kvs) {
          auto key = places_.record_at(request.kind, kv.key);
          const bool listed =
              key && key->name.starts_with(request.name_prefix) && (request.after.empty() || key->name > request.after);
          if (!listed) continue;
          keys.push_back(*std::move(key));
          kvs.push_back(&kv);
        }
        const std::size_t taken = std::min(keys.size(), left);
        TRY_VOID(add_page(std::span(keys).first(taken), kvs, moment, keys_only, deadline, add));
        left -= taken;
        if (keys.size() > taken) return true;
        if (!page.more || page.kvs.empty()) break;
        rest.from = page.kvs.back().key + '\0';
      }
    }
    return false;
  }

  template <class Add>
  [[nodiscard]] Result<void> add_page(std::span<const Key> keys, const std::vector<const KeyValue*>& kvs,
                                      const Moment& moment, bool keys_only, Deadline deadline, Add add) {
    if (keys.empty()) return {};
    std::map<Key, std::string> beside;
    if (!keys_only && calico::place_beside(keys.front())) {
      const RangeRequest request = range_over(
          {*calico::place_beside(keys.front()), *calico::place_beside(keys.back()) + '\0'}, kRecordsAtOnce, false);
      RangeRequest first = request;
      first.at_revision = moment.revision;
      TRY(const RangeResponse found, kv_->range(first, deadline, moment.line));
      TRY(beside, pages_beside(keys.front().kind, request, found, moment, deadline));
    }
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (keys_only) {
        Record record;
        record.key = keys[i];
        add(std::move(record));
        continue;
      }
      const auto known = beside.find(keys[i]);
      TRY(Record record,
          etcd::decode(places_, keys[i], *kvs[i], known == beside.end() ? std::nullopt : std::optional(known->second),
                       *moment.line));
      add(std::move(record));
    }
    return {};
  }

  [[nodiscard]] Result<void> add_write(const Write& write, const WriteToken& token, TxnRequest& txn,
                                       std::vector<const Key*>& compared) const {
    TRY(std::string place, places_.place_of(write.key));
    if (const etcd::Registry* registry = places_.registry_of(write.key.kind)) {
      TRY_VOID(registry->check_write(write));
    } else if (write.key.kind == Kind::foreign_service && !write.only_check) {
      return fail(ErrorCode::read_only, fmt::format("Service {} is Croft's own and read-only here: change it without "
                                                    "kubernetes= in the store's URL",
                                                    net::echo(write.key.name)));
    }
    if (write.condition.kind != Condition::Kind::any) {
      compared.push_back(&write.key);
      // An absent key has the revision 0 to etcd; to the contract it has none.
      const auto revision = write.condition.revision.value != 0 ? etcd::in_etcd(write.condition.revision) : kNoRevision;
      txn.compares.push_back(write.condition.kind == Condition::Kind::absent ? Compare::absent(place)
                                                                             : Compare::unchanged(place, revision));
      RangeRequest what_is_there = RangeRequest::one(place);
      what_is_there.keys_only = true;
      txn.failure.emplace_back(std::move(what_is_there));
    }
    if (write.only_check) return {};
    const auto beside = calico::place_beside(write.key);
    if (!write.value) {
      txn.success.emplace_back(DeleteRequest{std::move(place), {}, false});
      if (beside) txn.success.emplace_back(DeleteRequest{*beside, {}, false});
      return {};
    }
    calico::StoredBytes bytes = etcd::encode(places_, *write.value, token, clock_.now().wall);
    txn.success.emplace_back(PutRequest{std::move(place), std::move(bytes.value)});
    if (!beside) return {};
    if (bytes.beside) {
      txn.success.emplace_back(PutRequest{*beside, *std::move(bytes.beside)});
    } else {
      txn.success.emplace_back(DeleteRequest{*beside, {}, false});
    }
    return {};
  }

  static Error conflict_in(const TxnResponse& response, const TxnRequest& txn,
                           const std::vector<const Key*>& compared) {
    for (std::size_t i = 0; i < compared.size() && i < response.responses.size(); ++i) {
      const KeyValue* kv = only_one(response.responses[i]);
      const Compare& condition = txn.compares[i];
      const bool holds = condition.target == Compare::Target::version
                             ? kv == nullptr
                             : kv != nullptr && kv->mod_revision == condition.number;
      if (holds) continue;
      return {ErrorCode::conflict,
              fmt::format("{} {} was changed by somebody else; read again", core::name_of(compared[i]->kind),
                          compared[i]->name),
              {}};
    }
    return {ErrorCode::conflict, "a record was changed by somebody else; read again", {}};
  }

  /// etcd says that its space is used up before it applies a write, but also after the one that crossed the line: what
  /// is stored tells, and nothing can come later.
  [[nodiscard]] Result<Revision> settle_full(std::span<const Write> writes, const WriteToken& token, const Error& error,
                                             Deadline deadline) {
    const auto fate = fate_of(writes, token, deadline);
    if (!fate) return fail(ErrorCode::unknown_outcome, error.message);
    if (*fate == Fate::applied) return position(deadline);
    return fail(ErrorCode::storage_full,
                "etcd's space quota is used up: compact, defragment and disarm its alarm (etcdctl)");
  }

  const std::unique_ptr<etcd::Kv> kv_;
  const Clock& clock_;
  Random& random_;
  const std::unique_ptr<etcd::Registry> registry_;
  const etcd::Places places_;
  etcd::Looks looks_{random_};
  std::atomic<std::uint64_t> marks_gone_{0};
};

}  // namespace

std::unique_ptr<Store> make_etcd_store(std::unique_ptr<etcd::Kv> kv, const Clock& clock, Random& random,
                                       std::unique_ptr<etcd::Registry> registry) {
  return std::make_unique<EtcdStore>(std::move(kv), clock, random, std::move(registry));
}

}  // namespace croft::store
